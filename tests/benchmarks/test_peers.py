"""What is read from the peers' reports, the files they get, and our product's reference."""

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.peers import environment, matmul, scalesim, zigzag

from capra.sim.device import SimulatedDevice

SCALE_SIM = """\
LayerID, Total Cycles (incl. prefetch), Total Cycles, Stall Cycles, Overall Util %,
0, 1234, 1000, 250.0, 12.5,
"""
ZIGZAG = {
    "outputs": {
        "latency": {"data_onloading": 30.0, "computation": 700.0, "data_offloading": 4.0},
        "energy": {"energy_total": 9},
    },
    "inputs": {"temporal_mapping": {"O": [["(K, 4)", "(K, 2)"], ["(N, 9)"], []], "I": []}},
}


def test_scale_sims_report() -> None:
    found = scalesim.parse_report(SCALE_SIM)
    assert found == {"cycles": 1234, "compute_cycles": 1000, "stall_cycles": 250}


@pytest.mark.parametrize(
    "text", ["", SCALE_SIM.splitlines()[0], SCALE_SIM.replace("Stall", "Idle"), SCALE_SIM + "1, 2,"]
)
def test_another_report_of_scale_sim_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="report"):
        scalesim.parse_report(text)


def test_zigzags_report() -> None:
    found = zigzag.parse_report(json.dumps(ZIGZAG))
    assert found == {
        "cycles": 734,
        "compute_cycles": 700,
        "loading_cycles": 30,
        "storing_cycles": 4,
        "loops": "(K, 4) (K, 2); (N, 9)",
    }


@pytest.mark.parametrize("text", ["{}", "no JSON"])
def test_another_report_of_zigzag_is_refused(text: str) -> None:
    with pytest.raises((KeyError, ValueError)):
        zigzag.parse_report(text)


def test_scale_sim_gets_the_array_and_halves_that_hold_the_operands() -> None:
    text = scalesim.configuration("ws", "USER")
    assert "ArrayHeight: 4\nArrayWidth: 4\n" in text
    assert "Dataflow: ws\n" in text
    assert "InterfaceBandwidth: USER\n" in text
    words = {"Ifmap": 4 * 576, "Filter": 576 * 576, "Ofmap": 4 * 576}
    assert all(1024 * scalesim.KIB[name] // 2 >= words[name] for name in words)


@pytest.mark.parametrize(
    ("dataflow", "stays"),
    [("output stationary", "O"), ("weight stationary", "I2"), ("input stationary", "I1")],
)
def test_zigzag_gets_one_port_for_everything(dataflow: str, stays: str, tmp_path: Path) -> None:
    zigzag.write_inputs(tmp_path, dataflow, "shared")
    chip = json.loads((tmp_path / "chip.yaml").read_text())
    assert chip["memories"]["cell"]["operands"] == [stays]
    for name in ("scratchpad", "external"):
        (port,) = chip["memories"][name]["ports"]
        assert port["bandwidth_max"] == 32
        assert len(port["allocation"]) == 8
    (product,) = json.loads((tmp_path / "matmul.yaml").read_text())
    assert product["loop_sizes"] == [4, 576, 576]


def test_zigzags_own_ports_feed_the_whole_array() -> None:
    ports = zigzag.chip("output stationary", "own")["memories"]["scratchpad"]["ports"]
    assert [port["bandwidth_max"] for port in ports] == [32 * 16] * 3
    assert [port["allocation"][0] for port in ports] == ["I1, fh", "I2, fh", "O, fh"]


def test_a_peer_that_cannot_be_installed_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'ERROR: no such thing' >&2\nexit 1\n")
    python.chmod(0o755)
    monkeypatch.setattr(environment, "BUILD", tmp_path)
    monkeypatch.setattr(environment, "PYTHON", python)
    found = {"skipped": "scalesim could not be installed: ERROR: no such thing"}
    assert scalesim.scale_sim() == found
    assert not (tmp_path / "scalesim.installed").exists()


def test_the_product_is_numpys() -> None:
    values = matmul.operands()
    y = SimulatedDevice(matmul.CHIP).execute(matmul.program(), values).outputs["y"]
    assert np.array_equal(y, matmul.in_numpy(values))
    assert y.shape == (4, 576)
    assert (abs(y) < 127).mean() > 0.9, "most values say something about their sums"
    values["x"][1, 5] += 1 if values["x"][1, 5] < 127 else -1
    changed = matmul.in_numpy(values)
    assert (y != changed).any(axis=1).tolist() == [False, True, False, False]
