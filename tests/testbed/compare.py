"""Compares an audit with what was done to the cluster and what its clients saw. Pure.

Each `Check` is a row of the table that is printed: something true, what the audit says of it, and whether that agrees.
All clocks are one machine's, so instants compare; how late a fault may show is said at each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from tests.bench.releases import typed_share, verdict_of
from tests.bench.truth import LEADER_ONLY, LOSS, Place, Truth, judged
from tests.testbed.audited import Audited, Row
from tests.testbed.history import ACKS_ALL, ACKS_LEADER, Fault, History, Produced
from tests.testbed.settings import LAG_TIME_MAX_MS
from tests.testbed.truth import account

#: A broker logs within this many seconds that it starts, or shuts down; clocks and lines are a little off.
PROMPT_S = 20.0
EARLY_S = 1.0
#: A session ends, ISRs shrink and leaders are elected within this time.
ELECTED_S = 40.0
#: A leader looks for followers that lag every half of the time that they may (`ReplicaManager`).
LAGGING_S = 1.5 * LAG_TIME_MAX_MS / 1000
STARTS = ("starting", "version")
SHUTDOWNS = ("shutting_down", "controlled_shutdown", "shut_down", "signal", "stopping_replicas")
GONE = ("failed", "fenced", "found_by_new_controller")
DIVERGED = ("replica-bytes-diverged", "epoch-history-diverged")
#: A client that waited longer saw what late-completion is about.
SLOW_S = 0.4
CLOSE_MS = 5
#: So long a follower's fetch waits (replica.fetch.wait.max.ms); it is logged when it is answered.
FETCH_WAIT_S = 0.5
SHARES = (("typed or known", 0.995), ("produces within 5 ms", 0.995), ("parked fetches within 5 ms", 0.985))


class Check(NamedTuple):
    """One comparison."""

    what: str
    true: str
    audited: str
    agrees: bool


def compare(history: History, audited: Audited) -> list[Check]:
    """All comparisons, in the order of the printed table."""
    return [
        *_records(history, audited),
        *_findings(history, audited),
        *_faults(history, audited),
        *_nothing_else(history, audited),
        *_nodes(history, audited),
        *_shares(history, audited),
    ]


def truth(history: History) -> Truth:
    """What the findings of an audit must be about: each lost record, and where replicas differ."""
    broken = [_place(record, LOSS) for record in account(history).lost]
    for (topic, partition), offsets in sorted(history.differing.items()):
        broken.append(Place(DIVERGED, topic, partition, min(offsets), max(offsets) + 1))
    alone = tuple(_place(record, (LEADER_ONLY,)) for record in account(history, ACKS_LEADER).lost)
    return Truth(tuple(broken), frozenset(), alone)


def _place(record: Produced, rules: tuple[str, ...]) -> Place:
    offset = record.offset or 0
    return Place(rules, record.topic, record.partition, offset, offset + 1)


def _records(history: History, audited: Audited) -> Iterator[Check]:
    for acks in (ACKS_ALL, ACKS_LEADER):
        sums = account(history, acks)
        true = f"{sums.acknowledged} acknowledged: {sums.readable} readable"
        more = {"expired": sums.expired, "deleted with their topic": sums.deleted, "lost": len(sums.lost)}
        true += "".join(f", {count} {name}" for name, count in more.items() if count)
        if acks == ACKS_ALL:
            owned = [row["severity"] for row in audited.findings if row["implied_by"] is None]
            verdict = verdict_of(owned, doubted=False)
            broken = bool(truth(history).broken) or bool(_slow(history, audited))
            yield Check("records of acks=all", true, verdict, broken == (verdict == "violated"))
        else:
            observed = judged(truth(history), audited.findings).leader_only_found
            yield Check("records of acks=1", true, f"{observed} observed as lost", observed == len(sums.lost))


def _findings(history: History, audited: Audited) -> Iterator[Check]:
    """Every violation and open case is about something true, and everything true is in a violation."""
    slow = _slow(history, audited)
    judgement = judged(truth(history), [row for row in audited.findings if row not in slow])
    for text in judgement.accused:
        yield Check("accused", "nothing of it", text, False)
    for text in judgement.missed:
        yield Check("missed", text, "nothing", False)
    wrongly = judged(truth(history)._replace(broken=truth(history).leader_only), _as_violations(audited)).accused
    for text in wrongly:
        yield Check("observed", "nothing of it", text, False)
    if slow:
        yield Check("late completions", f"clients waited {SLOW_S} s and more", f"{len(slow)} found", True)


def _as_violations(audited: Audited) -> list[Row]:
    return [row | {"severity": "violation"} for row in audited.findings if row["rule_id"] == LEADER_ONLY]


def _slow(history: History, audited: Audited) -> list[Row]:
    """Late completions for which clients waited."""
    late = [row for row in audited.findings if row["rule_id"] == "late-completion"]
    return [row for row in late if row["severity"] != "observation" and _was_slow(history, row)]


def _was_slow(history: History, row: Row) -> bool:
    """Whether a client of the partition waited long about then."""
    return any(
        record.time_s - record.sent_s >= SLOW_S and record.sent_s - EARLY_S <= row["time"] <= record.time_s + EARLY_S
        for record in history.produced
        if (record.topic, record.partition) == (row["topic"], row["partition"]) and record.acks == ACKS_ALL
    )


def _faults(history: History, audited: Audited) -> Iterator[Check]:
    for number, fault in enumerate(history.faults):
        signs = _SIGNS.get(fault.what)
        if signs is None:
            continue
        for sign, seen in signs(fault, history.faults[number + 1 :], audited):
            yield Check(_title(fault), sign, "seen" if seen else "not seen", seen)


def _title(fault: Fault) -> str:
    what = fault.details.get("topic", "") if fault.broker is None else f"broker {fault.broker}"
    return f"{_clock(fault.time_s)} {fault.what} {what}".rstrip()


Signs = Iterator[tuple[str, bool]]
Later = tuple[Fault, ...]


def _load(fault: Fault, later: Later, audited: Audited) -> Signs:
    yield from _controller(fault, audited)
    for node, version in fault.details.get("versions", {}).items():
        named = [row for row in audited.lives if row["broker_id"] == int(node) and row["time"] < fault.time_s]
        yield f"node {node} runs {version}", any(row["kafka_version"] == version for row in named)


def _controller(fault: Fault, audited: Audited) -> Signs:
    """Who was the active controller at this instant."""
    controller = fault.details.get("controller")
    if controller is not None:
        yield f"active controller {controller}", _active(audited, fault.time_s) == controller


def _active(audited: Audited, time_s: float) -> int | None:
    elected = [(row["time"], row["subject_broker_id"]) for row in _elected(audited) if row["time"] <= time_s]
    return max(elected)[1] if elected else None


def _elected(audited: Audited) -> list[Row]:
    rows = (row for row in audited.controller_events if row["event"] == "controller_elected")
    return [row for row in rows if row["subject_broker_id"] is not None]


def _pause(fault: Fault, later: Later, audited: Audited) -> Signs:
    seconds = fault.details["seconds"]
    if seconds > LAGGING_S:
        end = fault.time_s + seconds + PROMPT_S
        yield "leaves ISRs", _changed(audited, fault, "shrink", end)


def _kill(fault: Fault, later: Later, audited: Audited) -> Signs:
    end = max([fault.time_s + ELECTED_S, *(at.time_s + PROMPT_S for at in _next(later, "start", fault.broker))])
    if not fault.details.get("controller_only"):
        yield "leaves ISRs", _changed(audited, fault, "shrink", end)
    if "controller" in fault.details["role"]:
        yield f"active controller {fault.broker}", _active(audited, fault.time_s) == fault.broker
        elected = [row for row in _elected(audited) if fault.time_s < row["time"] <= end]
        yield "another controller", any(row["subject_broker_id"] != fault.broker for row in elected)


def _term(fault: Fault, later: Later, audited: Audited) -> Signs:
    yield "shuts down", _lived(audited, fault, SHUTDOWNS)


def _start(fault: Fault, later: Later, audited: Audited) -> Signs:
    version = fault.details.get("version")
    yield f"starts {version}", _lived(audited, fault, STARTS, version)
    again = [at.time_s for at in _next(later, "kill", fault.broker) + _next(later, "term", fault.broker)]
    if not fault.details.get("controller_only"):
        end = min([fault.time_s + ELECTED_S + PROMPT_S, *again])
        yield "joins ISRs", _changed(audited, fault, "expand", end)


def _alter(fault: Fault, later: Later, audited: Audited) -> Signs:
    for key, value in fault.details["config"].items():
        wanted = ("topic", fault.details["topic"], key)
        applied = [row for row in audited.configs if (row["scope"], row["entity"], row["key"]) == wanted]
        seen = any(row["value"] == str(value) and _within(row["time"], fault, PROMPT_S) for row in applied)
        yield f"{key} is {value}", seen


def _reassign(fault: Fault, later: Later, audited: Audited) -> Signs:
    place = (fault.details["topic"], fault.details["partition"])
    yield "reassigned", _event(audited, fault, "reassignment", lambda row: (row["topic"], row["partition"]) == place)


def _delete(fault: Fault, later: Later, audited: Audited) -> Signs:
    yield "deleted", _event(audited, fault, "topic_deleted", lambda row: row["topic"] == fault.details["topic"])


def _end(fault: Fault, later: Later, audited: Audited) -> Signs:
    yield from _controller(fault, audited)


_SIGNS: dict[str, Callable[[Fault, Later, Audited], Signs]] = {
    "load": _load,
    "pause": _pause,
    "kill": _kill,
    "term": _term,
    "start": _start,
    "alter_config": _alter,
    "reassign": _reassign,
    "delete_topic": _delete,
    "end": _end,
}


def _next(later: Later, what: str, broker: int | None) -> list[Fault]:
    return [fault for fault in later if (fault.what, fault.broker) == (what, broker)][:1]


def _within(time_s: float, fault: Fault, seconds: float) -> bool:
    return fault.time_s - EARLY_S <= time_s <= fault.time_s + seconds


def _changed(audited: Audited, fault: Fault, change: str, end_s: float) -> bool:
    return any(
        (row["replica_id"], row["change"]) == (fault.broker, change)
        and row["class"] != "not_observed"
        and fault.time_s - EARLY_S <= row["change_time"] <= end_s
        for row in audited.isr
    )


def _lived(audited: Audited, fault: Fault, events: Iterable[str], version: str | None = None) -> bool:
    return any(
        row["broker_id"] == fault.broker
        and row["event"] in events
        and _within(row["time"], fault, PROMPT_S)
        and (version is None or row["kafka_version"] == version)
        for row in audited.lives
    )


def _event(audited: Audited, fault: Fault, event: str, about: Callable[[Row], bool]) -> bool:
    return any(
        row["event"] == event and about(row) and _within(row["time"], fault, PROMPT_S)
        for row in audited.controller_events
    )


def _nothing_else(history: History, audited: Audited) -> Iterator[Check]:
    """Nobody started, failed or was elected uncleanly but by what was done."""
    begin, end = history.first("load").time_s, history.first("stop").time_s
    starts = [fault for fault in history.faults if fault.what == "start"]
    for row in audited.lives:
        near = any(fault.broker == row["broker_id"] and _within(row["time"], fault, PROMPT_S) for fault in starts)
        if row["event"] == "starting" and begin < row["time"] < end and not near:
            yield Check("started", "nobody", f"broker {row['broker_id']} at {_clock(row['time'])}", False)
    for row in audited.failovers:
        times = [row[f"{name}_time"] for name in ("detected", "elected", "taken_up", "serving")]
        time_s = next((time for time in times if time is not None), None)
        if time_s is None or not begin < time_s < end:
            continue
        place = f"{row['topic']}-{row['partition']} at {_clock(time_s)}"
        if row["reason"] in GONE and not _was_away(history, row["failed_broker_id"], time_s):
            yield Check("failed", "nobody", f"broker {row['failed_broker_id']}, {place}", False)
        if row["strategy"] == "unclean":
            yield Check("elected uncleanly", "nobody", place, False)


def _was_away(history: History, broker: int, time_s: float) -> bool:
    for number, fault in enumerate(history.faults):
        if fault.broker != broker or fault.what not in ("pause", "kill", "term"):
            continue
        back = "resume" if fault.what == "pause" else "start"
        over = [later.time_s for later in _next(history.faults[number + 1 :], back, broker)]
        if fault.time_s - EARLY_S <= time_s <= max([fault.time_s, *over]) + ELECTED_S:
            return True
    return False


def _nodes(history: History, audited: Audited) -> Iterator[Check]:
    """Brokers, with the version and mode in which they ended."""
    load = history.first("load")
    modes = {"zk": "zookeeper", "kraft": "kraft"}
    true = {int(node): (version, modes[load.details["mode"]]) for node, version in load.details["versions"].items()}
    for fault in history.faults:
        if fault.what == "start" and fault.broker is not None:
            true[fault.broker] = (fault.details["version"], fault.details["mode"])
    lives = sorted(audited.lives, key=lambda row: float(row["time"]))
    nodes = {-1 if broker is None else broker for broker in audited.brokers}
    for node in sorted(true.keys() | nodes):
        said = [row for row in lives if row["broker_id"] == node]
        last = (_last(said, "kafka_version"), _last(said, "mode"))
        seen, expected = last if node in nodes else None, true.get(node)
        yield Check(f"node {node}", _pair(expected), _pair(seen), seen == expected)


def _last(rows: Iterable[Row], column: str) -> str | None:
    return next((row[column] for row in reversed(list(rows)) if row[column] is not None), None)


def _pair(pair: tuple[str | None, str | None] | None) -> str:
    return "not there" if pair is None else " ".join(text or "?" for text in pair)


def _shares(history: History, audited: Audited) -> Iterator[Check]:
    """How much was read, and how close the replay is where nobody had stopped or killed the leader."""
    pauses = [fault for fault in history.faults if fault.what == "pause"]
    kills = [fault for fault in history.faults if fault.what == "kill"]
    free = [
        row
        for row in audited.operations
        if not any(_held_up(row, pause) for pause in pauses) and not any(_unlogged(row, kill) for kill in kills)
    ]
    produces = [row for row in free if (row["operation"], row["api"]) == ("produce", "PRODUCE") and row["succeeded"]]
    fetches = [row for row in free if row["operation"] == "fetch" and row["parked"]]
    shares = (
        typed_share([row | {"n": row["line_count"]} for row in audited.coverage]),
        _share_close(produces),
        _share_close(fetches),
    )
    for (name, least), share in zip(SHARES, shares, strict=True):
        measured = "nothing to count" if share is None else f"{share:.2%}"
        yield Check(name, f"at least {least:.1%}", measured, share is not None and share >= least)


def _held_up(row: Row, pause: Fault) -> bool:
    """The leader was stopped while the operation waited."""
    end = pause.time_s + pause.details["seconds"]
    over = row["completed_time"]
    return bool(
        row["broker_id"] == pause.broker and row["arrival_time"] <= end and (over is None or over >= pause.time_s)
    )


def _unlogged(row: Row, kill: Fault) -> bool:
    """The fetch that let a produce be answered was waiting for its own answer when the leader was killed."""
    answered_s = row["completed_time"] if row["broker_id"] == kill.broker and row["operation"] == "produce" else None
    return answered_s is not None and kill.time_s - FETCH_WAIT_S <= answered_s <= kill.time_s + EARLY_S


def _share_close(rows: Sequence[Row]) -> float | None:
    """Share that was answered within so many ms of the predicted interval; what is not observable counts as not."""
    close = [
        row
        for row in rows
        if row["class"] != "unobservable" and row["residual_ms"] is not None and abs(row["residual_ms"]) <= CLOSE_MS
    ]
    return len(close) / len(rows) if rows else None


def _clock(time_s: float) -> str:
    return f"{datetime.fromtimestamp(time_s, UTC):%H:%M:%S}"
