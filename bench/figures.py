"""What the audit shows on a set of corpora: the figures of README and docs come from here.

    python -m bench.figures ../shared/corpora/* [--tier T1]

For each folder of logs one line per figure: how many acks=all produces were predicted, how closely, what became of the
rest, whether the replica that closed an operation is one that the leader itself logged as awaited, whether derived
required offsets are those that it logged, whether phases add up, and how much of the logs was understood.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipelines import gold as gold_stage
from pipelines.bronze.ingest import ingest
from pipelines.config import Config, load_config
from pipelines.lake import Lake
from pipelines.session import build_session
from pipelines.silver.parse import parse
from schemas import gold


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument("--tier", default="T3", help="use no evidence above this tier")
    parser.add_argument("--lakes", type=Path, help="keep the lakes here")
    given = parser.parse_args(arguments)
    config = load_config(None, {"replay.evidence_tier_max": given.tier})
    spark = build_session(config, "figures")
    with tempfile.TemporaryDirectory() as scratch:
        for corpus in given.corpora:
            if not (corpus / "broker-1").is_dir():
                continue
            lake = Lake(spark, (given.lakes or Path(scratch)) / corpus.name)
            started = time.monotonic()
            ingest(spark, lake, [corpus], config.ingest, corpus.name)
            parse(lake)
            refresh(spark, lake, config)
            print(f"\n## {corpus.name} ({given.tier}), {time.monotonic() - started:.0f} s")
            figures(lake)
    spark.stop()


def refresh(spark: SparkSession, lake: Lake, config: Config) -> None:
    gold_stage.refresh(spark, lake, config, f"figures {config.config_hash}")


def figures(lake: Lake) -> None:
    """Print the figures of one lake."""
    operations = lake.read(gold.DELAYED_OPERATIONS).cache()
    succeeded = operations.where("succeeded")
    row = succeeded.agg(
        F.count("*").alias("n"),
        *[_share(F.abs("residual_ms") <= limit).alias(f"within_{limit}") for limit in (1, 5, 20)],
        F.percentile("interval_width_ms", F.lit(0.5)).alias("width_p50"),
        F.percentile("interval_width_ms", F.lit(0.99)).alias("width_p99"),
        _share(F.expr("exists(partitions, p -> p.isr_inferred)")).alias("isr_inferred"),
    ).first()
    if row is None or not row["n"]:
        print("no acks=all produce was answered without error")
    else:
        print(
            f"answered without error {row['n']}: within 1 ms {row['within_1']:.4%}, 5 ms {row['within_5']:.4%}, "
            f"20 ms {row['within_20']:.4%}; width p50 {row['width_p50']:.2f} ms, p99 {row['width_p99']:.2f} ms; "
            f"ISR inferred {row['isr_inferred']:.2%}"
        )
    for part in operations.groupBy("succeeded", "class", "class_reason", "known_bug", "cause").count().collect():
        print("  ", *[f"{name}={value}" for name, value in part.asDict().items() if value is not None])
    _print_ground_truth(operations)
    phases = lake.read(gold.REQUEST_PHASES).agg(F.count("*"), _share(F.abs("unaccounted_ms") <= 1)).first()
    if phases is not None and phases[0]:
        print(f"phases of {phases[0]} requests add up within 1 ms: {phases[1]:.4%}")
    for part in lake.read(gold.COVERAGE).groupBy("kind").pivot("outcome").sum("line_count").collect():
        print("   coverage", part.asDict())
    operations.unpersist()


def _print_ground_truth(operations: DataFrame) -> None:
    """Against what the leader logged at TRACE: its awaiting sets and required offsets."""
    parts = operations.where("succeeded").select(F.explode("partitions").alias("p")).select("p.*")
    awaited = F.col("awaiting_logged").isNotNull() & F.col("closing_replica").isNotNull()
    row = parts.agg(
        F.sum(awaited.cast("long")).alias("awaited"),
        F.avg(F.when(awaited, F.array_contains("awaiting_logged", F.col("closing_replica")).cast("double"))).alias(
            "same"
        ),
        F.count("required_offset_logged").alias("logged"),
        F.avg((F.col("required_offset_logged") == F.col("required_offset_derived")).cast("double")).alias("required"),
        F.sum(
            (F.col("required_offset_logged").isNotNull() & F.col("required_offset_derived").isNull()).cast("long")
        ).alias("underived"),
    ).first()
    if row is not None and row["logged"]:
        print(
            f"closing replica among those last logged as awaited: {row['same']:.4%} of {row['awaited']}; "
            f"required offset as logged: {row['required']:.4%} of {row['logged']} ({row['underived']} not derived)"
        )


def _share(condition):  # type: ignore[no-untyped-def]
    return F.coalesce(F.avg(F.coalesce(condition, F.lit(False)).cast("double")), F.lit(0.0))


if __name__ == "__main__":
    main(sys.argv[1:])
