"""Names of Spark jobs in UI and event log: a group per step, and what it reads or writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

_GROUP, _DESCRIPTION = "spark.jobGroup.id", "spark.job.description"


@contextmanager
def name_jobs(spark: SparkSession, name: str) -> Iterator[None]:
    """Name the Spark jobs of the block, also in threads started by `pipelines.base.threads`."""
    context = spark.sparkContext
    context.setJobGroup(name, name)
    try:
        yield
    finally:
        for key in (_GROUP, _DESCRIPTION):
            context.setLocalProperty(key, None)  # type: ignore[arg-type]


@contextmanager
def describe_jobs(spark: SparkSession, what: str) -> Iterator[None]:
    """Add a description to the jobs of the block, after the name of their step."""
    context = spark.sparkContext
    before, group = context.getLocalProperty(_DESCRIPTION), context.getLocalProperty(_GROUP)
    context.setJobDescription(f"{group}: {what}" if group else what)
    try:
        yield
    finally:
        context.setLocalProperty(_DESCRIPTION, before)  # type: ignore[arg-type]


@contextmanager
def override_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Set session settings within the block, and restore them after it."""
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)
