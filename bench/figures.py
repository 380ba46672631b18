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

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipelines import gold as gold_stage
from pipelines.bronze.ingest import ingest
from pipelines.config import Config, load_config
from pipelines.lake import Lake
from pipelines.session import build_session
from pipelines.silver.parse import parse
from schemas import gold

SHARES = ("within_1_ms", "within_5_ms", "within_20_ms", "isr_inferred", "closer", "required", "phases", "understood")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument("--tier", default="T3", help="use no evidence above this tier")
    parser.add_argument("--lakes", type=Path, help="keep the lakes here")
    given = parser.parse_args(arguments)
    config = load_config(None, {"replay.evidence_tier_max": given.tier})
    spark = build_session(config, "figures")
    rows: dict[str, dict[str, float | int | None]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for corpus in given.corpora:
            if not (corpus / "broker-1").is_dir():
                continue
            lake = Lake(spark, (given.lakes or Path(scratch)) / corpus.name)
            started = time.monotonic()
            ingest(spark, lake, [corpus], config.ingest, corpus.name)
            parse(lake)
            refresh(lake, config)
            print(f"\n## {corpus.name} ({given.tier}), {time.monotonic() - started:.0f} s")
            made = figures(lake)
            if made["succeeded"]:
                rows[corpus.name] = made
    print_table(rows)
    spark.stop()


def refresh(lake: Lake, config: Config) -> None:
    gold_stage.refresh(lake, config, f"figures {config.config_hash}")


def figures(lake: Lake) -> dict[str, float | int | None]:
    """Print the figures of one lake, and give those of the table."""
    operations = lake.read(gold.DELAYED_OPERATIONS).cache()
    made = _closeness(operations) | _ground_truth(operations)
    phases = lake.read(gold.REQUEST_PHASES).agg(_share(F.abs("unaccounted_ms") <= 1).alias("phases")).first()
    understood = lake.read(gold.COVERAGE).agg(
        (F.sum(F.when(F.col("outcome") != "unparsed", F.col("line_count"))) / F.sum("line_count")).alias("understood")
    )
    for row in (phases, understood.first()):
        made |= row.asDict() if row is not None else {}
    for name, value in made.items():
        print(f"{name:>24}  {value:.4%}" if name in SHARES and value is not None else f"{name:>24}  {value}")
    by = ("succeeded", "class", "class_reason", "known_bug", "cause")
    for row in operations.groupBy(*by).count().orderBy(F.desc("count"), *by).collect():
        print("  ", *[f"{name}={value}" for name, value in row.asDict().items() if value is not None])
    operations.unpersist()
    return made


def _closeness(operations: DataFrame) -> dict[str, float | int | None]:
    """How near the predictions are, over operations answered without error."""
    succeeded = F.col("succeeded")
    row = operations.agg(
        F.sum(succeeded.cast("long")).alias("succeeded"),
        *[_share(F.abs("residual_ms") <= limit, succeeded).alias(f"within_{limit}_ms") for limit in (1, 5, 20)],
        F.percentile(F.when(succeeded, F.col("interval_width_ms")), F.lit(0.5)).alias("width_p50_ms"),
        F.percentile(F.when(succeeded, F.col("interval_width_ms")), F.lit(0.99)).alias("width_p99_ms"),
        *[F.sum((F.col("class") == name).cast("long")).alias(name) for name in gold.CLASSES],
        _share(F.expr("exists(partitions, p -> p.isr_inferred)"), succeeded).alias("isr_inferred"),
    ).first()
    return row.asDict() if row is not None else {}


def _ground_truth(operations: DataFrame) -> dict[str, float | int | None]:
    """Against what the leader logged at TRACE: its awaiting sets and required offsets."""
    parts = operations.where("succeeded").select(F.explode("partitions").alias("p")).select("p.*")
    awaited = F.col("awaiting_logged").isNotNull() & F.col("closing_replica").isNotNull()
    logged = F.col("required_offset_logged").isNotNull()
    row = parts.agg(
        F.sum(awaited.cast("long")).alias("awaited"),
        _share(F.array_contains("awaiting_logged", F.col("closing_replica")), awaited).alias("closer"),
        F.sum(logged.cast("long")).alias("required_logged"),
        _share(F.col("required_offset_logged") == F.col("required_offset_derived"), logged).alias("required"),
    ).first()
    return row.asDict() if row is not None else {}


def _share(condition: Column, among: Column | None = None) -> Column:
    """Share of the rows `among` which a condition holds; null counts as not."""
    holds = F.coalesce(condition, F.lit(False)).cast("double")
    return F.avg(holds if among is None else F.when(among, holds))


def print_table(rows: dict[str, dict[str, float | int | None]]) -> None:
    """The figures as Markdown."""
    heads = ("corpus", "answered", "within 1 ms", "5 ms", "width p99", "late", "unobservable", "closer", "required")
    print("\n| " + " | ".join((*heads, "understood")) + " |")
    print("|---|" + "---:|" * len(heads))
    for corpus, made in rows.items():
        cells = [
            corpus,
            f"{made['succeeded']:,}",
            _percent(made["within_1_ms"]),
            _percent(made["within_5_ms"]),
            f"{made['width_p99_ms']:.1f} ms",
            str(made["late"]),
            str(made["unobservable"]),
            _percent(made["closer"]),
            _percent(made["required"]),
            _percent(made["understood"]),
        ]
        print("| " + " | ".join(cells) + " |")


def _percent(share: float | int | None) -> str:
    return "-" if share is None else f"{share:.2%}"


if __name__ == "__main__":
    main(sys.argv[1:])
