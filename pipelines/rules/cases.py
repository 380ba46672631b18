"""A case as a row: what workers give and the driver collects. Pure."""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql.types import StructType

from highwater.pipelines.base.blobs import shape
from highwater.pipelines.rules.rule import Case, Ref
from highwater.schemas.table import INT, LONG, STRING, column, structs

_PLACE = {"cluster_id": "string", "topic": "string", "partition": "int"}
_TYPES = {
    "rule_id": "string",
    "severity": "string",
    "message": "string",
    "leader_epoch": "int",
    "offset_start": "long",
    "offset_end": "long",
    "time_us": "long",
    "brokers": "array<int>",
    "known_bug": "string",
    "cause": "string",
    "records": "long",
    "witnesses": "array<string>",
}
_REF_TYPES = {"time_us": LONG, "broker_id": INT, "byte_offset": LONG, "correlation_id": INT}
_EVIDENCE = structs(*[column(name, _REF_TYPES.get(name, STRING), "") for name in Ref._fields])
#: Columns of a case; its evidence is a list of the fields of `Ref`.
CASE: Final[StructType] = shape(_PLACE | _TYPES).add("evidence", _EVIDENCE)


def case_row(case: Case, cluster_id: str, topic: str | None, partition: int | None) -> dict[str, Any]:
    """Return a possible violation (`Case`) as a row of `CASE`, by column name."""
    row = {name: getattr(case, name) for name in _TYPES}
    row["evidence"] = [ref._asdict() for ref in case.evidence]
    return {"cluster_id": cluster_id, "topic": topic, "partition": partition, **row}
