# The commands of the project. `make demo` and `make test` do all set-up themselves.

BIN := .venv/bin

# Commands that tests start, and the second run, find what is compiled.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test test-full check lint-rtl bench bench-peers bench-docs synth coverage formal mutants mutants-ci \
    mutants-general generate clean

setup: .venv/.complete

.venv/.complete: pyproject.toml constraints.txt scripts/setup.sh
	@sh scripts/setup.sh

demo: setup
	@$(BIN)/capra decode
	@sh scripts/demo_rtl.sh $(BIN)/capra

# Two workers on two cores: threads of a library would only get in their way.
test test-full: export OPENBLAS_NUM_THREADS = 1

test: setup
	@$(BIN)/pytest -n 2

# All tests, those marked `full` too: whole batteries, both simulators, the sweep of the text model.
test-full: setup
	@$(BIN)/pytest -n 2 -m ""

check: setup lint-rtl
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

# A missing verilator fails where CI is set.
lint-rtl:
	@if command -v verilator >/dev/null || [ -n "$$CI" ]; then \
	    cd rtl && verilator --lint-only -Wall lint/waivers.vlt -f files.f --top-module ga2; \
	else \
	    echo "check: verilator is not installed, the lint of the RTL is skipped" >&2; \
	fi

# Ten minutes: writes docs/reference/bench.json and the tables made from it.
bench: setup
	@$(BIN)/python -m benchmarks
	@$(BIN)/python -m benchmarks.docs

# The same for docs/reference/peers.json; installs the peers below build/peers.
bench-peers: setup
	@$(BIN)/python -m benchmarks.peers
	@$(BIN)/python -m benchmarks.docs

bench-docs: setup
	@$(BIN)/python -m benchmarks.docs

# Gates of every module, and docs/reference/synthesis.md; fails on a latch or an exploded memory.
synth: setup
	@$(BIN)/python rtl/syn/synthesis.py --write

# Branches of the package that its unit tests reach, and lines of the RTL that its suite reaches in
# Verilator; fails where either is below 95 %. tests/system is no unit test: it runs everything.
coverage: setup
	@mkdir -p build && rm -f build/.coverage*
	@$(BIN)/coverage run -m pytest -n 2 -m "" -k "not verilator" $(addprefix --ignore=tests/,$(NO_UNIT_TESTS))
	@$(BIN)/coverage combine -q
	@$(BIN)/coverage report; python=$$?; $(BIN)/python rtl/cov/coverage.py && exit $$python

NO_UNIT_TESTS := docs examples fuzz golden mutants system rtl/test_arithmetic.py rtl/test_synthesis.py

# Properties of RTL modules, by induction.
formal: setup
	@$(BIN)/python rtl/formal/prove.py

# Which deliberate faults do the tests notice? Ten minutes.
mutants: setup
	@$(BIN)/python -m mutants all
	@$(BIN)/python -m mutants.stubs

# Everything that cosmic-ray can change in arithmetic, compiler, bound and loop. About an hour.
mutants-general: setup
	@$(BIN)/pip install -qq --disable-pip-version-check -c constraints.txt -e '.[mutation]'
	@$(BIN)/python -m mutants.general

# One or two of every table, and whether all of them still apply.
mutants-ci: setup
	@$(BIN)/python -m mutants ci
	@$(BIN)/python -m mutants.stubs --ci

# Files that are made from the instruction table.
generate: setup
	@$(BIN)/python -m capra.isa.emit

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache build
