# The commands of the project. `make demo` and `make test` do all set-up themselves.

BIN := .venv/bin

.PHONY: setup demo test check bench synth coverage generate clean

setup: .venv/.complete

.venv/.complete: pyproject.toml constraints.txt scripts/setup.sh
	@sh scripts/setup.sh

demo: setup
	@$(BIN)/capra decode

test: setup
	@$(BIN)/pytest -n 2

check: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: setup
	@$(BIN)/python -m benchmarks

# Gates of every module, and docs/reference/synthesis.md; fails on a latch or an exploded memory.
synth: setup
	@$(BIN)/python rtl/syn/synthesis.py --write

# Lines of the RTL that its suite reaches in Verilator; fails below 95 %.
coverage: setup
	@$(BIN)/python rtl/cov/coverage.py

# Files that are made from the instruction table.
generate: setup
	@$(BIN)/python -m capra.isa.emit

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache build
