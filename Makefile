# Every target is one line of `make help`. Paths are relative, so that a clone may lie under a name with a space in it.

.DEFAULT_GOAL := help
SHELL := /bin/sh

# PYTHON=/path/to/python chooses the interpreter that .venv is made from; otherwise the newest one that fits is taken.
PYTHON ?=
# ARGS="-k name" goes to pytest as it stands.
ARGS ?=
# For how long `make chaos` does faults.
MINUTES ?= 5

# Another directory for another Python: make VENV=.venv-3.13 PYTHON=python3.13 unit
VENV = .venv

PY := $(VENV)/bin/python
PYTEST := $(PY) -m pytest
STAMP := $(VENV)/.installed
PIP := $(PY) -m pip -qq --disable-pip-version-check --no-input install

# These reach `make demo` through the environment: a key on a command line could be read by every user of the machine.
export MODEL API_BASE API_KEY

.PHONY: help venv demo test campaigns unit all dist test-wheel release check format chaos hostile browser pictures bench eval long scripts audit sbom licenses man texts assets lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

venv: $(STAMP) ## make .venv from requirements.lock (PYTHON=... chooses the interpreter)

# Made anew where its Python is gone or the checkout has moved: the programs in it name both.
STALE := $(shell test -e $(STAMP) && ! test -L $(VENV) && { ! $(PY) -c '' 2>/dev/null || test "$$(cat $(STAMP))" != "$(CURDIR)"; } && echo moved)
.PHONY: moved

# A candidate is run, not only looked up: a version manager's shim may exist and fail, and Debian's Python may lack venv.
$(STAMP): requirements.lock pyproject.toml $(STALE)
	@set -e; began=$$(date +%s); \
	fits='import sys, ensurepip, venv; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))'; \
	if [ -n "$(STALE)" ] || ! $(PY) -c "$$fits" 2>/dev/null; then \
		found=; \
		for candidate in "$(PYTHON)" $(if $(PYTHON),,python3.13 python3.12 python3.11 python3); do \
			if [ -n "$$candidate" ] && "$$candidate" -c "$$fits" 2>/dev/null; then found=$$candidate; break; fi; \
		done; \
		if [ -z "$$found" ]; then \
			echo "error: no Python from 3.11 to 3.13 with the module venv was found$(if $(PYTHON), at $(PYTHON))" >&2; \
			echo "  next  on Debian and Ubuntu: apt-get install python3-venv    or   make PYTHON=/path/to/python3.12 $(or $(MAKECMDGOALS),venv)" >&2; \
			exit 2; \
		fi; \
		echo "Making $(VENV) with $$("$$found" --version)"; \
		"$$found" -m venv --clear $(VENV); \
	fi; \
	$(PY) -m pip --version >/dev/null 2>&1 || $(PY) -m ensurepip >/dev/null; \
	echo "Installing what requirements.lock names into $(VENV): about a minute, up to three on a slow line"; \
	$(PIP) --require-hashes -r requirements.lock; \
	$(PIP) --no-deps --no-build-isolation -e .; \
	printf '%s\n' "$(CURDIR)" > $@; echo "Installed in $$(( $$(date +%s) - began )) s"

demo: $(STAMP) ## the whole fleet in a throw-away directory, one order from prompt to branch (MODEL= API_BASE= API_KEY=)
	@$(PY) deploy/demo/demo.py

test: $(STAMP) ## every rule once: real Valkey, SQLite, PostgreSQL and git (ARGS= goes to pytest)
	@$(PYTEST) -m "not long and not bench and not campaign" -n 5 --dist loadscope --no-loadscope-reorder $(ARGS)

campaigns: $(STAMP) ## the short forms of chaos and hostile: whole fleets that are attacked, and whose parts die
	@$(PYTEST) -m "campaign and not long" -n 4 --dist loadscope $(ARGS)

unit: $(STAMP) ## the unit and contract tests alone, in less than a minute
	@$(PYTEST) tests/unit tests/contract -m "not long" -n 3 --dist load $(ARGS)

all: test browser chaos hostile long bench ## every tier, one after the other: more than three hours

dist: $(STAMP) ## build wheel and sdist into dist/, the same bytes wherever and whenever they are built
	@rm -rf dist
	@$(PY) -m hatchling build --directory dist >/dev/null
	@cd dist && sha256sum *

test-wheel: dist ## the unit and contract tests against the wheel, outside the checkout (ARGS= takes their place)
	@$(PY) -m tests.support.wheel_suite $(or $(ARGS),tests/unit tests/contract -m "not long" -n 3 --dist load)

release: ## set the version and date its changes, before the commit of a release (VERSION=1.2.0)
	@$(or $(wildcard $(PY)),python3) .ci/release.py "$(VERSION)"

check: $(STAMP) ## ruff, its formatter, mypy strict, the import rules, spelling and plain words
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(PY) -m mypy
	@$(VENV)/bin/lint-imports
	@$(VENV)/bin/deptry .
	@$(PY) .ci/module_cycles.py control_plane drone shared
	@$(PY) .ci/test_clocks.py tests
	@$(PY) .ci/plain_words.py control_plane drone shared docs/*.md *.md
	@$(MAKE) --no-print-directory scripts
	@$(VENV)/bin/codespell control_plane drone shared docs README.md CONTRIBUTING.md
	@$(MAKE) --no-print-directory audit

format: $(STAMP) ## let ruff fix what it can
	@$(VENV)/bin/ruff check --fix .
	@$(VENV)/bin/ruff format .

chaos: $(STAMP) ## the long form of: kill, pause and restart everything at random (MINUTES=5 CHAOS_SEED=), and write docs/reliability.md's tables
	@CHAOS_MINUTES="$(MINUTES)" CHAOS_WRITE=1 $(PYTEST) -m chaos $(ARGS)

hostile: $(STAMP) ## the long form of: attacks on the fleet, and commands that try to get away
	@$(PYTEST) -m hostile -n 3 --dist load $(ARGS)

browser: $(STAMP) scripts ## the long form of: the pages in a real browser
	@$(PYTEST) -m browser $(ARGS)

pictures: $(STAMP) ## take the pictures in docs/pages, on a desk in light and on a phone in dark (needs chromium)
	@PICTURES=docs/pages $(PYTEST) tests/browser/test_journey.py -k "Mouse-1280-light or Mouse-375-dark" $(ARGS)

MINI := .venv-mini
OPENHANDS := .venv-openhands

bench: $(MINI)/.stamp $(OPENHANDS)/.stamp ## the tests of tests/bench, then measure beside mini-swe-agent and OpenHands, print the table, fail where a ratio got worse (ARGS="--rounds 1 --only TEXT --help")
	@$(PYTEST) -m "bench and not long"
	@$(PY) -m tests.bench.side_by_side --mini $(MINI) --openhands $(OPENHANDS) $(ARGS)

# What our agent is compared with has an environment of its own: it is no dependency of the project.
$(MINI)/.stamp: $(STAMP) tests/eval/mini.lock
	@echo "Installing mini-swe-agent into $(MINI)"
	@$(PY) -m venv --clear $(MINI)
	@$(MINI)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r tests/eval/mini.lock
	@touch $@

# OpenHands requires Python 3.12; without one its columns are left out, and the program says so.
$(OPENHANDS)/.stamp: $(STAMP) tests/bench/side_by_side/openhands.lock
	@set -e; found=; \
	for candidate in python3.13 python3.12 "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/3.1[23]*/bin/python3; do \
		if "$$candidate" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 12))' 2>/dev/null; then found=$$candidate; fi; \
	done; \
	mkdir -p $(OPENHANDS); \
	if [ -n "$$found" ]; then \
		echo "Installing OpenHands into $(OPENHANDS)"; \
		"$$found" -m venv --clear $(OPENHANDS); \
		$(OPENHANDS)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r tests/bench/side_by_side/openhands.lock; \
	fi; \
	touch $@

eval: $(MINI)/.stamp ## solve 30 small tasks beside mini-swe-agent (MODEL= API_BASE= API_KEY= ARGS="--only TASK --repeat 3 --help")
	@$(PY) -m tests.eval --mini $(MINI) --json bench-results/eval.json $(ARGS)

long: $(STAMP) ## whatever is too long for `make test` and has a short form there
	@$(PYTEST) -m long $(ARGS)
	@$(PYTEST) -m "hypothesis and not long" --hypothesis-profile=thorough $(ARGS)

JS := .ci/js/node_modules/.stamp

$(JS): .ci/js/package-lock.json
	@npm ci --prefix .ci/js --silent
	@touch $@

scripts: ## check the types of the pages' scripts (needs npm; without it, skipped except in CI)
	@if $(MAKE) --no-print-directory $(JS) 2>/dev/null; then .ci/js/node_modules/.bin/tsc -p .ci/js; \
	elif [ -n "$$CI" ]; then echo "error: npm cannot install .ci/js; next: apt-get install npm" >&2; exit 2; \
	else echo "The types of scripts are not checked: npm, or the network, is missing"; fi

AUDIT := .venv-audit

$(AUDIT)/.stamp: $(STAMP) requirements-audit.lock
	@$(PY) -m venv --clear $(AUDIT)
	@$(AUDIT)/bin/python -m pip install --quiet --disable-pip-version-check --retries 1 --require-hashes -r requirements-audit.lock
	@touch $@

# Not a prerequisite: without a network, nothing can be installed, and `make check` must still pass.
audit: $(STAMP) ## look for known vulnerabilities in what requirements.lock names
	@if log=$$($(MAKE) --no-print-directory $(AUDIT)/.stamp 2>&1); then $(AUDIT)/bin/python .ci/audit.py; \
	else printf '%s\n' "$$log" | $(PY) .ci/audit.py --not-installed; fi

sbom: $(AUDIT)/.stamp ## write sbom.json: every installed package with version and license, in CycloneDX's format
	@$(AUDIT)/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --output-file sbom.json $(PY)
	@echo "sbom.json: $$(grep -c '"purl"' sbom.json) packages"

licenses: $(STAMP) ## write docs/licenses.md anew: the licenses of what is installed to run Dronefleet
	@$(PY) -m tests.support.licenses

man: $(STAMP) ## write docs/man anew: the manual pages of fleet and drone
	@$(PY) -m tests.support.man_pages

texts: $(STAMP) ## write docs/reference/texts.md anew: all help, errors and reasons on one page
	@$(PY) -m tests.support.texts_page

assets: $(STAMP) ## fetch the browser parts that static/vendor/parts.json names, and write their hashes (needs npm)
	@$(PY) .ci/assets.py

lock: ## write the lock files anew from pyproject.toml (needs uv)
	@set -e; if $(PY) -m uv --version >/dev/null 2>&1; then uv="$(PY) -m uv"; \
	elif uv --version >/dev/null 2>&1; then uv=uv; \
	else echo "error: uv is not installed; next: pipx install uv" >&2; exit 2; fi; \
	$$uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
		--no-header --all-extras --output-file requirements.lock pyproject.toml; \
	$$uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
		--no-header --no-annotate --constraint requirements.lock --output-file requirements-base.lock pyproject.toml; \
	$$uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
		--no-header --no-annotate --constraint requirements.lock --extra server --output-file requirements-server.lock pyproject.toml; \
	$$uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
		--no-header --no-annotate --constraint requirements.lock --extra server --excludes deploy/control-plane.excludes \
		--output-file requirements-control-plane.lock pyproject.toml; \
	$$uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
		--no-header --output-file requirements-audit.lock .ci/audit.in; \
	$$uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
		--no-header --output-file tests/eval/mini.lock tests/eval/mini.in; \
	$$uv pip compile --quiet --python-platform linux --python-version 3.12 --generate-hashes --no-emit-index-url \
		--no-emit-find-links --no-header --output-file tests/bench/side_by_side/openhands.lock tests/bench/side_by_side/openhands.in; \
	echo "requirements.lock: $$(grep -c '==' requirements.lock) releases"

clean: ## remove .venv, caches and results
	@rm -rf .ci/js/node_modules .venv .venv-* .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist bench-results
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
