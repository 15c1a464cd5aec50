"""What a SystemVerilog source declares, as far as its text tells."""

import re


def declared_widths(text: str) -> dict[str, int]:
    """Bits of every vector that is declared with a number, by name."""
    return {
        name: int(high) + 1
        for high, names in re.findall(r"logic\s*\[(\d+):0\]\s*((?:(?!\blogic\b)[\w\s,])+)", text)
        for name in re.findall(r"\w+", names)
    }
