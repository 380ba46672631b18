"""Reports and tables without names: nothing of them in any format, all figures as they were."""

import html
import json
import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.redact import pseudonyms as kinds
from highwater.pipelines.redact.pseudonyms import Pseudonyms
from highwater.pipelines.redact.text import Redactor
from highwater.pipelines.redact.values import NAMES, redact_report, redact_table
from highwater.pipelines.report.bundle import BUNDLED
from highwater.pipelines.report.collect_detail import list_rule_texts
from highwater.pipelines.report.model import Report
from highwater.pipelines.report.printed import PRINTED
from highwater.pipelines.report.write import render_files
from tests.unit.report import sample, sample_detail
from tests.unit.report.hostile import TEXTS

#: Names that are no words of the page's own scripts, so that they can be looked for in it.
NAMES_TO_HIDE = [
    text
    for text in (*TEXTS, "invoices", "invoices-eu", "billing.prod", "alice@example.org", "User:CN=alice,OU=payments")
    if re.search(r"[^\W\d_]", text) and text not in ("constructor", "__proto__")
]


def redactor(*names: str) -> Redactor:
    return Redactor(Pseudonyms(b"0123456789abcdef", {kinds.TOPIC: names, kinds.CLIENT: names}))


def spellings(name: str) -> set[str]:
    stored = name.encode("utf-8", "replace").decode("utf-8")
    escaped = {json.dumps(stored)[1:-1], json.dumps(stored, ensure_ascii=False)[1:-1]}
    return {stored, html.escape(stored), *escaped}


@pytest.mark.parametrize("name", NAMES_TO_HIDE, ids=range(len(NAMES_TO_HIDE)))
def test_no_format_of_a_report_has_the_name(name: str) -> None:
    report = redact_report(sample_detail.hostile(name), redactor(name))
    contents = {file: content.decode("utf-8") for file, content in render_files(report).items()}
    contents |= {form: render(report) for form, render in PRINTED.items()}
    whole = sample_detail.hostile(name)
    assert any(spelled in render_files(whole)["report.json"].decode() for spelled in spellings(name))
    for file, content in contents.items():
        # The page's own scripts and styles are of the same words as some names.
        data = content if file != "report.html" else re.sub(r"(?s)<style>.*?</style>|<script>.*?</script>", "", content)
        for spelled in spellings(name):
            assert spelled not in data, (file, name[:40])


def numbers(value: object) -> list[object]:
    if isinstance(value, dict):
        return [number for each in value.values() for number in numbers(each)]
    if isinstance(value, list):
        return [number for each in value for number in numbers(each)]
    return [value] if isinstance(value, int | float) else []


def test_all_figures_stay() -> None:
    report = sample_detail.detailed(sample.audited())
    shown = redact_report(report, redactor("orders", "producer-1"))
    assert report.detail is not None
    assert shown.detail is not None
    for before, after in ((report, shown), (report.detail, shown.detail)):
        assert numbers(before.model_dump(mode="json")) == numbers(after.model_dump(mode="json"))
        assert type(before).model_validate(after.model_dump()).model_dump() == after.model_dump()
    assert shown.violations[0].message == report.violations[0].message
    assert shown.violations[0].finding_id != report.violations[0].finding_id
    assert shown.violations[0].time == report.violations[0].time


def test_what_the_rules_say_stays() -> None:
    rules = list_rule_texts()
    report = sample.report().model_copy(update={"detail": sample_detail.detail(rules=rules)})
    shown = redact_report(report, redactor("leader", "offset"))
    assert shown.detail is not None
    assert shown.detail.rules == rules


def test_the_same_name_is_called_the_same_everywhere() -> None:
    made = redactor("orders")
    topic = made.pseudonyms.known["orders"]
    report: Report = redact_report(sample_detail.detailed(sample.audited()), made)
    assert report.violations[0].topic == report.operations.produce.worst[0].topic == topic
    assert report.detail is not None
    assert topic in report.model_dump_json() + report.detail.model_dump_json()
    assert "orders" not in report.model_dump_json() + report.detail.model_dump_json()


def test_every_text_of_a_bundled_table_is_seen_to() -> None:
    """Whatever columns come: their texts are replaced, or made of the audit's own words."""
    made = redactor("invoices")
    for spec in BUNDLED:
        table = pa.Table.from_pylist([_filled(spec.arrow_schema, "invoices-3 of alice")], spec.arrow_schema)
        shown = str(redact_table(table, made).to_pylist())
        assert "invoices" not in shown, spec.full_name
        assert "alice" not in shown, spec.full_name


def _filled(schema: pa.Schema, text: str) -> dict[str, object]:
    return {field.name: _value(field.type, text) for field in schema}


def _value(kind: pa.DataType, text: str) -> object:
    if pa.types.is_string(kind):
        return text
    if pa.types.is_list(kind):
        return [_value(kind.value_type, text)]
    if pa.types.is_struct(kind):
        return {field.name: _value(field.type, text) for field in kind}
    if pa.types.is_timestamp(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return 0
    return False


PARTITIONS = pa.list_(pa.struct([("topic", pa.string()), ("offset", pa.int64())]))
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "topic": st.none() | st.sampled_from(["invoices", "clicks"]),
            "partitions": st.none()
            | st.lists(
                st.fixed_dictionaries(
                    {"topic": st.none() | st.sampled_from(["invoices", "b"]), "offset": st.integers(0, 9)}
                ),
                max_size=3,
            ),
            "message": st.none() | st.sampled_from(["invoices-3 fell", ""]),
            "error_codes": st.none() | st.lists(st.integers(0, 9), max_size=2),
        }
    ),
    max_size=6,
)
SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partitions", PARTITIONS),
        ("message", pa.string()),
        ("error_codes", pa.list_(pa.int32())),
    ]
)


@given(ROWS, st.integers(0, 3))
def test_a_table_keeps_its_shape(rows: list[dict[str, object]], skipped: int) -> None:
    """Row by row the plain way, nulls and slices included."""
    made = redactor("invoices", "clicks", "b")

    def name(text: str | None) -> str | None:
        return None if text is None else made.name(kinds.TOPIC, text)

    expected = [
        {
            "topic": name(row["topic"]),
            "partitions": None
            if row["partitions"] is None
            else [{"topic": name(part["topic"]), "offset": part["offset"]} for part in row["partitions"]],
            "message": None if row["message"] is None else made.text(row["message"]),
            "error_codes": row["error_codes"],
        }
        for row in rows[skipped:]
    ]
    shown = redact_table(pa.Table.from_pylist(rows, SCHEMA).slice(skipped), made)
    assert shown.to_pylist() == expected
    assert shown.schema.names == SCHEMA.names


def test_bytes_are_refused() -> None:
    with pytest.raises(TypeError, match="bytes"):
        redact_table(pa.table({"state": pa.array([b"x"])}), redactor("a"))


def test_names_have_kinds_that_there_are() -> None:
    assert set(NAMES.values()) <= set(kinds.KINDS)
