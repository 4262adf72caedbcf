# Needs Python 3.10 or newer and make; everything else is fetched into .tools and .venv.
PYTHON ?= python3
PIP ?= 26.3
UV_VERSION = 0.13.8
TOOLS = .tools
VENV = .venv

ifeq ($(OS),Windows_NT)
BIN = Scripts
else
BIN = bin
endif

UV = $(TOOLS)/$(BIN)/uv
RUN = $(VENV)/$(BIN)
DISTRIBUTIONS = packages/pep-variants packages/variants-cli packages/uv-variants resolver-ext pip-patch

.PHONY: help demo test test-matrix lint format bench wheels patched-pip clean
.DEFAULT_GOAL := help

help: ## list what can be made
	@sed -n 's/^\([a-z-]*\):.*## /make \1	/p' $(MAKEFILE_LIST) | expand -t 20

demo: $(VENV)/.done wheels ## numpy from PyPI as variants, installed by a patched pip and by uv; the PyTorch tutorial
	$(RUN)/python integration-tests/demo/demo.py

test: $(VENV)/.done ## run all tests
	$(RUN)/pytest -n auto $(ARGS)

test-matrix: $(VENV)/.done ## every way to a wheel on every pip with every Python; takes a while
	$(RUN)/pytest -n auto --full-matrix -m "matrix or everywhere or load" integration-tests/tests $(ARGS)

lint: $(VENV)/.done ## ruff, formatting, mypy --strict
	$(RUN)/ruff check
	$(RUN)/ruff format --check
	$(RUN)/mypy

format: $(VENV)/.done ## let ruff format and fix
	$(RUN)/ruff check --fix
	$(RUN)/ruff format

bench: $(VENV)/.done wheels ## benchmarks, one group with BENCH=engine
	cd integration-tests && ../$(RUN)/python -m benchmarks $(BENCH)

wheels: $(UV) ## build the wheels of all distributions into dist
	@rm -rf dist
	@for distribution in $(DISTRIBUTIONS); do \
		$(UV) build --quiet --wheel --out-dir dist $$distribution || exit 1; \
	done
	@ls dist

patched-pip: $(VENV)/.done ## wheel of a pip with variants built in, PIP=26.3, into dist
	@rm -f dist/pep_variants_shim-*.whl
	@$(UV) build --quiet --wheel --out-dir dist pip-patch
	@cd pip-patch && ../$(RUN)/python -m patched $(PIP) --shim ../dist/pep_variants_shim-*.whl --out-dir ../dist

clean: ## remove everything that was made
	rm -rf $(TOOLS) $(VENV) dist .demo .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(UV):
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

$(VENV)/.done: $(UV) uv.lock pyproject.toml $(DISTRIBUTIONS:%=%/pyproject.toml)
	$(UV) sync --quiet --locked --python $(TOOLS)/$(BIN)/python
	@touch $@
