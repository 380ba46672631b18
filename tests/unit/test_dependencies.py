"""Imports run one way: jobs, then the rooms of the pipelines in their order, then schemas; and pure modules import no
Spark shell.

Read off the syntax trees, so that a module need not be importable, and imports within functions count too.
"""

import ast
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("schemas", "pipelines", "jobs")
#: The package of all of them.
PREFIX = "highwater."

#: The rooms of the pipelines: each may import those before it.
ROOMS = (
    *(
        "base",
        "storage",
        "kafka",
        "spark",
        "lake",
        "grammars",
        "messages",
        "data_dir",
        "bronze",
        "silver",
        "quality",
        "cluster",
    ),
    *("replay", "timing", "rules", "controllers", "timelines"),
    *("incidents", "report", "metrics", "inquiry", "redact", "gold"),
    "upkeep",
)
#: The only modules of the pipelines that may touch Spark, themselves or through one of these. Everything else runs in a
#: plain Python process.
SPARK_SHELLS = {
    "pipelines.bronze.ingest",
    "pipelines.lake.catalog_tables",
    "pipelines.lake.cluster_probe",
    "pipelines.lake.lake",
    "pipelines.timing.clocks.stage",
    "pipelines.controllers.stage",
    "pipelines.bronze.data_files",
    "pipelines.lake.digests",
    "pipelines.lake.folds",
    "pipelines.gold.gold",
    "pipelines.gold.ledger",
    "pipelines.incidents.stage",
    "pipelines.timing.latency.stage",
    "pipelines.cluster.replicas",
    "pipelines.cluster.stage",
    "pipelines.bronze.quarantine",
    "pipelines.quality.stage",
    "pipelines.lake.readings",
    "pipelines.replay.carried",
    "pipelines.replay.followers_stage",
    "pipelines.replay.late_stage",
    "pipelines.replay.stage",
    "pipelines.replay.timeline",
    "pipelines.replay.window",
    "pipelines.redact.known_names",
    "pipelines.report.bundle",
    "pipelines.report.collect",
    "pipelines.report.collect_detail",
    "pipelines.report.first_words",
    "pipelines.lake.lake_reads",
    "pipelines.spark.tasks",
    "pipelines.gold.audit_stage",
    "pipelines.rules.evidence_stage",
    "pipelines.rules.incremental",
    "pipelines.rules.holes_stage",
    "pipelines.rules.stage",
    "pipelines.rules.facts.timeline",
    "pipelines.spark.session",
    "pipelines.silver.parse",
    "pipelines.spark.spark_jobs",
    "pipelines.lake.staged",
    "pipelines.base.threads",
    "pipelines.lake.views",
    "pipelines.spark.worker_daemon",
}
#: Types are data: a declaration may name them without there being a session.
SPARK_TYPES = ("pyspark.sql.types", "pyspark.sql.pandas.types")
#: Libraries that belong to one place.
ONLY_IN = {
    "click": {"jobs.cli", "jobs.help", "jobs.inquiry_verbs", "jobs.options"},
    "rich": {"pipelines.base.console"},
    "urllib3": {"jobs.alerts"},
    "py4j": {"pipelines.lake.cluster_probe", "pipelines.lake.lake", "pipelines.spark.session"},
    "delta": set(),
    "deltalake": {"pipelines.lake.delta_commits", "pipelines.lake.delta_log"},
    "duckdb": {"pipelines.lake.reader", "pipelines.lake.table_queries"},
    "javaproperties": {"pipelines.spark.session_settings"},
    "hdfs_native": {"pipelines.storage.hdfs"},
    "obstore": {"pipelines.storage.objects"},
    "great_expectations": {"pipelines.quality.great"},
    "airflow": set(),
    # What is read may have been written by others: nothing in it may run.
    "pickle": set(),
    "cloudpickle": set(),
    "marshal": set(),
    "shelve": set(),
}

SCHEMAS, PURE, SHELL, JOB = range(4)


def _modules() -> dict[str, Path]:
    found = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = _modules()


@cache
def _imports(path: Path) -> set[str]:
    """Full names that a file imports; ``from a import b`` counts as ``a.b`` where that is a module, else as ``a``."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            names |= {alias.name.removeprefix(PREFIX) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            module = node.module.removeprefix(PREFIX)
            full = {f"{module}.{alias.name}" for alias in node.names}
            names |= {name if name in MODULES or name in SPARK_TYPES else module for name in full}
    return names


def _rank(module: str) -> int:
    package = module.split(".")[0]
    if package == "pipelines":
        return SHELL if module in SPARK_SHELLS else PURE
    return SCHEMAS if package == "schemas" else JOB


def _touches_spark(names: set[str]) -> bool:
    # Who hands a fold to Spark touches it, too.
    direct = any(name.split(".")[0] in ("pyspark", "delta") and name not in SPARK_TYPES for name in names)
    return direct or "pipelines.lake.folds" in names


@pytest.mark.parametrize("module", MODULES)
def test_imports_run_one_way(module: str) -> None:
    upwards = {
        name for name in _imports(MODULES[module]) if name.split(".")[0] in PACKAGES and _rank(name) > _rank(module)
    }
    assert not upwards, f"{module} imports {', '.join(sorted(upwards))}, which stands above it"


def _room(module: str) -> str:
    return module.split(".")[1]


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_those_before_it(room: str) -> None:
    allowed = ROOMS[: ROOMS.index(room) + 1]
    for module, path in MODULES.items():
        if module.startswith("pipelines.") and _room(module) == room:
            others = {name for name in _imports(path) if name.startswith("pipelines.")}
            upwards = {name for name in others if _room(name) not in allowed}
            assert not upwards, f"{module} imports {', '.join(sorted(upwards))}, of a room behind it"


def test_every_module_lies_in_a_room_and_every_room_says_where_to_begin() -> None:
    folders = {path.name for path in (ROOT / "pipelines").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert {name for name in folders if any((ROOT / "pipelines" / name).rglob("*.py"))} == set(ROOMS)
    assert [path.name for path in (ROOT / "pipelines").glob("*.py")] == ["__init__.py"]
    for room in ROOMS:
        text = ast.get_docstring(ast.parse((ROOT / "pipelines" / room / "__init__.py").read_text(encoding="utf-8")))
        assert text is not None, room
        assert "Begin to read with" in " ".join(text.split()), room


def test_spark_is_touched_where_listed_and_nowhere_else() -> None:
    imports = {name: _imports(path) for name, path in MODULES.items() if _rank(name) < JOB}
    touching = {name for name, others in imports.items() if _touches_spark(others) or others & SPARK_SHELLS}
    assert touching == SPARK_SHELLS & MODULES.keys()


@pytest.mark.parametrize("library", ONLY_IN)
def test_a_library_has_one_home(library: str) -> None:
    users = {name for name, path in MODULES.items() if library in {i.split(".")[0] for i in _imports(path)}}
    assert users <= ONLY_IN[library]


def test_dag_files_import_airflow_and_the_standard_library_only() -> None:
    for path in (ROOT / "airflow_dags").rglob("*.py"):
        # Asked by Airflow's OpenLineage provider only, which brings the client.
        further = {"openlineage"} if path.stem == "highwater_lineage" else set()
        allowed = {"airflow", *sys.stdlib_module_names, *further}
        siblings = {sibling.stem for sibling in path.parent.glob("*.py")}
        odd = {name.split(".")[0] for name in _imports(path)} - allowed - siblings
        assert not odd, f"{path.name} imports {', '.join(sorted(odd))}"


def test_what_all_readings_of_a_partition_share_stands_below_them() -> None:
    shared = _imports(MODULES["pipelines.kafka.topic_lives"])
    assert not [name for name in shared if name.split(".")[0] in PACKAGES]


def test_the_testbed_runs_clusters_without_the_audit() -> None:
    comparing = {"audited.py", "check.py", "compare.py"}
    for path in (ROOT / "tests" / "testbed").rglob("*.py"):
        others = {name for name in _imports(path) if not name.startswith("tests.testbed")}
        odd = {name for name in others if name.split(".")[0] in ("tests", "deltalake", *PACKAGES)}
        assert path.name in comparing or odd <= {"pipelines.base.java"}, f"{path.name} imports {', '.join(sorted(odd))}"
