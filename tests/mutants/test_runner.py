"""What the runner says of mutants in a checkout of two functions and two tests."""

import os
from pathlib import Path

import pytest
from mutants.mutant import Group, Mutant, MutantError, Result, check_tables, faults, record
from mutants.runner import copies_of, run_groups

SOURCE = "def double(x):\n    return x + x\n\n\ndef half(x):\n    return x // 2\n"
TESTS = """from thing import double, half


def test_double():
    assert double(3) == 6


def test_half():
    assert half(6) == 3
"""
QUICK = ("tests/test_thing.py::test_double",)
FULL = ("tests/test_thing.py",)


@pytest.fixture(autouse=True)
def one_copy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """One worker is enough for one mutant."""
    if request.function is not test_outcomes_are_told_apart:
        monkeypatch.setattr("mutants.runner.WORKERS", 1)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    (root / "src").mkdir(parents=True)
    (root / "tests").mkdir()
    (root / "src/thing.py").write_text(SOURCE)
    (root / "tests/test_thing.py").write_text(TESTS)
    return root


def mutant(find: str, replace: str, argument: str = "") -> Mutant:
    return Mutant(f"{find} to {replace}", "src/thing.py", find, replace, "wrong", QUICK, argument)


def run(checkout: Path, *mutants: Mutant) -> list[Result]:
    ((_, results, _),) = run_groups([Group("group", mutants, FULL)], checkout)
    return results


def test_outcomes_are_told_apart(checkout: Path) -> None:
    """All in one run: changes of the same length at the same place must not be mixed up."""
    results = run(
        checkout,
        mutant("x + x", "x - x"),
        mutant("x // 2", "x // 3"),
        mutant("x + x", "2 * x"),
        mutant("x + x", "x * 2", "the same number"),
        mutant("x + x", "x * x", "said to be the same number"),
    )
    told = [(r.outcome, r.caught_by, r.full) for r in results]
    assert told == [
        ("caught", "tests/test_thing.py::test_double", False),
        ("caught", "tests/test_thing.py::test_half", True),
        ("survived", None, True),
        ("equivalent", None, True),
        ("caught", "tests/test_thing.py::test_double", False),
    ]
    survivor, wrong = faults(results)
    assert survivor.startswith("x + x to 2 * x survived")
    assert wrong.startswith("x + x to x * x is declared equivalent, but tests/test_thing.py")
    totals = record("group", results, 1.0)["totals"]
    assert totals == {
        "mutants": 5, "caught": 3, "survived": 1, "equivalent": 1, "broken": 0, "score": 0.75,
        "seconds": 1.0,
    }  # fmt: skip
    assert (checkout / "src/thing.py").read_text() == SOURCE


def test_nothing_is_measured_where_the_healthy_tree_fails(checkout: Path) -> None:
    (checkout / "src/thing.py").write_text(SOURCE.replace("x + x", "x + x + 0 * y"))
    with pytest.raises(MutantError, match=r"fail without any mutant \(.*::test_double\)"):
        run(checkout, mutant("x // 2", "x // 3"))


def test_full_checks_must_pass_on_the_healthy_tree_too(checkout: Path) -> None:
    (checkout / "src/thing.py").write_text(SOURCE.replace("x // 2", "x // 4"))
    with pytest.raises(MutantError, match=r"fail without any mutant \(.*::test_half\)"):
        run(checkout, mutant("x + x", "2 * x"))


def test_what_cannot_be_imported_proves_nothing(checkout: Path) -> None:
    results = run(checkout, mutant("x + x", "x +"), mutant("x + x", "x\nimport nowhere"))
    assert [(r.outcome, r.caught_by) for r in results] == [("broken", None)] * 2
    first, second = faults(results)
    assert "x + x to x +: pytest ended with" in first and "SyntaxError" in first
    assert "No module named 'nowhere'" in second


def test_checks_that_do_not_exist_are_refused(checkout: Path) -> None:
    lost = Mutant("lost", "src/thing.py", "x + x", "x", "wrong", ("tests/test_gone.py",))
    with pytest.raises(MutantError, match="pytest ended with 4"):
        run(checkout, lost)


@pytest.mark.parametrize(("find", "count"), [("x + y", 0), ("return", 2)])
def test_the_place_of_a_mutant_is_there_once(checkout: Path, find: str, count: int) -> None:
    group = Group("group", (mutant(find, "pass"),), FULL)
    with pytest.raises(MutantError, match=f"occurs {count} times in src/thing.py, expected once"):
        check_tables([group], checkout)


def test_a_change_that_changes_nothing_is_refused(checkout: Path) -> None:
    with pytest.raises(MutantError, match="expected once"):
        check_tables([Group("group", (mutant("x + x", "x + x"),), FULL)], checkout)


def test_names_are_used_once(checkout: Path) -> None:
    group = Group("group", (mutant("x + x", "x"), mutant("x + x", "x")), FULL)
    with pytest.raises(MutantError, match=r"x \+ x to x names two mutants"):
        check_tables([group], checkout)


def test_settings_of_the_tests_around_do_not_reach_the_checks(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "CAPRA_SEED", "7")
    with (checkout / "tests/test_thing.py").open("a") as file:
        file.write(
            "\n\ndef test_seed():\n    import os\n\n    assert 'CAPRA_SEED' not in os.environ\n"
        )
    (result,) = run(checkout, mutant("x + x", "2 * x", "the same number"))
    assert result.outcome == "equivalent"


def test_without_an_end_is_caught_where_processor_time_is_limited(checkout: Path) -> None:
    endless = mutant("x + x", "[1 for _ in iter(int, 1)]")
    group = Group("group", (endless,), FULL, processor_seconds=1)
    ((_, (result,), _),) = run_groups([group], checkout)
    assert (result.outcome, result.caught_by) == ("caught", "no end in 1 s of processor time")


@pytest.mark.full
def test_checks_that_need_more_than_half_of_the_time_are_no_measure(checkout: Path) -> None:
    with (checkout / "tests/test_thing.py").open("a") as file:
        file.write(
            "\n\ndef test_slow():\n    from time import process_time\n\n"
            "    while process_time() < 60:\n        pass\n"
        )
    group = Group("group", (mutant("x + x", "2 * x"),), FULL, processor_seconds=2)
    with pytest.raises(
        MutantError, match=r"without any mutant \(no end in 1 s of processor time\)"
    ):
        list(run_groups([group], checkout))


def test_no_two_mutants_have_one_time(checkout: Path) -> None:
    """Machine code that numba keeps of one would be taken for that of the next of its size."""
    source, times = checkout / "src/thing.py", set()
    with copies_of(checkout) as copies, copies.one() as copy:
        for text in ("x = 1", "x = 2", "x = 3"):
            with copy.mutated("src/thing.py", text) as path:
                assert path.read_text() == text
                times.add(path.stat().st_mtime_ns)
    assert len(times | {source.stat().st_mtime_ns}) == 4


@pytest.mark.full
def test_a_fixture_that_fails_fails_its_test(checkout: Path) -> None:
    (checkout / "tests/test_thing.py").write_text(
        "import pytest\nfrom thing import double\n\n\n@pytest.fixture\ndef six():\n"
        "    assert double(3) == 6\n\n\ndef test_double(six):\n    pass\n"
    )
    (result,) = run(checkout, mutant("x + x", "x * x"))
    assert (result.outcome, result.caught_by) == ("caught", QUICK[0])
