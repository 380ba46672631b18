"""What Spark's UI and event log call the jobs of a run: a group per step, and within it what is read or written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

_GROUP, _DESCRIPTION = "spark.jobGroup.id", "spark.job.description"


@contextmanager
def step(spark: SparkSession, name: str) -> Iterator[None]:
    """Jobs of the block, and of threads that `pipelines.base.threads` starts in it, are the step's."""
    context = spark.sparkContext
    context.setJobGroup(name, name)
    try:
        yield
    finally:
        for key in (_GROUP, _DESCRIPTION):
            context.setLocalProperty(key, None)  # type: ignore[arg-type]


@contextmanager
def described(spark: SparkSession, what: str) -> Iterator[None]:
    """Jobs of the block are described so, behind the name of their step."""
    context = spark.sparkContext
    before, group = context.getLocalProperty(_DESCRIPTION), context.getLocalProperty(_GROUP)
    context.setJobDescription(f"{group}: {what}" if group else what)
    try:
        yield
    finally:
        context.setLocalProperty(_DESCRIPTION, before)  # type: ignore[arg-type]


@contextmanager
def with_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Have settings of a session within the block, and what was there before after it."""
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
