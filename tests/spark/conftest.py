"""One Spark session for the whole ring, made the way the program makes it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from highwater.pipelines.base.config import load_config
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.spark.session import build_session
from tests.catalog import in_the_catalog  # noqa: F401

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session with two cores; starting one costs seconds, so it is shared."""
    # Functions defined in a test reach the workers by the name of their module, which must be importable there.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    settings = {
        # More than one task, so that what depends on the number of tasks shows; two, because CI has two cores.
        "session.master": "local[2]",
        # Few rows: a task per partition costs more than what is in it. Not one: order across partitions must matter.
        "session.shuffle_partitions": 2,
        # One JVM plans what a hundred audits plan: with the default heap its plans alone fill it.
        "session.driver_memory": "5g",
        # What is tested here is what Spark's tasks do; `audits` have little input read as a user has it.
        "session.spark": {
            # Tables made by name would otherwise outlive the run and break the next one.
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
            # Shuffle files of an aborted run stay below pytest's own folder, which it cleans up.
            "spark.local.dir": str(tmp_path_factory.mktemp("local")),
        },
    }
    session = build_session(load_config(None, settings), "highwater tests")
    yield session
    session.stop()


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    """An empty lake of its own for each test."""
    return Lake(spark, tmp_path / "lake")
