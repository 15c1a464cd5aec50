# The commands of the project. `make demo` and `make test` do all set-up themselves.

BIN := .venv/bin

.PHONY: setup demo test test-full check bench generate clean

setup: .venv/.complete

.venv/.complete: pyproject.toml constraints.txt scripts/setup.sh
	@sh scripts/setup.sh

demo: setup
	@$(BIN)/capra decode

test: setup
	@$(BIN)/pytest -n 2

# The whole sweep of the text model: minutes instead of seconds.
test-full: setup
	@CAPRA_FULL=1 $(BIN)/pytest -n 2 tests/system tests/lm/test_evaluate.py

check: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: setup
	@$(BIN)/python -m benchmarks

# Files that are made from the instruction table.
generate: setup
	@$(BIN)/python -m capra.isa.emit

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache build
