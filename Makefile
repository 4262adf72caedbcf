# Needs Python 3.10 or newer and make; everything else is fetched into .tools and .venv.
PYTHON ?= python3
PIP ?= 26.3
SECONDS ?= 60
SAMPLE ?= 5
PIP_AUDIT = 2.10.1
TOOLS = .tools
VENV = .venv

ifeq ($(OS),Windows_NT)
BIN = Scripts
else
BIN = bin
endif

UV = $(TOOLS)/$(BIN)/uv
RUN = $(VENV)/$(BIN)
DISTRIBUTIONS = packages/pep-variants packages/variants-plugins packages/variants-index packages/variants-catalog packages/variants-proxy packages/variants-cli packages/uv-variants resolver-ext pip-patch

# PYTHONPATH and the like are meant for other programs of the user.
unexport $(filter PYTHON%,$(.VARIABLES)) UV_PROJECT_ENVIRONMENT VIRTUAL_ENV

.PHONY: help audit demo docs selector-record test test-package test-matrix conformance lint format fuzz bench bench-page wheels changelog release patched-pip clean
.DEFAULT_GOAL := help

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /make \1	/p' $(MAKEFILE_LIST) | expand -t 20

demo: $(VENV)/.done wheels ## numpy from PyPI as variants, by pip and by uv; a recorded index; builds of PyPI by the catalogue
	$(RUN)/python integration-tests/demo/demo.py

docs: $(VENV)/.done ## the documentation site, in build/site; needs Python 3.11 or newer
	$(RUN)/python -m sphinx -q -E -W --keep-going -c docs -d build/doctrees . build/site
	@echo build/site/index.html

selector-record: $(VENV)/.done ## what the selector's answers are made of, from the indexes
	PYTHONPATH=docs/_ext $(RUN)/python -m selector record

test: $(VENV)/.done ## run all tests
	$(RUN)/pytest -n auto --dist worksteal $(ARGS)

test-package: $(VENV)/.done ## the tests of one distribution, P=pep-variants
	$(if $(wildcard packages/$(P)/tests $(P)/tests),,$(error give the folder of a distribution: make test-package P=pep-variants))
	$(RUN)/pytest -n auto --dist worksteal $(wildcard packages/$(P)/tests $(P)/tests) $(ARGS)

test-matrix: $(VENV)/.done ## tests marked matrix, everywhere or load on every pip and Python, and the commands of all documents; takes long
	$(RUN)/pytest -n auto --full-matrix integration-tests/tests $(ARGS)

conformance: $(VENV)/.done ## the newest clients on the corpus, and docs/reference/conformance.md; SAMPLE=1 for all generated cases, ARGS=--oldest
	$(RUN)/python -m conformance run --page --sample $(SAMPLE) $(ARGS)

lint: $(VENV)/.done ## ruff, formatting, mypy --strict, imports, declared dependencies, names of change notes
	$(RUN)/ruff check
	$(RUN)/ruff format --check
	$(RUN)/mypy
	PYTHONPATH=pip-patch/src $(RUN)/lint-imports --no-logo --no-cache
	$(RUN)/python integration-tests/doors.py
	$(RUN)/towncrier build --draft --version next > $(if $(filter Windows_NT,$(OS)),NUL,/dev/null)
	@# What the pip shim imports is bundled, see pip-patch/hatch_build.py.
	@for distribution in $(filter-out pip-patch,$(DISTRIBUTIONS)); do \
		echo "deptry $$distribution"; \
		(cd $$distribution && "$(abspath $(RUN))/deptry" --no-ansi src) || exit 1; \
	done

format: $(VENV)/.done ## let ruff format and fix
	$(RUN)/ruff check --fix
	$(RUN)/ruff format

fuzz: $(VENV)/.done ## fuzz every reader of untrusted bytes, SECONDS=60 or INPUTS=500, SEED=random; one with TARGETS=document
	cd integration-tests && PYTHONPATH=.. ../$(RUN)/python -m fuzz --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) $(if $(INPUTS),--inputs $(INPUTS)) $(TARGETS)

bench: $(VENV)/.done wheels ## benchmarks and their record, in build/bench or RECORD=path; one group with BENCH=engine
	cd integration-tests && ../$(RUN)/python -m benchmarks run $(if $(RECORD),--record "$(abspath $(RECORD))") $(BENCH)

bench-page: $(VENV)/.done ## docs/reference/speed.md and the README's table, from RECORD=path
	$(if $(RECORD),,$(error give a record: make bench-page RECORD=a.json))
	cd integration-tests && ../$(RUN)/python -m benchmarks page "$(abspath $(RECORD))"

wheels: $(VENV)/.done ## build the wheels of all distributions into dist
	@rm -rf dist
	@for distribution in $(DISTRIBUTIONS); do \
		$(UV) build --quiet --wheel --out-dir dist $$distribution || exit 1; \
	done
	@cd pip-patch && ../$(RUN)/python -m patched.command --shim ../dist/pep_variants_shim-*.whl --out-dir ../dist > /dev/null
	@ls dist

changelog: $(VENV)/.done ## move the change notes into CHANGELOG.md, for the version in VERSION
	$(RUN)/python integration-tests/release.py --changelog

release: $(VENV)/.done ## wheels and sdists of the last commit, built twice and compared, and SHA256SUMS, into dist
	$(RUN)/python integration-tests/release.py dist --uv $(UV)

patched-pip: $(VENV)/.done ## wheel of a pip with variants built in, PIP=26.3, into dist
	@rm -f dist/pep_variants_shim-*.whl
	@$(UV) build --quiet --wheel --out-dir dist pip-patch
	@cd pip-patch && ../$(RUN)/python -m patched $(PIP) --shim ../dist/pep_variants_shim-*.whl --out-dir ../dist

audit: $(VENV)/.done ## known vulnerabilities in the lock and in the oldest releases that are admitted; asks PyPI
	@mkdir -p build
	$(UV) export --quiet --locked --all-packages --all-extras --all-groups --no-emit-workspace --output-file build/locked.txt
	$(RUN)/python integration-tests/floors.py > build/floors.txt
	$(UV) tool run pip-audit==$(PIP_AUDIT) --strict --disable-pip --require-hashes --requirement build/locked.txt
	$(UV) tool run pip-audit==$(PIP_AUDIT) --strict --disable-pip --no-deps --requirement build/floors.txt

clean: ## remove everything that make created
	find $(DISTRIBUTIONS) integration-tests -name __pycache__ -prune -exec rm -rf {} +
	rm -rf $(TOOLS) $(VENV) build dist .demo .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(UV):
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/$(BIN)/python -m pip install --quiet --disable-pip-version-check --only-binary :all: --require-hashes --requirement .ci/uv.txt

$(VENV)/.done: $(UV) uv.lock pyproject.toml $(DISTRIBUTIONS:%=%/pyproject.toml)
	$(UV) sync --quiet --locked --compile-bytecode --python $(TOOLS)/$(BIN)/python
	@touch $@
