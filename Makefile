# Everything starts here. `make help` lists the targets.
PYTHON ?= python3.11
LOGS   ?= tests/data/slice
# The bundled slice has a lake of its own: what is audited later is not mixed with it.
LAKE   ?= $(if $(filter tests/data/slice,$(LOGS)),highwater-slice,highwater-lake)
OUT    ?= highwater-report
KILLS  ?= 50
# Of `make cluster`: one release, or two for an upgrade; more in docs/testbed.md.
KAFKA    ?=
SCENARIO ?= matrix
RUN      ?=
# Of `make bench`: folders of logs. `python -m tests.bench.hours` makes large ones.
INPUTS   ?= $(LOGS)
# Rings of `make test` that run beside each other: where a query is planned, a core has nothing to do.
LANES  ?= 2

VENV   := .venv
BIN    := $(VENV)/bin
STAMPS := $(VENV)/stamps

# Each process would compile the modules anew, a second of CPU; what is kept lies in __pycache__, which git ignores.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := setup
.PHONY: help setup audit airflow cluster check lock bench clean java
.PHONY: test test-suites test-unit test-spark test-audits test-mutants test-e2e test-corpora test-airflow test-crash test-cluster
.PHONY: test-browser test-install s3 test-s3 test-hdfs test-azure test-cluster-spark executors

help:
	@echo "make setup              virtual environment, packages and Delta's jars, in .venv"
	@echo "make audit [LOGS=dir]   run the audit; ends 0 whatever the verdict"
	@echo "make test               test-unit, -spark, -audits, -mutants, -e2e, two beside each other; LANES=1 for one"
	@echo "make test-suites        these, and test-s3, -airflow, -cluster-spark; KILLS=n, LANES=n"
	@echo "make test-corpora       what takes minutes more: all corpora, more cuts, losses, values of clients and examples"
	@echo "make airflow            Airflow, in .venv-airflow"
	@echo "make test-airflow       runs the DAGs on it"
	@echo "make test-browser       clicks through report.html in Chromium; skips where there is none"
	@echo "make executors          dist/highwater-executors.tar.gz: what a cluster's executors need; docs/cluster.md"
	@echo "make test-cluster-spark audits on local-cluster and on a standalone cluster that it starts"
	@echo "make test-install       the steps of the Dockerfile without Docker, then the demo; needs the network"
	@echo "make test-crash         runs killed dozens of times, full disks, rival runs; KILLS=n"
	@echo "make s3                 jars that Spark needs for a lake in S3, 13 MB more"
	@echo "make test-s3            lakes, logs and reports on an S3-compatible server on loopback; KILLS=n"
	@echo "make test-hdfs          the same in HDFS, on a name node and a data node on loopback; KILLS=n"
	@echo "make test-azure         logs, reports and tables on a server of Azure's Blob Storage on loopback; needs npm"
	@echo "make cluster KAFKA=3.6.2 [SCENARIO=matrix] [RUN='--mode zookeeper']"
	@echo "                        runs that release with faults, audits its logs, compares; docs/testbed.md"
	@echo "make test-cluster       the same, briefly, of a ZooKeeper and a KRaft release"
	@echo "make check              lint, format, types"
	@echo "make lock               write all requirements*.lock anew"
	@echo "make bench [INPUTS=dirs] what an audit costs beside two peers; docs/performance.md"
	@echo "make clean              remove what make and the audit made, but not .venv*"

setup: java $(STAMPS)/archive

java:
	@command -v $(PYTHON) >/dev/null || { echo "make: there is no $(PYTHON); install Python 3.11, or say PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo "make: $(PYTHON) is older than Python 3.11; say PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -m highwater.pipelines.base.java

$(STAMPS)/venv: | java
	$(PYTHON) -m venv $(VENV)
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/packages: requirements.lock pyproject.toml $(STAMPS)/venv
	$(BIN)/python -m pip install --quiet --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	@touch $@

$(STAMPS)/jars: $(STAMPS)/packages | java
	$(BIN)/python -m highwater.jobs.fetch_jars
	@touch $@

$(STAMPS)/archive: $(STAMPS)/jars
	$(BIN)/python -m highwater.jobs.archive_classes tests/data/slice
	@touch $@

# 1 (violated) and 3 (inconclusive) are verdicts of an audit that ran.
audit: setup
	@$(BIN)/highwater audit $(LOGS) --lake $(LAKE) --out $(OUT); code=$$?; \
	case $$code in 0|1|3) exit 0 ;; *) exit $$code ;; esac

# The longest ones first.
RINGS := test-audits test-spark test-unit test-mutants test-e2e
BESIDE = @$(BIN)/python -m tests.rings --lanes $(LANES)
test: setup
	$(BESIDE) $(RINGS)

# And what takes another environment, a server or a cluster. They share no port and no folder: servers take ports that
# are free, and each test has folders of its own.
test-suites: setup
	$(BESIDE) test-s3 test-airflow test-audits test-cluster-spark $(filter-out test-audits,$(RINGS))

PYTEST := $(BIN)/python -m pytest -m "not crash and not long" --durations=10
test-unit: setup
	$(PYTEST) tests/unit

# Lakes of a few rows.
test-spark: setup
	$(PYTEST) tests/spark --ignore=tests/spark/audits --ignore=tests/spark/mutants

# Whole logs, the command's verbs among them.
test-audits: setup
	$(PYTEST) tests/spark/audits

# One audit of hundreds of damaged slices.
test-mutants: setup
	$(PYTEST) tests/spark/mutants

# What takes a process of its own, and nearly no Spark.
test-e2e: setup
	$(PYTEST) tests/e2e tests/crash

# Corpora beside this checkout, and small ones whose verdict is violated.
SHARED := $(patsubst %/broker-1,%,$(wildcard ../shared/corpora/*/broker-1))
VIOLATED := $(filter %/kip101 %/lib-0.9 %/kraft37-disk,$(SHARED))

test-corpora: setup
	$(BIN)/python -m pytest -m long --durations=10 tests/unit tests/spark
	HIGHWATER_EXAMPLES=all $(PYTEST) tests/unit
	$(if $(SHARED),$(BIN)/python -m tests.bench.client_values $(SHARED))
	$(if $(VIOLATED),$(BIN)/python -m tests.bench.losses $(VIOLATED) --cases 5)

# Needs Chromium and ChromeDriver, of the same version; no package of Python's.
test-browser: setup
	$(BIN)/python -m pytest tests/browser

# The steps of the Dockerfile without Docker, from the network.
test-install: setup
	$(BIN)/python -m pytest -m install tests/install

test-crash: setup
	HIGHWATER_KILLS=$(KILLS) $(BIN)/python -m pytest -m crash tests/crash

s3: setup
	$(BIN)/python -m highwater.jobs.fetch_jars s3

# The server pins what others here pin otherwise, so it has an environment of its own.
S3_VENV := .venv-s3
$(S3_VENV)/stamps/packages: requirements-s3.lock
	$(PYTHON) -m venv $(S3_VENV)
	$(S3_VENV)/bin/python -m pip install --quiet --requirement requirements-s3.lock
	@mkdir -p $(@D) && touch $@

test-s3: s3 $(S3_VENV)/stamps/packages
	HIGHWATER_KILLS=$(KILLS) $(BIN)/python -m pytest -m s3 --durations=10 tests/stores

# Of Hadoop's own test cluster Spark does not bring the servers: 56 MB, into .hdfs.
test-hdfs: setup
	$(BIN)/python -m tests.stores.hdfs
	HIGHWATER_KILLS=$(KILLS) $(BIN)/python -m pytest -m hdfs --durations=10 tests/stores

AZURITE := .azurite/node_modules/azurite/package.json
$(AZURITE):
	npm install --silent --no-audit --no-fund --prefix .azurite azurite@3.35.0

test-azure: setup $(AZURITE)
	$(BIN)/python -m pytest -m azure --durations=10 tests/stores

# A standalone cluster on loopback whose executors have nothing installed.
test-cluster-spark: setup executors
	$(BIN)/python -m pytest --durations=10 tests/cluster

# Airflow pins what Spark's side pins otherwise, so it has an environment of its own.
AIRFLOW_VENV := .venv-airflow
airflow: $(AIRFLOW_VENV)/stamps/packages

$(AIRFLOW_VENV)/stamps/packages: requirements-airflow.lock
	$(PYTHON) -m venv $(AIRFLOW_VENV)
	$(AIRFLOW_VENV)/bin/python -m pip install --quiet --requirement requirements-airflow.lock
	@mkdir -p $(@D) && touch $@

# What executors that have nothing but a Python need: packages that tasks import, and a wheel of this
# checkout; docs/cluster.md.
EXECUTORS := build/executors
ENVIRONMENT := $(EXECUTORS)/environment
executors: dist/highwater-executors.tar.gz

$(EXECUTORS)/packages: requirements.lock Makefile
	rm -rf $(EXECUTORS) && mkdir -p $(EXECUTORS)
	$(PYTHON) -m venv $(ENVIRONMENT)
	$(ENVIRONMENT)/bin/python -m pip install --quiet --constraint requirements.lock \
	    deltalake hdfs-native javaproperties msgspec obstore orjson pandas protobuf pyarrow pydantic
	$(ENVIRONMENT)/bin/python -m pip install --quiet --constraint requirements.lock --no-deps delta-spark
	@touch $@

dist/highwater-executors.tar.gz: $(EXECUTORS)/packages pyproject.toml hatch_build.py $(shell find conf jobs pipelines schemas -type f -not -path '*/__pycache__/*')
	rm -f $(EXECUTORS)/*.whl && mkdir -p $(@D)
	$(PYTHON) -m pip wheel --quiet --no-deps --wheel-dir $(EXECUTORS) .
	$(ENVIRONMENT)/bin/python -m pip install --quiet --no-deps --force-reinstall $(EXECUTORS)/highwater_kafka-*.whl
	tar --create --use-compress-program 'gzip -1' --file $@.partial --directory $(ENVIRONMENT) .
	mv $@.partial $@

# The tests above it need what is not there; the DAGs call the command in $(VENV).
test-airflow: setup airflow
	$(AIRFLOW_VENV)/bin/python -m pytest --confcutdir tests/dags tests/dags

# Clients of Kafka are needed by nothing else, so they have an environment of their own, too.
TESTBED_VENV := .venv-testbed
TESTBED := .testbed
$(TESTBED_VENV)/stamps/packages: requirements-testbed.lock
	$(PYTHON) -m venv $(TESTBED_VENV)
	$(TESTBED_VENV)/bin/python -m pip install --quiet --requirement requirements-testbed.lock
	@mkdir -p $(@D) && touch $@

NOTHING :=
CORPUS = $(TESTBED)/corpora/$(SCENARIO)-$(subst $(NOTHING) ,-,$(strip $(KAFKA)))
cluster: setup $(TESTBED_VENV)/stamps/packages
	@test -n "$(strip $(KAFKA))" || { echo "make: say which release, as in make cluster KAFKA=3.6.2" >&2; exit 1; }
	$(TESTBED_VENV)/bin/python -m tests.testbed run $(KAFKA) --scenario $(SCENARIO) --corpus $(CORPUS) $(RUN)
	$(BIN)/python -m tests.testbed check $(CORPUS)

test-cluster: setup $(TESTBED_VENV)/stamps/packages
	$(TESTBED_VENV)/bin/python -m tests.testbed run 2.6.3 --scenario brief --corpus $(TESTBED)/corpora/brief-2.6.3
	$(TESTBED_VENV)/bin/python -m tests.testbed run 4.1.2 --scenario brief --corpus $(TESTBED)/corpora/brief-4.1.2
	$(BIN)/python -m tests.testbed check $(TESTBED)/corpora/brief-2.6.3 $(TESTBED)/corpora/brief-4.1.2

check: $(STAMPS)/packages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup
	$(BIN)/python -m tests.bench
	$(BIN)/python -m tests.bench.performance $(INPUTS)

# pip-tools lives in an environment of its own: it is not needed to build or run anything. It knows no dependency
# groups, so they are handed to it as a list.
LOCK_VENV := .venv-lock
LOCK := $(LOCK_VENV)/bin/pip-compile --quiet --strip-extras --upgrade --no-header --no-annotate --no-emit-index-url \
    --no-emit-trusted-host --no-emit-find-links
lock:
	$(PYTHON) -m venv $(LOCK_VENV)
	$(LOCK_VENV)/bin/python -m pip install --quiet pip-tools
	$(PYTHON) -c 'import tomllib; groups = tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]; \
	    [print(*groups.pop(name), sep="\n", file=open(f"$(LOCK_VENV)/{name}.in", "w")) for name in ("airflow", "testbed", "s3")]; \
	    print(*sum(groups.values(), []), sep="\n")' > $(LOCK_VENV)/groups.in
	$(LOCK) --output-file requirements.lock pyproject.toml $(LOCK_VENV)/groups.in
	$(LOCK) --output-file requirements-airflow.lock $(LOCK_VENV)/airflow.in
	$(LOCK) --output-file requirements-testbed.lock $(LOCK_VENV)/testbed.in
	$(LOCK) --output-file requirements-s3.lock $(LOCK_VENV)/s3.in
	rm -rf $(LOCK_VENV)

clean:
	rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis highwater-lake highwater-slice highwater-report spark-warehouse
	find highwater jobs pipelines schemas tests -name __pycache__ -type d -prune -exec rm -rf {} +
