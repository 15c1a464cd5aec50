"""Rates and ratios of engines, from runs with known cycles and seconds."""

import numpy as np
import pytest
from benchmarks.engines import ProgramSet, compare, random_jobs, with_ratios

from capra import ChipTarget, load_model


def test_rates_with_and_without_images() -> None:
    runs = {
        "compiled": {"cycles": 1000, "seconds": 0.5},
        "verilator": {"cycles": 1000, "seconds": 5.0, "image_seconds": 3.0},
        "icarus": {"skipped": "icarus is not installed"},
    }
    found = with_ratios(runs)
    assert found["verilator"]["cycles_per_second"] == 200
    assert found["verilator"]["cycles_per_second_without_images"] == 500
    assert found["compiled"]["of_verilator"] == 10
    assert found["compiled"]["of_verilator_without_images"] == 4
    assert found["icarus"] == runs["icarus"]


def test_what_is_mostly_images_has_no_rate_without_them() -> None:
    found = with_ratios({"verilator": {"cycles": 10, "seconds": 5.0, "image_seconds": 4.9}})
    assert found["verilator"]["of_verilator"] == 1
    assert "cycles_per_second_without_images" not in found["verilator"]


def test_without_verilator_there_are_no_ratios() -> None:
    runs = {"readable": {"cycles": 10, "seconds": 5.0}, "verilator": {"skipped": "not there"}}
    assert "of_verilator" not in with_ratios(runs)["readable"]


def test_both_engines_run_all_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.engines.is_installed", lambda _: False)
    target = ChipTarget(load_model("random"))
    programs = [target.program("step", 1, cache) for cache in (0, 3)]
    found = compare(ProgramSet("two", programs, 2))
    for engine in ("readable", "compiled"):
        assert found[engine]["programs"] == 2
        assert found[engine]["cycles"] == sum(program.cycles for program in programs)
        assert found[engine]["seconds"] == min(found[engine]["rounds"])
    assert found["verilator"] == {"skipped": "verilator is not installed"}


def test_jobs_have_int8_in_every_word() -> None:
    (job,) = random_jobs([ChipTarget(load_model("random")).program("step", 1, 0)])
    assert job.scratchpad is not None
    for words in (job.external, job.scratchpad):
        assert np.abs(words).max() == 127
        assert (words != 0).mean() > 0.9
