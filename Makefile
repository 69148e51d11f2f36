# A fresh machine needs python3 with venv, make and a C compiler.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PACKAGE := $(VENV)/.package
TOOLS  := $(VENV)/.tools
SOURCE := $(shell find src -type f -not -name '*.pyc') pyproject.toml

# Large downloads to test against; what is not available here is skipped, with the reason.
WITH   ?=
FRAMEWORKS := $(if $(filter frameworks,$(WITH)),$(VENV)/.frameworks)
TRAINERS := $(if $(filter trainers,$(WITH)),$(VENV)/.trainers)
REAL_TOOLS := $(if $(filter tools,$(WITH)),$(VENV)/.real-tools)
NOTEBOOK := $(if $(filter notebook,$(WITH)),$(VENV)/.notebook)
DOCS := $(if $(filter docs,$(WITH)),$(VENV)/.docs)
SINKS := $(if $(filter sinks,$(WITH)),$(VENV)/.sinks)
BROWSER := $(if $(filter browser,$(WITH)),$(VENV)/.browser)
SHELLS := $(if $(filter shells,$(WITH)),$(VENV)/.shells)

# Most tests wait for processes, so there can be more workers than cores.
WORKERS ?= 4
PYTEST = REAL_GPU_TOOLS=$(abspath $(VENV))/real-tools REAL_BROWSER=$(abspath $(VENV))/browser REAL_PROMETHEUS=$(abspath $(VENV))/prometheus $(BIN)/pytest
PARALLEL = --numprocesses=$(WORKERS) --dist=worksteal
# These do almost nothing but wait, and are beside their like only. What they test runs in other processes: coverage would only delay them.
WAITING = -m timed --numprocesses=4 --dist=worksteal
REST = -m "not serial and not timed" $(PARALLEL)
# Every worker loads the tests, and every workload its modules: compiling them each time would take half a minute.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo test soak clusters ray test-wine test-all test-oldest test-here check release-check bench docs gallery clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

demo: $(PACKAGE)  ## track a small training run: its summary here, its page in report.html
	$(BIN)/gpu-tracker run --st 0.1 --record gpu-tracker-runs --report report.html -- $(BIN)/python examples/train.py
	@echo "Open $(abspath report.html) in a browser (xdg-open report.html)."

test: check $(FRAMEWORKS) $(TRAINERS) $(REAL_TOOLS) $(NOTEBOOK) $(BROWSER) $(SINKS) $(SHELLS) $(DOCS)  ## everything; WITH="frameworks trainers tools notebook browser sinks shells docs" adds PyTorch, JAX, TensorFlow, Lightning, Transformers, Keras, rocm-smi, gputop, Jupyter, Chromium, W&B, MLflow, TensorBoard, Prometheus, zsh, fish, MkDocs
	$(BIN)/coverage erase
	$(PYTEST) -m serial --coverage
	$(PYTEST) $(WAITING)
	$(PYTEST) $(REST) --coverage
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --include="$$($(BIN)/python tests/tools/list_pure.py)" --fail-under=100

soak: check  ## tests of rare races, repeated many times
	$(PYTEST) -m repeats --soak $(PARALLEL)

# The tests of a file share a cluster, or have the machine's containers; of different files they wait beside each other.
clusters: $(PACKAGE) $(TOOLS) $(VENV)/.torch $(VENV)/.engines  ## jobs on a real Slurm and Dask, containers and torchrun on this machine; installs them (Debian, root)
	sh tests/tools/install_cluster.sh >/dev/null
	REAL_CLUSTER=1 $(PYTEST) tests/clusters --ignore=tests/clusters/test_ray.py --numprocesses=2 --dist=loadfile

# Three nodes of Ray take all of a small machine, and its tests judge what is seen ten times a second: they are run by hand, alone.
ray: $(PACKAGE) $(TOOLS) $(VENV)/.engines  ## jobs on a real Ray with three nodes on this machine; installs it (root)
	REAL_CLUSTER=1 $(PYTEST) tests/clusters/test_ray.py

test-wine: $(PACKAGE) $(TOOLS)  ## the tests of Windows with Windows Pythons under Wine; installs them (Debian, root); TESTS=tests/platforms for a part
	PYTHONPATH=tests $(BIN)/python -m tools.wine $(TESTS)

# Part of the tests, for the target above and the three below: TESTS=tests/cli
TESTS  ?=

test-all:  ## the tests with every Python that pyproject.toml allows and this machine has; TESTS=tests/cli for a part
	$(PYTHON) tests/tools/every_python.py

test-oldest:  ## the tests with the oldest Python here and the oldest dependencies that pyproject.toml allows
	$(PYTHON) tests/tools/every_python.py --oldest

test-here: $(PACKAGE) $(TOOLS)
	$(PYTEST) -m serial $(TESTS) || test $$? = 5  # 5: this part has none
	$(PYTEST) $(WAITING) $(TESTS) || test $$? = 5
	$(PYTEST) $(REST) $(TESTS)

check: $(PACKAGE) $(TOOLS)  ## ruff, mypy --strict
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

release-check: $(TOOLS)  ## rehearse a release: build it twice, install it with each Python here and use it
	$(BIN)/python -m pip install --quiet --group release
	PYTHONPATH=tests $(BIN)/python -m tools.release_check

bench: $(PACKAGE)  ## cost and accuracy, beside other tools; about ten minutes
	$(BIN)/python benchmarks/run.py

docs: $(PACKAGE) $(VENV)/.docs  ## the documentation as a site, in build/site; needs no network to be built or read
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(BIN)/python docs/check_site.py build/site
	$(BIN)/python tests/tools/document_blocks.py
	@echo "Open $(abspath build/site)/index.html in a browser."

gallery: $(PACKAGE) $(VENV)/.browser  ## the pictures of docs/gallery.md, of real runs
	$(BIN)/python docs/make_gallery.py $(VENV)/browser

# Tests run on what users get: the wheel. A new pip writes a faster start script.
$(PACKAGE): $(SOURCE)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet .
	$(BIN)/python -m pip install --quiet --force-reinstall --no-deps .
	touch $@

$(TOOLS): pyproject.toml | $(PACKAGE)
	$(BIN)/python -m pip install --quiet --group check --group test
	touch $@

# PyTorch without its dependencies: nothing is computed with it here.
$(VENV)/.torch: | $(TOOLS)
	-$(BIN)/python -m pip install --quiet --no-deps --group torch && touch $@

$(VENV)/.frameworks: | $(TOOLS) $(VENV)/.torch
	-$(BIN)/python -m pip install --quiet --group frameworks && touch $@

# The same PyTorch with its dependencies, which are added if it is there without them. After the above, or two would install at once.
$(VENV)/.trainers: | $(TOOLS) $(FRAMEWORKS)
	-$(BIN)/python -m pip install --quiet --group trainers && touch $@

$(VENV)/.engines: | $(TOOLS)
	$(BIN)/python -m pip install --quiet --group engines
	touch $@

$(VENV)/.real-tools: | $(TOOLS)
	-sh tests/tools/fetch_real_tools.sh $(VENV)/real-tools >/dev/null && touch $@

$(VENV)/.notebook: | $(TOOLS)
	-$(BIN)/python -m pip install --quiet --group notebook && touch $@

$(VENV)/.sinks: | $(TOOLS)
	-$(BIN)/python -m pip install --quiet --group sinks && sh tests/tools/fetch_prometheus.sh $(VENV)/prometheus >/dev/null && touch $@

$(VENV)/.docs: pyproject.toml | $(TOOLS)
	$(BIN)/python -m pip install --quiet --group docs
	touch $@

$(VENV)/.browser: | $(TOOLS)
	-$(BIN)/python -m pip install --quiet --group browser && sh tests/tools/install_browser.sh $(VENV)/browser >/dev/null && touch $@

$(VENV)/.shells: | $(TOOLS)
	-sh tests/tools/install_shells.sh >/dev/null && touch $@

clean:  ## back to a fresh clone
	rm -rf .venv .venv-* build dist .coverage* .mypy_cache .ruff_cache .pytest_cache .hypothesis
