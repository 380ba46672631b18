"""How each field of a report and column of a table is redacted, by its name: what is not listed is free text. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from pydantic import BaseModel

from highwater.pipelines.redact import pseudonyms as kinds
from highwater.pipelines.redact.text import Redactor
from highwater.pipelines.report.detail import Detail
from highwater.pipelines.report.headline import add_headline
from highwater.pipelines.report.model import Report

#: Kind of the names in a field. Other fields have names within text: a connection, a partition, a path.
NAMES: Mapping[str, str] = {
    **dict.fromkeys(("topic", "closing_topic"), kinds.TOPIC),
    **dict.fromkeys(("client_id", "client"), kinds.CLIENT),
    "cluster_id": kinds.CLUSTER,
    "group_id": kinds.GROUP,
    "principal": kinds.PRINCIPAL,
    "topic_id": kinds.TOPIC_ID,
    "transactional_id": kinds.TRANSACTIONAL_ID,
}
#: Hashes over names, which a reader who knows the rest of the input could try.
_IDENTITIES = frozenset({"finding_id", "implied_by", "fingerprint", "operation_id", "request_id"})
#: Texts that no grammar has read; of lines that one has, the name of their template.
_UNREAD = frozenset({"template"})
#: Hashes of contents, code and configuration: nothing that one could try is in them.
_HASHED = frozenset({"run_id", "run_before", "sha256", "file_id", "config_hash", "code_version"})
#: Values of the audit's own, few of them.
_VOCABULARY = frozenset(
    {
        *(
            "verdict",
            "verdict_class",
            "class_",
            "tier",
            "rule_id",
            "severity",
            "cause",
            "known_bug",
            "kind",
            "api",
            "class",
            "operation",
        ),
        *(
            "operation_class",
            "class_reason",
            "role",
            "closing_role",
            "reader",
            "read_from",
            "isolation_level",
            "state",
            "strategy",
        ),
        *("outcome", "reason_code", "change", "made_by", "machine", "from_state", "to_state", "step"),
        *("level", "trigger", "rule", "reply_source", "ending", "end_reason", "key", "seen", "why", "broker_id_source"),
        *("layout", "missing", "waited_as", "rules_fingerprint"),
    }
)
_HASH = re.compile(r"[0-9a-f]{16,64}|\d[\d.]*(?:[a-z]+\d+)?|\d{8}T\d{6}\.\d{6}-[0-9a-f]{8}|unknown")
_SENTENCES = frozenset({"guarantee", "source", "needs"})
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def choose_treatment(name: str, redactor: Redactor) -> Callable[[str], str]:
    """Return the function that redacts texts of a field or column with this name."""
    if name in NAMES:
        return lambda text: redactor.name(NAMES[name], text)
    if name in _IDENTITIES:
        return redactor.identity
    if name in _UNREAD:
        return redactor.unread
    if name in _HASHED:
        return lambda text: text if _HASH.fullmatch(text) else redactor.text(text)
    if name in _SENTENCES:
        return redactor.sentence
    return redactor.value if name in _VOCABULARY else redactor.text


def redact_report(report: Report, redactor: Redactor) -> Report:
    """Return the report without names. Figures and structure are unchanged."""
    fields = _redact_fields(report, redactor)
    detail: Detail | None = fields.pop("detail")
    # A part that was not changed is validated as it is; the detail is not, since it has millions of numbers.
    return add_headline(Report.model_validate(fields).model_copy(update={"detail": detail}))


def _redact_fields(part: BaseModel, redactor: Redactor) -> dict[str, Any]:
    return {name: _redact_value(value, name, redactor) for name, value in part}


def _redact_value(value: Any, name: str, redactor: Redactor) -> Any:
    if isinstance(value, str):
        return value if _INSTANT.fullmatch(value) else choose_treatment(name, redactor)(value)
    if isinstance(value, BaseModel):
        return value.model_copy(update=_redact_fields(value, redactor))
    if isinstance(value, dict):
        return {redactor.value(key): _redact_value(each, name, redactor) for key, each in value.items()}
    if isinstance(value, list | tuple):
        if all(each is None or isinstance(each, int | float) for each in value):
            return value
        return type(value)(_redact_value(each, name, redactor) for each in value)
    return value


def redact_table(table: pa.Table, redactor: Redactor) -> pa.Table:
    """Return a table without names and without column metadata."""
    columns = [
        _redact_array(column.combine_chunks(), name, redactor)
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    return pa.table(columns, names=table.column_names)


def _redact_array(array: Any, name: str, redactor: Redactor) -> pa.Array:
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.make_chunks) if array.num_chunks else pa.array([], array.type)
    if pa.types.is_string(array.type):
        encoded = array.dictionary_encode()
        change = choose_treatment(name, redactor)
        texts = pa.array([change(text) for text in encoded.dictionary.to_pylist()], pa.string())
        return pa.DictionaryArray.from_arrays(encoded.indices, texts).dictionary_decode()
    if pa.types.is_list(array.type):
        values = _redact_array(array.values, name, redactor)
        return pa.ListArray.from_arrays(array.offsets, values, mask=array.is_null())
    if pa.types.is_struct(array.type):
        fields = [array.field(number) for number in range(array.type.num_fields)]
        names = [field.name for field in array.type]
        children = [_redact_array(child, child_name, redactor) for child, child_name in zip(fields, names, strict=True)]
        return pa.StructArray.from_arrays(children, names=names, mask=array.is_null())
    if pa.types.is_binary(array.type):
        raise TypeError(f"{name} holds bytes, in which names cannot be told")
    return array
