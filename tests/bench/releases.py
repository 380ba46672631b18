"""The audit on corpora of many releases, beside what is true of each: ``python -m tests.bench.releases CORPORA...``

    python -m tests.bench.releases ../shared/corpora/* --markdown docs/releases.md

Prints a table with a row per corpus, and below it whatever the audit accuses a cluster of wrongly, misses, or tells
otherwise than it was. ``--markdown FILE`` puts the table into a document, between its two marks. Corpora share lakes,
for every audit has its fixed costs; those whose logs name no cluster (before 0.10.1) cannot share one. Ends with 1
where an audit does not agree with the truth.
"""

from __future__ import annotations

import argparse
import gzip
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import functions as F

from highwater.jobs import steps
from highwater.pipelines.base.config import Config, load_config
from highwater.pipelines.base.console import RichConsole
from highwater.pipelines.bronze.identity import NEEDLES
from highwater.pipelines.grammars.facts import REQUEST_LOGGER
from highwater.pipelines.grammars.grammar import shorten_logger
from highwater.pipelines.grammars.templates import TEMPLATES
from highwater.pipelines.lake.lake import Lake
from highwater.schemas import gold
from highwater.schemas.audit import RULE_RESULTS, VIOLATIONS
from highwater.schemas.bronze import LOG_FILES
from tests.bench import broker_lives
from tests.bench.figures import closeness, fetch_closeness, insert, markdown, percent
from tests.bench.truth import Judgement, Truth, judged, truth_of

Row = dict[str, Any]

HEADS = (
    *("corpus", "Kafka", "mode", "records", "typed or known", "produces", "1 ms", "5 ms", "parked fetches", "1 ms"),
    *("5 ms", "verdict", "violations", "open", "true: lost", "acks=1 lost, found", "told as it was", "agrees"),
)
#: Logs of more than this, as stored, are not put into one lake: the driver and the disk have to hold them.
LAKE_BYTES_MAX = 15_000_000


class Result(NamedTuple):
    """What an audit said of a corpus, and what is true of it."""

    corpus: str
    versions: str
    mode: str
    records: int
    typed: float | None
    figures: Row
    verdict: str
    violations: int
    open_cases: int
    truth: Truth
    judgement: Judgement
    differs: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        """The verdict and all findings are right."""
        return self.judgement.agrees and (self.verdict == "violated") == bool(self.violations)


def main(arguments: list[str]) -> int:
    """Audit, print, and give the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument("--lakes", type=Path, help="keep the lakes here, and go on with those that are there")
    parser.add_argument("--markdown", type=Path, help="a document that holds the table")
    given = parser.parse_args(arguments)
    corpora = [path for path in given.corpora if (path / "broker-1").is_dir()]
    config = load_config(None)
    results: list[Result] = []
    with tempfile.TemporaryDirectory() as scratch:
        for number, together in enumerate(lakes(corpora)):
            done = _audited(config, (given.lakes or Path(scratch)) / f"lake-{number}", together)
            # What takes minutes is shown as it comes: the next lake may fail.
            print(
                "\n".join([*markdown(HEADS, map(_cells, done)), "", *_complaints(done), ""]),
                file=sys.stderr,
                flush=True,
            )
            results += done
    results.sort(key=lambda result: _release(result.versions))
    lines = markdown(HEADS, map(_cells, results))
    print("\n".join([*lines, "", *_complaints(results)]))
    if given.markdown:
        insert(given.markdown, lines)
    return 0 if all(result.agrees for result in results) else 1


def lakes(corpora: Iterable[Path], bytes_max: int = LAKE_BYTES_MAX) -> list[list[Path]]:
    """Which corpora share a lake: at most one that names no cluster, and no more than is good for the machine."""
    shared: list[tuple[list[Path], int, bool]] = []
    for corpus in corpora:
        logs = sorted(corpus.glob("broker-*/logs/*.gz"))
        size, nameless = sum(path.stat().st_size for path in logs), not any(map(_names_a_cluster, logs))
        for at, (members, held, one_nameless) in enumerate(shared):
            if held + size <= bytes_max and not (nameless and one_nameless):
                shared[at] = ([*members, corpus], held + size, one_nameless or nameless)
                break
        else:
            shared.append(([corpus], size, nameless))
    return [members for members, _, _ in shared]


def _names_a_cluster(log: Path) -> bool:
    if not log.name.startswith("server"):
        return False
    ids = [needle for needle in NEEDLES if b"luster" in needle]
    with gzip.open(log, "rb") as lines:
        return any(needle in line for line in lines for needle in ids)


def _audited(config: Config, place: Path, corpora: Sequence[Path]) -> list[Result]:
    run = steps.Run(config, RichConsole(), lake=place, out=place.with_name(f"{place.name}-report"))
    steps.audit(run, corpora)
    with steps.open_lake(run, "report", writes=True) as lake:
        return results_of(lake, corpora)


def results_of(lake: Lake, corpora: Sequence[Path]) -> list[Result]:
    """What the lake says of each corpus."""
    files = [row.asDict() for row in lake.read(LOG_FILES).collect()]
    clusters = cluster_of(files, corpora)
    by_cluster = F.col("cluster_id")
    operations = lake.read(gold.DELAYED_OPERATIONS)
    produces = operations.where("operation = 'produce' AND api = 'PRODUCE'").groupBy(by_cluster).agg(*closeness())
    fetches = operations.where("operation = 'fetch'").groupBy(by_cluster).agg(*fetch_closeness())
    figures: dict[str, Row] = defaultdict(dict)
    for row in produces.collect() + fetches.collect():
        figures[row["cluster_id"]] |= row.asDict()
    coverage = lake.read(gold.COVERAGE).groupBy("cluster_id", "logger", "outcome").agg(F.sum("line_count").alias("n"))
    counted: dict[str, list[Row]] = defaultdict(list)
    for row in coverage.collect():
        counted[row["cluster_id"]].append(row.asDict())
    findings: dict[str, list[Row]] = defaultdict(list)
    for row in lake.read(VIOLATIONS).collect():
        findings[row["cluster_id"]].append(row.asDict())
    asked = lake.read(RULE_RESULTS).collect()
    if not asked:
        raise ValueError(f"{lake.root}: no rule was asked, the audit is not whole")
    doubtful = {row["cluster_id"] for row in asked if row["doubts"] or row["error"] is not None}
    seen = broker_lives.collect(lake)
    results = []
    for corpus in corpora:
        cluster_id = clusters[corpus]
        rows = [row for row in files if row["cluster_id"] == cluster_id]
        truth = truth_of(corpus)
        owned = [row for row in findings[cluster_id] if row["implied_by"] is None]
        severities = [row["severity"] for row in owned]
        # As the report has it: without a produce that was seen nothing firm can be said.
        doubted = not figures[cluster_id].get("succeeded") or cluster_id in doubtful
        versions = sorted({row["kafka_version"] or "?" for row in rows if row["broker_id"] is not None})
        results.append(
            Result(
                corpus=corpus.name,
                versions=", ".join(versions),
                mode=", ".join(sorted({row["mode"] or "?" for row in rows if row["broker_id"] is not None})),
                records=sum(row["n"] for row in counted[cluster_id]),
                typed=typed_share(counted[cluster_id]),
                figures=figures[cluster_id],
                verdict=verdict_of(severities, doubted),
                violations=severities.count("violation"),
                open_cases=severities.count("open"),
                truth=truth,
                judgement=judged(truth, owned),
                differs=broker_lives.differences(corpus, rows, seen.get(cluster_id, broker_lives.NOTHING)),
            )
        )
    return results


def cluster_of(files: Iterable[Mapping[str, Any]], corpora: Sequence[Path]) -> dict[Path, str]:
    """The cluster id of each corpus, by the files below it.

    Raises:
        ValueError: a corpus has files of several clusters, or two have the same one.
    """
    ids: dict[Path, set[str]] = defaultdict(set)
    for row in files:
        for corpus in corpora:
            if Path(row["path"]).is_relative_to(os.path.abspath(corpus)):
                ids[corpus].add(row["cluster_id"])
    for corpus in corpora:
        if len(ids[corpus]) != 1:
            raise ValueError(f"{corpus} has files of {len(ids[corpus])} clusters: {sorted(ids[corpus])}")
    clusters = {corpus: next(iter(ids[corpus])) for corpus in corpora}
    if len(set(clusters.values())) < len(corpora):
        raise ValueError(f"two corpora are of one cluster: {clusters}")
    return clusters


def typed_share(rows: Iterable[Mapping[str, Any]]) -> float | None:
    """Share of the records of loggers that the audit reads that are typed or known; None where there are none."""
    of_templates = {logger for template in TEMPLATES for logger in template.loggers} | {REQUEST_LOGGER}
    read = [row for row in rows if shorten_logger(row["logger"] or "") in of_templates]
    total = sum(row["n"] for row in read)
    return sum(row["n"] for row in read if row["outcome"] != "unparsed") / total if total else None


def verdict_of(severities: Sequence[str], doubted: bool) -> str:
    """As `pipelines.report.assemble`, of one cluster of several."""
    if "violation" in severities:
        return "violated"
    return "inconclusive" if doubted or "open" in severities else "clean"


def _cells(result: Result) -> tuple[str, ...]:
    figures = result.figures
    gone, alone = len(result.truth.broken), len(result.truth.leader_only)
    return (
        result.corpus,
        result.versions,
        result.mode,
        f"{result.records:,}",
        percent(result.typed),
        f"{figures.get('succeeded') or 0:,}",
        percent(figures.get("within_1_ms")),
        percent(figures.get("within_5_ms")),
        f"{figures.get('parked') or 0:,}",
        percent(figures.get("parked_within_1_ms")),
        percent(figures.get("parked_within_5_ms")),
        result.verdict,
        str(result.violations),
        str(result.open_cases),
        ", ".join([str(gone), *(bug for _, bug in sorted(result.truth.bugs))])
        if gone or result.truth.bugs
        else "nothing",
        f"{alone}, {result.judgement.leader_only_found}" if alone else "-",
        "no" if result.differs else "yes",
        "yes" if result.agrees else "no",
    )


def _complaints(results: Iterable[Result]) -> list[str]:
    lines = []
    for result in results:
        lines += [f"{result.corpus}: not confirmed: {text}" for text in result.judgement.accused]
        lines += [f"{result.corpus}: not found: {text}" for text in result.judgement.missed]
        lines += [f"{result.corpus}: {text}" for text in result.differs]
    return lines


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(",")[0].split(".") if part.isdigit())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
