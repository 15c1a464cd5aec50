"""Programs taken apart; the recorded figures are in tests/golden."""

import pytest
from tests.lm.samples import chip_target, text_model

from capra.errors import InputError
from capra.lab.anatomy import compare_programs, program_anatomy, verifier_anatomy
from capra.lm.bigram import compile_bigram
from capra.lm.models import load_bigram


def test_a_verifier_stands_beside_the_steps_of_its_rows() -> None:
    target, model = chip_target("text"), text_model()
    draft = compile_bigram(load_bigram(model), model.config.chip)
    record = verifier_anatomy(target, 3, 5, draft)
    assert record["verifier"] == program_anatomy(target.program("verify", 3, 5))
    assert record["draft"] == program_anatomy(draft)
    programs = [target.program("step", 1, cache) for cache in (5, 6, 7)]
    assert [step["cache"] for step in record["steps"]] == [5, 6, 7]
    assert [step["cycles"] for step in record["steps"]] == [p.cycles for p in programs]
    together = record["steps_together"]
    assert together["name"] == "3 steps"
    assert together["cycles"] == sum(p.cycles for p in programs)
    assert together["words_loaded"] == sum(p.words_loaded for p in programs)
    assert together["instructions"] == sum(len(p.instructions) for p in programs)
    assert together["histogram"]["MM"] == sum(p.histogram()["MM"] for p in programs)
    assert together["cycles_by_unit"]["dma"] == sum(p.counters.dma for p in programs)
    assert record["ratio"] == record["verifier"]["cycles"] / together["cycles"]


@pytest.mark.parametrize(("rows", "cache"), [(1, 3), (4, 21)])
def test_blocks_that_are_none_are_refused(rows: int, cache: int) -> None:
    model = text_model()
    draft = compile_bigram(load_bigram(model), model.config.chip)
    with pytest.raises(InputError, match=f"{rows} rows after {cache}, expected at least 2"):
        verifier_anatomy(chip_target("text"), rows, cache, draft)


def test_programs_side_by_side() -> None:
    target = chip_target("text")
    programs = [target.program("step", 1, 2), target.program("verify", 4, 2)]
    record = compare_programs(programs)
    assert record["programs"] == [program_anatomy(program) for program in programs]
    assert record["ratios"] == [1.0, programs[1].cycles / programs[0].cycles]
