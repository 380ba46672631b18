"""The names that a lake's tables have, read column by column. No query of Spark's."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from ipaddress import ip_address
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.redact.pseudonyms import HOST, PRINCIPAL, TOPIC, Pseudonyms
from highwater.pipelines.redact.values import NAMES
from highwater.pipelines.storage.store import store_of
from highwater.schemas.catalog import TABLES
from highwater.schemas.silver import BROKER_CONFIGS
from highwater.schemas.table import TableSpec

#: Layers that hold what brokers said; bronze and state hold the same as text and bytes.
_LAYERS = ("silver", "gold")
_BATCH_ROWS = 500_000
_CONNECTION = "connection"
_SOUGHT = frozenset({*NAMES, _CONNECTION})
#: Settings whose values name hosts.
_OF_HOSTS = re.compile(r".*listeners|.*\.(?:connect|voters|servers)|host\.name|advertised\.host\.name|broker\.rack")
_HOST = re.compile(r"(?:://|@|^|,)\[?([^\s,@/\[\]]+?)\]?(?::\d+)(?=[,/\]]|$)")
_ENDPOINT = re.compile(r"(?:^|-)(\[[0-9A-Fa-f:%.\w]+\]|\d+(?:\.\d+){3}|[0-9A-Fa-f]*:[0-9A-Fa-f:]+):\d+")


def build_pseudonyms(lake: Lake, key: bytes) -> Pseudonyms:
    """Create pseudonyms for all names in a lake."""
    names: dict[str, set[str]] = defaultdict(set)
    connections: set[str] = set()
    for spec in TABLES:
        if spec.layer not in _LAYERS or not lake.has_rows(spec):
            continue
        for column, values in _read_names(lake, spec):
            (connections if column == _CONNECTION else names[NAMES[column]]).update(values)
    hosts = set(_read_hosts(lake))
    addresses = {text for text in hosts if _is_address(text)} | set(_find_addresses(connections))
    names[HOST] |= hosts - addresses
    # User:alice is called alice, too.
    names[PRINCIPAL] |= {name.partition(":")[2] for name in names[PRINCIPAL] if name.partition(":")[2]}
    names[TOPIC] |= _read_topics(lake)
    return Pseudonyms(key, names, addresses)


def _read_names(lake: Lake, spec: TableSpec) -> Iterator[tuple[str, set[str]]]:
    """Yield (kind of name, values) of each column with names, also within lists and structs."""
    # Importing it takes a quarter of a second.
    import pyarrow.parquet as pq

    for file in lake.files(spec):
        with pq.ParquetFile(store_of(file.place).open_arrow_source(file.place)) as source:
            paths = [source.schema.column(number).path for number in range(len(source.schema))]
            for path in paths:
                if path.rsplit(".", 1)[-1] in _SOUGHT:
                    for batch in source.iter_batches(_BATCH_ROWS, columns=[path]):
                        yield from _collect_names(batch.column(0), batch.schema.names[0])


def _collect_names(array: Any, name: str) -> Iterator[tuple[str, set[str]]]:
    if isinstance(array, pa.ChunkedArray):
        for chunk in array.make_chunks:
            yield from _collect_names(chunk, name)
    elif pa.types.is_string(array.type) and name in _SOUGHT:
        yield name, set(pc.unique(array.drop_null()).to_pylist())
    elif pa.types.is_list(array.type):
        yield from _collect_names(array.flatten(), name)
    elif pa.types.is_struct(array.type):
        for number, field in enumerate(array.type):
            yield from _collect_names(array.field(number), field.name)


def _read_hosts(lake: Lake) -> Iterator[str]:
    rows = lake.rows(BROKER_CONFIGS, "key", "value")
    for key, value in set(zip(rows["key"].to_pylist(), rows["value"].to_pylist(), strict=True)):
        if value and value != "null" and _OF_HOSTS.fullmatch(key):
            yield from _HOST.findall(value) or ([value] if "host" in key or "rack" in key else [])


def _read_topics(lake: Lake) -> set[str]:
    rows = lake.rows(BROKER_CONFIGS, "entity", where=pc.field("scope") == "topic")
    return set(rows["entity"].drop_null().to_pylist())


def _find_addresses(connections: Iterable[str]) -> Iterator[str]:
    for connection in connections:
        for endpoint in _ENDPOINT.findall(connection):
            if _is_address(endpoint.strip("[]")):
                yield endpoint.strip("[]").partition("%")[0]


def _is_address(text: str) -> bool:
    try:
        ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return True
