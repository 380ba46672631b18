"""Lines that tell of settings: what each lists, and which of those that say the same is taken."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from highwater.pipelines.base.blobs import read_blobs
from highwater.pipelines.cluster.configs import (
    COLUMNS,
    KEY_TYPES,
    LINES,
    ORDER,
    READ,
    deduplicate_lines,
    filter_settings,
    merge_lines,
)
from highwater.pipelines.kafka.context import BROKER, DYNAMIC, LOG, MIN_ISR, TOPIC
from highwater.schemas.silver import BROKER_CONFIGS

SCHEMA = pa.schema([BROKER_CONFIGS.arrow_schema.field(name).with_nullable(True) for name in READ])
SECOND_US = 1_000_000


def row(offset: int, scope: str, key: str, value: str | None, second: int = 1, broker_id: int | None = 1) -> Any:
    place = {"file_id": f"f{broker_id}", "byte_offset": offset, "cluster_id": "c", "broker_id": broker_id}
    return place | {"scope": scope, "entity": "t", "time": second * SECOND_US, "key": key, "value": value}


def folded(rows: Iterable[dict[str, Any]]) -> list[tuple[Any, ...]]:
    order = [(name, "ascending") for name in (*KEY_TYPES, *ORDER)]
    read = pa.Table.from_batches([filter_settings(pa.RecordBatch.from_pylist(list(rows), SCHEMA))]).sort_by(order)
    blobs = merge_lines(iter(read.select([*KEY_TYPES, *COLUMNS]).to_batches(max_chunksize=2)))
    tables = read_blobs((part["table"], part["rows"]) for blob in blobs for part in blob.to_pylist())
    return [
        (
            line["broker_id"],
            line["scope"],
            dict(zip(line["keys"], line["values"], strict=True)),
            line["time_us"] // SECOND_US,
        )
        for line in sorted(deduplicate_lines(tables[LINES]), key=str)
    ]


def test_of_a_dump_settings_that_matter_are_told() -> None:
    rows = [row(7, BROKER, MIN_ISR, "2"), row(7, BROKER, "no.setting.of.ours", "x"), row(9, BROKER, "another", "y")]
    assert folded(rows) == [(1, BROKER, {MIN_ISR: "2"}, 1)]


def test_a_line_that_lists_what_is_set_tells_that_nothing_is() -> None:
    assert folded([row(7, TOPIC, "another", "y")]) == [(1, TOPIC, {}, 1)]
    assert folded([row(7, DYNAMIC, MIN_ISR, None)]) == [(1, DYNAMIC, {}, 1)]


def test_a_line_of_no_broker_tells_nothing() -> None:
    assert folded([row(7, BROKER, MIN_ISR, "2", broker_id=None)]) == []


def test_logs_of_a_topic_that_are_created_together_are_told_of_once() -> None:
    rows = [row(offset, LOG, MIN_ISR, "2", second) for offset, second in ((9, 30), (7, 20), (11, 70))]
    assert folded(rows) == [(1, LOG, {MIN_ISR: "2"}, 20), (1, LOG, {MIN_ISR: "2"}, 70)]
    apart = [row(offset, TOPIC, MIN_ISR, "2", second) for offset, second in ((9, 30), (7, 20))]
    assert [second for *_, second in folded(apart)] == [20, 30]
    assert len(folded([*rows, row(7, LOG, MIN_ISR, "3", 20, broker_id=2)])) == 3
