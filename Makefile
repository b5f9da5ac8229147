# The verbs of Anabranch. `make` alone lists them; CONTRIBUTING.md tells when to use which.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
# Any Python from 3.11 on; `make setup PYTHON=...` chooses one.
PYTHON ?=
# The bundled pyright is the pinned one: no look at a registry for a newer.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Some images keep Python from writing what it compiles: every process would compile anew.
unexport PYTHONDONTWRITEBYTECODE

# One more than there are cores: while a test waits for a process, another one works.
WORKERS := $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN) + 1 )))
# Slow tests start first, and tests that share a fixture of their module stay together.
SUITE := --numprocesses $(WORKERS) --dist loadgroup --no-loadscope-reorder --durations=10
# Kept outside of the repository, by version.
SERVERS := $(BIN)/python -m anabranch.apps.processes.binaries
KUBERNETES := $(BIN)/python -m tests.kubernetes.binaries

.PHONY: help setup servers demo demo-spark up cluster-local test test-all test-cluster servers-kubernetes lint format simulate simulate-operator simulate-belfast simulate-erwin simulate-lazy simulate-consensus mutants bench lock map protos clean

help:  ## list the verbs
	@awk -F ':.*## ' '/^[a-z%-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/dev.stamp  ## create .venv with everything pinned, tests and tools included

demo: $(VENV)/runtime.stamp  ## play fork, promote and squash on an embedded log, narrated
	@$(BIN)/python -m anabranch.cli.main demo

demo-spark: $(VENV)/spark.stamp  ## gate, promote and export a log with Spark, narrated; needs Java 17 or 21
	@$(BIN)/python -m anabranch_spark.demo $(ARGS)

cluster-local: $(VENV)/dev.stamp  ## run etcd, an S3 server and all pods as processes; ARGS="--brokers 2"
	@$(BIN)/python -m anabranch.cli.main up --processes $(ARGS)

up: $(VENV)/runtime.stamp  ## run the embedded log on loopback; ARGS="--data DIR"
	@$(BIN)/python -m anabranch.cli.main up $(ARGS)

# Servers that are missing are built while the tests that need none of them run.
test: $(VENV)/dev.stamp  ## what a change must pass, in minutes; ARGS="tests/unit -k name"
	@$(SERVERS) >/dev/null & \
		$(BIN)/python -m pytest $(SUITE) -m "not nightly" $(ARGS) || failed=$$?; wait; exit $${failed:-0}

test-all: $(VENV)/dev.stamp  ## every test there is, for the night; writes tests/last-full-run.json; ARGS="--only cluster"
	@$(MAKE) --no-print-directory servers-kubernetes || echo "tests of missing servers are skipped" >&2
	@$(BIN)/python -m tests.full_run $(SUITE) $(ARGS)

# KEEP=1 leaves the node for another try; `python -m tests.kubernetes.node down` takes it away.
test-cluster: $(VENV)/dev.stamp  ## all of it on a real Kubernetes node here, as root; ARGS="-x"
	@$(if $(KEEP),,trap '$(BIN)/python -m tests.kubernetes.node down' EXIT;) \
		$(BIN)/python -m tests.kubernetes.node up; \
		ANABRANCH_TEST_CLUSTER=1 $(BIN)/python -m pytest tests/cluster $(ARGS)

servers: $(VENV)/runtime.stamp  ## build the etcd, S3 server and fault proxy of tests and demos, with Go
	@$(SERVERS)

servers-kubernetes: $(VENV)/dev.stamp servers  ## build Kubernetes' own programs for tests: ten minutes and more
	@$(KUBERNETES) etcd hyperkube kwok helm kubeconform >/dev/null

lint: $(VENV)/dev.stamp  ## ruff, its formatter, strict pyright, and the arrows between layers
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/pyright
	@$(BIN)/lint-imports --no-cache

format: $(VENV)/dev.stamp  ## let ruff mend what it can
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

simulate: $(VENV)/dev.stamp  ## run the simulator: SEED=7 replays one, SEEDS=100000 is for the night
	@$(BIN)/python -m anabranch_sim bolt $(if $(SEED),$(SEED),--seeds $(or $(SEEDS),2000))

simulate-operator: $(VENV)/dev.stamp  ## run the operator's simulator: SEED=7 replays one, SEEDS=10000 is for the night
	@$(BIN)/python -m anabranch_sim operator $(if $(SEED),$(SEED),--seeds $(or $(SEEDS),1000))

simulate-belfast: $(VENV)/dev.stamp  ## run Belfast's simulator: SEED=7 replays one, SEEDS=100000 is for the night
	@$(BIN)/python -m anabranch_sim belfast $(if $(SEED),$(SEED),--seeds $(or $(SEEDS),2000))

simulate-erwin: $(VENV)/dev.stamp  ## run Erwin's simulator: SEED=7 replays one, SEEDS=100000 is for the night
	@$(BIN)/python -m anabranch_sim erwin $(if $(SEED),$(SEED),--seeds $(or $(SEEDS),2000))

simulate-lazy: $(VENV)/dev.stamp  ## run the simulator of lazy fronts: SEED=7 replays one, SEEDS=100000 is for the night
	@$(BIN)/python -m anabranch_sim lazy $(if $(SEED),$(SEED),--seeds $(or $(SEEDS),2000))

simulate-consensus: $(VENV)/dev.stamp  ## run the consensus group's simulator: SEED=7 replays one, SEEDS=100000 is for the night
	@$(BIN)/python -m anabranch_sim consensus $(if $(SEED),$(SEED),--seeds $(or $(SEEDS),2000))

mutants: $(VENV)/dev.stamp  ## break the protocol by hand, and see the simulator find every break
	@$(BIN)/python -m anabranch_sim.mutants $(ARGS)

bench: $(VENV)/dev.stamp  ## run every benchmark and print the rows that don't hold
	@$(BIN)/python -m benchmarks

bench-%: $(VENV)/dev.stamp  ## run one benchmark
	@$(BIN)/python -m benchmarks $*

# Pins that still satisfy pyproject.toml stay; LOCK_ARGS=--upgrade takes the newest of all.
PIN := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --no-emit-index-url --no-emit-find-links

lock: $(VENV)/dev.stamp  ## resolve requirements/ anew from pyproject.toml; LOCK_ARGS=--upgrade
	@$(PIN) $(LOCK_ARGS) pyproject.toml --output-file requirements/runtime.txt
	@$(PIN) $(LOCK_ARGS) --group build --constraint requirements/runtime.txt \
		--output-file requirements/build.txt
	@$(PIN) $(LOCK_ARGS) --extra cluster --constraint requirements/runtime.txt \
		pyproject.toml --output-file requirements/cluster.txt
	@$(PIN) $(LOCK_ARGS) --extra operator --constraint requirements/cluster.txt \
		pyproject.toml --output-file requirements/operator.txt
	@$(PIN) $(LOCK_ARGS) --extra spark --extra cluster --constraint requirements/cluster.txt \
		pyproject.toml --output-file requirements/spark.txt
	@$(PIN) $(LOCK_ARGS) --extra cluster --extra operator --extra plot --extra spark --extra spark-fast \
		--extra dev --group build \
		--constraint requirements/cluster.txt --constraint requirements/operator.txt \
		--constraint requirements/spark.txt \
		--constraint requirements/build.txt \
		pyproject.toml --output-file requirements/dev.txt
	@$(PIN) $(LOCK_ARGS) --no-deps --group spark-second \
		--output-file requirements/spark-second.txt
	@$(PIN) $(LOCK_ARGS) --no-deps --group spark-connect --constraint requirements/dev.txt \
		--output-file requirements/spark-connect.txt

map: $(VENV)/dev.stamp  ## print every module with its first sentence, room by room
	@$(BIN)/python -m tests.tidy.map

protos: $(VENV)/dev.stamp  ## compile the .proto files anew
	@$(BIN)/python -m tests.tidy.protos

clean:  ## remove caches, builds and scratch; the environment stays
	@rm -rf .hypothesis .import_linter_cache .pytest_cache .ruff_cache build dist benchmarks/scratch
	@find . -path ./$(VENV) -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment. Stamps keep make from installing again what hasn't changed.
INSTALL := $(BIN)/python -m pip install --quiet --require-hashes --requirement

$(VENV)/dev.stamp: requirements/dev.txt $(VENV)/runtime.stamp
	@echo "installing the packages of the tests and tools into $(VENV)"
	@$(INSTALL) requirements/dev.txt
	@touch $@

$(VENV)/cluster.stamp: requirements/cluster.txt $(VENV)/runtime.stamp
	@echo "installing the packages of a cluster's processes into $(VENV)"
	@$(INSTALL) requirements/cluster.txt
	@touch $@

$(VENV)/spark.stamp: requirements/spark.txt $(VENV)/runtime.stamp
	@echo "installing Spark's packages into $(VENV): 700 MB, once"
	@$(INSTALL) requirements/spark.txt
	@touch $@

$(VENV)/runtime.stamp: requirements/runtime.txt requirements/build.txt pyproject.toml
	@$(create_environment)
	@echo "installing the log and the packages it runs on into $(VENV)"
	@$(INSTALL) requirements/runtime.txt
	@$(INSTALL) requirements/build.txt
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# A half-made environment (no pip that runs) is made anew.
define create_environment
if ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
	python=; \
	for name in $(or $(PYTHON),python3.11 python3.12 python3.13 python3); do \
		if $$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
			python=$$name; break; \
		fi; \
	done; \
	if [ -z "$$python" ]; then \
		echo "Anabranch needs Python 3.11 or newer, and none of" \
			"$(or $(PYTHON),python3.11, python3.12, python3.13, python3) is one." \
			"On Debian 12, Ubuntu 24.04 and newer: sudo apt-get install python3 python3-venv" >&2; \
		exit 1; \
	fi; \
	if ! $$python -c 'import ensurepip, venv' >/dev/null 2>&1; then \
		package=$$($$python -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'); \
		echo "$$python can't make an environment: its venv module comes apart." \
			"On Debian and Ubuntu: sudo apt-get install $$package; then run make again" >&2; \
		exit 1; \
	fi; \
	echo "creating $(VENV) with $$($$python --version)"; \
	$$python -m venv --clear $(VENV); \
fi
endef
