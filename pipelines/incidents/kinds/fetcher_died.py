"""A replica fetcher stopped for good: what it followed stays behind until the broker is restarted."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pipelines.incidents.facts import Facts, Row, node, place
from pipelines.incidents.incident import CRITICAL, Incident
from pipelines.incidents.kind import Kind
from pipelines.incidents.kinds.leader_unreachable import FETCHER
from pipelines.incidents.known import bug_of
from pipelines.incidents.signatures import Signature
from pipelines.incidents.words import clock

_DIED = Signature(
    "fetcher_thread_died",
    ("ReplicaFetcherThread", "ReplicaAlterLogDirsThread", "AbstractFetcherThread", "ShutdownableThread"),
    FETCHER + r"Error due to ?.*",
    "kafka.utils.ShutdownableThread.run: the thread ends after this line; until 2.3 nothing starts it again (KIP-461)",
    ("ERROR", "FATAL"),
)
_EXCEPTION = re.compile(r"^(?:Caused by: )?(?:[a-z_]\w*\.)+(?P<name>[A-Z]\w*)(?:: (?P<text>.*))?$", re.MULTILINE)
#: kafka.log.Log.maybeIncrementLogStartOffset: what a follower with KAFKA-7104 dies of.
_BEYOND = "Cannot increment the log start offset"
_PARTITION = re.compile(r"\b(?:for|of) (?:topic )?partition \[?(?P<name>[\w.]+[-,]\d+)\]?")


def detect(facts: Facts) -> Iterable[Incident]:
    """Threads that logged the error with which they end; the broker's next start brings them back."""
    for row in facts.remarked(_DIED.name):
        if row["broker_id"] is not None:
            yield _died(facts, row)


def _died(facts: Facts, row: Row) -> Incident:
    starts = [
        other["time"]
        for other in facts.lifecycle
        if node(other) == node(row) and other["event"] == "started" and other["time"] > row["last_time"]
    ]
    end = min(starts, default=None)
    exceptions = list(_EXCEPTION.finditer(row["message"]))
    reason = f" of {exceptions[-1]['name']}" if exceptions else ""
    said = f" ({exceptions[-1]['text'][:160]})" if exceptions and exceptions[-1]["text"] else ""
    names = frozenset(match["name"].replace(",", "-") for match in _PARTITION.finditer(row["message"]))
    until = "the end of the logs" if end is None else f"its restart at {clock(end)}"
    return Incident(
        kind=KIND.name,
        severity=CRITICAL,
        cluster_id=row["cluster_id"],
        start_us=row["first_time"],
        end_us=end,
        broker_ids=(row["broker_id"],),
        partitions=names,
        sentence=(
            f"The replica fetcher of broker {row['broker_id']} from leader {row['key']} died{reason} at "
            f"{clock(row['first_time'])}{said}. What it followed stays behind until {until}."
        ),
        advice=(
            f"Restart broker {row['broker_id']}: the thread does not come back by itself. Look at the log of the "
            "partition that the error names first: it dies again where that is damaged."
        ),
        figures={"leader": int(row["key"])},
        places=(place(row),),
        known_bug=(
            bug_of("KAFKA-7104", facts.version(node(row), row["first_time"])) if _BEYOND in row["message"] else None
        ),
        weight=2_000.0,
    )


KIND = Kind(
    name="fetcher_died",
    meaning="A replica fetcher thread ended with an error.",
    source="kafka.utils.ShutdownableThread.run, kafka.server.AbstractFetcherThread",
    detect=detect,
    signatures=(_DIED,),
    causes=("log_directory_failed", "broker_out_of_memory"),
)
