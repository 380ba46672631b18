"""Whether brokers' own lines about their delayed produces agree with the rules: ``python -m bench.checks LAKE...``

A table with a row per lake, then the first disagreements of each. Silver must be there (``highwater parse``), with the
lines of T3; nothing is written.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.config import load_config
from pipelines.folds import table_of
from pipelines.lake import Lake
from pipelines.premises_stage import collect_premises
from pipelines.replay.checks_stage import checked_blobs
from pipelines.session import build_session
from schemas.checks import PURGATORY_CHECKS

HEADS = ("lake", "delayed produces", "agree", "disagree", "undecided", "share agreeing", "checks", "seconds")
SHOWN = 20


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lakes", nargs="+", type=Path)
    given = parser.parse_args(arguments)
    spark = build_session(load_config(None), "checks")
    table, notes = [], []
    for root in given.lakes:
        lake = Lake(spark, root)
        started = time.monotonic()
        blobs = checked_blobs(lake, collect_premises(lake, 0))
        if blobs is None:
            table.append([root.name, *["-"] * (len(HEADS) - 1)])
            continue
        rows = table_of(blobs, PURGATORY_CHECKS.name, PURGATORY_CHECKS.worker_schema).persist()
        table.append([root.name, *figures(rows), f"{time.monotonic() - started:.1f}"])
        notes += [f"{root.name}: {line}" for line in disagreements(rows)]
        rows.unpersist()
    spark.stop()
    lines = ["| " + " | ".join(HEADS) + " |", "|---|" + "---:|" * (len(HEADS) - 1)]
    lines += ["| " + " | ".join(cells) + " |" for cells in table]
    sys.stdout.write("\n".join([*lines, "", *notes]) + "\n")


def figures(rows: DataFrame) -> list[str]:
    """The cells of one lake after its name, but for the time."""
    found = rows.agg(
        F.count("*").alias("produces"),
        F.count_if(F.col("agrees")).alias("agree"),
        F.count_if(~F.col("agrees")).alias("disagree"),
        F.count_if(F.col("agrees").isNull()).alias("undecided"),
        F.coalesce(F.sum("checks"), F.lit(0)).alias("checks"),
    ).first()
    assert found is not None
    decided = found["agree"] + found["disagree"]
    share = f"{found['agree'] / decided:.3%}" if decided else "-"
    counts = [f"{found[name]:,}" for name in ("produces", "agree", "disagree", "undecided")]
    return [*counts, share, f"{found['checks']:,}"]


def disagreements(rows: DataFrame) -> list[str]:
    """The first rows that disagree, as text."""
    order = ("disagreed_time", "broker_id", "topic", "partition", "required_offset")
    first = rows.where("NOT agrees").orderBy(*order).limit(SHOWN)
    return [
        ", ".join(
            f"{name}={value}" for name, value in row.asDict().items() if value is not None and name != "cluster_id"
        )
        for row in first.collect()
    ]


if __name__ == "__main__":
    main(sys.argv[1:])
