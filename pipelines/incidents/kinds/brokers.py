"""Processes of brokers and controllers: they died, stopped, froze, were fenced, or write no more."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from pipelines.incidents.broker_runs import is_orderly
from pipelines.incidents.episodes import grouped
from pipelines.incidents.facts import Facts, Node, Row, node, place
from pipelines.incidents.incident import INFO, MAJOR, MINOR, LoggedIncident, Place
from pipelines.incidents.kind import FAILED, kind, preceding
from pipelines.incidents.kinds.controllers import terms
from pipelines.incidents.kinds.failures import TORN
from pipelines.incidents.processes import (
    AFTER_MIN_S,
    BOOT_US,
    FATAL_US,
    STOPPING,
    ProcessRestart,
    Turn,
    is_steady,
    restarts,
    shutdowns,
    stops,
    turns,
)
from pipelines.incidents.questions import STEADY_S
from pipelines.incidents.witnesses import Loss, losses
from pipelines.incidents.words import clock, lasting, number, sentence, shortened, span
from pipelines.timelines.terms import ControllerTerm

#: kafka.log.LogManager.loadLogs: the second one up to 2.6.
_LOADED = re.compile(r"Loaded \d+ logs|Logs loading complete")
#: Nodes that die, or write no more, within this of each other have the cause in common, microseconds.
TOGETHER_US = 1_000_000
#: Share of the time after a silence in which a broker writes: others may lead for it by then, and it has less to write.
_AGAIN_SHARE = 0.35
#: A broker that is silent for this share of a time is silent with the others.
_SILENT_SHARE = 0.8
#: A silence of this length is worth more than a note, microseconds.
_LONG_US = 5_000_000
#: A broker that froze notices within this that its session has expired, microseconds.
_NOTICED_US = 5_000_000
#: Clocks of two nodes of one cluster may differ this much unnoticed, microseconds.
_CLOCKS_US = 1_500_000
#: A process lived if it wrote a line this long after a controller found it gone, microseconds.
_LIVED_US = 15_000_000
#: Longest default of a session, zookeeper.session.timeout.ms since 2.5, microseconds.
_SESSION_US = 18_000_000
#: Clocks of a log and of the program that watches its process differ by this at most, microseconds.
_EXIT_US = 2_000_000
#: Ends by SIGKILL; 137 is 128 and 9.
_KILLED = re.compile(r"code 137\b|status=9\b|status=137\b|Out of memory|OOMKilled")
#: Ends by SIGABRT, SIGBUS and SIGSEGV, and what the JVM prints before it ends by one.
_CRASHED = re.compile(r"(?:code |status=)(?:134|135|139|6|7|11)\b|fatal error has been detected by the Java Runtime")
#: What the JVM prints if the kernel refuses it memory.
_NO_MEMORY = re.compile(r"insufficient memory for the Java Runtime")
#: States in which a broker is out of the cluster already, by the event that would put it out: KRaft registers a broker
#: fenced; a registration in ZooKeeper lets the broker in.
_OUT = {
    "broker_fenced": ("broker_registered", "controlled_shutdown", "broker_fenced"),
    "broker_failed": ("controlled_shutdown", "broker_failed"),
}
_BACK = ("broker_unfenced", "broker_registered")
#: The expiry of a session and what follows are of one episode, microseconds.
_EXPIRED_ONCE_US = 10_000_000
#: Others go on for so long at least after a broker's logs end, microseconds.
_GOES_ON_US = 10_000_000
#: Of the seconds before its end, so many have a line of a broker that writes steadily.
_STEADY_END_SHARE = 0.9


@kind(
    meaning="Processes of brokers or controllers ended without a line of a shutdown; the same nodes started again. "
    "Nodes that died within a second of each other are one incident.",
    source="kafka.server.KafkaServer.startup and shutdown, BrokerServer in KRaft: an orderly end is logged",
    signatures=(TORN,),
    causes=preceding("broker_died"),
)
def broker_died(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield processes that begin where the process before says nothing of its end."""
    since: dict[Node, int] = {}
    died = []
    for restart in restarts(facts):
        of_run = [
            row["event"]
            for row in facts.life(restart.node, *STOPPING, "shut_down")
            if since.get(restart.node, 0) <= row["time"] <= restart.boot_us
        ]
        since[restart.node] = restart.boot_us
        up = facts.next_start(restart.node, restart.boot_us - 1)
        if facts.has_fatal(restart.node, restart.last_us - FATAL_US, restart.boot_us):
            continue  # it ended itself, and said why
        loads = restart.boot_us, restart.boot_us + BOOT_US if up is None else up
        if "shut_down" not in of_run and not is_orderly(facts.lifecycle, restart.node, *loads):
            died.append(_Died(restart, up, bool(of_run)))
    died.sort(key=lambda each: (each.restart.node[0], each.restart.gone_us, each.restart.node))
    for group in grouped(died, _dies_with):
        yield _died(facts, group[0]) if len(group) == 1 else _died_together(facts, group)


class _Died(NamedTuple):
    """A process that ended without a shutdown."""

    restart: ProcessRestart
    up_us: int | None  #: the node has started again; None if it has not
    was_stopping: bool  #: it had begun to shut down

    @property
    def is_dated(self) -> bool:
        """Return True if its own last line, or its peers, date the end."""
        return self.restart.gone_us < self.restart.boot_us


def _dies_with(group: list[_Died], other: _Died) -> bool:
    first, restart = group[0].restart, other.restart
    is_dated = group[0].is_dated and other.is_dated
    is_soon = restart.gone_us - first.gone_us <= TOGETHER_US and restart.node[0] == first.node[0]
    return is_dated and is_soon and restart.node not in {each.restart.node for each in group}


def _died(facts: Facts, died: _Died) -> LoggedIncident:
    restart, up, _ = died
    (cluster_id, broker_id), last, boot = restart.node, restart.last_us, restart.boot_us
    name = facts.named(cluster_id, [broker_id])
    recovery_us = _recovery_us(facts, restart, up)
    noticed = [row for row in facts.controller_events if _is_of(row, restart.node, last, up or boot)]
    seen = ""
    if restart.is_exact:
        ended = f"at {clock(last)}, its last line"
        seen = f" The controller noticed at {clock(noticed[0]['time'])}." if noticed else ""
    else:
        until, how = boot, "its next start"
        if noticed:
            until, how = noticed[0]["time"], "when the controller noticed"
        if restart.gone_us <= until and died.is_dated:
            until, how = restart.gone_us, "when its peers could no longer reach it"
        ended = f"between {clock(last)}, its last line, and {clock(until)}, {how}"
    begun = "while it was shutting down" if died.was_stopping else "without shutting down"
    back, recovered = "It did not come up again", ""
    if facts.is_excerpt(restart.node):
        back = "Its lines here do not show that it came up again"
    if up is not None:
        back = f"It was up again at {clock(up)}, after {_away(died)}"
        recovered = f", {lasting(recovery_us)} of them to recover its logs" if recovery_us else ""
    torn = _torn(facts, [died])
    exit_row = _exit_of(facts, died)
    exited = "" if exit_row is None else f" The line beside its log says: {shortened(exit_row['text'])}."
    return LoggedIncident(
        severity=MAJOR,
        cluster_id=cluster_id,
        start_us=_since_us(died),
        end_us=up,
        broker_ids=(broker_id,),
        sentence=f"{sentence(name)} died {begun} {ended}.{seen} {back}{recovered}.{exited}{torn}",
        advice="" if exit_row is None else _exit_advice(exit_row["text"], name),
        unexplained=(
            ""
            if exit_row is not None
            else f"Look for a power loss or a crash of the host of {name} at {clock(_since_us(died))}: its disk lacks "
            "writes that the process had made."
            if torn
            else f"Look outside Kafka for what ended the process of {name} from {clock(_since_us(died))} on: the "
            "kernel's log (OOM killer), the exit code of its container or service, its disk."
        ),
        figures=_figures(facts, [died]),
        places=(
            *map(place, noticed[:1]),
            *([] if restart.place is None else [restart.place]),
            *([] if exit_row is None else [Place(exit_row["exit_file_id"], exit_row["byte_offset"])]),
        ),
        weight=60.0 if up is None else (up - _since_us(died)) / 1e6,
    )


def _exit_of(facts: Facts, died: _Died) -> Row | None:
    """Return the line of another program that shows how a process ended. None if there is none."""
    restart = died.restart
    near = [
        row
        for row in facts.exits
        if node(row) == restart.node and restart.last_us - _EXIT_US <= row["time"] <= restart.boot_us
    ]
    return near[0] if near else None


def _exit_advice(text: str, name: str) -> str:
    """Return what to look at, by the signal or the exit code of a process."""
    if _KILLED.search(text):
        return (
            f"Compare the memory limit of the container or host with the heap of {name} and the page cache: SIGKILL "
            "comes from the kernel's OOM killer, from docker kill, or at the end of a grace period."
        )
    if _NO_MEMORY.search(text):
        return (
            f"Look at vm.max_map_count, the free memory of the host, and the memory limit of {name}: the kernel "
            "refused memory to the JVM, whatever the heap. Its hs_err file has the details."
        )
    if _CRASHED.search(text):
        return f"Look for an hs_err file of the JVM of {name}: the process crashed."
    return f"Look at what ended the process of {name}: its exit code is no sign of lack of memory."


def _since_us(died: _Died) -> int:
    """Return the first instant at which a process is known to be dead, else its last line."""
    return died.restart.gone_us if died.is_dated else died.restart.last_us


def _away(died: _Died) -> str:
    """Return how long a node was away: exact, between bounds, or at most."""
    up = died.up_us or died.restart.boot_us
    longest = lasting(up - died.restart.last_us)
    if died.restart.is_exact:
        return longest
    return f"{lasting(up - died.restart.gone_us)} to {longest}" if died.is_dated else f"{longest} at most"


def _figures(facts: Facts, died: Sequence[_Died]) -> dict[str, float]:
    """Return how long nodes were away, the longest of each; empty if one did not come up again."""
    ups = [each.up_us for each in died if each.up_us is not None]
    if len(ups) < len(died):
        return {}
    recovery_us = max(_recovery_us(facts, each.restart, each.up_us) for each in died)
    away_us = max(up - _since_us(each) for up, each in zip(ups, died, strict=True))
    start_us = max(up - each.restart.boot_us for up, each in zip(ups, died, strict=True))
    return {"away_s": away_us / 1e6, "start_s": start_us / 1e6, "recovery_s": recovery_us / 1e6}


def _torn(facts: Facts, died: Sequence[_Died]) -> str:
    """Return a sentence about segments that came back with a torn end; empty if no line shows one."""
    rows = [
        row
        for each in died
        for row in facts.remarked(TORN)
        if node(row) == each.restart.node
        and each.restart.boot_us <= row["first_time"] <= (each.up_us or each.restart.boot_us + BOOT_US)
    ]
    if not rows:
        return ""
    segments = number(sum(row["line_count"] for row in rows), "segment")
    return f" {segments} came back with a torn end: the disk lost writes, which points to power, the host or the disk."


def _died_together(facts: Facts, group: list[_Died]) -> LoggedIncident:
    """Return one incident of nodes that died within a second: they have the cause in common."""
    cluster_id = group[0].restart.node[0]
    ids = sorted(each.restart.node[1] for each in group)
    firsts = [each.restart.gone_us for each in group]
    ups = [each.up_us for each in group]
    up = None if None in ups else max(up for up in ups if up is not None)
    start, torn = min(firsts), _torn(facts, group)
    away = sum(each is None for each in ups)
    back = f" {away} of them did not come up again." if up is None else f" All were up again at {clock(up)}."
    shared = "power, host, rack, or one command"
    return LoggedIncident(
        severity=MAJOR,
        cluster_id=cluster_id,
        start_us=start,
        end_us=up,
        broker_ids=tuple(ids),
        sentence=(
            f"{len(ids)} nodes died within {lasting(max(firsts) - start)} of each other at {clock(start)} without "
            f"shutting down: {facts.named(cluster_id, ids)}. They have the cause in common ({shared}).{back}{torn}"
        ),
        unexplained=f"Look at what {facts.named(cluster_id, ids)} share at {clock(start)}: {shared}.",
        figures={"nodes": len(ids)} | _figures(facts, group),
        places=tuple(each.restart.place for each in group if each.restart.place is not None),
        weight=len(ids) * (60.0 if up is None else (up - start) / 1e6),
    )


def _recovery_us(facts: Facts, restart: ProcessRestart, up: int | None) -> int:
    """From the line with which a broker begins to load its logs to the one that says that they are loaded."""
    loading = [
        row
        for row in facts.life(restart.node, "log_loading")
        if restart.boot_us <= row["time"] <= (up or restart.boot_us + BOOT_US)
    ]
    begins = [row["time"] for row in loading if (row["detail"] or "").startswith("Loading logs")]
    ends = [row["time"] for row in loading if _LOADED.match(row["detail"] or "")]
    return max(ends) - min(begins) if begins and ends else 0


def _is_of(row: Row, broker: Node, since_us: int, until_us: int) -> bool:
    """Whether a controller says meanwhile that a broker is gone."""
    if row["cluster_id"] != broker[0] or row["event"] not in ("broker_failed", "broker_fenced"):
        return False
    return broker[1] in (row["subject_broker_id"], *(row["brokers"] or ())) and since_us <= row["time"] <= until_us


@kind(
    meaning="A broker that writes steadily wrote nothing for over two seconds, and then the same process wrote again.",
    source="A process that runs logs its requests and its peers' as they come: silence of all logs at once is its own",
)
def broker_stalled(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield silences of brokers with a steady rhythm, within one run."""
    of_nodes = turns(facts)
    in_order = terms(facts)
    for row in facts.silences:
        beside = of_nodes[node(row)]
        near = any(
            row["start_time"] <= turn.settled_us and turn.time_us <= row["end_time"] + 1_000_000 for turn in beside
        )
        if near or not is_steady(row):
            continue
        # A broker that others lead for, and a controller that is not active, have nothing to write.
        is_idle = row["moved_before"] or node(row) in facts.controllers or _are_all_silent(facts, row)
        if not (_is_missed(facts, row, in_order) or (not is_idle and _writes_again(facts, row, beside))):
            continue
        start, end, name = row["start_time"], row["end_time"], facts.named(row["cluster_id"], [row["broker_id"]])
        yield LoggedIncident(
            severity=MAJOR if end - start >= _LONG_US else MINOR,
            cluster_id=row["cluster_id"],
            start_us=start,
            end_us=end,
            broker_ids=(row["broker_id"],),
            sentence=(
                f"{sentence(name)} froze {span(start, end)}: it wrote no line to any log, and then the same process "
                "wrote again."
            ),
            advice=(
                f"Look at what froze the whole process at {clock(start)} for {lasting(end - start)}: a garbage "
                "collection (gc.log), a frozen or migrated virtual machine, a disk that did not answer, SIGSTOP."
            ),
            figures={"silent_s": (end - start) / 1e6},
            weight=(end - start) / 1e6,
        )


def _are_all_silent(facts: Facts, row: Row) -> bool:
    """Return True if the other brokers wrote next to nothing meanwhile: the cluster had nothing to do."""
    start, end = row["start_time"], row["end_time"]
    begins: dict[Node, int] = {}
    for file in facts.files:
        if file["broker_id"] is not None and file["first_time"] is not None:
            begins[node(file)] = min(begins.get(node(file), file["first_time"]), file["first_time"])
    others = (
        {
            node(other)
            for other in facts.last_lines
            if other["cluster_id"] == row["cluster_id"] and other["last_time"] >= end
            if begins.get(node(other), start) <= start
        }
        - {node(row)}
        - facts.controllers
    )
    silent_us: dict[Node, int] = dict.fromkeys(others, 0)
    for other in facts.silences:
        if node(other) in silent_us:
            silent_us[node(other)] += max(0, min(end, other["end_time"]) - max(start, other["start_time"]))
    return bool(others) and all(time_us >= _SILENT_SHARE * (end - start) for time_us in silent_us.values())


def _writes_again(facts: Facts, row: Row, beside: Sequence[Turn]) -> bool:
    """Return True if a broker writes about as often after a silence as others still need it."""
    ends = [turn.time_us for turn in beside if turn.is_end and turn.time_us > row["end_time"]]
    after_us = min([facts.ends.get(row["cluster_id"], 0), *ends]) - row["end_time"]
    after_us = min(STEADY_S * 1_000_000, after_us)
    return bool(after_us >= AFTER_MIN_S * 1_000_000 and row["written_after_us"] >= _AGAIN_SHARE * after_us)


def _is_missed(facts: Facts, row: Row, in_order: Mapping[str, Sequence[ControllerTerm]]) -> bool:
    """Return True if a session, a controller or a new controller shows that the broker did not answer."""
    changes = pairwise(in_order.get(row["cluster_id"], ()))
    return (
        any(
            row["start_time"] < event["time"] <= row["end_time"] + _NOTICED_US
            for event in facts.life(node(row), "zookeeper_expired")
        )
        or any(
            _is_of(event, node(row), row["start_time"] + 1, row["end_time"]) and event["broker_id"] != row["broker_id"]
            for event in facts.controller_events
        )
        or any(
            before.controller == row["broker_id"] != after.controller
            and row["start_time"] < after.elected_us <= row["end_time"] + _NOTICED_US
            for before, after in changes
        )
    )


@kind(
    meaning="A controller found that a broker was gone: its session had ended. Its own lines show that its process "
    "lived, or they do not show how it ended.",
    source="org.apache.kafka.controller.ReplicationControlManager.maybeFenceOneStaleBroker, KIP-631; "
    "kafka.controller.KafkaController.onBrokerFailure with ZooKeeper",
    causes=preceding("broker_fenced"),
    yields_to=("broker_died", "broker_stopped"),
)
def broker_fenced(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield brokers that a controller found gone, but for ends that their own lines show."""
    # The registration of a process that ended may be fenced as the next one starts.
    ends: list[tuple[Node, int, int | None]] = [
        (each.node, each.last_us, facts.next_start(each.node, each.boot_us - 1) or each.boot_us + BOOT_US)
        for each in restarts(facts)
    ]
    ends += [(stop.node, stop.began_us, stop.up_us) for stop in stops(facts)]
    missed = losses(facts)
    for gone in _gone(facts):
        is_known = any(
            of_node == gone.node and since - _CLOCKS_US <= gone.time_us and (until is None or gone.time_us <= until)
            for of_node, since, until in ends
        )
        expired = any(
            gone.time_us - _CLOCKS_US <= row["time"] <= (gone.back_us or row["time"]) + _CLOCKS_US
            for row in facts.life(gone.node, "zookeeper_expired")
        )
        if not is_known and not expired:
            yield _fenced(facts, gone, missed.get(gone.node, ()))


class _Gone(NamedTuple):
    """A broker that a controller found gone."""

    node: Node
    time_us: int  #: the controller says so
    back_us: int | None  #: the controller let it in again; None if it did not
    row: Row  #: the controller's line
    in_kraft: bool


def _gone(facts: Facts) -> Iterable[_Gone]:
    """Yield the losses of brokers that active controllers log, each once, without orderly ends."""
    in_order = terms(facts)
    with_lines = {node(row) for row in (*facts.last_lines, *facts.controller_events)}
    state: dict[Node, str] = {}
    lost: dict[Node, Row] = {}
    for row in facts.controller_events:
        if row["event"] not in (*_OUT, *_BACK, "controlled_shutdown"):
            continue
        terms_before = [term for term in in_order.get(row["cluster_id"], ()) if term.elected_us <= row["time"]]
        active = terms_before[-1].controller if terms_before else row["broker_id"]
        # What a node that is not active logs it replays, maybe late; it counts if the active one has no logs here.
        if active != row["broker_id"] and (row["cluster_id"], active) in with_lines:
            continue
        for broker_id in {row["subject_broker_id"], *(row["brokers"] or ())} - {None}:
            broker = row["cluster_id"], broker_id
            if broker in lost and row["event"] in _BACK:
                yield _as_gone(lost.pop(broker), broker, row["time"])
            elif broker not in lost and row["event"] in _OUT and state.get(broker) not in _OUT[row["event"]]:
                lost[broker] = row
            state[broker] = row["event"]
    for broker, row in lost.items():
        yield _as_gone(row, broker, None)


def _as_gone(row: Row, broker: Node, back_us: int | None) -> _Gone:
    return _Gone(broker, row["time"], back_us, row, row["event"] == "broker_fenced")


def _fenced(facts: Facts, gone: _Gone, missed: Sequence[Loss]) -> LoggedIncident:
    cluster_id, broker_id = gone.node
    lines = [row["last_time"] for row in facts.last_lines if node(row) == gone.node]
    lived = any(last > gone.time_us + _LIVED_US for last in lines)
    # Peers miss a broker that ended at once, its controller only after the session.
    firsts = [
        loss.first_us
        for loss in missed
        if gone.time_us - _SESSION_US <= loss.first_us <= gone.time_us <= loss.last_us + _SESSION_US
    ]
    start = gone.time_us if lived else min([*firsts, gone.time_us])
    did, why = (
        ("fenced broker {}", "no heartbeat had come for broker.session.timeout.ms")
        if gone.in_kraft
        else ("removed broker {} from the cluster", "its ZooKeeper session had ended")
    )
    process = ", though its process lived" if lived else ""
    back = "it was not let in again"
    if gone.back_us is not None:
        back = f"it was let in again after {lasting(gone.back_us - gone.time_us)}"
    shown = ""
    if not lived:
        shown = " Its own logs are not here, so that they do not show whether it died."
        if lines:
            shown = f" Its last line here is of {clock(max(lines))}: no line shows whether it died."
    return LoggedIncident(
        severity=MAJOR,
        cluster_id=cluster_id,
        start_us=start,
        end_us=gone.back_us,
        broker_ids=(broker_id,),
        sentence=(f"The controller {did.format(broker_id)} at {clock(gone.time_us)}{process}: {why}; {back}.{shown}"),
        unexplained=(
            f"Look at what kept broker {broker_id} from the active controller: a long pause, or the network."
            if lived
            else f"See whether broker {broker_id} is up, and give its logs, too."
            if gone.back_us is None
            else f"Give the logs of broker {broker_id}, too: they show whether it died, froze or was cut off."
        ),
        places=(place(gone.row),),
        weight=60.0 if gone.back_us is None else (gone.back_us - start) / 1e6,
        by=(broker_id,),
        subject=str(gone.time_us),
    )


@kind(
    meaning="Nodes that wrote in nearly each second write no more, no line says that they stop, and others write on.",
    source="The last line of each node",
    causes=FAILED,
)
def logs_end_early(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield nodes whose logs end early, those that end within a second of each other as one."""
    stopping = {stop.node for stop in stops(facts) if stop.up_us is None}
    early = []
    for row in facts.last_lines:
        is_frequent = row["seconds_before"] >= _STEADY_END_SHARE * STEADY_S
        missing_us = facts.ends.get(row["cluster_id"], 0) - row["last_time"]
        silences = [gap["end_time"] - gap["start_time"] for gap in facts.silences if node(gap) == node(row)]
        is_whole = not facts.is_excerpt(node(row))
        if is_frequent and is_whole and node(row) not in stopping and missing_us > max(_GOES_ON_US, *silences, 0):
            early.append(row)
    early.sort(key=lambda row: (row["cluster_id"], row["last_time"], row["broker_id"]))
    for group in grouped(early, _ends_with):
        cluster_id, start = group[0]["cluster_id"], group[0]["last_time"]
        name = facts.named(cluster_id, [row["broker_id"] for row in group])
        missing_us = facts.ends.get(cluster_id, 0) - start
        they = "it" if len(group) == 1 else "they"
        yield LoggedIncident(
            severity=MAJOR,
            cluster_id=cluster_id,
            start_us=start,
            end_us=None,
            broker_ids=tuple(sorted(row["broker_id"] for row in group)),
            sentence=(
                f"The logs of {name} end at {clock(start)}, {lasting(missing_us)} before those of the others, and no "
                f"line says that {they} {'stops' if they == 'it' else 'stop'}: {they} died or hung, or later logs are "
                "not here."
            ),
            advice=f"See whether {name} {'is' if len(group) == 1 else 'are'} up. If so, give the later log files, too.",
            figures={"missing_s": missing_us / 1e6},
            places=tuple(map(place, group)),
            weight=60.0 * len(group),
        )


def _ends_with(group: list[Row], row: Row) -> bool:
    is_soon = row["last_time"] - group[0]["last_time"] <= TOGETHER_US
    return bool(is_soon and row["cluster_id"] == group[0]["cluster_id"])


@kind(
    meaning="Times of a broker's lines go back by seconds and stay there.",
    source="pipelines.grammars.clock: many lines in a row lie before the latest one",
)
def clock_set_back(facts: Facts) -> Iterable[LoggedIncident]:
    """Rows of `silver.broker_lifecycle` that say so."""
    for row in facts.lifecycle:
        if row["event"] == "clock_set_back":
            back_us = float(row["detail"]) * 1e6
            yield LoggedIncident(
                severity=MINOR,
                cluster_id=row["cluster_id"],
                start_us=row["time"],
                end_us=row["time"],
                broker_ids=(row["broker_id"],),
                sentence=(
                    f"The clock of broker {row['broker_id']} was set back by {lasting(back_us)} or more shortly before "
                    f"{clock(row['time'])}: times of its lines from then on are not those of the lines before."
                ),
                advice=(
                    f"Look at the time service of broker {row['broker_id']}: let it slew the clock, not step it. "
                    "Sessions, retention and record timestamps follow it."
                ),
                figures={"set_back_s": back_us / 1e6},
                places=(place(row),),
                weight=back_us / 1e6,
            )


@kind(
    meaning="A broker was shut down in order, or a whole cluster was.",
    source="kafka.server.KafkaServer.shutdown, BrokerServer.shutdown; SIGTERM by LoggingSignalHandler",
    causes=FAILED,
)
def broker_stopped(facts: Facts) -> Iterable[LoggedIncident]:
    """Orderly ends, alone or in a rolling restart; those with which a whole cluster ends as one."""
    places = {(node(row), row["time"]): place(row) for row in facts.lifecycle if row["event"] in STOPPING}
    whole = shutdowns(facts)
    for cluster_id, ends in whole.items():
        start, last = ends[0].began_us, ends[-1].began_us
        ids = sorted(stop.node[1] for stop in ends)
        began = f"at {clock(start)}" if last - start < 1_000_000 else f"from {clock(start)} to {clock(last)}"
        yield LoggedIncident(
            severity=INFO,
            cluster_id=cluster_id,
            start_us=start,
            end_us=None,
            broker_ids=tuple(ids),
            sentence=f"The whole cluster was shut down {began}: {facts.named(cluster_id, ids)}. Its logs end with it.",
            figures={"brokers": len(ids)},
            places=tuple(places[stop.node, stop.began_us] for stop in ends if (stop.node, stop.began_us) in places),
        )
    for stop in stops(facts):
        if stop in whole.get(stop.node[0], ()):
            continue
        (cluster_id, broker_id), start, up = stop
        back = "it did not start again within the logs"
        if up is not None:
            back = f"it was up again at {clock(up)}, after {lasting(up - start)}"
        yield LoggedIncident(
            severity=INFO,
            cluster_id=cluster_id,
            start_us=start,
            end_us=up,
            broker_ids=(broker_id,),
            sentence=(f"{sentence(facts.named(cluster_id, [broker_id]))} was shut down at {clock(start)}; {back}."),
            figures={} if up is None else {"away_s": (up - start) / 1e6},
            places=tuple([places[stop.node, start]] if (stop.node, start) in places else []),
            weight=0.0 if up is None else (up - start) / 1e6,
        )


@kind(
    meaning="The ZooKeeper session of a running broker expired.",
    source="kafka.zookeeper.ZooKeeperClient, org.I0Itec.zkclient.ZkClient up to 1.0: state Expired",
    causes=preceding("session_expired"),
)
def session_expired(facts: Facts) -> Iterable[LoggedIncident]:
    """Sessions that expired, by the broker's own lines: it lost its leaderships with them."""
    last: dict[Node, int] = {}
    removals = [gone for gone in _gone(facts) if not gone.in_kraft]
    for row in facts.lifecycle:
        if row["event"] != "zookeeper_expired":
            continue
        time, broker_id = row["time"], row["broker_id"]
        is_new = time - last.get(node(row), -_EXPIRED_ONCE_US) >= _EXPIRED_ONCE_US
        last[node(row)] = time
        if not is_new:
            continue
        backs = (other["time"] for other in facts.life(node(row), "registered") if other["time"] >= time)
        end = min(backs, default=None)
        removed = [
            gone
            for gone in removals
            if gone.node == node(row)
            and gone.time_us <= time + _CLOCKS_US
            and (gone.back_us is None or gone.back_us >= time - _CLOCKS_US)
        ]
        start = min([time, *(gone.time_us for gone in removed), *_replaced_us(facts, node(row), time)])
        by_controller = f" The controller had removed it at {clock(removed[0].time_us)}." if removed else ""
        again = f"it registered again after {lasting(end - time)}" if end is not None else "it did not register again"
        yield LoggedIncident(
            severity=MAJOR,
            cluster_id=row["cluster_id"],
            start_us=start,
            end_us=end,
            broker_ids=(broker_id,),
            sentence=(
                f"Broker {broker_id} noticed at {clock(time)} that its ZooKeeper session had expired; {again}. Until "
                f"then it may have acted as leader of partitions that others led.{by_controller}"
            ),
            unexplained=(
                "Look at what kept it from ZooKeeper for longer than zookeeper.session.timeout.ms: a long garbage "
                "collection, the network, ZooKeeper itself."
            ),
            places=(place(row), *(place(gone.row) for gone in removed[:1])),
            weight=50.0,
            by=(broker_id,),
            subject=str(time),
        )


def _replaced_us(facts: Facts, broker: Node, time_us: int) -> list[int]:
    """Return when other nodes became the controller in place of a broker: its znode goes with its session."""
    registered = [row["time"] for row in facts.life(broker, "registered") if row["time"] < time_us]
    return [
        after.elected_us
        for before, after in pairwise(terms(facts).get(broker[0], ()))
        if before.controller == broker[1] != after.controller
        and max(registered, default=before.elected_us) < after.elected_us <= time_us
    ]
