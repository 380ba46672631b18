"""Processes of brokers and controllers: they died, stopped, froze, were fenced, or write no more."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from highwater.pipelines.incidents.episodes import before_shutdown, episodes, grouped
from highwater.pipelines.incidents.facts import Facts, Row, place
from highwater.pipelines.incidents.incident import INFO, MAJOR, MINOR, LoggedIncident, Place
from highwater.pipelines.incidents.kind import FAILED, SHOWN_BY, Signature, kind, preceding
from highwater.pipelines.incidents.kinds.failures import TORN
from highwater.pipelines.incidents.witnesses import SESSION_EXPIRED, losses
from highwater.pipelines.incidents.words import (
    clock,
    lasting,
    listed,
    number,
    numbered,
    sentence,
    shortened,
    span,
    when,
)
from highwater.pipelines.timelines.broker import Away
from highwater.pipelines.timelines.missed import Witness
from highwater.pipelines.timelines.processes import BOOT_US
from highwater.pipelines.timelines.rows import Node, node

#: kafka.log.LogManager.loadLogs: the second one up to 2.6.
_LOADED = re.compile(r"Loaded \d+ logs|Logs loading complete")
#: Nodes that die, or write no more, within this of each other have the cause in common, microseconds.
TOGETHER_US = 1_000_000
#: A certain silence of less is not given, microseconds.
_SHORT_US = 1_000_000
#: A silence of this length is worth more than a note, microseconds.
_LONG_US = 5_000_000
#: Restarts that follow each other within this are one restart of the cluster, microseconds.
_SERIES_US = 600_000_000
#: A process in a crash loop dies within this of its start, microseconds.
_LOOP_US = 30_000_000
#: A node that is gone again within this of being back comes and goes, microseconds.
_GONE_AGAIN_US = 600_000_000
#: Sessions that end within this of each other have the cause in common, microseconds.
_EXPIRE_TOGETHER_US = 5_000_000
#: Deaths of one node that make a crash loop.
_LOOP_MIN = 3
#: Ends by SIGKILL; 137 is 128 and 9.
_KILLED = re.compile(r"code 137\b|status=9\b|status=137\b|Out of memory|OOMKilled")
#: Ends by SIGABRT, SIGBUS and SIGSEGV, and what the JVM prints before it ends by one.
_CRASHED = re.compile(
    r"(?:code |status=)(?:134|135|139|6|7|11)\b|fatal error has been detected by the Java Runtime|: SIG[A-Z]+ \(0x"
)
#: Share of a time that a JVM paused for, if the pause explains it.
_PAUSED_SHARE = 0.5
#: What the JVM prints if the kernel refuses it memory.
_NO_MEMORY = re.compile(r"insufficient memory for the Java Runtime")


@kind(
    meaning="Processes of brokers or controllers ended without a line of a shutdown; the same nodes started again, or "
    "another program logged the end. Nodes that died within a second of each other are one incident, and so are three "
    "or more deaths of one node, each within half a minute of its start.",
    source="kafka.server.KafkaServer.startup and shutdown, BrokerServer in KRaft: an orderly end is logged",
    signatures=(TORN,),
    causes=preceding("broker_died"),
    yields_to=SHOWN_BY["broker_died"],
)
def broker_died(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield incidents of processes of brokers and controllers that ended without a shutdown."""
    died = [away for away in facts.brokers.aways if away.state.reason == "died"]
    looped = _loops(died, _LOOP_US)
    yield from (_died_repeatedly(facts, loop) for loop in looped)
    in_loops = {id(away) for loop in looped for away in loop}
    for group in grouped([away for away in died if id(away) not in in_loops], _dies_with):
        yield _died(facts, group[0]) if len(group) == 1 else _died_together(facts, group)


def _loops(aways: Sequence[Away], within_us: int) -> list[list[Away]]:
    """Return series of times in which a node was away, of nodes that were away `_LOOP_MIN` times or more.

    A series continues if the next time begins within `within_us` microseconds.
    """
    in_order = sorted(aways, key=lambda away: (away.node, away.start_us))
    loops = grouped(in_order, lambda loop, away: away.node == loop[0].node and _follows(loop, away, within_us))
    return [loop for loop in loops if len(loop) >= _LOOP_MIN]


def _follows(series: Sequence[Away], away: Away, within_us: int) -> bool:
    back_us = series[-1].up_us or series[-1].boot_us
    return back_us is not None and away.start_us - back_us <= within_us


def _dies_with(group: list[Away], other: Away) -> bool:
    first = group[0]
    is_dated = first.state.is_dated and other.state.is_dated
    is_soon = other.start_us - first.start_us <= TOGETHER_US and other.node[0] == first.node[0]
    return is_dated and is_soon and other.node not in {away.node for away in group}


def _died(facts: Facts, away: Away) -> LoggedIncident:
    (cluster_id, broker_id), state, up = away.node, away.state, away.up_us
    name = facts.named(cluster_id, [broker_id])
    recovery_us = _recovery_us(facts, away)
    noticed, exited = state.witness("controller"), state.witness("container")
    seen = f" The controller noticed at {clock(noticed.time_us)}." if noticed and state.is_exact else ""
    begun = "while it was shutting down" if away.stopping else "without shutting down"
    back, recovered = "No line shows that it started again", ""
    if away.boot_us is not None:
        back = f"It started again at {clock(away.boot_us)}; no line shows that it came up"
    if up is not None:
        back = f"It was up again at {clock(up)}, after {_lasted(away)}"
        recovered = f", {lasting(recovery_us)} of them to recover its logs" if recovery_us else ""
    torn = _torn(facts, [away])
    shown = f" The line beside its log says: {shortened(exited.text)}." if exited else ""
    host = (
        f"Look for a power loss or a crash of the host of {name} at {clock(away.start_us)}: its disk lacks writes that "
        "the process had made."
    )
    process = (
        f"Look outside Kafka for what ended the process of {name} from {clock(away.start_us)} on: the kernel's log "
        "(OOM killer), the exit code of its container or service, its disk."
    )
    return LoggedIncident(
        severity=MAJOR,
        cluster_id=cluster_id,
        start_us=away.start_us,
        end_us=away.until_us,
        earliest_us=state.after_us,
        broker_ids=(broker_id,),
        sentence=f"{sentence(name)} died {begun} {_ended(away)}.{seen} {back}{recovered}.{shown}{torn}",
        advice=_exit_advice(exited.text, name) if exited else "",
        unexplained="" if exited else host if torn else process,
        figures=_figures(facts, [away]),
        places=_places([away]),
        weight=_weight([away]),
    )


def _ended(away: Away) -> str:
    """Return words for when a process ended, and for the lines that show it."""
    state = away.state
    how = {"peers": "when its peers could no longer reach it", "controller": "when the controller noticed"}
    first = _first(away)
    if first is not None:
        until = how.get(first.source, "when its exit was logged")
    else:
        until = "its next start" if state.by_us == away.boot_us else "after which the controller had no sign of it"
    if state.after_us is None:
        noticed = state.witness("controller")
        at = clock(away.start_us) if noticed is None else f"{clock(noticed.time_us)}, when the controller noticed"
        return f"before {at}; its lines before are not here"
    if state.is_exact or state.by_us is None:
        return f"at {clock(away.start_us)}, its last line"
    return f"between {clock(state.after_us)}, its last line, and {clock(state.by_us)}, {until}"


def _first(away: Away) -> Witness | None:
    """Return the line that dates the end of a process. None if only its next start shows that it ended."""
    dated = [witness for witness in away.state.shown if witness.time_us == away.state.by_us]
    return dated[0] if dated else None


def _lasted(away: Away) -> str:
    """Return how long a node was away, in words: exact, between bounds, or an upper bound."""
    state, up = away.state, away.up_us or away.boot_us or away.start_us
    if state.after_us is None:
        return f"at least {lasting(up - away.start_us)}"
    if state.is_exact or state.by_us is None:
        return lasting(up - away.start_us)
    longest = lasting(up - state.after_us)
    return f"{lasting(up - state.by_us)} to {longest}" if state.is_dated else f"{longest} at most"


def _exit_advice(text: str, name: str) -> str:
    """Return advice by the signal or exit code that `text` names, for the process `name`."""
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


def _figures(facts: Facts, died: Sequence[Away]) -> dict[str, float]:
    """Return longest time away, start and recovery, s, by name of the figure. Empty if a node did not start again."""
    ups = [away.up_us for away in died if away.up_us is not None]
    if len(ups) < len(died):
        return {}
    recovery_us = max(_recovery_us(facts, away) for away in died)
    away_us = max(
        up - max(away.start_us, 0 if away.state.is_exact else away.state.by_us or 0)
        for up, away in zip(ups, died, strict=True)
    )
    start_us = max(up - (away.boot_us or up) for up, away in zip(ups, died, strict=True))
    return {"away_s": away_us / 1e6, "start_s": start_us / 1e6, "recovery_s": recovery_us / 1e6}


def _places(aways: Iterable[Away]) -> tuple[Place, ...]:
    """Return file id and byte offset of the lines that show when nodes were away, in order of time."""
    shown = sorted((each for away in aways for each in away.state.shown), key=lambda each: each.time_us)
    return tuple(each.place for each in shown if each.place is not None)


def _weight(aways: Sequence[Away]) -> float:
    """Return how long nodes were away in total, seconds. A node that did not come back counts as a minute."""
    return sum(60.0 if away.up_us is None else (away.up_us - away.start_us) / 1e6 for away in aways)


def _torn(facts: Facts, died: Sequence[Away]) -> str:
    """Return a sentence about segments whose end was torn when the broker came back. Empty if no line shows one."""
    rows = [
        row
        for away in died
        for row in facts.remarked(TORN)
        if away.boot_us is not None
        and node(row) == away.node
        and away.boot_us <= row["first_time"] <= (away.up_us or away.boot_us + BOOT_US)
    ]
    if not rows:
        return ""
    segments = number(sum(row["line_count"] for row in rows), "segment")
    return f" {segments} came back with a torn end: the disk lost writes, which points to power, the host or the disk."


def _died_together(facts: Facts, group: list[Away]) -> LoggedIncident:
    """Return one incident for nodes that died within a second, since they are assumed to share a cause."""
    cluster_id = group[0].node[0]
    ids = sorted(away.node[1] for away in group)
    ups = [away.up_us for away in group]
    up = None if None in ups else max(up for up in ups if up is not None)
    start, torn = group[0].start_us, _torn(facts, group)
    missing = sum(each is None for each in ups)
    back = (
        f" No line shows that {missing} of them came up again." if up is None else f" All were up again at {clock(up)}."
    )
    shared = "power, host, rack, or one command"
    return LoggedIncident(
        severity=MAJOR,
        cluster_id=cluster_id,
        start_us=start,
        end_us=up,
        broker_ids=tuple(ids),
        sentence=(
            f"{len(ids)} nodes died within {lasting(group[-1].start_us - start)} of each other at {clock(start)} "
            f"without shutting down: {facts.named(cluster_id, ids)}. They have the cause in common ({shared})."
            f"{back}{torn}"
        ),
        unexplained=f"Look at what {facts.named(cluster_id, ids)} share at {clock(start)}: {shared}.",
        figures={"nodes": len(ids)} | _figures(facts, group),
        places=_places(group),
        weight=_weight(group),
    )


def _died_repeatedly(facts: Facts, loop: Sequence[Away]) -> LoggedIncident:
    """Return one incident of a node that died again and again."""
    (cluster_id, broker_id), up = loop[0].node, loop[-1].up_us
    name = facts.named(cluster_id, [broker_id])
    back = (
        "No line shows that it came up again after the last one." if up is None else f"It was up again at {clock(up)}."
    )
    exits = [exited for away in loop if (exited := away.state.witness("container")) is not None]
    shown = f" The line beside its log says: {shortened(exits[-1].text)}." if exits else ""
    return LoggedIncident(
        severity=MAJOR,
        cluster_id=cluster_id,
        start_us=loop[0].start_us,
        end_us=up,
        broker_ids=(broker_id,),
        sentence=(
            f"{sentence(name)} died {len(loop)} times without shutting down "
            f"{span(loop[0].start_us, loop[-1].start_us)}. {back}{shown}{_torn(facts, loop)}"
        ),
        advice=_exit_advice(exits[-1].text, name) if exits else "",
        unexplained=(
            ""
            if exits
            else f"Look at the last lines of {name} before each end, and at the exit code of its container or service."
        ),
        figures={"deaths": len(loop)},
        places=_places(loop),
        weight=_weight(loop),
    )


def _recovery_us(facts: Facts, away: Away) -> int:
    """Return how long the next process loaded its logs by its lines, us. 0 if no line shows it."""
    if away.boot_us is None:
        return 0
    until = away.up_us or away.boot_us + BOOT_US
    loading = [row for row in facts.life(away.node, "log_loading") if away.boot_us <= row["time"] <= until]
    begins = [row["time"] for row in loading if (row["detail"] or "").startswith("Loading logs")]
    ends = [row["time"] for row in loading if _LOADED.match(row["detail"] or "")]
    return max(ends) - min(begins) if begins and ends else 0


@kind(
    meaning="A broker wrote no line, and then the same process wrote again. It had written steadily before, or its "
    "controller, its session or the next controller showed that it did not answer.",
    source="A process that runs logs its requests and its peers' as they come: silence of all logs at once is its own",
)
def broker_stalled(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield incidents of processes that froze, from their silences (times without a log line)."""
    for away in facts.brokers.aways:
        if away.state.reason != "froze" or away.up_us is None:
            continue
        (cluster_id, broker_id), state, start, end = away.node, away.state, away.start_us, away.up_us
        name = facts.named(cluster_id, [broker_id])
        froze = span(start, end)
        if not state.is_exact and state.after_us is not None:
            longest_us = end - state.after_us
            froze = (
                f"between {clock(state.after_us)} and {clock(end)} (for {lasting(longest_us)} at most)"
                if end - start < _SHORT_US
                else froze
                if lasting(end - start) == lasting(longest_us)
                else (
                    f"between {clock(state.after_us)} and {clock(start)}, until {clock(end)} "
                    f"({lasting(end - start)} to {lasting(longest_us)})"
                )
            )
        paused, advice = _paused(facts, away.node, state.after_us or start, end)
        expired, noticed = state.witness("session"), state.witness("controller")
        is_missed = expired is not None or noticed is not None
        yield LoggedIncident(
            severity=MAJOR if is_missed or end - start >= _LONG_US else MINOR,
            cluster_id=cluster_id,
            start_us=start,
            end_us=end,
            earliest_us=state.after_us,
            broker_ids=(broker_id,),
            sentence=(
                f"{sentence(name)} froze {froze}: it wrote no line to any log, and then the same process wrote again."
                f"{paused}{_noticed(away)}{_expired(expired)}{_unanswered(away)}"
            ),
            advice=advice
            or (
                f"Look at what froze the whole process at {clock(start)} for {lasting(end - start)}: a garbage "
                "collection (gc.log), a frozen or migrated virtual machine, a disk that did not answer, SIGSTOP."
            ),
            figures={"silent_s": (end - start) / 1e6} | ({"sessions_lost": 1.0} if is_missed else {}),
            places=_places([away]),
            weight=(end - start) / 1e6,
        )


def _paused(facts: Facts, broker: Node, start_us: int, end_us: int) -> tuple[str, str]:
    """Return (sentence, advice) about a JVM pause that explains a span. Both are empty if no GC log shows a pause."""
    pause = facts.longest_pause(broker, start_us, end_us)
    paused_us = 0 if pause is None else pause["end_time"] - pause["start_time"]
    if pause is None or paused_us < _PAUSED_SHARE * (end_us - start_us):
        return "", ""
    return (
        f" Its GC log shows a pause of {lasting(paused_us)} from {clock(pause['start_time'])} on: "
        f"{shortened(pause['text'])}.",
        "Give the heap more room, or find what fills it (large requests, many partitions): the JVM stopped all threads "
        "to collect garbage. If the pause used little CPU, look for swapping.",
    )


def _removal(away: Away) -> Witness | None:
    """Return the first line with which a controller removed a broker. None if there is no such line."""
    removed = [witness for witness in away.state.shown if witness.source == "controller" and witness.text]
    return min(removed, key=lambda witness: witness.time_us, default=None)


def _noticed(away: Away) -> str:
    """Return a sentence about the controller that removed a broker from the cluster. Empty if none did."""
    verbs = {"broker_fenced": "fenced it", "broker_failed": "removed it from the cluster"}
    for witness in sorted(away.state.shown, key=lambda witness: witness.time_us):
        if witness.text in verbs:
            return f" The controller {verbs[witness.text]} at {clock(witness.time_us)}."
    return ""


def _unanswered(away: Away) -> str:
    """Return a sentence about an election that a voter did not answer; empty if there was none."""
    times = [witness.time_us for witness in away.state.shown if witness.text == "election"]
    return f" It did not answer the election of a controller at {clock(min(times))}." if times else ""


def _expired(expired: Witness | None) -> str:
    """Return a sentence about a session that expired meanwhile; empty if `expired` is None."""
    if expired is None:
        return ""
    return (
        f" It noticed at {clock(expired.time_us)} that its ZooKeeper session had expired. Until then it may have acted "
        "as leader of partitions that others led."
    )


#: Heartbeats that wait for the same controller fail within this of each other, seconds.
_HEARTBEATS_S = 20
_NO_HEARTBEAT = Signature(
    "heartbeat_not_sent",
    ("BrokerLifecycleManager",),
    r"\[[^\]]*\] Unable to send a heartbeat because the RPC got timed out before it could be sent\.",
    "kafka.server.BrokerLifecycleManager.BrokerHeartbeatResponseHandler.onTimeout",
    ("INFO",),
    gap_s=_HEARTBEATS_S,
)
#: Session timeout of a broker by default, microseconds.
_SESSION_US = 9_000_000


@kind(
    meaning="A broker could not send heartbeats to the active controller, which fences it for that.",
    source="kafka.server.BrokerLifecycleManager, KIP-631",
    signatures=(_NO_HEARTBEAT,),
    causes=preceding("broker_fenced"),
)
def heartbeats_not_sent(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield failed heartbeats: one incident per broker for those with short gaps, with the nodes it could not reach."""
    rows = [
        row
        for row in before_shutdown(facts, facts.remarked_by_brokers(_NO_HEARTBEAT))
        if not any(_is_within(stop, row) for stop in facts.brokers.stops)
    ]
    for episode in episodes(rows, "broker_id", within_s=_HEARTBEATS_S):
        start, end = episode.start_us, episode.end_us
        peers = sorted(
            other[1]
            for other, of_other in losses(facts.remarks, by=episode.node).items()
            if any(loss.first_us <= end + _CUT_US and loss.last_us >= start - _CUT_US for loss in of_other)
        )
        cut = f" It could not reach {numbered('node', peers)} meanwhile." if peers else ""
        timeout = facts.config(episode.node, "broker.session.timeout.ms") or ""
        session_us = int(timeout) * 1000 if timeout.isdigit() else _SESSION_US
        # A heartbeat waits to be sent for half of the timeout (BrokerServer, KAFKA-14392).
        since_us = start - session_us // 2
        terms = [term for term in facts.brokers.terms.get(episode.cluster_id, ()) if term.elected_us <= start]
        before = [term for term in terms if term.elected_us <= since_us]
        led = [*before[-1:], *terms[len(before) :]]
        yield episode.incident(
            MAJOR if end - start >= session_us else MINOR,
            f"Broker {episode.node[1]} could not send {number(episode.lines, 'heartbeat')} to the controller "
            f"{episode.when}.{cut} The controller fences a broker after broker.session.timeout.ms without one.",
            advice=(
                f"Look at the network from broker {episode.node[1]} to "
                f"{numbered('node', peers) if peers else 'the controllers'}, and see whether a controller is active."
            ),
            earliest_us=since_us,
            figures={"heartbeats": episode.lines},
            weight=(end - start) / 1e6,
            by=(episode.node[1], *peers, *(term.controller for term in led)),
        )


def _is_within(stop: Away, row: Row) -> bool:
    """Return True if a node logged a row's first line while it was stopping."""
    time_us = row["first_time"]
    return stop.node == node(row) and stop.start_us <= time_us and (stop.up_us is None or time_us <= stop.up_us)


#: A broker misses its peers this long before a controller misses it, microseconds: a session's timeout.
_CUT_US = 20_000_000


@kind(
    meaning="A controller found that a broker was gone: its session had ended. Its own lines show that its process "
    "lived.",
    source="org.apache.kafka.controller.ReplicationControlManager.maybeFenceOneStaleBroker, KIP-631; "
    "kafka.controller.KafkaController.onBrokerFailure with ZooKeeper",
    causes=("brokers_rejected", "controller_slow", "heartbeats_not_sent", *preceding("broker_fenced")),
    yields_to=SHOWN_BY["broker_fenced"],
)
def broker_fenced(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield incidents of brokers that a controller removed while their processes still logged."""
    for away in facts.brokers.aways:
        if away.state.reason not in _REMOVED or not facts.brokers.has_lived(away):
            continue
        (cluster_id, broker_id), up = away.node, away.up_us
        removed = _removal(away)
        time_us = away.start_us if removed is None else removed.time_us
        did, why = _REMOVED[away.state.reason]
        back = (
            "no line shows that it was let in again"
            if up is None
            else f"it was let in again after {lasting(up - time_us)}"
        )
        peers, since_us = _unreached(facts, away, time_us)
        cut = ""
        if peers:
            cut = f" It could not reach {numbered('node', peers)} meanwhile."
        yield LoggedIncident(
            severity=MAJOR,
            cluster_id=cluster_id,
            start_us=min(away.start_us, since_us),
            end_us=up,
            earliest_us=away.state.after_us,
            broker_ids=(broker_id,),
            sentence=(
                f"The controller {did.format(f'broker {broker_id}')} at {clock(time_us)}, though its process lived: "
                f"{why}; {back}.{cut}"
            ),
            advice=f"Look at the network of broker {broker_id} at {clock(time_us)}." if cut else "",
            unexplained=(
                ""
                if cut
                else f"Look at what kept broker {broker_id} from the active controller: a long pause, or the network."
            ),
            places=_places([away]),
            weight=_weight([away]),
            by=(broker_id,),
            subject=str(time_us),
        )


def _unreached(facts: Facts, away: Away, time_us: int) -> tuple[list[int], int]:
    """Return nodes a broker could not reach while it was away, and since when, us. `time_us` if it reached all."""
    (cluster_id, _), up = away.node, away.up_us
    until_us = facts.ends.get(cluster_id, time_us) if up is None else up
    found = [
        (other[1], loss.first_us)
        for other, of_other in losses(facts.remarks, by=away.node).items()
        for loss in of_other
        if loss.first_us <= until_us and loss.last_us >= time_us - _CUT_US
    ]
    return sorted({peer for peer, _ in found}), min((first_us for _, first_us in found), default=time_us)


#: What a controller did with a broker that was gone, and why, by the reason of the state.
_REMOVED = {
    "fenced": ("fenced {}", "no heartbeat had come for broker.session.timeout.ms"),
    "removed": ("removed {} from the cluster", "its ZooKeeper session had ended"),
}


@kind(
    meaning="Nodes are gone, and no line shows how their processes ended: others show that they do not answer, or they "
    "had written in nearly each second, write no more, and others write on.",
    source="The last line of each node; lines of controllers and peers about it",
    causes=("controller_slow", *FAILED),
)
def logs_end_early(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield incidents of nodes whose logs end without a line about it. Nodes that end within a second are merged."""
    gone = [away for away in facts.brokers.aways if _is_unseen(facts, away)]
    looped = _loops([away for away in gone if away.state.reason in _REMOVED], _GONE_AGAIN_US)
    yield from (_gone_repeatedly(facts, loop) for loop in looped)
    in_loops = {id(away) for loop in looped for away in loop}
    for group in grouped([away for away in gone if id(away) not in in_loops], _goes_with):
        yield _logs_end(facts, group) if group[0].state.reason == "logs_end" else _gone(facts, group)


def _is_unseen(facts: Facts, away: Away) -> bool:
    is_removed = away.state.reason in _REMOVED and not facts.brokers.has_lived(away)
    return is_removed or away.state.reason in ("logs_end", "ended")


def _goes_with(group: list[Away], away: Away) -> bool:
    is_soon = away.start_us - group[0].start_us <= TOGETHER_US and away.node[0] == group[0].node[0]
    is_alike = away.state.reason == group[0].state.reason and (away.up_us is None) == (group[0].up_us is None)
    return is_soon and is_alike and away.node not in {each.node for each in group}


def _logs_end(facts: Facts, group: Sequence[Away]) -> LoggedIncident:
    cluster_id, start = group[0].node[0], group[0].start_us
    name = facts.named(cluster_id, [away.node[1] for away in group])
    missing_us = facts.ends.get(cluster_id, 0) - start
    they, stop = ("it", "stops") if len(group) == 1 else ("they", "stop")
    return LoggedIncident(
        severity=MAJOR,
        cluster_id=cluster_id,
        start_us=start,
        end_us=None,
        broker_ids=tuple(sorted(away.node[1] for away in group)),
        sentence=(
            f"The logs of {name} end at {clock(start)}, {lasting(missing_us)} before those of the others, and no line "
            f"says that {they} {stop}: {they} died or hung, or later logs are not here."
        ),
        advice=f"See whether {name} {'is' if len(group) == 1 else 'are'} up. If so, give the later log files, too.",
        figures={"missing_s": missing_us / 1e6},
        places=_places(group),
        weight=60.0 * len(group),
    )


def _gone(facts: Facts, group: Sequence[Away]) -> LoggedIncident:
    """Return one incident of nodes that peers or the controller found gone."""
    cluster_id = group[0].node[0]
    ids = sorted(away.node[1] for away in group)
    name, start = facts.named(cluster_id, ids), group[0].start_us
    ups = [away.up_us or away.boot_us for away in group]
    up = None if None in ups else max(each for each in ups if each is not None)
    was, they, their = ("was", "it", "Its") if len(group) == 1 else ("were", "they", "Their")
    found = [removed for away in group if (removed := _removal(away)) is not None]
    did = _REMOVED.get(group[0].state.reason, ("", ""))[0].format("it" if len(group) == 1 else "them")
    noticed = f" The controller {did} at {clock(found[0].time_us)}." if found and did else ""
    lines = facts.brokers.last_line(group[0])
    shown = f"{their} own logs are not here"
    if lines is not None:
        shown = f"{their} last line before is of {clock(lines)}"
    elif any(away.has_lines for away in group):
        shown = f"{their} lines before are not here"
    if not all(facts.brokers.shows_starts(away.node) for away in group):
        shown = f"{their} lines here are an excerpt"
    return LoggedIncident(
        severity=MAJOR,
        cluster_id=cluster_id,
        start_us=start,
        end_us=up,
        # Without a line of the node before, it may have been gone for some time.
        earliest_us=group[0].state.after_us or 0,
        broker_ids=tuple(ids),
        sentence=(
            f"{sentence(name)} {was} gone {span(start, up)}.{noticed} {shown}: no line shows whether {they} died."
        ),
        unexplained=(
            f"See whether {name} {'is' if len(group) == 1 else 'are'} up, and give the logs of {name}, too."
            if up is None
            else f"Give the logs of {name}, too: they show whether {they} died, froze or {was} cut off."
        ),
        figures={} if up is None else {"away_s": (up - start) / 1e6},
        places=_places(group),
        weight=_weight(group),
        by=tuple(ids),
    )


def _gone_repeatedly(facts: Facts, loop: Sequence[Away]) -> LoggedIncident:
    """Return one incident of a node that a controller found gone again and again."""
    (cluster_id, broker_id), up = loop[0].node, loop[-1].up_us
    name = facts.named(cluster_id, [broker_id])
    longest_us = max((away.up_us - away.start_us for away in loop if away.up_us is not None), default=0)
    did = _REMOVED[loop[0].state.reason][0].format("it")
    back = "No line shows that it came back after the last time." if up is None else f"It was back at {clock(up)}."
    return LoggedIncident(
        severity=MAJOR,
        cluster_id=cluster_id,
        start_us=loop[0].start_us,
        end_us=up,
        broker_ids=(broker_id,),
        sentence=(
            f"{sentence(name)} was gone {len(loop)} times {span(loop[0].start_us, loop[-1].start_us)}, for "
            f"{lasting(longest_us)} at most: the controller {did} each time. {back} No line shows whether it died."
        ),
        unexplained=f"Look at the last lines of {name} before each time, and at restarts of its container or service.",
        figures={"times": len(loop)},
        places=_places(loop),
        weight=_weight(loop),
        by=(broker_id,),
    )


@kind(
    meaning="Times of a broker's lines go back by seconds and stay there.",
    source="highwater.pipelines.grammars.clock: many lines in a row lie before the latest one",
)
def clock_set_back(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield clocks that were set back: one incident per row of `silver.broker_lifecycle` that shows it."""
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
    meaning="A broker was shut down in order, or a whole cluster was. Brokers that are restarted one after the other, "
    "or together, are one incident.",
    source="kafka.server.KafkaServer.shutdown, BrokerServer.shutdown; SIGTERM by LoggingSignalHandler",
    causes=FAILED,
)
def broker_stopped(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield incidents of clean shutdowns: of a whole cluster, of a restart of several brokers, or of one broker."""
    whole = {cluster_id: ends for cluster_id, ends in facts.brokers.shutdowns.items() if len(ends) > 1}
    for cluster_id, ends in whole.items():
        start, last = ends[0].start_us, ends[-1].start_us
        ids = sorted(away.node[1] for away in ends)
        began = f"at {clock(start)}" if last - start < 1_000_000 else f"from {clock(start)} to {clock(last)}"
        yield LoggedIncident(
            severity=INFO,
            cluster_id=cluster_id,
            start_us=start,
            end_us=None,
            broker_ids=tuple(ids),
            sentence=f"The whole cluster was shut down {began}: {facts.named(cluster_id, ids)}. Its logs end with it.",
            figures={"brokers": len(ids)},
            places=_stop_places(ends),
        )
    stops = [away for away in facts.brokers.stops if away not in whole.get(away.node[0], ())]
    for group in grouped(stops, _restarts_with):
        yield _stopped(facts, group[0]) if len(group) == 1 else _restarted(facts, group)


def _restarts_with(group: list[Away], away: Away) -> bool:
    is_other = away.node[0] == group[0].node[0] and away.node not in {each.node for each in group}
    return (
        is_other
        and away.up_us is not None
        and all(each.up_us is not None for each in group)
        and _follows(group, away, _SERIES_US)
    )


def _stopped(facts: Facts, away: Away) -> LoggedIncident:
    (cluster_id, broker_id), start, up = away.node, away.start_us, away.up_us
    back = "no line shows that it started again"
    if away.boot_us is not None:
        back = f"it started again at {clock(away.boot_us)}, and no line shows that it came up"
    if up is not None:
        back = f"it was up again at {clock(up)}, after {_stop_lasted(away)}"
    name = sentence(facts.named(cluster_id, [broker_id]))
    began = f"{name} was shut down at {clock(start)}; {back}."
    if away.stopping is None and away.state.after_us is not None:
        # Only the log loading of the next process shows that the end was orderly.
        began = f"{name} was shut down between {clock(away.state.after_us)} and {clock(start)}; {back}."
    return LoggedIncident(
        severity=INFO,
        cluster_id=cluster_id,
        start_us=start,
        end_us=away.until_us,
        broker_ids=(broker_id,),
        sentence=began,
        lag_us=0,
        figures={} if up is None else {"away_s": (up - start) / 1e6},
        places=_stop_places([away]),
        weight=0.0 if up is None else (up - start) / 1e6,
    )


def _stop_lasted(away: Away) -> str:
    return lasting((away.up_us or away.start_us) - away.start_us)


def _restarted(facts: Facts, group: Sequence[Away]) -> LoggedIncident:
    """Return one incident of brokers that were restarted one after the other, or together."""
    cluster_id, start = group[0].node[0], group[0].start_us
    up = max(away.up_us or away.start_us for away in group)
    is_rolling = all(later.start_us >= (away.up_us or 0) for away, later in pairwise(group))
    each = [
        f"{facts.named(cluster_id, [away.node[1]])} at {clock(away.start_us)} ({_stop_lasted(away)})" for away in group
    ]
    how = "one after the other" if is_rolling else "with overlaps"
    return LoggedIncident(
        severity=INFO,
        cluster_id=cluster_id,
        start_us=start,
        end_us=up,
        broker_ids=tuple(sorted(away.node[1] for away in group)),
        sentence=f"{len(group)} nodes were restarted {how} {span(start, up)}: {listed(each)}.",
        figures={"nodes": len(group), "away_s": max(((away.up_us or 0) - away.start_us) / 1e6 for away in group)},
        places=_stop_places(group),
        weight=(up - start) / 1e6,
        lag_us=0,
    )


def _stop_places(stops: Iterable[Away]) -> tuple[Place, ...]:
    shown = [away.stopping or away.state for away in stops]
    return tuple(each.place for state in shown for each in state.shown[:1] if each.place is not None)


@kind(
    meaning="The ZooKeeper session of a running broker expired, and its lines do not show that it froze.",
    source="kafka.zookeeper.ZooKeeperClient, org.I0Itec.zkclient.ZkClient up to 1.0: state Expired",
    signatures=(SESSION_EXPIRED,),
    causes=preceding("session_expired"),
)
def session_expired(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield incidents of expired sessions, from the broker's own lines. The broker then loses its leaderships."""
    expired = [(away, witness) for away in facts.brokers.aways if (witness := _session_end(away)) is not None]
    for group in grouped(expired, _expires_with):
        yield _session_lost(facts, *group[0]) if len(group) == 1 else _sessions_lost(facts, group)


def _session_end(away: Away) -> Witness | None:
    return away.state.witness("session") if away.state.reason == "session_expired" else None


def _expires_with(group: list[tuple[Away, Witness]], each: tuple[Away, Witness]) -> bool:
    (first, noticed), (away, witness) = group[0], each
    is_soon = abs(witness.time_us - noticed.time_us) <= _EXPIRE_TOGETHER_US
    return is_soon and away.node[0] == first.node[0] and away.node not in {other.node for other, _ in group}


def _sessions_lost(facts: Facts, group: Sequence[tuple[Away, Witness]]) -> LoggedIncident:
    """Return one incident of brokers whose sessions ended together."""
    aways = [away for away, _ in group]
    cluster_id, start = aways[0].node[0], min(away.start_us for away in aways)
    ids = sorted(away.node[1] for away in aways)
    noticed = [witness.time_us for _, witness in group]
    ups = [away.up_us for away in aways if away.up_us is not None]
    is_back = len(ups) == len(aways)
    again = f"all had registered again at {clock(max(ups))}" if is_back else "no line shows that all registered again"
    return LoggedIncident(
        severity=MAJOR,
        cluster_id=cluster_id,
        start_us=start,
        end_us=max(ups) if is_back else max(noticed) if all(map(facts.brokers.has_lived, aways)) else None,
        earliest_us=min((away.state.after_us for away in aways if away.state.after_us is not None), default=None),
        broker_ids=tuple(ids),
        sentence=(
            f"The ZooKeeper sessions of {facts.named(cluster_id, ids)} expired together: they noticed "
            f"{when(min(noticed), max(noticed))}; {again}. Until then each may have acted as leader of partitions that "
            "others led."
        ),
        unexplained="Look at ZooKeeper, and at the network to it: sessions of several brokers ended at one time.",
        places=_places(aways),
        weight=50.0 * len(group),
        by=tuple(ids),
        subject=str(min(noticed)),
    )


def _session_lost(facts: Facts, away: Away, expired: Witness) -> LoggedIncident:
    """Return the incident of one broker."""
    (cluster_id, broker_id), up = away.node, away.up_us
    paused, advice = _paused(facts, away.node, away.state.after_us or away.start_us, expired.time_us)
    again = "no line shows that it registered again"
    if up is not None:
        again = f"it registered again after {lasting(up - expired.time_us)}"
    noticed = f"Broker {broker_id} noticed at {clock(expired.time_us)} that its ZooKeeper session had expired"
    if away.start_us < expired.time_us:
        noticed = (
            f"The ZooKeeper session of broker {broker_id} had expired by {clock(away.start_us)}, as lines of the "
            f"controller show; the broker noticed at {clock(expired.time_us)}"
        )
    return LoggedIncident(
        severity=MAJOR,
        cluster_id=cluster_id,
        start_us=away.start_us,
        # Without the line about its registration, later lines show that it is not gone.
        end_us=up if up is not None or not facts.brokers.has_lived(away) else expired.time_us,
        earliest_us=away.state.after_us,
        broker_ids=(broker_id,),
        sentence=(f"{noticed}; {again}. Until then it may have acted as leader of partitions that others led.{paused}"),
        advice=advice,
        unexplained=(
            ""
            if paused
            else "Look at what kept it from ZooKeeper for longer than zookeeper.session.timeout.ms: a long garbage "
            "collection, the network, ZooKeeper itself."
        ),
        places=_places([away]),
        weight=50.0,
        by=(broker_id,),
        subject=str(expired.time_us),
    )
