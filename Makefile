# Every target sets up what it needs. `make demo-local` and `make test` are the two that matter (README.md).
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
PYTHON ?= python3
BIN := .venv/bin
IMAGES ?= yes
unexport PYTHONDONTWRITEBYTECODE  # tests start thousands of Python processes: what they import is compiled once
.PHONY: help venv site generate hashes version release publish format lint quick test test-cluster test-more test-spark test-lake test-gitops test-deep demo demo-local demo-clean nemesis bench bench-operator clean help-all kills

help: ## what is needed every week
	@awk -F ':.* ## ' '/^[a-z-]+:.* ## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

help-all: ## every target
	@awk -F ':.* ###? ' '/^[a-z-]+:.* ###? / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv: .venv/installed ## make .venv with everything in it

.venv/installed: pyproject.toml constraints/all.txt
	@echo "== .venv: everything that Sluice, its tests and its demo need (1-3 minutes the first time)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Sluice needs Python 3.11 or later; set PYTHON=")'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints/all.txt -e '.[operator,consumer,local,dev]'
	@touch $@

generate: venv ## write generated files (CRD, docs/reference, tables of docs and of the chart, screens of docs/kubectl.md and docs/runbooks.md, pictures)
	@$(BIN)/python -m sluice_lab.generate.crd crds/kinesisconsumers.sluice.dev.yaml charts/sluice/files/crd.yaml
	@$(BIN)/python -m sluice_lab.generate.crd --pool crds/kinesisconsumerpools.sluice.dev.yaml charts/sluice/files/crd-pools.yaml
	@$(BIN)/python -m sluice_lab.generate.reference docs/rules.md docs/monitoring.md docs/runbooks.md
	@$(BIN)/python -m sluice_lab.generate.values charts/sluice
	@$(BIN)/python -m sluice_lab.site.reference
	@$(BIN)/python -m sluice_lab.site.cost docs/cost.md
	@$(BIN)/python -m sluice_lab.site.cost README.md
	@$(BIN)/python -m sluice_lab.site.bench README.md docs/performance.md docs/plain-pyspark.md docs/compare.md docs/pools.md
	@$(BIN)/python tests/kubectl/screens.py docs/kubectl.md docs/runbooks.md docs/how-to/undo-a-deploy.md
	@$(BIN)/python -m sluice_lab.pictures.overview docs/start/picture.svg
	@$(BIN)/python -m sluice_lab.pictures.story charts/sluice/files/dashboards/sluice-consumer.json docs/pictures/incidents

site: venv ### the documentation as a site, into .work/site (3 seconds)
	@SITE_SCRIPTS=$$($(BIN)/python -m sluice_lab.site.build) NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict && echo "== .work/site/index.html"

hashes: venv ### write constraints/hashes/: what the images install, packages on both processors, and jars
	@$(BIN)/python -m sluice_lab.hashes

version: venv ### write VERSION=0.2.0 wherever the version is repeated; commit it, then make release
	@$(BIN)/python -m sluice_lab.release version $(or $(VERSION),$(error VERSION=0.2.0, say))

release: venv ### everything that is published, of the last commit, into dist/: VERSION=0.2.0 REGISTRY=registry.example, DOWNLOADS=https://…, IMAGES=no, PLUGIN=no (30 minutes; without images 3, without both 1)
	@$(BIN)/python -m sluice_lab.release make $(or $(VERSION),$(error VERSION=0.2.0, say)) $(if $(REGISTRY),--registry=$(REGISTRY)) $(if $(DOWNLOADS),--downloads=$(DOWNLOADS)) $(if $(filter no,$(IMAGES)),--no-images) $(if $(filter no,$(PLUGIN)),--no-plugin)

publish: venv ### push images and chart of dist/ to REGISTRY=registry.example, logged in as docker is; PLAIN_HTTP=1 for a registry on this machine
	@$(BIN)/python -m sluice_lab.release publish $(or $(REGISTRY),$(error REGISTRY=registry.example, say)) $(if $(PLAIN_HTTP),--plain-http)

format: venv ## format the code
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

lint: venv ## ruff, words of docs and messages, mypy (packages and tests), import-linter
	@echo "== ruff";  $(BIN)/ruff check . && $(BIN)/ruff format --check .
	@echo "== words"; $(BIN)/python -m sluice_lab.site.prose
	@echo "== mypy";  $(BIN)/python -m sluice_lab.typecheck
	@echo "== import-linter"; PYTHONPATH=consumer:operator:lab $(BIN)/lint-imports

quick: venv ## lint, and the tests of the rooms in which files changed since SINCE (default: HEAD); seconds
	@$(BIN)/python -m sluice_lab.quick $(SINCE)

test: lint ## lint, and the tests that need neither a cluster nor what Go builds (README.md has durations)
	@$(BIN)/python -m sluice_lab build light || test -z "$${CI:-}"  # elsewhere the tests over what is missing are skipped, and say why
	@$(BIN)/python -m sluice_lab.lanes $@

test-cluster: venv ## the tests of a real API server and of a real cluster, and what a change asks for beside them
	@$(BIN)/python -m sluice_lab build
	@$(BIN)/python -m sluice_lab.lanes $@

test-more: venv ## what is long, by hand before an issue is called resolved (50 minutes)
	@$(BIN)/python -m sluice_lab build
	@$(BIN)/python -m sluice_lab.lanes $@

test-spark: venv ### what depends on Spark, without a cluster, on another line of it: LINE=4.3 (5 minutes)
	@$(BIN)/python -m sluice_lab build light programs
	@$(BIN)/python -m sluice_lab.lanes test-spark-$(or $(LINE),$(error LINE=4.3, say))

test-lake: venv ### the sinks under kills and outages, bad input of whole programs, and the examples, on the image's line of Spark (15 minutes)
	@$(BIN)/python -m sluice_lab build light programs
	@$(BIN)/python -m sluice_lab.lanes $@

test-gitops: venv ### the real Argo CD and Flux, built here the first time (20 minutes of a core), over a real cluster (25 minutes)
	@$(BIN)/python -m sluice_lab build light programs cluster gitops
	@$(BIN)/pytest -o faulthandler_timeout=2400 tests/cluster/test_argocd.py tests/cluster/test_flux.py

test-deep: venv ### everything, with 10,000 random schedules a simulation, all depths of crashes, and the nemesis (hours)
	@SLUICE_SIM=deep SLUICE_NEMESIS=1 SLUICE_KILLS=50 $(BIN)/pytest -o faulthandler_timeout=86400 --durations=20
	@echo "== 50 kills of the driver for each sink"
	@SLUICE_KILLS=50 $(BIN)/python -m sluice_lab.lanes test-lake

demo: venv ## the main job on a real cluster, from nothing
	@$(BIN)/python -m sluice_lab.demo

demo-local: venv ## the same scenario in a minute: Spark in local mode, no cluster
	@$(BIN)/python -m sluice_lab.demo --local

demo-clean: venv ### remove all that the demo made
	@$(BIN)/python -m sluice_lab.demo --clean

nemesis: venv ### minutes of faults on a real cluster, and a timeline; SEED=7 replays a schedule, DURATION=600 (seconds), SINK=iceberg|delta|parquet, POISON=1, RESETS=1, STANDBY=1, POOL=1
	@$(BIN)/python -m sluice_lab.nemesis $(if $(SEED),--seed=$(SEED)) $(if $(DURATION),--seconds=$(DURATION)) $(if $(SINK),--sink=$(SINK)) $(if $(POISON),--poison) $(if $(RESETS),--resets) $(if $(STANDBY),--standby) $(if $(POOL),--pool)

kills: venv ### which test files notice which mutants of the protocol: ROOM=tests/consumer/batches, MUTANTS=fold (minutes a mutant)
	@$(BIN)/python tests/kills.py $(or $(ROOM),$(error ROOM=tests/consumer/batches, say)) $(if $(MUTANTS),--mutants=$(MUTANTS))

bench: venv ### measure beside peers, on the image's line of Spark (40 minutes); prints, asserts nothing. PEER_JAR=connector.jar runs the awslabs connector, too; KEEP=docs/bench keeps the figures
	@$(BIN)/python bench/bench.py $(if $(PEER_JAR),--peer-jar=$(PEER_JAR)) $(if $(KEEP),--keep=$(KEEP))
	@$(BIN)/python bench/migration_speed.py
	@$(BIN)/python bench/scale.py

bench-operator: venv ### the operator with 1,000 resources and 5,000 pods, against a real API server; prints, exit 1 if an aim is missed
	@$(BIN)/python bench/operator_scale.py $(if $(RESOURCES),--resources=$(RESOURCES)) $(if $(SECONDS),--seconds=$(SECONDS))

clean: demo-clean ### demo-clean, and forget this checkout's caches and venv
	@test ! -x $(BIN)/python || $(BIN)/python -m sluice_lab down
	rm -rf .venv .work .mypy_cache .ruff_cache .pytest_cache .hypothesis
