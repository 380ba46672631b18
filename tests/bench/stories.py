"""Incidents from parts of logs: ``python -m tests.bench.stories LOGS OUT [--each N] [--context S]``, or ``matrix OUT``

Audits LOGS into OUT/full unless it is there. Each incident gives an excerpt: the lines that show it, with what the same
nodes logged up to S seconds around them. All excerpts are audited at once into OUT/excerpts, each as a cluster of its
own. An excerpt has to give the incident again, or less, and nothing that the whole logs exclude. Prints a table by
kind, then the ten worst sentences.

``matrix OUT [--corpora NAMES] [--reductions NAMES]`` audits reductions of corpora with known faults, and checks the
incidents against the faults (`testbed/stories.py` of the shared folder explains both). Prints false and contradictory
statements, missed faults, faults with several roots and misranked ones of each audit, then each problem. Audits that
OUT has are not repeated while the commit is the same.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from highwater.pipelines.incidents.kinds import BY_NAME
from highwater.pipelines.incidents.kinds.logged import OF_MESSAGES
from highwater.pipelines.incidents.story import SLACK_US
from tests.bench.messages import SHARED

Row = Mapping[str, Any]

_TESTBED = SHARED / "testbed" / "stories.py"
#: Corpora of several releases and modes, and reductions, of the matrix.
CORPORA = ("zk28-faults", "kraft39-faults", "zk11-faults", "net39", "kraft40-elr", "m-2.4.1", "m-3.3.2")
REDUCTIONS = ("info", *(f"info+{cut}" for cut in ("begin", "end", "one-2", "but-2", "seconds")))
REDUCTIONS += tuple(f"info+{cut}" for cut in ("server", "warn", "mixed", "twice", "clock", "noctl"))
#: Incidents of one kind whose excerpts are audited.
EACH = 3
#: Lines around those that show an incident, seconds.
CONTEXT_S = 0.0
#: Files of the lines around an incident without lines of its own: requests are left out.
_UNASKED = ("kafka-request", "gc")
#: Lines around the begin of an incident without lines of its own, seconds, but for these levels.
_BEGIN_S = 2.0
_VERBOSE = (b" TRACE ", b" DEBUG ", b"Completed request:")
_SLACK_S = SLACK_US / 1e6
#: Kinds that quote a line: what they say is there.
_QUOTES = {"also_logged", *OF_MESSAGES}
_SHOWN = 10
#: Outcomes of an excerpt, the worst first.
OUTCOMES = ("false", "silent", "other", "same")


class Claim(NamedTuple):
    """An incident of a report."""

    kind: str
    brokers: frozenset[int]
    partitions: frozenset[str]
    start: float
    end: float | None
    sentence: str

    def overlaps(self, other: Claim) -> bool:
        """Return True if two incidents have a time and a subject in common."""
        ends = self.end is None or other.start <= self.end + _SLACK_S
        begins = other.end is None or self.start <= other.end + _SLACK_S
        of_brokers = bool(self.brokers & other.brokers)
        of_partitions = bool(self.partitions & other.partitions)
        is_unnamed = not (self.brokers and other.brokers) and not (self.partitions and other.partitions)
        return ends and begins and (of_brokers or of_partitions or is_unnamed)


class Excerpt(NamedTuple):
    """An incident of the whole logs, and what its excerpt gave."""

    name: str
    incident: Claim
    claims: Sequence[Claim]
    excluded: Sequence[Claim]  #: Of `claims`, those that the whole logs exclude.

    @property
    def outcome(self) -> str:
        """Return one of `OUTCOMES`."""
        if self.excluded:
            return "false"
        if any(claim.kind == self.incident.kind for claim in self.claims):
            return "same"
        return "other" if self.claims else "silent"


def incidents(report: Path) -> list[tuple[Claim, Row]]:
    """Return the incidents of a report.json, each with its row."""
    return [(_claim_of(row), row) for row in json.loads(report.read_text())["incidents"]]


def _claim_of(row: Row) -> Claim:
    end = row["end_time"]
    return Claim(
        *(row["kind"], frozenset(row["broker_ids"]), frozenset(row["topic_partitions"]), _seconds(row["start_time"])),
        *(None if end is None else _seconds(end), row["sentence"]),
    )


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def is_excluded(claim: Claim, whole: Iterable[Claim]) -> bool:
    """Return True if the whole logs do not know an incident of an excerpt.

    An incident of the same kind and subject, or one that can cause it or follow from it, knows it. What quotes a line
    is never excluded.
    """
    if claim.kind in _QUOTES:
        return False
    known = [other for other in whole if claim.overlaps(other)]
    related = {
        claim.kind,
        *BY_NAME[claim.kind].causes,
        *(name for name in BY_NAME if claim.kind in BY_NAME[name].causes),
    }
    return not any(other.kind in related for other in known)


def write_excerpt(logs: Path, row: Row, folder: Path, context_s: float) -> None:
    """Write the records that show an incident, and those around them in the same files."""
    wanted: dict[str, set[int]] = defaultdict(set)
    for line in row["evidence"]:
        path = Path(line["file"])
        wanted[str(path.relative_to(logs) if path.is_absolute() else path)].add(line["line_no"])
    start = _seconds(row["start_time"])
    for name in wanted or _files(logs):
        path = logs / name
        if not path.is_file():
            continue
        if wanted:
            records = [*_records(path)]
            shown = [_holds(number, text, wanted[name]) for number, _, text in records]
            times = [time for (_, time, _), is_shown in zip(records, shown, strict=True) if time and is_shown]
            around = context_s
        else:
            records, times, around = _brief_records(path), [start], _BEGIN_S
            shown = [False] * len(records)
        kept = [
            text
            for (_, time, text), is_shown in zip(records, shown, strict=True)
            if is_shown or (around and time and any(abs(time - at) <= around for at in times))
        ]
        if kept:
            written = folder / name.removesuffix(".gz")
            written.parent.mkdir(parents=True, exist_ok=True)
            written.write_bytes(b"".join(kept))


@cache
def _brief_records(path: Path) -> list[tuple[int, float | None, bytes]]:
    """Return the records of a file at INFO and above, without requests."""
    return [record for record in _records(path) if not any(level in record[2][:80] for level in _VERBOSE)]


def _files(logs: Path) -> Iterable[str]:
    for path in sorted(logs.rglob("*")):
        if path.is_file() and not any(name in path.name for name in _UNASKED) and "/data/" not in str(path):
            yield str(path.relative_to(logs))


def _holds(number: int, text: bytes, lines: set[int]) -> bool:
    return any(number <= line < number + text.count(b"\n") for line in lines)


def _records(path: Path) -> Iterable[tuple[int, float | None, bytes]]:
    """Yield the number of the first line, the time and the bytes of each record."""
    number, time, lines = 1, None, list[bytes]()
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rb") as file:  # type: ignore[operator]
        for at, line in enumerate(file, 1):
            found = _time(line)
            if found is not None and lines:
                yield number, time, b"".join(lines)
                lines = []
            if found is not None or not lines:
                number, time = at, found
            lines.append(line)
    if lines:
        yield number, time, b"".join(lines)


def _time(line: bytes) -> float | None:
    text = line[1:24] if line[:1] == b"[" else line[:23]
    try:
        return datetime.fromisoformat(text.decode("ascii").replace(",", ".") + "+00:00").timestamp()
    except ValueError:
        return None


def audit(logs: Path, out: Path, clusters: Iterable[str] = ()) -> Path:
    """Audit logs and return report.json. A folder of logs whose name is in `clusters` is a cluster of that name."""
    out.mkdir(parents=True, exist_ok=True)
    command = [str(Path(sys.executable).with_name("highwater")), "audit", str(logs), "--lake", str(out / "lake")]
    command += ["--out", str(out / "report")]
    tables = [f'[ingest.clusters."{logs / name}"]\ncluster = "{name}"\n' for name in clusters]
    if tables:
        (out / "highwater.toml").write_text("\n".join(tables))
        command += ["--conf", str(out / "highwater.toml")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    report = out / "report" / "report.json"
    if not report.exists():
        raise SystemExit(f"audit of {logs} failed: {done.stderr.strip()[-500:]}")
    return report


def excerpts(logs: Path, report: Path, out: Path, each: int, context_s: float) -> list[Excerpt]:
    """Write, audit and judge the excerpts of the first incidents of each kind."""
    whole = incidents(report)
    chosen: dict[str, tuple[Claim, Row]] = {}
    of_kind: Counter[str] = Counter()
    for claim, row in whole:
        of_kind[claim.kind] += 1
        if of_kind[claim.kind] <= each:
            name = f"{claim.kind}-{of_kind[claim.kind]}"
            write_excerpt(logs, row, out / "in" / name, context_s)
            if (out / "in" / name).is_dir():
                chosen[name] = claim, row
    found: dict[str, list[Claim]] = defaultdict(list)
    for row in json.loads(audit(out / "in", out, chosen).read_text())["incidents"]:
        found[row["cluster_id"]].append(_claim_of(row))
    known = [claim for claim, _ in whole]
    return [
        Excerpt(name, claim, found[name], [other for other in found[name] if is_excluded(other, known)])
        for name, (claim, _) in chosen.items()
    ]


def table(judged: Sequence[Excerpt]) -> Iterable[str]:
    """Yield the lines of the table, then the worst sentences."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for excerpt in judged:
        counts[excerpt.incident.kind][excerpt.outcome] += 1
    yield f"| kind | {' | '.join(OUTCOMES)} |"
    yield "|---" * (len(OUTCOMES) + 1) + "|"
    for name in sorted(counts, key=[*BY_NAME].index):
        yield f"| {name} | {' | '.join(str(counts[name][outcome]) for outcome in OUTCOMES)} |"
    worst = sorted(judged, key=lambda excerpt: OUTCOMES.index(excerpt.outcome))
    for excerpt in [excerpt for excerpt in worst if excerpt.outcome != "same"][:_SHOWN]:
        yield f"{excerpt.name}, {excerpt.outcome}: {excerpt.incident.sentence}"
        for claim in excerpt.excluded or excerpt.claims:
            yield f"    {claim.kind}: {claim.sentence}"


def print_matrix(out: Path, corpora: Iterable[str], reductions: Sequence[str]) -> int:
    """Audit reductions of corpora and print what is wrong with their incidents. Returns 1 if something is."""
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PRODUCT": str(root), "STORIES": str(out)}

    def run(*arguments: str) -> str:
        command = [sys.executable, str(_TESTBED), *arguments]
        return subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE, text=True).stdout

    for corpus in corpora:
        run("audit", corpus, *reductions)
    # An unconfirmed problem has a question mark after its name.
    problems = [line for line in run("check", *corpora).splitlines() if "? [" not in line]
    print(run("matrix", *corpora), *problems, sep="\n")
    return int(bool(problems))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table. Returns 1 if an excerpt gives something that the whole logs exclude."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", type=Path, help="folder of logs, or: matrix")
    parser.add_argument("out", type=Path)
    parser.add_argument("--report", type=Path, help="report.json of the whole logs")
    parser.add_argument("--each", type=int, default=EACH)
    parser.add_argument("--context", type=float, default=CONTEXT_S)
    parser.add_argument("--corpora", nargs="+", default=CORPORA)
    parser.add_argument("--reductions", nargs="+", default=REDUCTIONS)
    options = parser.parse_args(arguments)
    if options.logs == Path("matrix"):
        return print_matrix(options.out.resolve(), options.corpora, options.reductions)
    report = options.report or options.out / "full" / "report" / "report.json"
    if not report.exists():
        report = audit(options.logs, options.out / "full")
    judged = excerpts(options.logs, report, options.out / "excerpts", options.each, options.context)
    print("\n".join(table(judged)))
    return int(any(excerpt.outcome == "false" for excerpt in judged))


if __name__ == "__main__":
    sys.exit(main())
