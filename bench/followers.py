"""What the replay of the follower side shows on lakes: ``python -m bench.followers LAKE...``

A table of figures per lake, then the rows in which the logs differ from the rules, and those with a known fault. Silver
must be there (``highwater parse``); nothing is written.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from pipelines.config import load_config
from pipelines.folds import table_of
from pipelines.lake import Lake
from pipelines.premises_stage import collect_premises
from pipelines.replay.follower_worker import SPECS
from pipelines.replay.followers_stage import follower_blobs
from pipelines.session import build_session
from schemas import silver

HEADS = (
    "lake",
    "rows",
    "agrees",
    "none needed",
    "unobservable",
    "differs",
    "replies logged",
    "derived",
    "lines",
    "in rows",
    "known faults",
    "stays",
    "failed",
    "threads as predicted",
    "follower HW (T3)",
)
_LINES = "source IN ('log', 'no_effect')"


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lakes", nargs="+", type=Path)
    given = parser.parse_args(arguments)
    spark = build_session(load_config(None), "followers")
    table, notes = [], []
    for root in given.lakes:
        lake = Lake(spark, root)
        blobs = follower_blobs(lake, collect_premises(lake, 5_000_000).contexts).persist()
        truncations, stays = (table_of(blobs, spec.name, spec.worker_schema) for spec in SPECS)
        table.append([root.name, *figures(lake, truncations, stays)])
        notes += [f"{root.name}: {line}" for line in remarkable(truncations)]
        blobs.unpersist()
    spark.stop()
    lines = ["| " + " | ".join(HEADS) + " |", "|---|" + "---:|" * (len(HEADS) - 1)]
    lines += ["| " + " | ".join(cells) + " |" for cells in table]
    sys.stdout.write("\n".join([*lines, "", *notes]) + "\n")


def figures(lake: Lake, truncations: DataFrame, stays: DataFrame) -> list[str]:
    """The cells of one lake after its name."""
    kinds = ("agrees", "none_needed", "unobservable", "differs")
    rows = truncations.agg(
        F.count("*").alias("rows"),
        *[F.count_if(F.col("class") == kind).alias(kind) for kind in kinds],
        F.count_if(F.col("reply_source") == "logged").alias("logged"),
        F.count_if(F.col("reply_source") == "derived").alias("derived"),
        F.count("logged_time").alias("in_rows"),
        F.count("known_bug").alias("known"),
    ).first()
    told = F.col("fetcher_id").isNotNull() & F.col("predicted_fetcher_id").isNotNull()
    threads = stays.agg(
        F.count("*").alias("stays"),
        F.count_if(F.col("end_reason") == "failed").alias("failed"),
        F.count_if(told).alias("told"),
        F.count_if(told & (F.col("fetcher_id") == F.col("predicted_fetcher_id"))).alias("right"),
    ).first()
    assert rows is not None
    assert threads is not None
    lines = 0
    if lake.has_rows(silver.TRUNCATIONS):
        logged = lake.read(silver.TRUNCATIONS).where(_LINES)
        places = ("cluster_id", "broker_id", "topic", "partition", "time", "source", "offset")
        lines = logged.select(*places).distinct().count()
    counts = [rows["rows"], *[rows[kind] for kind in kinds], rows["logged"], rows["derived"], lines, rows["in_rows"]]
    cells = [f"{count:,}" for count in [*counts, rows["known"], threads["stays"], threads["failed"]]]
    return [*cells, f"{threads['right']:,} of {threads['told']:,}", high_watermarks(lake)]


def high_watermarks(lake: Lake) -> str:
    """How often a follower's high watermark is the smaller one of its leader's and its own log end offset.

    Source of the rule: ``ReplicaFetcherThread.processPartitionData``; the lines are TRACE.
    """
    if not (lake.has_rows(silver.HIGH_WATERMARKS) and lake.has_rows(silver.APPENDS)):
        return "-"
    key = ("cluster_id", "broker_id", "topic", "partition")
    order = ("file_id", "line_no")
    none = F.lit(None).cast("long")
    taken = lake.read(silver.HIGH_WATERMARKS).where("source = 'follower'")
    appended = lake.read(silver.APPENDS).where("source = 'follower'")
    lines = taken.select(*key, *order, "high_watermark", "log_end_offset", "leader_high_watermark").unionByName(
        appended.select(
            *key,
            *order,
            none.alias("high_watermark"),
            (F.col("last_offset") + 1).alias("log_end_offset"),
            none.alias("leader_high_watermark"),
        )
    )
    before = Window.partitionBy(*key, "file_id").orderBy("line_no")
    last = {name: F.last(name, ignorenulls=True).over(before) for name in ("log_end_offset", "leader_high_watermark")}
    shown = lines.withColumns(last).where("high_watermark IS NOT NULL AND log_end_offset IS NOT NULL")
    rule = F.least("log_end_offset", "leader_high_watermark")
    row = shown.agg(F.count("*").alias("n"), F.count_if(F.col("high_watermark") == rule).alias("right")).first()
    return "-" if row is None or not row["n"] else f"{row['right']:,} of {row['n']:,}"


def remarkable(truncations: DataFrame) -> list[str]:
    """Rows that differ, and rows with a known fault, as text."""
    rows = truncations.where("class = 'differs' OR known_bug IS NOT NULL").orderBy("started_time", "broker_id")
    return [
        ", ".join(
            f"{name}={value}" for name, value in row.asDict().items() if value is not None and name[:7] != "cluster"
        )
        for row in rows.collect()
    ]


if __name__ == "__main__":
    main(sys.argv[1:])
