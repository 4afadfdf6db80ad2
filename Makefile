# Needs Python 3.11 or newer, make, and a package registry. `make help` lists what there is.
PYTHON  ?= python3
VENV    ?= .venv
# One more than the cores of a small machine, as some tests wait rather than compute.
WORKERS ?= 3
SCHEDULES ?= 10000
# Empty, a new lock keeps the versions of the one before and adds only what is missing.
UPGRADE ?= --upgrade
# Settings that suit the demo's problem, where points return: all of them may be in a dictionary.
DEMO    ?= compare catalogue --gamma 1 --lam 1 --alpha 0.5 --set ApproxDisKernelUCB.qbar=10 --out demo

BIN     := $(VENV)/bin
PIP     := $(BIN)/python -m pip --disable-pip-version-check
EDITABLE = $(PIP) install -qq --no-deps --no-build-isolation --force-reinstall -e .
LOCKENV := .lockenv
# Extras with a lock of their own, each in requirements/.
LOCKS   := dev docs
DOCS    := .docsenv
# One BLAS thread per process: workers do not fight over cores, and sums are added in one order.
# Bytecode is kept, also where the environment says not to: tests start hundreds of processes, and each would compile laconic anew.
ONE_THREAD := MPLBACKEND=Agg OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 VECLIB_MAXIMUM_THREADS=1 \
  PYTHONDONTWRITEBYTECODE=

# What is printed side by side comes in one piece a target, where make can do that.
ONE_AT_A_TIME := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help venv demo test lint types layers browser tests soak faults tutorial bench judged docs lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' Makefile

# Whatever pip did since, as pip install . does which the README names: commands below run the source in this folder.
HERE := import sys, importlib.util as u, pathlib as p; s = u.find_spec("laconic"); \
  sys.exit(s is None or not p.Path(s.origin).resolve().is_relative_to(p.Path("src").resolve()))

venv: $(VENV)/.installed ## make the virtual environment
	@$(BIN)/python -Ic '$(HERE)' || { echo "$(VENV) has another laconic; it is linked to src/ again."; $(EDITABLE); }

$(VENV)/.locked: requirements/dev.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit(f"laconic needs Python 3.11 or newer; $(PYTHON) is {v[0]}.{v[1]}. Try: make PYTHON=python3.12")'
	@echo "Making $(VENV) from requirements/dev.txt; this takes a minute."
	@$(PYTHON) -m venv --clear $(VENV)
	@$(PIP) install -qq --no-compile --require-hashes -r requirements/dev.txt
	@touch $@

$(VENV)/.installed: $(VENV)/.locked pyproject.toml
	@$(EDITABLE)
	@$(PIP) check > $(VENV)/.check || { cat $(VENV)/.check >&2; echo "The lock does not fit pyproject.toml. Try: make lock" >&2; exit 1; }
	@touch $@

# What an earlier demo left would be shown again, also by a laconic that has changed since.
demo: venv ## compare the paper's algorithms; figure and table go to demo/
	@rm -rf demo
	$(BIN)/laconic $(DEMO)

# The browser comes over the network while packages are installed.
test: ## everything CI checks
	@$(MAKE) --no-print-directory -j 2 $(ONE_AT_A_TIME) browser types lint layers
	@$(MAKE) --no-print-directory tests

lint: venv ## style, with ruff
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: venv ## types, with mypy
	$(BIN)/mypy

layers: venv ## which module may use which, with lint-imports
	$(BIN)/lint-imports --no-logo

# A browser is not a Python package: Debian's is installed where that is allowed, else the test that needs it is skipped.
browser: ## install Debian's chromium where that is allowed, for the one test that needs it
	@if ! command -v chromium > /dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
	  echo "Installing Debian's chromium for the browser test."; \
	  { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends chromium; } \
	    > /dev/null 2>&1 || true; \
	fi
	@command -v chromium > /dev/null || echo "No chromium here: the browser test will be skipped."

tests: venv browser ## the tests (lint, types and layers apart)
	$(ONE_THREAD) $(BIN)/pytest -n $(WORKERS)

soak: venv ## simulate SCHEDULES fault schedules, and find the bugs that are planted for that
	$(ONE_THREAD) $(BIN)/python -m laconic.testing.simulation --planted
	$(ONE_THREAD) $(BIN)/python -m laconic.testing.simulation --schedules $(SCHEDULES) --workers $(WORKERS)

faults: venv ## real processes of a federation under every fault, then killed at random (FAULTS="--seconds 600")
	$(ONE_THREAD) $(BIN)/pytest tests/service
	$(ONE_THREAD) $(BIN)/python -m tests.service.soak $(FAULTS)

tutorial: venv ## run the notebook of the tutorial, and keep what it shows in it
	$(ONE_THREAD) $(BIN)/python -m tools.notebook docs/tutorial.ipynb

bench: venv ## run benchmarks/ (BENCH="..." passes options)
	$(ONE_THREAD) $(BIN)/python -m benchmarks $(BENCH)

judged: venv ## LaconicUCB beside its rivals, against targets; hours, and it goes on where it was stopped (JUDGED="...")
	$(ONE_THREAD) $(BIN)/python -m benchmarks.judged $(JUDGED)

$(DOCS)/.installed: requirements/docs.txt
	@echo "Making $(DOCS) from requirements/docs.txt; this takes a minute."
	@$(PYTHON) -m venv --clear $(DOCS)
	@$(DOCS)/bin/python -m pip --disable-pip-version-check install -qq --require-hashes -r requirements/docs.txt
	@touch $@

docs: $(DOCS)/.installed ## build the documentation in site/
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict --quiet
	@$(DOCS)/bin/python -m tools.offline site
	@echo "open site/index.html"

lock: ## resolve requirements/*.txt anew, with hashes, for every supported Python and platform (UPGRADE= keeps versions)
	@$(PYTHON) -m venv $(LOCKENV)
	@$(LOCKENV)/bin/python -m pip --disable-pip-version-check install -qq --upgrade uv
	@set -e; for extra in $(LOCKS); do \
	  echo "Resolving requirements/$$extra.txt"; \
	  $(LOCKENV)/bin/uv --no-config --quiet pip compile pyproject.toml --extra $$extra --output-file requirements/$$extra.txt \
	    --universal --python-version 3.11 --generate-hashes $(UPGRADE) \
	    --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock'; \
	done

clean: ## remove everything made here
	rm -rf $(VENV) $(LOCKENV) $(DOCS) site demo judged shop-state examples/sidecar/edge-1.* build dist .benchmarks .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests benchmarks docs examples tools -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
