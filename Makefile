# Everything a fresh machine needs: python3 with venv, make and a C compiler.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PACKAGE := $(VENV)/.package
TOOLS  := $(VENV)/.tools
SOURCE := $(shell find src -name '*.py') pyproject.toml

# Second opinions that are large to fetch; what cannot be had here is skipped, with the reason.
WITH   ?=
FRAMEWORKS := $(if $(filter frameworks,$(WITH)),$(VENV)/.frameworks)
TOOLS_OF_OTHERS := $(if $(filter tools,$(WITH)),$(VENV)/.real-tools)

# Most tests wait for processes: more of them than there are cores can do so at once.
WORKERS ?= 4
PYTEST = REAL_GPU_TOOLS=$(abspath $(VENV))/real-tools $(BIN)/pytest
PARALLEL = --numprocesses=$(WORKERS) --dist=worksteal

.PHONY: help demo test soak test-all test-oldest test-here check bench clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

demo: $(PACKAGE)  ## track a small training run, print its summary and where the recording is
	$(BIN)/gpu-tracker run --record gpu-tracker-runs -- $(BIN)/python examples/train.py

test: check $(FRAMEWORKS) $(TOOLS_OF_OTHERS)  ## everything; WITH="frameworks tools" also asks PyTorch, JAX, TensorFlow, rocm-smi, gputop
	$(BIN)/coverage erase
	$(PYTEST) -m "not serial" $(PARALLEL) --coverage
	$(PYTEST) -m serial --coverage
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --include="$$($(BIN)/python tests/tools/list_pure.py)" --fail-under=100

soak: check  ## what can go wrong once in many times, many times
	$(PYTEST) -m "repeats and not serial" --soak $(PARALLEL)
	$(PYTEST) -m "repeats and serial" --soak

# A part of the tests for the three targets below, as pytest takes it: TESTS=tests/cli
TESTS  ?=

test-all:  ## the tests with every Python that pyproject.toml promises and this machine has; TESTS=tests/cli for a part
	$(PYTHON) tests/tools/every_python.py

test-oldest:  ## the tests with the oldest Python here and the oldest dependencies that pyproject.toml allows
	$(PYTHON) tests/tools/every_python.py --oldest

test-here: $(PACKAGE) $(TOOLS)
	$(PYTEST) -m "not serial" $(PARALLEL) $(TESTS)
	$(PYTEST) -m serial $(TESTS) || test $$? = 5  # a part of the tests may have none

check: $(PACKAGE) $(TOOLS)  ## ruff, mypy --strict
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(PACKAGE)  ## cost and accuracy, beside the peers; takes about ten minutes
	$(BIN)/python benchmarks/run.py

# The wheel is what users get, so the wheel is what is tested. A new pip writes the faster start script.
$(PACKAGE): $(SOURCE)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet .
	$(BIN)/python -m pip install --quiet --force-reinstall --no-deps .
	touch $@

$(TOOLS): pyproject.toml | $(PACKAGE)
	$(BIN)/python -m pip install --quiet --group check --group test
	touch $@

# PyTorch without what it depends on: nothing is computed with it here.
$(VENV)/.frameworks: | $(TOOLS)
	-$(BIN)/python -m pip install --quiet --no-deps --group torch
	-$(BIN)/python -m pip install --quiet --group frameworks && touch $@

$(VENV)/.real-tools: | $(TOOLS)
	-sh tests/tools/fetch_real_tools.sh $(VENV)/real-tools >/dev/null && touch $@

clean:  ## back to a fresh clone
	rm -rf .venv .venv-* build dist .coverage* .mypy_cache .ruff_cache .pytest_cache .hypothesis
