"""Incidents beside the faults that were injected: ``python -m tests.bench.faults CORPORA... --lakes DIR``

    python -m tests.bench.faults ../shared/corpora/* --lakes lakes

Audits each corpus into a lake of its own below DIR, unless one is there, and compares `gold.incidents` with its
faults.jsonl: which faults are told (kind, broker, and begin within two seconds), which are not, and which incidents of
those kinds tell of something that nobody did. A fault that logs cannot show (a pause of less than two seconds, one of a
broker that writes too little) is counted apart, with the reason.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from highwater.pipelines.incidents.questions import SILENCE_S
from highwater.pipelines.lake.contents import find_tables
from highwater.pipelines.lake.reader import LakeReader

Row = Mapping[str, Any]

#: A told begin may differ so much from the true one, seconds.
WITHIN_S = 2.0
_DEATHS = ("broker_died", "broker_halted", "logs_end_early")
#: What a fault begins, what ends it, and the kinds that tell of it; of several each may.
_STARTS: dict[str, tuple[str | None, tuple[str, ...]]] = {
    "pause": ("resume", ("broker_stalled",)),
    "pause and kill": ("start", _DEATHS),
    "kill": ("start", _DEATHS),
    "term": ("start", ("broker_stopped",)),
    "slow_start": ("slow_end", ("slow_replica",)),
    "disk_full": ("disk_freed", ("log_directory_failed",)),
    "disk_eio": ("disk_repaired", ("log_directory_failed",)),
    "net_delay": (None, ("slow_replica",)),
    "net_loss": (None, ("slow_replica",)),
    "store gone": ("store back", ("remote_copy_failed", "remote_read_failed")),
    "net_cut": (None, ("leader_unreachable", "isr_shrunk", "broker_fenced", "controller_changed")),
    "unclean election by tool": (None, ("unclean_election",)),
    "end": (None, ("broker_stopped",)),
}
#: Kinds that tell of a fault, and of nothing else: one without a fault is an accusation.
JUDGED = ("broker_stalled", "broker_died", "broker_halted", "broker_stopped", "log_directory_failed", "slow_replica")
#: Whom any fault, or the first seconds of load, slows.
_SLOWED_S = 15.0


class Fault(NamedTuple):
    """Something that was done to a cluster; times in Unix seconds, `end` None: it was not undone."""

    what: str
    broker: int | None
    start: float
    end: float | None


class Judgement(NamedTuple):
    """How incidents compare with faults."""

    told: tuple[Fault, ...]  #: faults that an incident tells of
    missed: tuple[Fault, ...]  #: those that none does
    unseen: tuple[tuple[Fault, str], ...]  #: those that logs cannot show, with the reason
    accused: tuple[Row, ...]  #: incidents of `JUDGED` kinds that no fault explains


def faults_of(corpus: Path) -> list[Fault]:
    """What was done to a cluster, from its faults.jsonl."""
    rows = [json.loads(line) for line in (corpus / "faults.jsonl").read_text(encoding="utf-8").splitlines()]
    faults = []
    for number, row in enumerate(rows):
        what, broker = row["what"], row.get("broker")
        following = (other["what"] for other in rows[number + 1 :] if other.get("broker") == broker)
        if what == "pause" and next(following, None) == "start":
            what = "pause and kill"  # stopped for good: its last line is of the pause
        if what not in _STARTS:
            continue
        ends = _STARTS[what][0]
        after = (other for other in rows[number + 1 :] if other["what"] == ends and other.get("broker") == broker)
        end = next((other["t"] for other in after), None)
        if "seconds" in row:
            end = row["t"] + row["seconds"]
        faults.append(Fault(what, broker, row["t"], end))
    return faults


def judge(faults: Sequence[Fault], incidents: Sequence[Row], loads: Iterable[float] = ()) -> Judgement:
    """Compare.

    Args:
        incidents: rows of `gold.incidents`, times in microseconds.
        loads: when clients began, Unix seconds: the first produces of a cluster are slow.
    """
    told, missed, unseen = [], [], []
    explained: set[str] = set()
    for fault in faults:
        fitting = [row for row in incidents if _tells(row, fault)]
        explained |= {row["incident_id"] for row in fitting}
        reason = _unseen(fault, faults)
        if fitting:
            told.append(fault)
        elif reason:
            unseen.append((fault, reason))
        else:
            missed.append(fault)
    windows = [(fault.start - WITHIN_S, (fault.end or fault.start) + _SLOWED_S) for fault in faults]
    windows += [(load - _SLOWED_S, load + _SLOWED_S) for load in loads]
    accused = [
        row
        for row in incidents
        if row["kind"] in JUDGED
        and row["incident_id"] not in explained
        and not (row["kind"] == "slow_replica" and any(_overlaps(row, window) for window in windows))
    ]
    return Judgement(tuple(told), tuple(missed), tuple(unseen), tuple(accused))


def _tells(row: Row, fault: Fault) -> bool:
    if row["kind"] not in _STARTS[fault.what][1]:
        return False
    start = row["start_time"] / 1e6
    if fault.what == "end":
        return bool(fault.start - WITHIN_S <= start <= fault.start + 60)
    about = {*row["broker_ids"], *(value["value"] for value in row["figures"] if value["name"] == "leader")}
    if fault.broker is not None and fault.broker not in about:
        return False
    # A network that is cut, and a disk, are noticed when they are next used; a stop takes effect at once.
    slack = 20.0 if fault.what.startswith(("net_cut", "disk_", "unclean", "store")) else WITHIN_S
    return bool(fault.start - WITHIN_S <= start <= fault.start + slack)


def _unseen(fault: Fault, faults: Sequence[Fault]) -> str:
    if fault.what == "pause" and fault.end is not None and fault.end - fault.start < SILENCE_S:
        return f"shorter than {SILENCE_S} s"
    if fault.what in ("pause", "term") and any(
        other.what == "kill" and other.broker == fault.broker and other.start <= fault.start <= (other.end or 1e12)
        for other in faults
    ):
        return "the broker was down"
    if fault.what == "kill" and fault.end is None:
        return "it did not start again: its logs end"
    return ""


def _overlaps(row: Row, window: tuple[float, float]) -> bool:
    return bool(row["start_time"] / 1e6 <= window[1] and (row["end_time"] or row["start_time"]) / 1e6 >= window[0])


def incidents_in(lake: Path) -> list[Row]:
    """Rows of `gold.incidents`, the most harmful first."""
    return list(LakeReader(lake, find_tables(lake)).rows("SELECT * FROM gold_incidents ORDER BY harm"))


def main(arguments: list[str]) -> int:
    """Print a row per corpus, then what is missed and accused; 1 where there is any."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument("--lakes", type=Path, required=True, help="folder of lakes, each named as its corpus")
    given = parser.parse_args(arguments)
    sums = [0, 0, 0, 0]
    print("corpus | incidents | faults told | missed | not to be seen | accused")
    for corpus in given.corpora:
        if not (corpus / "faults.jsonl").is_file():
            continue
        lake = given.lakes / corpus.name
        if not lake.is_dir():
            command = [sys.executable, "-m", "highwater.jobs.cli", "audit", str(corpus), "--lake", str(lake)]
            subprocess.run([*command, "--out", f"{lake}-report"], check=False, capture_output=True)
        rows = incidents_in(lake)
        text = (corpus / "faults.jsonl").read_text(encoding="utf-8")
        loads = [row["t"] for row in map(json.loads, text.splitlines()) if row["what"] == "load"]
        judgement = judge(faults_of(corpus), rows, loads)
        counts = [len(part) for part in judgement]
        sums = [total + number for total, number in zip(sums, counts, strict=True)]
        print(f"{corpus.name} | {len(rows)} | {' | '.join(map(str, counts))}")
        for fault in judgement.missed:
            print(f"    missed: {fault.what} of broker {fault.broker} at {fault.start:.1f}")
        for fault, reason in judgement.unseen:
            print(f"    not to be seen: {fault.what} of broker {fault.broker} at {fault.start:.1f}: {reason}")
        for row in judgement.accused:
            print(f"    accused: {row['kind']}: {row['sentence']}")
    told, missed, _, accused = sums
    print(f"recall {told}/{told + missed}, precision {told}/{told + accused}")
    return int(bool(missed or accused))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
