"""Partitions of real clusters that are audited run by run give what one audit of all their facts gives."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from highwater.pipelines.base.blobs import shape
from highwater.pipelines.base.config import load_config
from highwater.pipelines.base.groups import list_values
from highwater.pipelines.cluster.stage import collect_premises
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.readings import read_in_tasks
from highwater.pipelines.rules.facts.columns import FACT_TYPES, KEY, TYPES
from highwater.pipelines.rules.facts.timeline import facts
from highwater.pipelines.rules.partition_audit import GONE_ON_WITH, place
from highwater.pipelines.rules.rule import Settings
from highwater.pipelines.rules.worker import settings_of
from highwater.schemas.audit_facts import Fact
from tests.spark.audits.corpora import ALL
from tests.unit.rules.cut_runs import ends_us, run_by_run
from tests.verbs import Ended

SECOND = 1_000_000


def partitions(lake: Lake) -> list[tuple[list[Fact], Settings]]:
    """Facts of each partition of a lake of the kinds that a run goes on with, and its settings."""
    config = load_config()
    premises = collect_premises(lake, config.replay.settle_ms * 1000)
    rows = read_in_tasks(lake, facts(lake, premises), shape(TYPES))
    assert rows is not None
    table = rows.toArrow().select([*KEY, *FACT_TYPES]).combine_chunks()
    by_key: dict[tuple[str, str, int], list[Fact]] = defaultdict(list)
    for row in zip(*list_values(table.columns), strict=True):
        by_key[row[: len(KEY)]].append(Fact._make(row[len(KEY) :]))
    skew_us = config.audit.clock_skew_max_ms * 1000
    return [
        (
            sorted((fact for fact in given if fact.kind in GONE_ON_WITH and fact.broker_id is not None), key=place),
            settings_of(premises.contexts, cluster_id, topic, skew_us),
        )
        for (cluster_id, topic, _), given in sorted(by_key.items())
    ]


def went_on(lake: Lake, cuts: int) -> tuple[int, int]:
    """How many runs went on, and how many could have, each held against one run."""
    runs = gone_on = 0
    for number, (given, settings) in enumerate(partitions(lake)):
        if given:
            random = Random(number)
            gone_on += run_by_run(given, ends_us(given, cuts, random), random.choice((1, 5)) * SECOND, settings)
            runs += cuts
    return gone_on, runs


def test_the_slice_cut_anywhere(slice_lake: Lake):
    gone_on, runs = went_on(slice_lake, 4)
    print(f"{gone_on} of {runs} runs went on")
    assert gone_on > runs // 4, f"{gone_on} of {runs} runs went on: little is shown"


@pytest.mark.long
@pytest.mark.corpora
@pytest.mark.parametrize("corpora", [ALL], indirect=True, scope="session")
def test_the_corpora_cut_anywhere(spark: SparkSession, corpora: tuple[Path, Ended]):
    gone_on, runs = went_on(Lake(spark, corpora[0] / "lake"), 6)
    print(f"{gone_on} of {runs} runs went on")
    assert gone_on > runs // 4, f"{gone_on} of {runs} runs went on: little is shown"
