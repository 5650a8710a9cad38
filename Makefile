# Two commands matter: make book, make test. The rest is below or in 'make help'.
PYTHON ?= python3
OTHERS := 3.12 3.13 3.14
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
EXTRAS := book,long,train,lab,course,test
HELPERS := $(BIN)/python -m helpers
MODEL    = $(addprefix --model ,$(MODELS))
PYTEST := $(BIN)/python -m pytest --numprocesses auto
JOBS   ?= 2
# Who commits in a workflow, and what of
NOBODY := -c user.name=workflow -c user.email=workflow@localhost
FROM   := $(shell git describe --tags --always 2>/dev/null)
SHELL  := /bin/bash
# Compiling all that is installed takes a minute, compiling what is used once for each process several: once, at first use
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help book chapters site test test-all check test-random test-oldest lint lab notebooks compare atlas full data course wheel launch pdf zip image release fetch push-launch propose lock clean

help: ## Show what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

# Chapters that take long, first; those that are older than what they are made of are executed
BOOK    := _build/book
ORDERED := 10 11 06 12 13 08 04 03 14 02 07 09 05 01
chapters: $(READY)
	@BOOK_RESULTS="$(CURDIR)/$(BOOK)/results" OMP_NUM_THREADS=1 $(HELPERS) run $(ORDERED) --to $(BOOK)/notebooks --at-a-time $(JOBS)

book: chapters ## Execute the chapters that are older than what they are made of, two at a time (JOBS=2), and build the pages
	@$(HELPERS) build pages --of $(BOOK)

site: $(READY) ## Build the pages from the outputs kept in git, without executing anything
	@$(HELPERS) build pages

notebooks: chapters ## Refresh the outputs and records kept in git with those of executed chapters
	@$(HELPERS) compare $(BOOK) --keep

compare: $(READY) ## Compare the tables of 'make book' with the stored ones; what differs by more than rounding is an error
	@$(HELPERS) compare $(BOOK)

test: $(READY) lint ## Lint, unit tests, all chapters executed with small data
	@$(PYTEST) -m "not journey and not pages"

test-all: $(READY) lint ## What 'make test' does, every built page in a browser, and longer ways: every command of "Bring your own", a wheel in an empty folder, accessibility of every page
	@$(PYTEST)

check: $(READY) lint ## Lint and the quick unit tests, for while you are editing (two minutes)
	@$(PYTEST) -m "not slow and not journey and not pages"

test-random: SEED := $(or $(SEED),$(shell od -An -N3 -tu4 /dev/urandom | tr -d ' '))
test-random: $(READY) ## Unit tests with other examples each time; SEED=... repeats (TESTS="tests/core -k tap")
	@echo "Repeat with: make test-random SEED=$(SEED)"
	@$(PYTEST) --hypothesis-seed=$(SEED) -m "not slow and not journey and not pages" $(TESTS)

# The environment of the oldest versions has no pages and no JupyterLab: tests that need them are skipped
OLDVENV := _build/oldest
test-oldest: ## Unit tests with the oldest versions that the core supports, in an environment of their own (TESTS="tests/core -k tap")
	@test -x $(OLDVENV)/bin/pytest || { echo "Making $(OLDVENV) (several GB on Linux; minutes) ..."; $(PYTHON) -m venv $(OLDVENV) \
	  && $(OLDVENV)/bin/pip install -qq --no-compile --disable-pip-version-check --constraint requirements.oldest --editable '.[long,train,test,model]'; }
	@$(OLDVENV)/bin/python -m pytest --numprocesses auto -m "not slow and not journey and not pages" $(TESTS)

lint: $(READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

lab: $(READY) ## Open copies of the chapters, in _build/lab, in JupyterLab; what you have changed there stays
	@$(HELPERS) build notebooks --to _build/lab && $(BIN)/jupyter trust _build/lab/notebooks/*.ipynb >/dev/null
	@$(BIN)/jupyter lab _build/lab/notebooks/

atlas: $(READY) ## Measure models for the atlas of heads and write its page (MODELS="bert-base-uncased mpnet"; RECORD=1 to keep them with the book)
	@$(HELPERS) atlas $(MODEL) $(if $(RECORD),--record)

full: $(READY) ## Run every chapter on real corpora; goes on where it stopped (MODELS="minilm mpnet" DATA=... WORKERS=2)
	@$(HELPERS) run all --profile full $(MODEL) $(if $(DATA),--data "$(DATA)") \
	  $(if $(WORKERS),--workers $(WORKERS)) $(if $(DASK),--dask "$(DASK)") $(if $(RECORD),--record)

data: $(READY) ## Write the recorded results as a data set: Parquet, README, licence, checksums (OUT=folder)
	@$(HELPERS) build data $(MODEL) $(if $(OUT),--to "$(OUT)")

course: wheel ## Make a course of chapters, to teach with (CHAPTERS="4 5" OUT=folder)
	@$(HELPERS) course $(or $(CHAPTERS),all) $(if $(OUT),--to "$(OUT)")

wheel: $(READY) ## Build the package, with data and notebooks, into dist/
	@$(BIN)/pip install -qq --no-deps --no-build-isolation --no-compile --disable-pip-version-check --editable . # of this tag
	@rm -rf build dist && $(BIN)/pip wheel -q --no-deps --no-build-isolation --disable-pip-version-check --wheel-dir dist . && rm -rf build && ls -sh dist

launch: wheel ## Write what the branch 'launch' holds into _build/launch: copies of the chapters for hosted notebooks
	@$(HELPERS) build launch

pdf: site ## Print the built pages as one PDF into dist/ (needs Chromium or Chrome; minutes)
	@$(HELPERS) build pdf

zip: site ## Pack the built pages, which need no network, into dist/
	@$(HELPERS) build zip

image: ## Build the image of the Dockerfile, and execute a chapter in it without a network (needs Docker)
	@docker build --quiet --tag attention-heads-book . && docker run --rm --network none attention-heads-book python -m helpers run 02 --profile smoke

release: launch pdf zip data ## Everything that publishing puts out: dist/, _build/launch, _build/html
	@$(HELPERS) build zip --of _build/data --to dist/results.zip
	@ls -sh dist

fetch: $(READY) ## Bring corpora or models onto this machine (NAMES="gum squad")
	@$(HELPERS) fetch $(NAMES)

push-launch: ## Push _build/launch as the branch 'launch' of the remote
	@test -d _build/launch/notebooks || { echo "There are no copies to publish; say 'make launch' first."; exit 1; }
	@export GIT_INDEX_FILE="$$PWD/_build/launch.index"; rm -f "$$GIT_INDEX_FILE"; git --work-tree=_build/launch add -Af . \
	  && made=$$(git $(NOBODY) commit-tree -m "Copies to launch of $(FROM)" "$$(git write-tree)") && git push -qf origin "$$made:refs/heads/launch"

propose: BRANCH ?= refresh
propose: TITLE ?= Refreshed outputs
propose: ## Open a pull request with what has changed (BRANCH=... TITLE=...)
	@if [ -z "$$(git status --porcelain)" ]; then echo "Nothing has changed."; else git switch -qC "$(BRANCH)" && git add -A \
	  && git $(NOBODY) commit -qm "$(TITLE)" && git push -qf origin "$(BRANCH)" \
	  && { gh pr view "$(BRANCH)" --json state --jq .state 2>/dev/null | grep -qx OPEN \
	       || gh pr create --head "$(BRANCH)" --title "$(TITLE)" --body "Made by a workflow; the tests say whether the prose still holds."; }; fi

# pip decides for a Python that need not be here, 3.11 being its first release, 3.11.0; quiet but for errors
RESOLVE  = $$scratch/bin/pip install -qq --disable-pip-version-check --dry-run --ignore-installed --only-binary=:all: --target $$scratch/none
OLDEST  := $(shell sed -nE 's/^requires-python = ">=([0-9.]+)"/\1/p' pyproject.toml)
define LOCKED
import json, re
found = [p["metadata"] for p in json.load(open(0))["install"]]
ours = re.compile("nvidia-|triton$$|cuda-|setuptools$$|wheel$$|attention-heads-book$$").match
print("# Made by 'make lock' from pyproject.toml; used as constraints by make and environment.yml.")
for p in sorted(found, key=lambda p: p["name"].lower()):
    if not ours(p["name"]):
        print(p["name"], p["version"].split("+")[0], sep="==")
endef
export LOCKED

lock: ## Resolve the newest versions for the oldest Python claimed into requirements.lock; try them for the others
	@scratch=$$(mktemp -d) && trap "rm -rf $$scratch *.egg-info" EXIT && $(PYTHON) -m venv $$scratch \
	  && $(RESOLVE) --python-version $(OLDEST) --report $$scratch/report.json '.[$(EXTRAS),model]' \
	  && $(PYTHON) -c "$$LOCKED" < $$scratch/report.json > $$scratch/lock && mv $$scratch/lock requirements.lock \
	  && grep -v '^torch==' requirements.lock > environment.lock \
	  && echo "requirements.lock: $$(grep -c == requirements.lock) packages for Python $(OLDEST)" \
	  && for python in $(OTHERS); do $(RESOLVE) --python-version $$python --constraint requirements.lock '.[$(EXTRAS),model]' \
	       && echo "Python $$python: the same" || exit 1; done

clean: ## Remove everything that was built, and the environment
	rm -rf _build build dist $(VENV) *.egg-info .pytest_cache .ruff_cache .hypothesis

# The environment's scripts name the place where it was made; a checkout that was moved or copied is given its own
MADE_IN := $(shell sed -nE 's/^command = .* -m venv (--[a-z-]+ )*//p' $(VENV)/pyvenv.cfg 2>/dev/null)
LIES_IN := $(realpath $(VENV))
define MOVED
import os, pathlib, sys
old, new = (os.path.dirname(place) + "/" for place in sys.argv[1:])
for files in ("pyvenv.cfg", "bin/*", "share/jupyter/kernels/*/*.json", "lib/python*/site-packages/*editable*"):
    for file in filter(os.path.isfile, pathlib.Path(sys.argv[2]).glob(files)):
        said = file.read_bytes()
        if not file.is_symlink() and b"\0" not in said and os.fsencode(old) in said:
            file.write_bytes(said.replace(os.fsencode(old), os.fsencode(new)))
print(f"This checkout was moved or copied here from {old}; the scripts in {sys.argv[2]} now say so too.")
endef
export MOVED

.PHONY: moved
moved:
	@$(BIN)/python -c "$$MOVED" "$(MADE_IN)" "$(LIES_IN)"

ifneq ($(MADE_IN),)
ifeq ($(filter $(LIES_IN),$(MADE_IN) $(realpath $(MADE_IN))),)
$(READY): | moved
endif
endif

# An environment of another Python is made anew: renewed in place it would mix the two; a folder that is no environment keeps what is in it
WHICH := import sys; print(sys.base_prefix, sys.version)
$(READY): pyproject.toml setup.py requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "This book needs Python 3.11 or newer; say make PYTHON=/path/to/python3.11")'
	@echo "Making $(VENV) (3 to 7 GB; a few minutes the first time) ..."
	@anew=; test "$$($(BIN)/python -c '$(WHICH)' 2>&1)" = "$$($(PYTHON) -c '$(WHICH)')" || { test ! -f $(VENV)/pyvenv.cfg || anew=--clear; }; $(PYTHON) -m venv $$anew $(VENV)
	@into() { $(BIN)/pip install -qq --no-compile --disable-pip-version-check --constraint requirements.lock --editable ".[$$1]"; }; \
	  into $(EXTRAS),model || { into $(EXTRAS) && $(HELPERS) fetch minilm; } || { echo \
	  "The libraries were not installed; pip says why above. With network, 3 GB of disk and Python 3.11 to 3.14 (make PYTHON=...), say make again."; exit 1; }
	@touch $@
