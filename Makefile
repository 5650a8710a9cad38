# Two commands matter: make book, make test. The rest is below or in 'make help'.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
SHELL  := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help book site test lint lab notebooks full lock clean

help: ## Show what can be made
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 18

book: $(READY) ## Execute the chapters that changed and build the pages (first time: minutes)
	@$(BIN)/python -m helpers book

site: $(READY) ## Build the pages from the outputs kept in git (seconds)
	@$(BIN)/python -m helpers book --stored

test: $(READY) lint ## Lint, unit tests, every chapter with small data, checks of the built pages
	@$(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

lint: $(READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

lab: $(READY) ## Open the chapters in JupyterLab
	@$(BIN)/jupyter lab --notebook-dir=notebooks

notebooks: $(READY) ## Refresh the outputs kept in git
	@$(BIN)/python -m helpers notebooks

full: $(READY) ## Run every chapter on real corpora; goes on where it stopped (MODELS="minilm mpnet" DATA=... WORKERS=2)
	@$(BIN)/python -m helpers full --models "$(or $(MODELS),minilm)" $(if $(DATA),--data "$(DATA)") \
	  $(if $(WORKERS),--workers $(WORKERS)) $(if $(DASK),--dask "$(DASK)") $(if $(RECORD),--record)

lock: ## Resolve the newest versions that pyproject.toml allows into requirements.lock
	@scratch=$$(mktemp -d) && trap "rm -rf $$scratch" EXIT && $(PYTHON) -m venv $$scratch \
	  && $$scratch/bin/pip install --quiet '.[test]' && $$scratch/bin/pip check \
	  && { echo "# Made by 'make lock' from pyproject.toml; used as constraints by make and environment.yml."; \
	       $$scratch/bin/pip freeze --exclude attention-heads-book | grep -vE '^(nvidia-|triton|cuda-|-e )' | sed -E 's/\+(cpu|cu[0-9]+)$$//'; } > requirements.lock \
	  && rm -rf build *.egg-info && echo "requirements.lock: $$(grep -c == requirements.lock) packages"

clean: ## Remove everything that was built, and the environment
	rm -rf _build $(VENV) *.egg-info .pytest_cache .ruff_cache .hypothesis

$(READY): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "This book needs Python 3.11 or newer; say make PYTHON=/path/to/python3.11")'
	@echo "Making $(VENV) (about 2.5 GB; a few minutes the first time) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --constraint requirements.lock --editable '.[test]'
	@touch $@
