"""Proofs about RTL modules, by induction, with Yosys and its own SAT solver.

    python rtl/formal/prove.py [--rtl DIR] [MODULE ...]

The properties of MODULE.svh are put in front of the module's `endmodule`, so that they see its
registers (what `bind` does, which Yosys 0.23 cannot). Prints a line a proof and exits with 1 when
one fails. Needs Yosys and the standard library only.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Final

RTL: Final = Path(__file__).parents[1]
SECONDS: Final = 600
"""Longest that one proof may take."""


@dataclass(frozen=True)
class Proof:
    """One module at some widths; those that are not given are the chip's."""

    module: str
    widths: Mapping[str, int] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    """Modules inside it."""

    def __str__(self) -> str:
        return " ".join([self.module, *(f"{name}={bits}" for name, bits in self.widths.items())])


PROOFS: Final = (
    Proof("saturate", {"WIDTH": 9}),
    Proof("saturate", {"WIDTH": 47}),
    Proof("requantizer", needs=("saturate",)),
    Proof("sequencer"),
    # Products and sums of addresses are too much for the solver at full width.
    Proof("walker", {"ADDRESS_BITS": 5, "COUNT_BITS": 3, "STRIDE_BITS": 4}),
    Proof("dma", {"ADDRESS_BITS": 4, "EXTERNAL_BITS": 5}),
)


def prove(proof: Proof, rtl: Path = RTL) -> bool:
    """Whether every property of a module holds in every state that it can reach."""
    before, after = (rtl / f"{proof.module}.sv").read_text().rsplit("endmodule", 1)
    properties = Path(__file__).with_name(f"{proof.module}.svh").read_text()
    with tempfile.TemporaryDirectory() as folder:
        bound = Path(folder) / f"{proof.module}.sv"
        bound.write_text(f"{before}{properties}endmodule{after}")
        others = " ".join(str(rtl / f"{name}.sv") for name in ("ga2_pkg", *proof.needs))
        widths = "".join(f" -chparam {name} {bits}" for name, bits in proof.widths.items())
        script = (
            f"read_verilog -sv -formal {others} {bound}; "
            f"hierarchy -top {proof.module}{widths}; prep -flatten; "
            "sat -prove-asserts -set-assumes -tempinduct -maxsteps 4"
        )
        done = subprocess.run(  # noqa: S603
            ["yosys", "-p", script],  # noqa: S607
            capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"yosys stopped at {proof}: {done.stderr.strip()}")
    return "Induction step proven: SUCCESS!" in done.stdout


def main() -> int:
    """Prove all modules or those named, two at a time."""
    parser = argparse.ArgumentParser(description="Proofs about RTL modules.")
    parser.add_argument("--rtl", type=Path, default=RTL)
    parser.add_argument("modules", nargs="*", metavar="MODULE")
    chosen = parser.parse_args()
    proofs = [p for p in PROOFS if not chosen.modules or p.module in chosen.modules]

    def run(proof: Proof) -> bool:
        start = monotonic()
        proven = prove(proof, chosen.rtl)
        state = "proven" if proven else "NOT PROVEN"
        print(f"{proof}: {state} in {monotonic() - start:.1f} s", flush=True)
        return proven

    with ThreadPoolExecutor(2) as pool:
        return 0 if all(list(pool.map(run, proofs))) and proofs else 1


if __name__ == "__main__":
    sys.exit(main())
