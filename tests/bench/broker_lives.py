"""Whether brokers, versions, mode, restarts, active controllers and elections are told as they were, by faults.jsonl.

What was done to a cluster is known to the instant; what the lake says of it is compared: brokers that started or shut
down, who was the active controller as it was killed, whose leaderships ended and why.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import functions as F

from highwater.pipelines.lake.lake import Lake
from highwater.schemas.controllers import FAILOVERS
from highwater.schemas.silver import BROKER_LIFECYCLE, CONTROLLER_EVENTS

#: A broker logs that it starts this long after it was told to, and that it shuts down.
_PROMPT_S = 20
#: Sessions end and leaders are elected this long after a fault, or after it is over.
_ELECTED_S = 40
_STARTS = ("starting", "version")
_SHUTDOWNS = ("shutting_down", "controlled_shutdown", "shut_down", "signal")
#: Reasons of `FAILOVERS` that say that a broker was not there.
_GONE = ("failed", "fenced", "found_by_new_controller")
_ENDS = {"pause": "resume", "kill": "start", "disk_full": "start", "disk_eio": "start", "net_cut": "network healed"}
_README_ROW = re.compile(r"\| *(?P<corpus>[\w.-]+) *\| *(?P<version>\d[\d.]+) *\| *(?P<mode>KRaft|ZooKeeper)\b")


class Ended(NamedTuple):
    """A leadership that ended: of which broker, why, when, of which partition, and who led next if anyone did."""

    broker: int
    reason: str
    time: float
    partition: str = ""
    new_leader: int | None = None


class Seen(NamedTuple):
    """What the lake says of a cluster, in the order of time."""

    lives: tuple[tuple[int, str, float], ...] = ()  #: broker, event and instant
    elected: tuple[tuple[float, int], ...] = ()  #: instant, and the controller that was elected
    failovers: tuple[Ended, ...] = ()  #: leaderships that ended


NOTHING = Seen()


def collect(lake: Lake) -> dict[str, Seen]:
    """By cluster."""
    parts: dict[str, tuple[list[Any], list[Any], list[Any]]] = defaultdict(lambda: ([], [], []))
    seconds = F.unix_micros("time") / 1e6
    lives = lake.read(BROKER_LIFECYCLE).where(F.col("event").isin(*_STARTS, *_SHUTDOWNS))
    for row in lives.select("cluster_id", "broker_id", "event", seconds).collect():
        parts[row[0]][0].append(tuple(row)[1:])
    elected = lake.read(CONTROLLER_EVENTS).where("event = 'controller_elected' AND subject_broker_id IS NOT NULL")
    for row in elected.select("cluster_id", seconds, "subject_broker_id").collect():
        parts[row[0]][1].append(tuple(row)[1:])
    times = [f"{name}_time" for name in ("detected", "elected", "taken_up", "serving")]
    when = F.unix_micros(F.coalesce(*times)) / 1e6
    partition = F.concat_ws("-", "topic", "partition")
    ended = lake.read(FAILOVERS).select(
        "cluster_id", "failed_broker_id", "reason", when.alias("s"), partition, "new_leader"
    )
    for row in ended.where("s IS NOT NULL").collect():
        parts[row[0]][2].append(Ended(*tuple(row)[1:]))
    return {
        name: Seen(tuple(sorted(lives)), tuple(sorted(elected)), tuple(sorted(ended, key=lambda row: row[:4])))
        for name, (lives, elected, ended) in parts.items()
    }


def differences(corpus: Path, files: Iterable[Mapping[str, Any]], seen: Seen) -> tuple[str, ...]:
    """What is told otherwise than it was, one sentence each.

    Args:
        files: rows of ``bronze.log_files`` of the corpus.
        seen: what the lake says of its cluster.
    """
    faults = [json.loads(line) for line in (corpus / "faults.jsonl").read_text(encoding="utf-8").splitlines()]
    rows = list(files)
    differences = [*_identities(corpus, faults, rows), *_restarts(faults, seen), *_controllers(faults, seen)]
    return (*differences, *_elections(faults, seen))


def _identities(corpus: Path, faults: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    version, mode = _release(corpus, faults)
    # Up to 0.10.0 the class that logs the version is none of Kafka's own loggers, and its default file has only these.
    version = version if any(row["kafka_version"] for row in rows) else None
    for row in rows:
        folder = Path(row["path"]).parts[-3]
        if not folder.startswith("broker-"):
            yield f"{Path(row['path']).name}: taken for a log of the cluster"
            continue
        broker = int(folder.removeprefix("broker-"))
        for what, is_told, true in (
            ("broker", row["broker_id"], broker),
            ("version", row["kafka_version"], version),
            ("mode", row["mode"], mode),
        ):
            if true is not None and is_told != true:
                yield f"broker-{broker}/{Path(row['path']).name}: {what} told as {is_told}, it is {true}"


def _release(corpus: Path, faults: Sequence[Mapping[str, Any]]) -> tuple[str | None, str | None]:
    """Version and mode, from the first fault or from the corpora's README.md; None where neither says it."""
    modes = {"zk": "zookeeper", "kraft": "kraft"}
    if "version" in faults[0]:
        return faults[0]["version"], modes[faults[0]["mode"]]
    listed = corpus.parent / "README.md"
    for line in listed.read_text(encoding="utf-8").splitlines() if listed.is_file() else ():
        row = _README_ROW.match(line)
        if row is not None and row["corpus"] == corpus.name:
            return row["version"], row["mode"].lower()
    return None, None


def _restarts(faults: Sequence[Mapping[str, Any]], seen: Seen) -> Iterator[str]:
    asked: dict[tuple[str, int], list[float]] = defaultdict(list)
    for fault in faults:
        if fault["what"] in ("start", "term"):
            asked[fault["what"], fault["broker"]].append(fault["t"])
    for what, events in (("start", _STARTS), ("term", _SHUTDOWNS)):
        for (_, broker), times in ((key, times) for key, times in asked.items() if key[0] == what):
            logged = [time for node, event, time in seen.lives if node == broker and event in events]
            for time in times:
                if not any(time - 1 <= instant <= time + _PROMPT_S for instant in logged):
                    yield f"{what} of broker {broker} at {_clock(time)} is not told"
    begun, ended = faults[0]["t"], faults[-1]["t"]
    for broker, event, time in seen.lives:
        inside = begun < time < ended
        if inside and event == "starting" and not _near(time, asked["start", broker]):
            yield f"a start of broker {broker} at {_clock(time)} is told, and was none"


def _near(time: float, times: Iterable[float]) -> bool:
    return any(other - 1 <= time <= other + _PROMPT_S for other in times)


def _controllers(faults: Sequence[Mapping[str, Any]], seen: Seen) -> Iterator[str]:
    for fault in faults:
        if "controller" not in (fault.get("role") or ""):
            continue
        before = [broker for time, broker in seen.elected if time < fault["t"]]
        active = before[-1] if before else None
        if active != fault["broker"]:
            yield f"active controller at {_clock(fault['t'])} told as {active}, it was {fault['broker']}"


def _elections(faults: Sequence[Mapping[str, Any]], seen: Seen) -> Iterator[str]:
    leaders = {failover.broker for failover in seen.failovers}
    away = {broker: list(_away(faults, broker)) for broker in leaders}
    shutdowns = {
        broker: [fault["t"] for fault in faults if fault["what"] == "term" and fault["broker"] == broker]
        for broker in leaders
    }
    for broker, reason, time, *_ in seen.failovers:
        inside = faults[0]["t"] < time < faults[-1]["t"]
        if inside and reason in _GONE and not any(a - 1 <= time <= b + _ELECTED_S for a, b in away[broker]):
            yield f"broker {broker} told as {reason} at {_clock(time)}, and nothing had happened to it"
        if inside and reason == "controlled_shutdown" and not _near(time, shutdowns[broker]):
            yield f"a controlled shutdown of broker {broker} at {_clock(time)} is told, and was none"
    for fault in faults:
        if fault["what"] in ("kill", "term") and _led(fault["broker"], fault["t"], seen):
            times = [failover.time for failover in seen.failovers if failover.broker == fault["broker"]]
            if not any(fault["t"] - 1 <= time <= fault["t"] + _ELECTED_S for time in times):
                yield f"{fault['what']} of broker {fault['broker']} at {_clock(fault['t'])}: no leadership of it ended"


def _led(broker: int, time: float, seen: Seen) -> bool:
    """Whether a broker led anything at an instant, of what changed leaders before or after it."""
    leaders: dict[str, int | None] = {}
    for failover in sorted(seen.failovers, key=lambda failover: failover.time):
        if failover.time < time - 1:
            leaders[failover.partition] = failover.new_leader
        else:
            leaders.setdefault(failover.partition, failover.broker)
    return broker in leaders.values()


def _away(faults: Sequence[Mapping[str, Any]], broker: int) -> Iterator[tuple[float, float]]:
    """When something was done to a broker, and when it was over."""
    for at, fault in enumerate(faults):
        if fault.get("broker") != broker or fault["what"] not in (*_ENDS, "term"):
            continue
        over = _ENDS.get(fault["what"], "start")
        ends = [fault["t"] for fault in faults[at:] if fault["what"] == over and fault.get("broker", broker) == broker]
        yield fault["t"], ends[0] if ends else faults[-1]["t"]


def _clock(time: float) -> str:
    return f"{datetime.fromtimestamp(time, UTC):%H:%M:%S}"
