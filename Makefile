# Each target makes .venv on first use; its stamps are older than pyproject.toml or constraints.txt
# whenever something has to be installed again.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip
# Python compiles what is imported; pip would compile all of torch too, which takes two minutes.
INSTALL := $(PIP) install -q --no-compile -c constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test test-journeys test-numeric test-long coverage lint docs bundled bench clean

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

demo: .venv/.stamp-demo ## Audit the bundled collection, without network
	HF_HUB_OFFLINE=1 $(BIN)/ranktilt demo

# Compiled files stay, whatever the shell says: rewriting the asserts of all tests takes each worker ten seconds.
# Tests run in an order that SEED draws, so that none depends on what ran before: make test SEED=2 draws another one.
SEED ?= 1
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n logical --maxprocesses 8 --randomly-seed=$(SEED)
# A worker that is done takes tests from the others.
test: .venv/.stamp-dev ## Run the tests that take seconds
	$(PYTEST) --dist worksteal -m "not long"

# A file of journeys stays with one worker, and with it what is encoded or drawn once for its tests.
test-journeys: .venv/.stamp-dev ## Read a report in a browser, encode with a real model, run README and the tutorials
	$(PYTEST) --dist loadfile --no-loadscope-reorder -m journey

# Nothing may depend on what a processor can do, or on how many cores it has.
NUMERIC := tests/measures tests/models tests/rankers/dense tests/rankers/lexical tests/rankers/rerank tests/statistics \
  tests/training tests/reporting/test_printed.py
test-numeric: .venv/.stamp-dev ## Run the numeric tests as a lesser processor would
	ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=AVX2 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
	  $(PYTEST) --dist worksteal -m "not long" $(NUMERIC)

test-long: .venv/.stamp-dev bundled ## Run what takes minutes: all pages and docs, benchmarks, clusters, kills, golden numbers
	$(PYTEST) --dist loadfile --no-loadscope-reorder -m long

coverage: .venv/.stamp-dev ## Run the quick tests with coverage, which doubles their time
	$(PYTEST) --dist worksteal -m "not long" --cov

lint: .venv/.stamp-dev ## Check format, style, types and how code reads
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python scripts/house.py
	$(BIN)/python scripts/vendor_js.py --check

docs: .venv/.stamp-docs ## Run the notebooks and build the site into build/site, without network; warnings are errors
	$(BIN)/python scripts/refresh_notebooks.py
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/site

# Into throw-away folders; NumPy 2.0 has no wheels for Python 3.13 and later, 2.1 has.
AWAY := .venv/bundled
bundled: .venv/.stamp-dev ## Check the bundled pairs on the oldest and the newest NumPy and SciPy
	rm -rf $(AWAY)
	$(PIP) install -q --no-deps --only-binary :all: --target $(AWAY)/oldest \
	  'numpy==2.0.0; python_version < "3.13"' 'numpy==2.1.*; python_version >= "3.13"' 'scipy==1.14.*'
	$(PIP) install -q --no-deps --only-binary :all: --target $(AWAY)/newest 'numpy==2.4.*' 'scipy==1.17.*'
	$(BIN)/python scripts/check_bundled.py $(AWAY)/oldest $(AWAY)/newest
	rm -rf $(AWAY)

bench: .venv/.stamp-dev ## Measure speed against the peers
	@set -e; for script in benchmarks/load.py benchmarks/lexical.py benchmarks/evaluate.py benchmarks/dense.py benchmarks/second_looks.py benchmarks/rerank.py benchmarks/search.py benchmarks/card.py benchmarks/intervals.py benchmarks/properties.py benchmarks/pool.py benchmarks/rewrite.py benchmarks/llm_rankers.py benchmarks/report.py benchmarks/explain.py benchmarks/mitigate.py benchmarks/mitigate_claims.py; do echo "== $$script"; $(BIN)/python "$$script"; done

clean: ## Remove caches and build output (not .venv)
	rm -rf build dist htmlcov .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# venv, a pip that knows pyproject.toml, and torch first, so that the extras find it in place.
.venv/.stamp-torch: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -c "import pip, sys; sys.exit(int(pip.__version__.split('.')[0]) < 23)" || $(PIP) install -q -U pip
	$(INSTALL) torch==2.13.0
	@touch $@

.venv/.stamp-demo: .venv/.stamp-torch
	$(INSTALL) -e '.[neural,demo]'
	@touch $@

.venv/.stamp-docs: .venv/.stamp-demo
	$(INSTALL) -e '.[docs,adapters]'
	@touch $@

.venv/.stamp-dev: .venv/.stamp-torch
	$(INSTALL) -e '.[neural,llm,train,datasets,plots,milvus,ray,demo,paper,bench,adapters,docs,dev]'
	@touch $@
