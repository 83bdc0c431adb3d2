# `make` prints the targets. Everything they need is set up first, and only once.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.PHONY: help setup up down ui demo test test-long mutations lint types imports lock lock-check schema promises bench clean

# The first Python of a supported version; `make PYTHON=/path/to/python3.12 ...` names another.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	"$$p" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null && echo "$$p" && break; done)
BIN := .venv/bin

help: ## print this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

setup: ## install everything into .venv and .local (nothing outside this folder)
	@test -n "$(PYTHON)" || { echo "error: Python 3.11, 3.12 or 3.13 is needed and none was found on PATH." \
		"Install one, or name it: make PYTHON=/path/to/python3.12 setup" >&2; exit 1; }
	@"$(PYTHON)" -m bq_harper_assets.local.bootstrap

up: setup ## start the local stack: a real Harper and the BigQuery emulator
	@$(BIN)/bqh up

down: setup ## stop the local stack; its data stays
	@$(BIN)/bqh down

demo: setup ## start the stack, load the sample data, sync it to Harper and show what is where
	@$(BIN)/bqh demo

ui: setup ## start the stack and open Dagster on http://127.0.0.1:3000
	@$(BIN)/bqh up
	@BQH_HOME="$(CURDIR)" $(BIN)/bqh ui

test: setup ## run the tests against real servers (15 minutes at most on two quiet cores)
	@$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder

# `make test-long LONG=short` runs a few minutes' worth of kills, of random histories and of what ends processes, two at a time:
# what a change must pass.
LONG ?= full
LONG_TESTS_full := bq_harper_assets_tests/long
LONG_TESTS_short := bq_harper_assets_tests/long/held/test_random_histories.py \
	bq_harper_assets_tests/long/test_kills.py::test_a_sync_that_is_typed_again_recovers_from_every_kill \
	bq_harper_assets_tests/long/processes bq_harper_assets_tests/long/test_all_histories.py \
	bq_harper_assets_tests/long/test_open_window_keeps_up.py
LONG_PROCESSES_short := -n 2 --dist loadfile
LONG_LIMIT_full := 3h
LONG_LIMIT_short := 10m
test-long: setup ## run the tests that are long by nature (3 hours at most; LONG=short: 10 minutes at most)
	@test -n "$(LONG_LIMIT_$(LONG))" || { echo "error: LONG is full or short, not '$(LONG)'" >&2; exit 1; }
	@TEST_LONG=$(LONG) timeout --foreground --signal=INT --kill-after=60s $(LONG_LIMIT_$(LONG)) \
		$(BIN)/pytest -m long $(LONG_PROCESSES_$(LONG)) $(LONG_TESTS_$(LONG))

mutations: setup ## break rules and decisions one by one and print the share that tests notice (about 30 minutes)
	@$(BIN)/python -m bq_harper_assets_tests.history.mutations; rules=$$?; \
		$(BIN)/python -m bq_harper_assets_tests.mutation && exit $$rules

lint: setup ## check style
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: setup ## check types, strictly
	@$(BIN)/mypy

imports: setup ## check that imports point one way
	@$(BIN)/lint-imports

lock: setup ## write requirements.lock anew from pyproject.toml, keeping the versions that still fit
	@$(BIN)/python -m bq_harper_assets.local.requirements_lock write

lock-check: setup ## check that requirements.lock is in step with pyproject.toml
	@$(BIN)/python -m bq_harper_assets.local.requirements_lock check

schema: setup ## write config/tables.schema.json anew from the contract models
	@$(BIN)/python -m bq_harper_assets.contract.json_schema

promises: setup ## print how many promises of docs/promises.md are kept, by group
	@$(BIN)/python -m bq_harper_assets_tests.promises

bench: setup ## run the benchmarks with few rows and print their ratios
	@$(BIN)/python benchmarks/maritime_generator.py
	@for name in mover_vs_others more_tasks task_memory many_cells mover_vs_trivial_client \
		reconcile_and_proof check_bookkeeping live_sync schema_figures; do \
		$(BIN)/python -m benchmarks.$$name --quick || exit 1; done

clean: ## delete .venv and .local: the next target sets up again
	@test ! -x $(BIN)/bqh || $(BIN)/bqh down
	@rm -rf .venv .local
