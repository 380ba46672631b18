"""Lines that tell of settings, each as one row, of those that say the same the first. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.base.arrow_rows import arrow_schema, both, is_in, micros, shaped
from pipelines.base.blobs import Batches, Tables, shape
from pipelines.base.groups import each, groups
from pipelines.kafka.context import BROKER, DYNAMIC, KEYS, LOG, LOG_ALL, TOPIC

#: A line; what it says of a broker and what it says of a topic are apart.
KEY_TYPES: Final = {"file_id": "string", "byte_offset": "long", "scope": "string", "entity": "string"}
ROW_TYPES: Final = {
    **KEY_TYPES,
    "cluster_id": "string",
    "broker_id": "int",
    "time_us": "long",
    "key": "string",
    "value": "string",
}
ORDER: Final = ("key", "value")
COLUMNS: Final = ("cluster_id", "broker_id", "time_us", *ORDER)
READ: Final = ("file_id", "byte_offset", "scope", "entity", "cluster_id", "broker_id", "time", *ORDER)
LINES: Final = "lines"
SHAPES: Final = {
    LINES: shape(
        {"cluster_id": "string", "broker_id": "int", "scope": "string", "entity": "string"}
        | {"keys": "array<string>", "values": "array<string>"}
        | {"time_us": "long", "file_id": "string", "byte_offset": "long"}
    )
}
#: A topic's logs are created within seconds on a broker, all with the same properties: one row of them is enough.
_CREATION_US: Final = 60_000_000
_SCHEMA: Final = arrow_schema(ROW_TYPES)

#: Cluster, broker, when, a setting and its value.
Told = tuple[str, int, int, str, str | None]
Settings = tuple[tuple[str, str], ...]
#: Cluster, broker, scope, entity, settings.
Says = tuple[str, int, str, str | None, Settings]
#: When, file, offset.
Line = tuple[int, str, int]


def told(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Settings that matter; lines that list what is set matter whatever they list."""
    known, scope = is_in(rows.column("key"), sorted(KEYS)), rows.column("scope")
    listed = pc.and_(known, is_in(scope, (BROKER, LOG_ALL)))
    rows = rows.filter(both(pc.is_valid(rows.column("broker_id")), pc.or_(listed, is_in(scope, (DYNAMIC, TOPIC, LOG)))))
    values = {name: rows.column(name) for name in ROW_TYPES if name != "time_us"}
    return shaped(_SCHEMA, rows.num_rows, values | {"time_us": micros(rows.column("time"))})


def lines(batches: Batches) -> Batches:
    """A worker for `pipelines.lake.folds.fold`; gives blobs of `SHAPES`.

    Dumps list whatever there is, so a key that they lack says nothing; the other lines list what is set, and none is an
    answer too.
    """
    tables = Tables(SHAPES)
    for (cluster_id, broker_id, scope, entity, settings), line in first_of_alike(_lines(batches)):
        keys, values = [key for key, _ in settings], [value for _, value in settings]
        tables.add(LINES, (cluster_id, broker_id, scope, entity, keys, values, *line))
    yield from tables.rest()


def _lines(batches: Batches) -> Iterator[tuple[Says, Line]]:
    for (file_id, byte_offset, scope, entity), rows in groups(batches, len(KEY_TYPES), each(tuple)):
        settings_told = list(rows)
        cluster_id, broker_id, time_us, *_ = settings_told[0]
        settings = tuple((key, value) for *_, key, value in settings_told if key in KEYS and value is not None)
        yield (cluster_id, broker_id, scope, entity, settings), (time_us, file_id, byte_offset)


def first_of_alike(lines_told: Iterable[tuple[Says, Line]]) -> Iterator[tuple[Says, Line]]:
    """Of lines that say the same at one time the first."""
    first: dict[tuple[Says, int], Line] = {}
    for says, line in lines_told:
        alike = says, line[0] // _CREATION_US if says[2] in (LOG, LOG_ALL) else line[0]
        first[alike] = min(first.get(alike, line), line)
    for (says, _), line in first.items():
        yield says, line


def says_of(row: Mapping[str, Any]) -> tuple[Says, Line]:
    """A row of `LINES`."""
    settings = tuple(zip(row["keys"], row["values"], strict=True))
    says = (row["cluster_id"], row["broker_id"], row["scope"], row["entity"], settings)
    return says, (row["time_us"], row["file_id"], row["byte_offset"])
