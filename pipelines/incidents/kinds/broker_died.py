"""A broker's process ended, and none of its lines says that it shuts down."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from pipelines.incidents.broker_runs import Run, runs
from pipelines.incidents.facts import Facts, Node, Row, node, place
from pipelines.incidents.incident import MAJOR, Incident, Place
from pipelines.incidents.kind import Kind
from pipelines.incidents.words import clock, span

#: A broker writes so long, at most, before the line that says that it starts, microseconds.
_BOOT_US = 20_000_000


def detect(facts: Facts) -> Iterable[Incident]:
    """Runs without an end of their own, that another run of the same broker follows."""
    starts = {(node(row), row["time"]): place(row) for row in facts.lifecycle if row["event"] == "starting"}
    for broker, those in runs(facts.lifecycle, facts.controller_events, facts.files).items():
        for run, after in pairwise(those):
            if run.stopped is None and after.starting is not None:
                yield _died(facts, broker, run, after, starts.get((broker, after.starting)))


def last_line_before(facts: Facts, broker: Node, starting_us: int) -> int | None:
    """When a broker wrote its last line before it began to start; None where it wrote without a pause."""
    ends = [
        row["start_time"]
        for row in facts.silences
        if node(row) == broker and starting_us - _BOOT_US <= row["end_time"] <= starting_us + 1_000_000
    ]
    return max(ends, default=None)


def _died(facts: Facts, broker: Node, run: Run, after: Run, started: Place | None) -> Incident:
    assert after.starting is not None
    last = last_line_before(facts, broker, after.starting)
    died = last if last is not None else after.starting
    up = after.started or after.starting
    noticed = [row for row in facts.controller_events if _is_of(row, broker, died, up)]
    seen = f" The controller noticed at {clock(noticed[0]['time'])}." if noticed else ""
    begun = "while it was shutting down" if run.stopping is not None else "without shutting down"
    return Incident(
        kind=KIND.name,
        severity=MAJOR,
        cluster_id=broker[0],
        start_us=died,
        end_us=up,
        broker_ids=(broker[1],),
        sentence=(
            f"Broker {broker[1]} died {begun} at {clock(died)}, its last line, and was up again at {clock(up)}: it was "
            f"away {span(died, up)}.{seen} No line says why."
        ),
        advice=(
            f"Look outside Kafka for what ended the process of broker {broker[1]} at {clock(died)}: the kernel's log "
            "(OOM killer), the exit code of its container or service, its disk."
        ),
        figures={"away_s": (up - died) / 1e6, "start_s": (up - after.starting) / 1e6},
        places=(*(place(row) for row in noticed[:1]), *([] if started is None else [started])),
        weight=(up - died) / 1e6,
    )


def _is_of(row: Row, broker: Node, since_us: int, until_us: int) -> bool:
    if row["cluster_id"] != broker[0] or row["event"] not in ("broker_failed", "broker_fenced"):
        return False
    return broker[1] in (row["subject_broker_id"], *(row["brokers"] or ())) and since_us <= row["time"] <= until_us


KIND = Kind(
    name="broker_died",
    meaning="A broker's process ended, and no line of it says that it shuts down; the same broker started again.",
    source="kafka.server.KafkaServer.startup and shutdown, BrokerServer in KRaft: an orderly end is logged",
    detect=detect,
    causes=("broker_halted", "log_directory_failed"),
)
