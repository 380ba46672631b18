"""A broker had no file descriptor left."""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.incidents.facts import Facts, place
from pipelines.incidents.incident import CRITICAL, Incident
from pipelines.incidents.kind import Kind
from pipelines.incidents.signatures import Signature
from pipelines.incidents.words import clock, number, when

_ERROR = Signature(
    "too_many_open_files",
    (),
    r"^(?:Caused by: )?(?:java\.[\w.]+(?:Exception|Error): )(?:.{0,300} \()?Too many open files",
    "errno EMFILE, in the exception of whichever call met it",
    is_whole=True,
)


def detect(facts: Facts) -> Iterable[Incident]:
    """Stack traces that come from EMFILE."""
    for row in facts.remarked(_ERROR.name):
        if row["broker_id"] is None:
            continue
        yield Incident(
            kind=KIND.name,
            severity=CRITICAL,
            cluster_id=row["cluster_id"],
            start_us=row["first_time"],
            end_us=row["last_time"],
            broker_ids=(row["broker_id"],),
            sentence=(
                f"Broker {row['broker_id']} had too many files open {when(row['first_time'], row['last_time'])}: "
                f"{number(row['line_count'], 'line says', 'lines say')} so. It takes no connection and opens no "
                "segment meanwhile."
            ),
            advice=(
                f"Raise the limit of open files (ulimit -n, LimitNOFILE) of broker {row['broker_id']} to 100,000 or "
                f"more, and look at what it had open at {clock(row['first_time'])}: segments, or connections that leak."
            ),
            figures={"lines": row["line_count"]},
            places=(place(row),),
            weight=4_000.0,
        )


KIND = Kind(
    name="broker_out_of_files",
    meaning="A broker could not open a file or a connection, since it had too many open.",
    source="java.io.IOException: Too many open files",
    detect=detect,
    signatures=(_ERROR,),
)
