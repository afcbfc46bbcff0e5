# Every target sets up .venv when it is missing or when requirements.lock or pyproject.toml has changed, not otherwise.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup demo serve test test-lowest test-pythons test-slow release-check bench bench-scale bench-default bench-context bench-service torture auto docs reproduction real-data real-runs lock clean

help:  ## show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' Makefile

setup: $(STAMP)  ## make .venv with everything needed (locked versions)

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Coterie needs Python 3.11 or newer; '$(PYTHON)' is not. Try: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(STAMP)

demo: $(STAMP)  ## the main job: a quick study of the main policies on two worlds, with a report
	$(BIN)/coterie demo

serve: $(STAMP)  ## the service with a demonstration, on http://127.0.0.1:8711 (docs/service.md)
	OPENBLAS_NUM_THREADS=1 $(BIN)/coterie serve --demo

test: $(STAMP)  ## every test, lint, types and layers; the package builds, and installs with each extra
	BIN=$(BIN) scripts/check
	BIN=$(BIN) PYTHON=$(PYTHON) scripts/package

test-lowest: $(STAMP)  ## the tests with the lowest versions that pyproject.toml names
	BIN=$(BIN) PYTHON=$(PYTHON) scripts/lowest

test-pythons:  ## the tests on Python 3.11, 3.12 and 3.13, as far as they are installed
	scripts/pythons

test-slow: $(STAMP)  ## the long checks that `make test` leaves out
	$(BIN)/python -m pytest -m slow

release-check: test test-slow  ## everything that a release must pass

bench: $(STAMP)  ## speed and memory as ratios; rewrites docs/benchmarks.md
	$(BIN)/python -m benchmarks

bench-scale: $(STAMP)  ## large graphs, on one core (hours; goes on where it stopped); rewrites docs/scale.md
	$(BIN)/python -m benchmarks.large

DATA ?= data
WORLDS ?= 0:40
bench-default: $(STAMP)  ## the default on random worlds, in a tight loop, on logs (DATA=DIR); rewrites docs/default.md
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.default --worlds $(WORLDS) $(if $(wildcard $(DATA)),--data $(DATA))

bench-context: $(STAMP)  ## contexts against other libraries (about an hour; goes on where it stopped); rewrites docs/context.md
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.context

bench-service: $(STAMP)  ## the service: durable decisions a second, what one waits for; rewrites its part of docs/benchmarks.md
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.service

torture: $(STAMP)  ## the long attacks on the service: kills, power loss, hostile requests (about an hour)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -rA -m slow tests/unit/service tests/endtoend/test_service_killed.py

auto: $(STAMP)  ## nothing tuned against everything tuned (about half an hour on two cores); rewrites docs/auto.md
	for study in auto auto-hindsight auto-true-kernel; do \
	  $(BIN)/coterie run $$study --jobs 2 --out build/$$study --resume || exit 1; done
	$(BIN)/python -m benchmarks.auto build/auto build/auto-hindsight build/auto-true-kernel

docs: $(STAMP)  ## run every example in the documentation and redraw its first picture
	$(BIN)/python -m pytest -q src tests/endtoend/test_documents.py
	rm -rf build/demo && $(BIN)/coterie demo --out build/demo && cp build/demo/figures/regret.png docs/pictures/demo.png

reproduction: $(STAMP)  ## the paper's whole comparison (about half an hour on two cores); rewrites docs/reproduction.md
	$(BIN)/coterie reproduce all --out build/reproduction --resume
	mkdir -p docs/results && cp build/reproduction/results/*.json docs/results/
	cp build/reproduction/pictures/*.png docs/pictures/ && cp build/reproduction/reproduction.md docs/

real-data: $(STAMP)  ## docs/real-data.md from the results stored in docs/results/real
	$(BIN)/python -m coterie.runs.report.real_data docs/results/real docs/real-data.md

REAL := lastfm=hetrec2011-lastfm-2k deezer=deezer-ro filmtrust=filmtrust
real-runs: $(STAMP)  ## the studies on real data (many hours; go on where they stopped): make real-runs DATA=DIR
	mkdir -p docs/results/real
	for each in $(REAL); do \
	  $(BIN)/coterie run $${each%%=*} --data $(DATA)/$${each#*=} --jobs 2 --out build/real/$${each%%=*} --resume || exit 1; \
	  cp build/real/$${each%%=*}/summary.json docs/results/real/$${each%%=*}.json; done
	$(MAKE) real-data

lock:  ## resolve the dependencies again (needs uv)
	uv pip compile pyproject.toml --all-extras --group dev --universal --generate-hashes --python-version 3.11 \
	  --no-header --no-annotate --upgrade --output-file requirements.lock

clean:  ## remove what the targets made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist coterie-demo*
