"""Figures show their records' numbers, and the same record gives the same bytes."""

import re
import xml.etree.ElementTree as ET
from functools import cache
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from tests.report.samples import HOSTILE, RECORDS, decode_record, grid_record, plan_record

from capra.isa.spec import Phase, Unit
from capra.report.attribution import attribute
from capra.report.figures import FIGURES, decoding, draw, speedup, verified
from capra.report.figures.style import LINES, UNIT_STYLES, Drawing, inline_svg, png, svg
from capra.report.kinds import KINDS
from capra.report.records import Source


@cache
def drawings() -> list[Drawing]:
    return list(draw([Source(kind, make()) for kind, make in RECORDS.items()]))


def axes_of(figure: Figure) -> Axes:
    (axes,) = figure.axes
    return axes


def ys(line: Line2D) -> list[float]:
    return [float(y) for y in np.asarray(line.get_ydata())]


def bars(axes: Axes) -> list[Rectangle]:
    return [patch for patch in axes.patches if isinstance(patch, Rectangle)]


def test_every_kind_of_record_has_its_figures() -> None:
    assert set(FIGURES) == set(KINDS)
    names = [drawing.name for drawing in drawings()]
    assert names == [f"{kind}-{name}" for kind in RECORDS for name, _, _ in FIGURES[kind]]
    assert len(set(names)) == len(names) == 15


def test_the_same_records_give_the_same_bytes() -> None:
    again = list(draw([Source("table", RECORDS["table"]()), Source("plan", plan_record())]))
    once = [drawing for drawing in drawings() if drawing.name.startswith(("table", "plan"))]
    for a, b in zip(once, again, strict=True):
        assert svg(a) == svg(b) == svg(a), a.name
        assert a.description == b.description
    assert png(once[0]) == png(again[0])
    assert png(once[0]).startswith(b"\x89PNG")


def test_svgs_are_whole_name_their_axes_and_share_no_identifier() -> None:
    seen: set[str] = set()
    for drawing in drawings():
        text = inline_svg(drawing)
        root = ET.fromstring(text)  # noqa: S314  # our own text
        ids = [element.attrib["id"] for element in root.iter() if "id" in element.attrib]
        assert len(ids) == len(set(ids)) and not seen & set(ids)
        seen |= set(ids)
        used = set(re.findall(r"(?:url\(#|href=\"#)([^)\"]+)", text))
        assert used <= set(ids), drawing.name
        assert all(name.startswith(f"{drawing.ident}-") for name in ids)
        assert "currentColor" in text and "#24292f" not in text
        assert axes_of(drawing.figure).get_xlabel(), f"{drawing.name} does not say what x is"
        assert drawing.description.endswith(".")


def test_a_hostile_name_is_only_text() -> None:
    table = RECORDS["table"]()
    for entry in table["runs"]:
        entry["model"] = HOSTILE
    for drawing in draw([Source("a", table)]):
        text = svg(drawing)
        root = ET.fromstring(text)  # noqa: S314  # our own text
        assert "<img" not in text and "<script" not in text
        assert any(HOSTILE in (element.text or "") for element in root.iter())


def test_colour_is_never_alone() -> None:
    assert len({hatch for _, hatch in UNIT_STYLES.values()}) == len(UNIT_STYLES) == len(Unit)
    assert len({marker for _, marker, _ in LINES}) == len(LINES)
    signs = {sign for _, sign in decoding.VERDICT_STYLES.values()}
    assert len(signs) == len(decoding.VERDICT_STYLES)


def test_blocks_have_a_square_a_token_with_its_sign() -> None:
    record = decode_record()
    figure, description = decoding.blocks(record)
    axes = axes_of(figure)
    blocks = record["speculative"]["trace"]
    assert len(bars(axes)) == sum(len(block["proposed"]) + 1 for block in blocks)
    signs = [text.get_text() for text in axes.texts]
    assert signs.count("✓") == record["speculative"]["accepted"]
    assert signs.count("↺") + signs.count("+") + signs.count("=") == len(blocks)
    run = record["speculative"]
    assert f"{run['accepted']} of {run['proposed']} guesses were accepted" in description


def test_a_long_run_shows_its_first_blocks_and_says_so() -> None:
    record = decode_record()
    record["speculative"]["trace"] *= 20
    figure, description = decoding.blocks(record)
    columns = {round(bar.get_x(), 2) for bar in bars(axes_of(figure))}
    assert len(columns) == decoding.MOST_BLOCKS
    assert f"the first {decoding.MOST_BLOCKS} of {len(record['speculative']['trace'])} blocks" in (
        description
    )


def test_acceptance_is_of_the_blocks_that_had_such_a_guess() -> None:
    blocks: list[dict[str, Any]] = [{"proposed": [1, 2]}, {"proposed": [1]}, {"proposed": [3, 4]}]
    run = {"trace": blocks, "accepted_per_position": [3, 1]}
    figure, description = decoding.acceptance_by_position({"speculative": run})
    assert [bar.get_height() for bar in bars(axes_of(figure))] == [100, 50]
    assert description.endswith(": 100%, 50%.")


def test_rows_of_the_mask_end_with_themselves() -> None:
    record = decode_record()
    made = decoding.mask(record)
    assert made is not None
    texts = [text.get_text() for text in axes_of(made[0]).texts]
    assert texts == [f"slice 0 .. {row}" for row in range(4)]  # the first verifier has no cache
    for block in record["speculative"]["trace"]:
        block["programs"] = [p for p in block["programs"] if p["role"] != "verify"]
    assert decoding.mask(record) is None


def test_steps_of_the_gain_lead_from_plain_to_speculative() -> None:
    assert sorted(p for _, phases in decoding.GAIN_PARTS for p in phases) == sorted(Phase)
    record = decode_record()
    figure, description = decoding.gain(record)
    plain, speculative, *steps = (bar.get_width() for bar in bars(axes_of(figure)))
    assert (plain, speculative) == (record["plain"]["cycles"], record["speculative"]["cycles"])
    assert plain + sum(steps) == speculative
    assert steps[-1] == record["speculative"]["draft_cycles"]
    assert f"draft {steps[-1]:+,.0f}." in description


def test_units_stand_beside_each_other_up_to_the_cycles() -> None:
    record = decode_record()
    figure, _ = decoding.units_of_runs(record)
    axes = axes_of(figure)
    for place, name in enumerate(("plain", "speculative")):
        run = record[name]
        row = [
            bar for bar in bars(axes) if bar.get_y() + bar.get_height() / 2 == pytest.approx(place)
        ]
        assert sum(bar.get_width() for bar in row) == run["cycles"]
        mark = np.asarray(axes.lines[place].get_xdata())
        assert set(mark.tolist()) == {attribute(run).roofline_cycles}


def test_the_table_has_a_bar_a_run() -> None:
    record = RECORDS["table"]()
    figure, description = speedup.table(record)
    assert [bar.get_width() for bar in bars(axes_of(figure))] == [
        run["cycles"] for run in record["runs"]
    ]
    assert "structured, noise 0, k = 3: 138,858 (1.93 times plain)" in description


def test_a_bench_has_a_mark_for_every_run_and_every_mean() -> None:
    record = RECORDS["bench"]()
    figure, description = speedup.spread(record)
    axes = axes_of(figure)
    *marks, means = [
        line for line in axes.lines if len(ys(line)) > 1 and str(line.get_marker()) in "oD"
    ]
    assert sorted(y for line in marks for y in ys(line)) == sorted(
        run["speedup"] for run in record["runs"]
    )
    assert ys(means) == [entry["mean"] for entry in record["by_k"]]
    for entry in record["by_k"]:
        assert f"{entry['losses']} of {entry['runs']} lose" in description


@pytest.mark.parametrize("predicted", [0, 4])
def test_a_grid_that_was_not_predicted_everywhere_shows_only_what_was_measured(
    predicted: int,
) -> None:
    record = grid_record()
    for cell in record["cells"][:predicted]:
        cell["predicted"] = {"profile": 7.0}
    figure, description = speedup.by_k(record)
    *measured, one = axes_of(figure).lines
    assert ys(one) == [1, 1]
    assert sorted(y for line in measured for y in ys(line)) == sorted(
        cell["speedup"] for cell in record["cells"]
    )
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert all(name.startswith("noise ") for name in legend)
    assert "redict" not in description


def test_derived_curves_meet_the_cells_of_certain_acceptance() -> None:
    figure, description = speedup.derived_curves(grid_record())
    lines = axes_of(figure).lines
    assert any(min(ys(line)) < 1 < max(ys(line)) for line in lines)
    assert "k = 1: " in description and "never" not in description
    certain = [{**cell, "acceptance_rate": 1.0, "accepted": 6, "blocks": 2, "k": 3, "speedup": 1.5}
               for cell in grid_record()["cells"][:1]]  # fmt: skip
    figure, _ = speedup.derived_curves({"cells": certain})
    assert ys(axes_of(figure).lines[0])[-1] == pytest.approx(1.5)


def test_the_cost_curve_has_a_line_at_every_cliff() -> None:
    figure, description = speedup.cost_curve(plan_record())
    points = plan_record()["cost_curve"]["points"]
    curve, *cliffs = axes_of(figure).lines
    assert ys(curve) == [point["cycles"] for point in points]
    assert [line.get_xdata()[0] for line in cliffs] == [4.5, 8.5, 12.5]  # type: ignore[index]
    assert "Cliffs at 5, 9, 13 rows." in description
    assert f"16: {points[15]['relative']:.2f}" in description


def test_a_plan_shows_measured_over_predicted() -> None:
    figure, description = speedup.predictions(plan_record())
    predicted, measured, *_ = axes_of(figure).lines
    ks = plan_record()["ks"]
    assert ys(predicted) == [entry["speedup"] for entry in ks]
    assert ys(measured) == [ks[k - 1]["measured"]["speedup"] for k in (1, 4)]
    assert f"measured: k = 1 {ys(measured)[0]:.2f}, k = 4 {ys(measured)[1]:.2f}." in description


def test_a_plan_without_runs_shows_what_is_predicted() -> None:
    record = plan_record()
    for entry in record["ks"]:
        entry["measured"] = None
    _, description = speedup.predictions(record)
    assert "predicted: k = 1" in description and "measured" not in description


def test_a_grid_that_was_predicted_shows_the_planners_numbers() -> None:
    record = grid_record()
    for place, cell in enumerate(record["cells"]):
        cell["predicted"] = {"profile": 1 + place / 8}
    figure, _ = speedup.by_k(record)
    drawn = sorted(y for line in axes_of(figure).lines for y in ys(line))
    assert {1 + place / 8 for place in range(5)} <= set(drawn)
    assert "predicted by the planner" in figure.legends[0].get_texts()[-1].get_text()


def test_a_run_without_tokens_can_be_drawn() -> None:
    record = decode_record()
    for name in ("plain", "speculative"):
        run = record[name]
        run |= {"tokens": [], "trace": [], "cycles": 0, "cycles_by_phase": {}}
        run["cycles_by_unit"] = dict.fromkeys(run["cycles_by_unit"], 0)
    record["speculative"]["accepted_per_position"] = []
    drawings = list(draw([Source("empty", record)]))
    assert [drawing.name for drawing in drawings] == [
        "empty-blocks", "empty-acceptance", "empty-gain", "empty-roofline",
    ]  # fmt: skip
    assert all(svg(drawing) for drawing in drawings)


def test_certified_graphs_and_programs_have_a_bar_each() -> None:
    record = RECORDS["certify"]()
    figure, description = verified.certified(record)
    counts = [*record["graphs"].values(), *record["programs"].values()]
    assert [bar.get_width() for bar in bars(axes_of(figure))] == counts
    assert description.startswith("Certified: 17 step graphs, ")
    assert verified.certified(record | {"certified": False})[1].startswith("Certified before the")
    empty = record | {"graphs": {}, "programs": {}, "certified": False}
    assert verified.certified(empty)[1].endswith("could not be: nothing.")


def test_tensors_stand_below_each_other_the_largest_error_first() -> None:
    tensors = {f"t{n}": {"relative_l2": n / 100, "largest_steps": 1} for n in range(1, 20)}
    tensors["logits"] = {"relative_l2": 0.001, "largest_steps": 1}
    figure, description = verified.tensors({"tensor_errors": {"tensors": tensors}})
    widths = [bar.get_width() for bar in bars(axes_of(figure))]
    assert widths == pytest.approx([*range(19, 7, -1), 0.1])
    names = [label.get_text() for label in axes_of(figure).get_yticklabels()]
    assert names[0] == "t19" and names[-1] == "logits"
    assert "t19 19.00%, t18 18.00%" in description and "logits 0.10%." in description


def test_a_replayed_program_is_split_by_unit() -> None:
    record = RECORDS["replay"]()
    figure, _ = verified.replayed(record)
    assert sum(bar.get_width() for bar in bars(axes_of(figure))) == record["cycles"]
