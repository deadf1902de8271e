# Every target makes its own environment: a fresh machine needs Python 3.11 or newer, make and a network for pip.
#   make demo                      train a network and run two models, op by op and compiled, and compare
#   make test                      all tests (TESTS=tests/ops for some of them)
#   make check                     lint, types and tests: what has to pass before a commit
#   make docs                      the pages in docs/ as a web site: docs/build/html/index.html
#   make demo PYTHON=python3.12    with another Python

PYTHON ?= python3
VENV ?= .venv
TESTS ?=
# More workers than this only share the same memory bandwidth.
WORKERS ?= auto
PY = $(VENV)/bin/python
READY = $(VENV)/.ready
DEMO_READY = $(VENV)/.demo

.PHONY: demo test lint types check docs bench picture clean
.DEFAULT_GOAL := check

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "jitgrad needs Python 3.11 or newer: make PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
		{ echo "no venv module: install your system's python3-venv package"; rm -rf $(VENV); exit 1; }

# The environment is made again when the dependencies may have changed. Bytecode is written as for an installed package:
# where PYTHONDONTWRITEBYTECODE is set, every start would compile all modules, which takes a second.
$(READY): pyproject.toml | $(PY)
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[test,examples]'
	@$(PY) -m compileall -q -j 0 jitgrad
	@touch $@

# The demonstration needs little, and is the first that one wants to see: Python compiles the few modules that it imports.
$(DEMO_READY): pyproject.toml | $(PY)
	$(PY) -m pip install --quiet --disable-pip-version-check --no-compile --editable . scikit-learn
	@touch $@

# One BLAS thread: the products are small, and more threads would make op-by-op execution slower, not faster.
demo: $(DEMO_READY)
	@OPENBLAS_NUM_THREADS=1 $(PY) -m jitgrad demo

# The workers fill the cores; with BLAS threads beside them they would wait for each other.
test: $(READY)
	OPENBLAS_NUM_THREADS=1 $(PY) -m pytest -n $(WORKERS) --maxprocesses 8 --dist worksteal $(TESTS)

lint: $(READY)
	$(PY) -m ruff check .

types: $(READY)
	$(PY) -m mypy

check: lint types test

# A link or a reference that leads nowhere fails, like every other warning. From scratch, because the tables and the
# reference are read from the package, whose files Sphinx does not watch.
docs: $(READY)
	@$(PY) -c 'import sphinx, myst_parser, furo' 2>/dev/null || \
		$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	$(PY) -m sphinx -q -W --keep-going -E -b html docs docs/build/html
	@echo "docs/build/html/index.html"

bench: $(READY)
	$(PY) -m benchmarks

# docs/speed.svg, from the tables in docs/PERFORMANCE.md.
picture: $(READY)
	$(PY) docs/speed.py

clean:
	rm -rf $(VENV) build dist docs/build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find jitgrad tests examples benchmarks docs tools -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
