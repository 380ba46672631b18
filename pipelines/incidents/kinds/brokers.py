"""Processes of brokers: they died, stopped, stood still, were fenced, or write no more."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pipelines.incidents.broker_runs import is_orderly
from pipelines.incidents.facts import Facts, Node, Row, node, place
from pipelines.incidents.incident import INFO, MAJOR, MINOR, LoggedIncident
from pipelines.incidents.kind import kind
from pipelines.incidents.kinds.controllers import terms
from pipelines.incidents.processes import (
    AFTER_MIN_S,
    BOOT_US,
    STEADY_SHARE,
    STOPPING,
    ProcessRestart,
    Turn,
    deaths,
    restarts,
    shutdowns,
    stops,
    turns,
)
from pipelines.incidents.questions import STEADY_S, STEPS_PER_S
from pipelines.incidents.words import brokers, clock, lasting, span

#: kafka.log.LogManager.loadLogs: the second one up to 2.6.
_LOADED = re.compile(r"Loaded \d+ logs|Logs loading complete")
#: Of the half seconds after a silence, so many: what it led others may lead by then, and it has less to write.
_AGAIN_SHARE = 0.35
#: A silence of this length is worth more than a note, microseconds.
_LONG_US = 5_000_000
#: A broker that goes on notices within this that its session has expired, microseconds.
_NOTICED_US = 5_000_000
#: A process that began or ended so shortly before is fenced for that, microseconds.
_END_US = 60_000_000
#: Controllers and metadata repeat one fencing within this, microseconds.
_FENCED_ONCE_US = 15_000_000
#: The expiry of a session and what follows are of one episode, microseconds.
_EXPIRED_ONCE_US = 10_000_000
#: Others go on for so long at least after a broker's logs end, microseconds.
_GOES_ON_US = 10_000_000
#: Of the seconds before its end, so many have a line of a broker that writes steadily.
_STEADY_END_SHARE = 0.9


@kind(
    meaning="A broker's process ended, and no line of it says that it shuts down; the same broker started again.",
    source="kafka.server.KafkaServer.startup and shutdown, BrokerServer in KRaft: an orderly end is logged",
    causes=("broker_halted", "log_directory_failed"),
)
def broker_died(facts: Facts) -> Iterable[LoggedIncident]:
    """Processes that begin anew where the one before says nothing of its end."""
    since: dict[Node, int] = {}
    for restart in restarts(facts):
        of_run = [
            row["event"]
            for row in facts.life(restart.node, *STOPPING, "shut_down")
            if since.get(restart.node, 0) <= row["time"] <= restart.boot_us
        ]
        since[restart.node] = restart.boot_us
        up = facts.next_start(restart.node, restart.boot_us - 1)
        loads = restart.boot_us, restart.boot_us + BOOT_US if up is None else up
        if "shut_down" not in of_run and not is_orderly(facts.lifecycle, restart.node, *loads):
            yield _died(facts, restart, up, bool(of_run))


def _died(facts: Facts, restart: ProcessRestart, up: int | None, was_stopping: bool) -> LoggedIncident:
    (cluster_id, broker_id), died, boot = restart.node, restart.last_us, restart.boot_us
    recovery_us = _recovery_us(facts, restart, up)
    noticed = [row for row in facts.controller_events if _is_of(row, restart.node, died, up or boot)]
    if restart.is_exact:
        ended = f"at {clock(died)}, its last line"
        seen = f" The controller noticed at {clock(noticed[0]['time'])}." if noticed else ""
    else:
        until = (
            f"{clock(noticed[0]['time'])}, when the controller noticed" if noticed else f"{clock(boot)}, its next start"
        )
        ended, seen = f"between {clock(died)}, its last line, and {until}", ""
    begun = "while it was shutting down" if was_stopping else "without shutting down"
    back = (
        f"It was up again at {clock(up)}, after {lasting(up - died)}" if up is not None else "It did not come up again"
    )
    recovered = f", {lasting(recovery_us)} of them to recover its logs" if recovery_us and up is not None else ""
    return LoggedIncident(
        severity=MAJOR,
        cluster_id=cluster_id,
        start_us=died,
        end_us=up,
        broker_ids=(broker_id,),
        sentence=f"Broker {broker_id} died {begun} {ended}.{seen} {back}{recovered}.",
        unexplained=(
            f"Look outside Kafka for what ended the process of broker {broker_id} from {clock(died)} on: the kernel's "
            "log (OOM killer), the exit code of its container or service, its disk."
        ),
        figures=(
            {}
            if up is None
            else {"away_s": (up - died) / 1e6, "start_s": (up - boot) / 1e6, "recovery_s": recovery_us / 1e6}
        ),
        places=(*map(place, noticed[:1]), *([] if restart.place is None else [restart.place])),
        weight=60.0 if up is None else (up - died) / 1e6,
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
    meaning="A broker that writes in nearly each second wrote nothing for over two, and went on in the same process.",
    source="A process that runs logs its requests and its peers' as they come: silence of all logs at once is its own",
)
def broker_stalled(facts: Facts) -> Iterable[LoggedIncident]:
    """Silences of brokers that write steadily, within one run."""
    of_nodes = turns(facts)
    for row in facts.silences:
        beside = of_nodes[node(row)]
        near = any(
            row["start_time"] <= turn.settled_us and turn.time_us <= row["end_time"] + 1_000_000 for turn in beside
        )
        if near or row["steps_before"] < STEADY_SHARE * STEADY_S * STEPS_PER_S:
            continue
        # A broker whose partitions have just moved is asked for nothing more.
        if not (_is_missed(facts, row) or (_goes_on(facts, row, beside) and not row["moved_before"])):
            continue
        start, end, broker_id = row["start_time"], row["end_time"], row["broker_id"]
        yield LoggedIncident(
            severity=MAJOR if end - start >= _LONG_US else MINOR,
            cluster_id=row["cluster_id"],
            start_us=start,
            end_us=end,
            broker_ids=(broker_id,),
            sentence=(
                f"Broker {broker_id} stood still {span(start, end)}: it wrote no line to any log, and went on in the "
                "same process."
            ),
            advice=(
                f"Look at what stopped the whole process at {clock(start)} for {lasting(end - start)}: a garbage "
                "collection (gc.log), a frozen or migrated virtual machine, a disk that did not answer, SIGSTOP."
            ),
            figures={"silent_s": (end - start) / 1e6},
            weight=(end - start) / 1e6,
        )


def _goes_on(facts: Facts, row: Row, beside: Sequence[Turn]) -> bool:
    ends = [turn.time_us for turn in beside if turn.is_end and turn.time_us > row["end_time"]]
    after_us = min([facts.ends.get(row["cluster_id"], 0), *ends]) - row["end_time"]
    after_s = min(STEADY_S, after_us // 1_000_000)
    return bool(after_s >= AFTER_MIN_S and row["steps_after"] >= _AGAIN_SHARE * after_s * STEPS_PER_S)


def _is_missed(facts: Facts, row: Row) -> bool:
    """Whether it was missed meanwhile: what it led then others lead, and it has little to write after."""
    return any(
        row["start_time"] < event["time"] <= row["end_time"] + _NOTICED_US
        for event in facts.life(node(row), "zookeeper_expired")
    ) or any(
        _is_of(event, node(row), row["start_time"] + 1, row["end_time"]) and event["broker_id"] != row["broker_id"]
        for event in facts.controller_events
    )


@kind(
    meaning="A KRaft controller fenced a broker whose process lived: its session had timed out.",
    source="org.apache.kafka.controller.ReplicationControlManager.maybeFenceOneStaleBroker; KIP-631",
    causes=("broker_stalled", "quorum_unreachable", "controller_changed"),
)
def broker_fenced(facts: Facts) -> Iterable[LoggedIncident]:
    """Fencings of brokers that neither began nor ended shortly before, and that go on to write lines."""
    of_nodes, in_order, died = turns(facts), terms(facts), deaths(facts)
    lines = {node(row): row["last_time"] for row in facts.last_lines}
    last: dict[Node, int] = {}
    for row in facts.controller_events:
        if row["event"] != "broker_fenced" or row["subject_broker_id"] is None:
            continue
        time, broker = row["time"], (row["cluster_id"], row["subject_broker_id"])
        is_new = time - last.get(broker, -_FENCED_ONCE_US) >= _FENCED_ONCE_US
        last[broker] = time
        in_office = [term.controller for term in in_order.get(row["cluster_id"], ()) if term.elected_us <= time]
        is_active = not in_office or in_office[-1] == row["broker_id"]
        is_near_end = any(time - _END_US <= turn.time_us <= time + _FENCED_ONCE_US for turn in of_nodes[broker])
        # Without a quorum a dead broker is fenced late.
        was_dead = any(
            death.node == broker and death.last_us <= time and (death.boot_us or time) >= time for death in died
        )
        if is_new and is_active and not (is_near_end or was_dead) and lines.get(broker, 0) > time + _FENCED_ONCE_US:
            yield _fenced(facts, row)


def _fenced(facts: Facts, row: Row) -> LoggedIncident:
    broker_id = row["subject_broker_id"]
    backs = (
        other["time"]
        for other in facts.controller_events
        if other["cluster_id"] == row["cluster_id"]
        and other["event"] == "broker_unfenced"
        and other["subject_broker_id"] == broker_id
        and other["time"] > row["time"]
    )
    end = min(backs, default=None)
    back = "it was not let in again" if end is None else f"it was let in again after {lasting(end - row['time'])}"
    return LoggedIncident(
        severity=MAJOR,
        cluster_id=row["cluster_id"],
        start_us=row["time"],
        end_us=end,
        broker_ids=(broker_id,),
        sentence=(
            f"The controller fenced broker {broker_id} at {clock(row['time'])}, though its process lived: its "
            f"heartbeats had not come for broker.session.timeout.ms; {back}."
        ),
        unexplained=f"Look at what kept broker {broker_id} from the active controller: a long pause, or the network.",
        places=(place(row),),
        weight=50.0,
        by=(broker_id,),
    )


@kind(
    meaning="A broker that wrote in nearly each second writes no more, no line says that it stops, and others go on.",
    source="The last line of each broker",
    causes=("broker_halted", "log_directory_failed", "broker_out_of_memory"),
)
def logs_end_early(facts: Facts) -> Iterable[LoggedIncident]:
    """Brokers that wrote in nearly each second, and then no more, without a line that they stop."""
    stopping = {stop.node for stop in stops(facts) if stop.up_us is None}
    for row in facts.last_lines:
        broker_id = row["broker_id"]
        is_steady = row["seconds_before"] >= _STEADY_END_SHARE * STEADY_S
        missing_us = facts.ends.get(row["cluster_id"], 0) - row["last_time"]
        silences = [gap["end_time"] - gap["start_time"] for gap in facts.silences if node(gap) == node(row)]
        if is_steady and node(row) not in stopping and missing_us > max(_GOES_ON_US, *silences, 0):
            yield LoggedIncident(
                severity=MAJOR,
                cluster_id=row["cluster_id"],
                start_us=row["last_time"],
                end_us=None,
                broker_ids=(broker_id,),
                sentence=(
                    f"The logs of broker {broker_id} end at {clock(row['last_time'])}, {lasting(missing_us)} before "
                    "those of the others, and no line says that it stops: it died or hung, or its later logs are not "
                    "here."
                ),
                advice=f"See whether broker {broker_id} is up. If it is, give its later log files, too.",
                figures={"missing_s": missing_us / 1e6},
                places=(place(row),),
                weight=60.0,
            )


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
    causes=("broker_halted",),
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
            sentence=f"The whole cluster was shut down {began}: {brokers(ids)}. Its logs end with it.",
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
            sentence=f"Broker {broker_id} began an orderly shutdown at {clock(start)}; {back}.",
            figures={} if up is None else {"away_s": (up - start) / 1e6},
            places=tuple([places[stop.node, start]] if (stop.node, start) in places else []),
            weight=0.0 if up is None else (up - start) / 1e6,
        )


@kind(
    meaning="The ZooKeeper session of a running broker expired.",
    source="kafka.zookeeper.ZooKeeperClient, org.I0Itec.zkclient.ZkClient up to 1.0: state Expired",
    causes=("broker_stalled", "broker_died"),
)
def session_expired(facts: Facts) -> Iterable[LoggedIncident]:
    """Sessions that expired, by the broker's own lines: it lost its leaderships with them."""
    last: dict[Node, int] = {}
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
        again = f"it registered again after {lasting(end - time)}" if end is not None else "it did not register again"
        yield LoggedIncident(
            severity=MAJOR,
            cluster_id=row["cluster_id"],
            start_us=time,
            end_us=end,
            broker_ids=(broker_id,),
            sentence=(
                f"Broker {broker_id} noticed at {clock(time)} that its ZooKeeper session had expired; {again}. Until "
                "then it may have gone on as leader of partitions that others led."
            ),
            unexplained=(
                "Look at what kept it from ZooKeeper for longer than zookeeper.session.timeout.ms: a long garbage "
                "collection, the network, ZooKeeper itself."
            ),
            places=(place(row),),
            weight=50.0,
            by=(broker_id,),
        )
