"""Lines about settings, one row each, without duplicates. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.arrow_rows import arrow_schema, both, is_in, micros, shaped
from highwater.pipelines.base.blobs import Batches, Tables, shape
from highwater.pipelines.base.groups import each, groups
from highwater.pipelines.kafka.context import BROKER, DYNAMIC, KEYS, LOG, LOG_ALL, TOPIC

#: Key of a line, separate by entity.
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
#: Time in which a topic's logs are created on a broker, all with the same properties: one row is enough.
_CREATION_US: Final = 60_000_000
_SCHEMA: Final = arrow_schema(ROW_TYPES)
_SAYS: Final = itemgetter("cluster_id", "broker_id", "scope", "entity")
_PLACE: Final = itemgetter("time_us", "file_id", "byte_offset")

#: A row of `LINES`.
Line = Mapping[str, Any]


def filter_settings(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Keep settings that the replay needs. Lines that list all overrides are kept whatever their keys."""
    known, scope = is_in(rows.column("key"), sorted(KEYS)), rows.column("scope")
    listed = pc.and_(known, is_in(scope, (BROKER, LOG_ALL)))
    rows = rows.filter(both(pc.is_valid(rows.column("broker_id")), pc.or_(listed, is_in(scope, (DYNAMIC, TOPIC, LOG)))))
    values = {name: rows.column(name) for name in ROW_TYPES if name != "time_us"}
    return shaped(_SCHEMA, rows.num_rows, values | {"time_us": micros(rows.column("time"))})


def merge_lines(batches: Batches) -> Batches:
    """Merge rows of one configuration line each, and yield them as serialized tables of `SHAPES`.

    A printed configuration lists every key of its release, so a missing key means nothing. Other lines list only keys
    that are set, and an empty list means that none is.
    """
    tables = Tables(SHAPES)
    for line in deduplicate_lines(_read_lines(batches)):
        tables.add_named(LINES, line)
    yield from tables.rest()


def _read_lines(batches: Batches) -> Iterator[Line]:
    for (file_id, byte_offset, scope, entity), rows in groups(batches, len(KEY_TYPES), each(tuple)):
        listed = list(rows)
        cluster_id, broker_id, time_us, *_ = listed[0]
        settings = [(key, value) for *_, key, value in listed if key in KEYS and value is not None]
        line = {"cluster_id": cluster_id, "broker_id": broker_id, "scope": scope, "entity": entity}
        line |= {"keys": [key for key, _ in settings], "values": [value for _, value in settings]}
        yield line | {"time_us": time_us, "file_id": file_id, "byte_offset": byte_offset}


def deduplicate_lines(lines_told: Iterable[Line]) -> Iterable[Line]:
    """Return lines without repetitions at the same time."""
    first: dict[tuple[Any, ...], Line] = {}
    for line in lines_told:
        at = line["time_us"] // _CREATION_US if line["scope"] in (LOG, LOG_ALL) else line["time_us"]
        alike = (*_SAYS(line), tuple(line["keys"]), tuple(line["values"]), at)
        first[alike] = min(first.get(alike, line), line, key=_PLACE)
    return first.values()
