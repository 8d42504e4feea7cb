# Every target sets up what it needs. `make demo` and `make test` are the two that matter (README.md).
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= 4
PATIENT = -o faulthandler_timeout=2400  # seconds for one test of a cluster, or one that waits beside other lanes; pyproject.toml has the limit of the others
BESIDE = -n $(WORKERS) --dist loadscope --no-loadscope-reorder  # tests/side_by_side.py says who shares a process
AGAIN = $(if $(CI),--only-rerun='not within [0-9]|did not end within|CommandFailedError')  # CI's machine is slow now and then: who waited in vain tries twice more
DURATIONS = $(or $(SLUICE_WORK),.work)/durations

IMAGES ?= yes
unexport PYTHONDONTWRITEBYTECODE  # tests start thousands of Python processes: what they import is compiled once
marked = $(shell grep -rl 'mark\.$(1)' tests --include='test_*.py' | sort)  # to read all files takes half a minute (a test of the layout)

.PHONY: help venv site generate hashes version release publish format lint quick check test test-alone test-cluster test-more more-alone more-lines more-cluster more-timed test-spark test-lake test-gitops test-deep demo demo-local demo-clean nemesis bench bench-operator clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv: .venv/installed ## make .venv with everything in it

.venv/installed: pyproject.toml constraints/all.txt
	@echo "== .venv: everything that Sluice, its tests and its demo need (1-3 minutes the first time)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Sluice needs Python 3.11 or later; set PYTHON=")'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints/all.txt -e '.[operator,consumer,local,dev]'
	@touch $@

generate: venv ## write generated files (CRD, docs/reference, tables of docs and of the chart, dashboards, screens of docs/kubectl.md and docs/runbooks.md, pictures)
	@$(BIN)/python -m sluice_operator.generate.crd crds/kinesisconsumers.sluice.dev.yaml charts/sluice/files/crd.yaml
	@$(BIN)/python -m sluice_operator.generate.crd --pool crds/kinesisconsumerpools.sluice.dev.yaml charts/sluice/files/crd-pools.yaml
	@$(BIN)/python -m sluice_operator.generate.reference docs/rules.md docs/monitoring.md docs/runbooks.md
	@$(BIN)/python -m sluice_operator.generate.values charts/sluice
	@$(BIN)/python -m sluice_operator.generate.dashboards docs/metrics.md charts/sluice/files/dashboards
	@$(BIN)/python -m sluice_lab.site.reference
	@$(BIN)/python -m sluice_lab.site.cost docs/cost.md
	@$(BIN)/python -m sluice_lab.site.cost README.md
	@$(BIN)/python -m sluice_lab.site.durations README.md
	@$(BIN)/python -m sluice_lab.site.bench README.md docs/performance.md docs/plain-pyspark.md docs/compare.md docs/pools.md
	@$(BIN)/python tests/kubectl/screens.py docs/kubectl.md docs/runbooks.md docs/how-to/undo-a-deploy.md
	@$(BIN)/python -m sluice_lab.pictures.overview docs/start/picture.svg
	@$(BIN)/python -m sluice_lab.pictures.story charts/sluice/files/dashboards/sluice-consumer.json docs/pictures/incidents

site: venv ## the documentation as a site, into .work/site (3 seconds); make check builds it, too
	@SITE_SCRIPTS=$$($(BIN)/python -m sluice_lab.site.build) NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict && echo "== .work/site/index.html"

hashes: venv ## write constraints/hashes/: what the images install, packages on both processors, and jars
	@$(BIN)/python -m sluice_lab.hashes

version: venv ## write VERSION=0.2.0 wherever the version is repeated; commit it, then make release
	@$(BIN)/python -m sluice_lab.release version $(or $(VERSION),$(error VERSION=0.2.0, say))

release: venv ## everything that is published, of the last commit, into dist/: VERSION=0.2.0 REGISTRY=registry.example, DOWNLOADS=https://…, IMAGES=no, PLUGIN=no (30 minutes; without images 3, without both 1)
	@$(BIN)/python -m sluice_lab.release make $(or $(VERSION),$(error VERSION=0.2.0, say)) $(if $(REGISTRY),--registry=$(REGISTRY)) $(if $(DOWNLOADS),--downloads=$(DOWNLOADS)) $(if $(filter no,$(IMAGES)),--no-images) $(if $(filter no,$(PLUGIN)),--no-plugin)

publish: venv ## push images and chart of dist/ to REGISTRY=registry.example, logged in as docker is; PLAIN_HTTP=1 for a registry on this machine
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

check: lint ## everything but the cluster and what takes longest, several processes side by side (5 minutes)
	@echo "== tests without a cluster, but for the slow ones (make test-more has them)"
	@SLUICE_PART=1 SLUICE_SIM_EXAMPLES=50 $(BIN)/pytest -m "not cluster and not apiserver and not slow and not lake" $(BESIDE)

# Lanes run side by side: those that wait for a cluster, and those that compute. What is named second comes after them, alone. The first lane prints as it
# runs, the others what fails, and all at the end.
define lanes
$(MAKE) --no-print-directory --keep-going --jobs $(1) || failed=yes; \
$(if $(2),$(MAKE) --no-print-directory $(2) || failed=yes;) \
for lane in $(wordlist 2,9,$(1)) $(2); do echo "== $$lane"; cat $(DURATIONS)/$$lane.log; done; $(BIN)/python -m sluice_lab.durations $@; test -z "$${failed:-}"
endef
LOGGED = 2>&1 | tee -a $(DURATIONS)/$@.log | { grep --line-buffered -E '^FAILED .* \([a-z?]+, [0-9]+ s\): ' || true; }

test: lint ## what make check runs, the main job and what README claims on a real cluster, and one other line of Spark (23 minutes)
	@echo "== what is built the first time"
	@$(BIN)/python -m sluice_lab build || test -z "$${CI:-}"  # elsewhere the tests of a cluster are skipped, and say why
	@rm -rf $(DURATIONS)/$@ && mkdir -p $(DURATIONS)/$@
	@echo "== tests without a cluster; beside them the tests of the cluster, then another line of Spark ($(DURATIONS)/test-cluster.log)"
	@$(call lanes,test-alone test-cluster)

test-alone:
	@SLUICE_PART=1 $(BIN)/pytest -m "not cluster and not slow and not lake" $(BESIDE) $(AGAIN) --junitxml=$(DURATIONS)/test/tests.xml

test-cluster:
	@SLUICE_PART=1 $(BIN)/pytest -m "cluster and not slow" $(call marked,cluster) $(PATIENT) $(AGAIN) --junitxml=$(DURATIONS)/test/cluster.xml $(LOGGED) || failed=yes; \
	WORKERS=$(WORKERS) SLUICE_DURATIONS=$(DURATIONS)/test $(BIN)/python -m sluice_lab.spark_lines one $(LOGGED) || failed=yes; \
	test -z "$${failed:-}"

test-more: venv ## what make test leaves out, but for make test-lake: what is slow, the rest of the cluster, and the sinks with the image's jars (50 minutes)
	@rm -rf $(DURATIONS)/$@ && mkdir -p $(DURATIONS)/$@
	@echo "== slow tests without a cluster, most of which wait; beside them the sinks with the image's jars, and the slow tests of the cluster ($(DURATIONS)/more-*.log)"
	@$(call lanes,more-alone more-lines more-cluster,more-timed)

more-alone: WORKERS = 3  # with the other lanes that is what two cores take: more of them wait for each other
more-alone:
	@SLUICE_PART=1 nice $(BIN)/pytest -m "slow and not cluster and not lake" $(call marked,slow) $(BESIDE) $(PATIENT) --junitxml=$(DURATIONS)/test-more/tests.xml

more-lines:
	@WORKERS=2 SLUICE_DURATIONS=$(DURATIONS)/test-more nice $(BIN)/python -m sluice_lab.spark_lines rest $(LOGGED) || failed=yes; \
	SLUICE_PART=1 SLUICE_LANE=-more $(BIN)/pytest -m "slow and cluster" $(SECOND) $(PATIENT) --junitxml=$(DURATIONS)/test-more/cluster-more.xml $(LOGGED) || failed=yes; \
	test -z "$${failed:-}"

# The sinks are through when half of the cluster's slow tests are: then the other half runs over a cluster of its own.
SECOND = $(addprefix tests/cluster/test_,argocd.py disruptions.py examples.py flux.py pool.py release.py start_eks.py upgrade.py)

# These bound seconds, or compare the speed of one executor with that of two. So nothing else may take the cores: they come after the lanes.
TIMED = $(addprefix tests/cluster/test_,autoscale.py failover.py rollout.py until.py)

more-cluster:
	@SLUICE_PART=1 $(BIN)/pytest -m "slow and cluster" $(filter-out $(SECOND) $(TIMED),$(call marked,slow)) $(PATIENT) --junitxml=$(DURATIONS)/test-more/cluster.xml $(LOGGED)

more-timed:
	@echo "== tests of a cluster that bound seconds, alone"
	@SLUICE_PART=1 $(BIN)/pytest -m "slow and cluster" $(TIMED) $(PATIENT) --junitxml=$(DURATIONS)/test-more/cluster-timed.xml $(LOGGED)

test-spark: venv ## what depends on Spark, without a cluster, on another line of it: LINE=4.3 (5 minutes)
	@WORKERS=$(WORKERS) $(BIN)/python -m sluice_lab.spark_lines $(or $(LINE),$(error LINE=4.3, say))

test-lake: venv ## the sinks under kills and outages, bad input of whole programs, and the examples, on the image's line of Spark (15 minutes)
	@WORKERS=2 $(BIN)/python -m sluice_lab.spark_lines lake

test-gitops: venv ## the real Argo CD and Flux, built here the first time (20 minutes of a core), over a real cluster (25 minutes)
	@SLUICE_GITOPS=1 $(BIN)/pytest $(PATIENT) tests/cluster/test_argocd.py tests/cluster/test_flux.py

test-deep: venv ## everything, with 10,000 random schedules a simulation, all depths of crashes, and the nemesis (hours)
	@SLUICE_SIM=deep SLUICE_NEMESIS=1 SLUICE_KILLS=50 $(BIN)/pytest -o faulthandler_timeout=86400 --durations=20
	@echo "== 50 kills of the driver for each sink"
	@SLUICE_KILLS=50 WORKERS=2 $(BIN)/python -m sluice_lab.spark_lines lake

demo: venv ## the main job on a real cluster, from nothing
	@$(BIN)/python -m sluice_lab.demo

demo-local: venv ## the same scenario in a minute: Spark in local mode, no cluster
	@$(BIN)/python -m sluice_lab.demo --local

demo-clean: venv ## remove all that the demo made
	@$(BIN)/python -m sluice_lab.demo --clean

nemesis: venv ## minutes of faults on a real cluster, and a timeline; SEED=7 replays a schedule, DURATION=600 (seconds), SINK=iceberg|delta|parquet, POISON=1, RESETS=1, STANDBY=1, POOL=1
	@$(BIN)/python -m sluice_lab.nemesis $(if $(SEED),--seed=$(SEED)) $(if $(DURATION),--seconds=$(DURATION)) $(if $(SINK),--sink=$(SINK)) $(if $(POISON),--poison) $(if $(RESETS),--resets) $(if $(STANDBY),--standby) $(if $(POOL),--pool)

bench: venv ## measure beside peers, on the image's line of Spark (40 minutes); prints, asserts nothing. PEER_JAR=connector.jar runs the awslabs connector, too; KEEP=docs/bench keeps the figures
	@$(BIN)/python tests/bench/bench.py $(if $(PEER_JAR),--peer-jar=$(PEER_JAR)) $(if $(KEEP),--keep=$(KEEP))
	@$(BIN)/python tests/bench/migration_speed.py
	@$(BIN)/python tests/bench/scale.py

bench-operator: venv ## the operator with 1,000 resources and 5,000 pods, against a real API server; prints, exit 1 if an aim is missed
	@$(BIN)/python tests/bench/operator_scale.py $(if $(RESOURCES),--resources=$(RESOURCES)) $(if $(SECONDS),--seconds=$(SECONDS))

clean: demo-clean ## demo-clean, and forget caches and the venv
	@test ! -x $(BIN)/python || $(BIN)/python -m sluice_lab down
	rm -rf .venv .work .mypy_cache .ruff_cache .pytest_cache .hypothesis
