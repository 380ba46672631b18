"""Rows of silver as Spark brings them, one shape for all kinds, and what they become here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar, cast

from pipelines.kafka.controller_rows import NOWHERE, EventRow, LeadershipRow, RecordRow, Ref, StateRow
from schemas.fields import Int, Long, spark_types

PARTITION_STATE: Final = "partition_state"
REPLICA_STATE: Final = "replica_state"
LEADERSHIP: Final = "leadership"
#: A leader's committed change of its ISR, as a row of leadership; no other module takes it for one.
ISR_CHANGE: Final = "isr_change"
EVENT: Final = "event"
LIFECYCLE: Final = "lifecycle"
RECORD: Final = "record"
ANSWERED: Final = "answered"


class Answered(NamedTuple):
    """What a leader answered of a partition to produces or fetches, by leader epoch and error: no row per request.

    `second` is that of the answers, and null where it does not matter: of those without error the first one counts.
    """

    time_us: Long
    broker_id: Int
    ref: Ref
    leader_epoch: Int | None
    error_code: Int
    second: Long | None
    requests: Long


Row = StateRow | LeadershipRow | EventRow | RecordRow | Answered
#: Rows of a group by kind.
Group = defaultdict[str, list[Any]]
_AnyRow = TypeVar("_AnyRow", StateRow, LeadershipRow, EventRow, RecordRow, Answered)

KINDS: Final[Mapping[str, type[Row]]] = {
    PARTITION_STATE: StateRow,
    REPLICA_STATE: StateRow,
    LEADERSHIP: LeadershipRow,
    ISR_CHANGE: LeadershipRow,
    EVENT: EventRow,
    LIFECYCLE: EventRow,
    RECORD: RecordRow,
    ANSWERED: Answered,
}
#: Columns of all kinds, with their types in Spark; a kind has those of its row's names.
ROW_TYPES: Final[Mapping[str, str]] = {
    name: type_ for row in dict.fromkeys(KINDS.values()) for name, type_ in spark_types(row).items()
}
_AT: Final = {name: at for at, name in enumerate(ROW_TYPES)}
#: Rows begin with instant, broker and place.
_FIELDS: Final = {kind: [_AT[name] for name in row._fields[3:]] for kind, row in KINDS.items()}


def columns_of(kind: str) -> tuple[str, ...]:
    """Columns of `ROW_TYPES` that rows of a kind have, their place included."""
    return (*tuple(ROW_TYPES)[:5], *KINDS[kind]._fields[3:])


def decoded(kind: str, values: Sequence[Any]) -> Row:
    """A row from the values of `ROW_TYPES`, lists as tuples."""
    ref = Ref(values[2], values[3], values[4])
    make: Any = KINDS[kind]
    return cast(Row, make(values[0], values[1], ref, *[values[at] for at in _FIELDS[kind]]))


def once(rows: Iterable[_AnyRow]) -> list[_AnyRow]:
    """Rows in the order of time, each line once where files overlap.

    A line may well be logged twice in one millisecond: of equal lines there are as many as in the file that has most.
    """
    alike: dict[_AnyRow, dict[str, list[_AnyRow]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        alike[row._replace(ref=NOWHERE)][row.ref.file_id].append(row)
    distinct = [
        row for by_file in alike.values() for row in min(by_file.items(), key=lambda item: (-len(item[1]), item[0]))[1]
    ]
    return sorted(distinct, key=lambda row: (row.time_us, row.broker_id, row.ref))
