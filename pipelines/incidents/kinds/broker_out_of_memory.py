"""The JVM of a broker had no memory left."""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.incidents.facts import Facts, place
from pipelines.incidents.incident import CRITICAL, Incident
from pipelines.incidents.kind import Kind
from pipelines.incidents.signatures import Signature
from pipelines.incidents.words import clock, number

_ERROR = Signature(
    "out_of_memory",
    (),
    r"^(?:Caused by: )?java\.lang\.OutOfMemoryError(?:: (?P<key>[\w .:'-]{1,80}))?",
    "java.lang.OutOfMemoryError as the first line, or the cause, of a stack trace",
    is_whole=True,
)


def detect(facts: Facts) -> Iterable[Incident]:
    """Stack traces that begin with, or come from, an OutOfMemoryError."""
    for row in facts.remarked(_ERROR.name):
        if row["broker_id"] is None:
            continue
        what = f" ({row['key']})" if row["key"] else ""
        yield Incident(
            kind=KIND.name,
            severity=CRITICAL,
            cluster_id=row["cluster_id"],
            start_us=row["first_time"],
            end_us=row["last_time"],
            broker_ids=(row["broker_id"],),
            sentence=(
                f"Broker {row['broker_id']} ran out of memory at {clock(row['first_time'])}{what}: "
                f"{number(row['line_count'], 'line')} with OutOfMemoryError. Threads that met it may be gone for good."
            ),
            advice=(
                f"Restart broker {row['broker_id']}: a thread that died of it does not come back. Look at its "
                "heap (KAFKA_HEAP_OPTS), at its partitions and connections, and at vm.max_map_count if its "
                "line says 'Map failed'."
            ),
            figures={"lines": row["line_count"]},
            places=(place(row),),
            weight=5_000.0,
        )


KIND = Kind(
    name="broker_out_of_memory",
    meaning="A broker logged java.lang.OutOfMemoryError.",
    source="The JVM; which thread met it, its line says",
    detect=detect,
    signatures=(_ERROR,),
)
