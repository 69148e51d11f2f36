# Everything a fresh machine needs: python3 with venv, make and a C compiler.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
SOURCE := $(shell find src -name '*.py') pyproject.toml

.PHONY: help demo test check bench clean

help:  ## this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

demo: $(STAMP)  ## track a small training run, print its summary and where the recording is
	$(BIN)/gpu-tracker run --record gpu-tracker-runs -- $(BIN)/python examples/train.py

test: check  ## everything: linters, architecture, unit, end-to-end and fault tests
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest
	$(BIN)/coverage report --include='*/gpu_tracker/analysis/*,*/gpu_tracker/units.py,*/gpu_tracker/values.py,*/gpu_tracker/model.py,*/gpu_tracker/errors.py,*/gpu_tracker/config.py,*/gpu_tracker/usage.py,*/gpu_tracker/reports/*,*/gpu_tracker/recording/*,*/gpu_tracker/sampler/account.py,*/gpu_tracker/sampler/ledger.py,*/gpu_tracker/sampler/sharing.py,*/gpu_tracker/sampler/budget.py,*/gpu_tracker/sampler/clock.py,*/gpu_tracker/sampler/salvage.py,*/gpu_tracker/sampler/wire.py,*/gpu_tracker/sources/allocation.py' --fail-under=100

check: $(STAMP)  ## ruff, mypy --strict
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(STAMP)  ## cost and accuracy, beside the peers; takes about ten minutes
	$(BIN)/python benchmarks/run.py

# The wheel is what users get, so the wheel is what is tested. A new pip writes the faster start script.
$(STAMP): $(SOURCE)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --force-reinstall --no-deps .
	$(BIN)/python -m pip install --quiet . --group check --group test
	touch $@

clean:  ## back to a fresh clone
	rm -rf $(VENV) .venv-bench build dist .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis
