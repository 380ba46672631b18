"""What the audit shows on a set of corpora: the figures of README and docs come from here.

    python -m tests.bench.figures ../shared/corpora/* [--tier T1]

For each folder of logs one line per figure: how many acks=all produces were predicted, how closely, what became of the
rest, whether the replica that closed an operation is one that the leader itself logged as awaited, whether derived
required offsets are those that it logged, whether phases add up, and how much of the logs was understood. Then the same
of fetches, and of the requests to coordinators that wait for replication as a produce does. Three tables end it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from highwater.pipelines.base.config import Config, load_config
from highwater.pipelines.gold import gold as gold_stage
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.replay import outcome as o
from highwater.pipelines.silver.parse import parse
from highwater.pipelines.spark.session import build_session
from highwater.schemas import gold
from tests.ingests import ingest

#: Around the table of a document.
_MARKS = ("<!-- table -->\n", "<!-- end of table -->\n")

Figures = dict[str, float | int | None]
Shown = tuple[str, str, Callable[..., str]]

SHARES = (
    *("within_1_ms", "within_5_ms", "within_20_ms", "isr_inferred", "closer", "required", "phases", "understood"),
    *("cause_known", "parked_within_1_ms", "parked_within_5_ms", "min_bytes_within_5_ms", "read_committed_within_5_ms"),
)
#: Reasons of a fetch's class that say that the logs do not show what completed it.
CAUSE_NOT_SHOWN = (o.APPEND_NOT_LOGGED, o.SESSION_NOT_LOGGED)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument("--tier", default="T3", help="use no evidence above this tier")
    parser.add_argument("--lakes", type=Path, help="keep the lakes here")
    given = parser.parse_args(arguments)
    config = load_config(None, {"replay.evidence_tier_max": given.tier})
    spark = build_session(config, "figures")
    rows: dict[str, dict[str, Figures]] = {}
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
            rows[corpus.name] = figures(lake)
    for kind in TABLES:
        print_table(kind, {name: of_corpus[kind] for name, of_corpus in rows.items()})
    spark.stop()


def refresh(lake: Lake, config: Config) -> None:
    gold_stage.refresh(lake, config, f"figures {config.config_hash}")


def figures(lake: Lake) -> dict[str, Figures]:
    """Print the figures of one lake, and give those of the tables, by kind of operation."""
    operations = lake.read(gold.DELAYED_OPERATIONS).cache()
    produces = operations.where("operation = 'produce' AND api = 'PRODUCE'")
    of_produces = _aggregates(produces, closeness()) | _ground_truth(produces)
    phases = lake.read(gold.REQUEST_PHASES).agg(_share(F.abs("unaccounted_ms") <= 1).alias("phases")).first()
    understood = lake.read(gold.COVERAGE).agg(
        (F.sum(F.when(F.col("outcome") != "unparsed", F.col("line_count"))) / F.sum("line_count")).alias("understood")
    )
    for row in (phases, understood.first()):
        of_produces |= row.asDict() if row is not None else {}
    by = ("succeeded", "class", "class_reason", "known_bug", "cause")
    _print("clients' produces", of_produces, produces, by)
    fetches = operations.where("operation = 'fetch'")
    of_fetches = _aggregates(fetches, fetch_closeness())
    _print("fetches", of_fetches, fetches, ("parked", *by))
    appends = operations.where("operation = 'produce' AND api <> 'PRODUCE'")
    of_appends = _aggregates(appends, closeness()) | _ground_truth(appends)
    _print("requests to coordinators", of_appends, appends, ("api", *by))
    operations.unpersist()
    return {"produce": of_produces, "fetch": of_fetches, "coordinator": of_appends}


def _print(kind: str, figures: Figures, operations: DataFrame, by: Sequence[str]) -> None:
    print(f"\n{kind}:")
    for name, value in figures.items():
        print(f"{name:>28}  {value:.4%}" if name in SHARES and value is not None else f"{name:>28}  {value}")
    for row in operations.groupBy(*by).count().orderBy(F.desc("count"), *by).collect():
        print("  ", *[f"{name}={value}" for name, value in row.asDict().items() if value is not None])


def _aggregates(rows: DataFrame, columns: Sequence[Column]) -> Figures:
    row = rows.agg(*columns).first()
    return row.asDict() if row is not None else {}


def fetch_closeness() -> list[Column]:
    """How near the predictions of fetches are: of those that waited, for the others have nothing to be late for."""
    parked, close = F.col("parked"), F.abs("residual_ms") <= 5
    shown = (F.col("cause") != o.UNKNOWN) & ~F.coalesce(F.col("class_reason").isin(*CAUSE_NOT_SHOWN), F.lit(False))
    # An unobservable fetch counts as not within.
    replayed = F.col("class") != "unobservable"
    consumer = parked & (F.col("replica_id") < 0)
    readers = {
        "min_bytes": consumer & (F.col("min_bytes") > 1),
        "read_committed": consumer & (F.col("isolation_level") == 1),
    }
    return [
        F.count("*").alias("completed"),
        _share(shown).alias("cause_known"),
        F.count_if(parked).alias("parked"),
        *[_share(replayed & (F.abs("residual_ms") <= n), parked).alias(f"parked_within_{n}_ms") for n in (1, 5)],
        F.percentile(F.when(parked, F.col("interval_width_ms")), F.lit(0.5)).alias("width_p50_ms"),
        F.percentile(F.when(parked, F.col("interval_width_ms")), F.lit(0.99)).alias("width_p99_ms"),
        *[F.count_if(F.col("class") == name).alias(name) for name in gold.CLASSES],
        *[F.count_if(those).alias(name) for name, those in readers.items()],
        *[_share(replayed & close, those).alias(f"{name}_within_5_ms") for name, those in readers.items()],
    ]


def closeness() -> list[Column]:
    """How near the predictions are, over operations answered without error."""
    succeeded = F.col("succeeded")
    return [
        F.sum(succeeded.cast("long")).alias("succeeded"),
        *[_share(F.abs("residual_ms") <= limit, succeeded).alias(f"within_{limit}_ms") for limit in (1, 5, 20)],
        F.percentile(F.when(succeeded, F.col("interval_width_ms")), F.lit(0.5)).alias("width_p50_ms"),
        F.percentile(F.when(succeeded, F.col("interval_width_ms")), F.lit(0.99)).alias("width_p99_ms"),
        *[F.sum((F.col("class") == name).cast("long")).alias(name) for name in gold.CLASSES],
        _share(F.expr("exists(partitions, p -> p.isr_inferred)"), succeeded).alias("isr_inferred"),
    ]


def _ground_truth(operations: DataFrame) -> Figures:
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


def print_table(kind: str, rows: dict[str, Figures]) -> None:
    """The figures of a kind of operation by corpus, as Markdown; corpora that have none are left out."""
    columns = TABLES[kind]
    counted = columns[0][1]
    cells = [
        (corpus, *(shown(figure[name]) for _, name, shown in columns))
        for corpus, figure in rows.items()
        if figure[counted]
    ]
    if cells:
        print("\n" + "\n".join(markdown(("corpus", *(head for head, _, _ in columns)), cells)))


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a table in Markdown; numbers to the right of the first column."""
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "---:|" * (len(heads) - 1)]
    return [*lines, *("| " + " | ".join(cells) + " |" for cells in rows)]


def insert(document: Path, lines: Sequence[str], name: str = "") -> None:
    """Put a table between the marks of a document, in place of what is there; where it has several, by its name."""
    start, end = (mark.replace("table", f"table {name}".strip()) for mark in _MARKS)
    before, _, rest = document.read_text(encoding="utf-8").partition(start)
    after = rest.partition(end)[2]
    document.write_text(before + start + "\n".join(lines) + "\n" + end + after, encoding="utf-8")


def _ms(value: float | int | None) -> str:
    return "-" if value is None else f"{value:.1f} ms"


def percent(share: float | int | None) -> str:
    """With two decimals; a hyphen where there is nothing to count."""
    return "-" if share is None else f"{share:.2%}"


#: Heads of the tables, with the figure in each column and how it is shown; those of the first column were counted.
_CLOSENESS: tuple[Shown, ...] = (
    ("answered", "succeeded", "{:,}".format),
    ("within 1 ms", "within_1_ms", percent),
    ("5 ms", "within_5_ms", percent),
    ("width p99", "width_p99_ms", _ms),
    ("late", "late", str),
    ("unobservable", "unobservable", str),
)
TABLES: dict[str, tuple[Shown, ...]] = {
    "produce": (
        *_CLOSENESS,
        ("closer", "closer", percent),
        ("required", "required", percent),
        ("understood", "understood", percent),
    ),
    # those of consumers that ask for more than a byte, or read committed, apart
    "fetch": (
        ("fetches", "completed", "{:,}".format),
        ("cause known", "cause_known", percent),
        ("parked", "parked", "{:,}".format),
        ("within 1 ms", "parked_within_1_ms", percent),
        ("5 ms", "parked_within_5_ms", percent),
        ("width p99", "width_p99_ms", _ms),
        ("min.bytes > 1: parked", "min_bytes", "{:,}".format),
        ("within 5 ms", "min_bytes_within_5_ms", percent),
        ("read_committed: parked", "read_committed", "{:,}".format),
        ("within 5 ms", "read_committed_within_5_ms", percent),
    ),
    "coordinator": _CLOSENESS,
}


if __name__ == "__main__":
    main(sys.argv[1:])
