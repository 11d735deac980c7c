# Commands for working on Presage; plain `make` lists them. Targets that run the project install its dependencies first
# (`setup`); `test` also installs clients of the exchanges, `soak` MCP's clients, ccxt, chdb and a browser, `screenshots` a browser.
# `lock` needs only uv, and so also works when an outdated lock file makes `setup` fail.
.DEFAULT_GOAL := help
SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
ARGS ?=

.PHONY: help setup installed collected tested demo up test test-hours test-load lint format client screenshots bench soak cluster fuzz lock browser compiler images digests sbom clean

help: ## Print this help
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'
	@echo
	@echo '  Options go in ARGS: make demo ARGS="--for 90 --json out.json"'

# The first time; later versions of it come with the other packages.
$(BIN)/uv:
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check "uv==$$(sed -n 's/^uv==\([^ ]*\).*/\1/p' requirements-dev.lock)"

# Python packages, hash-checked; Node packages, by exact version. Again only when one of the lists has changed.
$(VENV)/.installed: requirements-dev.lock pyproject.toml clients/python/pyproject.toml | $(BIN)/uv
	$(BIN)/uv pip install -q --python $(BIN)/python --require-hashes -r requirements-dev.lock
	$(BIN)/uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation --editable . --editable clients/python
	@touch $@

node_modules/.installed: package.json
	npm install --no-audit --no-fund --no-package-lock --loglevel=error
	@touch $@

# MCP's own clients, in a folder of their own: most of the packages, and wanted by make soak alone.
MCP := tests/clients/mcp
$(MCP)/node_modules/.installed: $(MCP)/package.json
	npm install --prefix $(MCP) --no-audit --no-fund --no-package-lock --loglevel=error
	@touch $@

# What wants other libraries than ours, or is large, has an environment of its own, for the tests alone: clients of the
# exchanges; ccxt, which takes seconds to import, and chdb, of 0.8 GB, which make soak alone wants.
.venv-%/.installed: tests/clients/%.lock | $(BIN)/uv
	@test -x $(@D)/bin/python || $(PYTHON) -m venv --without-pip $(@D)
	$(BIN)/uv pip install -q --python $(@D)/bin/python --require-hashes -r $<
	@touch $@

# `make test` compiles what it imports; everything else starts sooner if all is compiled at once.
setup: export UV_COMPILE_BYTECODE := 1

# Both at once: npm mostly waits for its registry.
setup: ## Install all that the other targets need
	@$(MAKE) --no-print-directory -j2 installed

installed: $(VENV)/.installed node_modules/.installed
	@:

demo: setup ## Everything from nothing: database, exchange, Dagster, API, with a live status table
	$(BIN)/presage demo $(ARGS)

up: setup ## The same against the real exchange
	$(BIN)/presage up $(ARGS)

lint: $(VENV)/.installed ## Style, types, imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup ## Put the code into its style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

client: setup ## Regenerate the Python client's records and operations from the OpenAPI document
	$(BIN)/python -m generator

# Tests start hundreds of processes that import the same modules: their bytecode is kept, also where the environment says not to.
test test-hours test-load: export PYTHONDONTWRITEBYTECODE :=

# Tests wait for the servers that they start: two workers for each of two cores.
WORKERS ?= 4

# The bytecode of the tests and of what they import, once: each worker would compile it all. The tests themselves report
# what cannot be imported.
collected: $(VENV)/.installed
	@$(BIN)/pytest --collect-only -qq > /dev/null || true

tested: collected installed .venv-exchange/.installed compiler
	$(BIN)/pytest -m "not soak" -n $(WORKERS) --dist loadfile --no-loadscope-reorder --max-worker-restart 0 $(ARGS)

# At once: npm mostly waits for its registry, and most of lint runs on one core.
test: ## Lint and every test (below 10 minutes on 2 cores)
	@$(MAKE) --no-print-directory -j4 lint tested

test-hours: setup .venv-exchange/.installed compiler ## Every test that reads the clock, at eight hours and days, and late: ARGS="--at 'today 00:05'"
	$(BIN)/python -m tests.hours --workers $(WORKERS) $(ARGS)

RUNS ?= 20

test-load: setup ## Live, settlement, delivery and stream, 20 times beside a busy processor: RUNS=2
	$(BIN)/python -m tests.hours --load $(RUNS) --workers $(WORKERS) $(ARGS)

bench: setup ## Measure beside named rivals: ARGS="ingest --json out.json"
	$(BIN)/presage bench $(ARGS)

soak: setup browser $(MCP)/node_modules/.installed .venv-ccxt/.installed .venv-chdb/.installed ## Long proofs: kill -9 of everything under load
	$(BIN)/pytest -m soak --timeout 5400 -s $(ARGS)

cluster: setup ## Three hosts as network namespaces, of which one after another is lost: ARGS="--losses 10"
	$(BIN)/python -m tests.cluster $(ARGS)

SECONDS_EACH ?= 600

fuzz: setup ## Long property tests, and ten minutes of search for each parser: SECONDS_EACH=60
	HYPOTHESIS_PROFILE=fuzz $(BIN)/pytest -m "not soak" -k "property or fuzz or random_history" --timeout 3600 $(ARGS)
	$(BIN)/uv pip install -q --python $(BIN)/python --require-hashes -r tests/fuzzing/atheris.lock
	$(BIN)/python -m tests.fuzzing --seconds $(SECONDS_EACH)

PIN := $(BIN)/uv pip compile -q --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --python-version 3.11 --universal --no-emit-package presage-client

lock: $(BIN)/uv ## Pin what pyproject.toml asks for, with hashes: what runs, and with it what developers need
	$(PIN) pyproject.toml --extra install --output-file requirements.lock
	$(PIN) pyproject.toml --all-extras --constraint requirements.lock --output-file requirements-dev.lock
	$(PIN) tests/clients/exchange.in --output-file tests/clients/exchange.lock
	$(PIN) tests/clients/ccxt.in --output-file tests/clients/ccxt.lock
	$(PIN) tests/clients/chdb.in --output-file tests/clients/chdb.lock
	$(PIN) tests/fuzzing/atheris.in --output-file tests/fuzzing/atheris.lock
	$(PIN) tests/cluster/patroni.in --output-file tests/cluster/patroni.lock
	$(PIN) --no-deps tests/deployment/kubernetes.in --output-file tests/deployment/kubernetes.lock

browser: setup ## Install the browser for screenshots (Debian's Chromium)
	@command -v chromium >/dev/null || (apt-get update -q && apt-get install -qy --no-install-recommends chromium fonts-dejavu-core)

# For tests/hours/clock.c, a library of the tests.
compiler:
	@command -v cc >/dev/null || (apt-get update -q && apt-get install -qy --no-install-recommends gcc libc6-dev)

screenshots: browser ## Take the README's pictures anew, of a demo that it starts and ends
	$(BIN)/python -m tests.browser.screenshots docs/images

images: ## Build the container images with their SBOM and provenance (Docker with buildx): ARGS=--push
	$(PYTHON) -m cli.images build $(ARGS)

digests: ## Pin the images that Dockerfile and docker-compose.yml name without a digest (Docker with buildx)
	$(PYTHON) -m cli.images digests

sbom: setup ## List what Presage is shipped with, and its licences, in dist/sbom (CycloneDX)
	$(BIN)/python -m cli.sbom dist/sbom

clean: ## Remove what was built here (not the database's data: presage demo --fresh)
	rm -rf $(VENV) .venv-exchange .venv-ccxt .venv-chdb node_modules $(MCP)/node_modules .mypy_cache .ruff_cache .pytest_cache .hypothesis .schemathesis .import_linter_cache *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
