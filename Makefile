# Everything a newcomer needs. Each target makes the virtual environment .venv by itself;
# only Python >= 3.11, git and make have to be there.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
WORKERS ?= 3 # one more than two cores: some tests wait for a server or a browser
unexport PYTHONDONTWRITEBYTECODE # tests start hundreds of processes, which would all compile anew

.DEFAULT_GOAL := help
.PHONY: help demo browser test test-slow lint format bench coverage docs clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(READY) ## Ask five made-up towns where it teaches most; compare, save a picture
	$(BIN)/malocate demo --output demo.png

test: $(READY) ## Run the tests and every example in the docstrings
	$(BIN)/python -m pytest -n $(WORKERS) $(ARGS)

test-slow: $(READY) ## Run the tests that take long (exit status 5 means that there are none)
	$(BIN)/python -m pytest -n $(WORKERS) -m slow $(ARGS) || [ $$? -eq 5 ]

browser: ## Install Chromium and nginx on Debian, for tests; CHROMIUM=path names another
	@{ command -v "$${CHROMIUM:-chromium}" && command -v nginx; } >/dev/null || { \
	  as_root=$$([ "$$(id -u)" = 0 ] || echo sudo); \
	  $$as_root apt-get update && \
	  $$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
	    chromium nginx-light; }

lint: $(READY) ## Check style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY) ## Put the code into the common style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY) ## Measure against the peers (each in an environment of its own)
	$(BIN)/python benchmarks/run.py $(ARGS)

coverage: $(READY) ## Simulate campaigns and write docs/coverage.md: how often the bands hold
	$(BIN)/python benchmarks/folds.py $(ARGS)
	$(BIN)/python benchmarks/widths.py $(ARGS)
	$(BIN)/python benchmarks/bands.py $(ARGS)

docs: $(READY) ## Build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean: ## Remove caches and built files; .venv stays
	rm -rf build dist site demo.png .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests -name __pycache__ -prune -exec rm -rf {} +

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "malocate needs Python 3.11 or newer, but '$(PYTHON)' is" \
	    "$$($(PYTHON) --version 2>/dev/null || echo missing); try: make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --group dev --editable '.[dask,examples,excel,parquet,plots,server,spss]'
	@touch $@
