"""Every field of ``report.json`` is described, and the document has the descriptions."""

from __future__ import annotations

from typing import Literal

import pytest

from highwater.pipelines.base.values import Count, Part
from highwater.pipelines.report.model import Report
from tests.bench import report_fields
from tests.bench.field_docs import descriptions, markdown, models, shown_fields
from tests.unit.report import sample


@pytest.mark.parametrize("model", models(), ids=lambda model: model.__name__)
def test_every_field_is_described(model: type[Part]) -> None:
    told = descriptions(model)
    assert [name for name in shown_fields(model) if not told.get(name)] == []
    assert set(told) <= set(model.model_fields)


def test_the_document_is_that_of_the_model() -> None:
    text = report_fields.DOCUMENT.read_text(encoding="utf-8")
    assert text == report_fields.written(text), "python -m tests.bench.report_fields writes docs/report_json.md anew"


def test_all_that_a_report_has_is_in_the_document() -> None:
    names = {f"| `{name.rstrip('_')}` |" for model in models() for name in shown_fields(model)}
    document = markdown()
    assert [name for name in names if name not in document] == []
    assert set(sample.audited().model_dump(mode="json")) == set(shown_fields(Report))


class _Base(Part):
    """Several."""

    #: two of them,
    #: in two lines
    a: Count
    b: int | None  #: likewise


class _Further(_Base):
    """More."""

    b: int | None  #: another one
    c: Literal["x", "y"]  #: \|three\| of `pipelines.report.model.Report`
    d: tuple[int, ...]  #: likewise
    e: dict[str, float | None]


def test_comments_are_read_as_they_are_written() -> None:
    assert descriptions(_Further) == {
        "a": "two of them, in two lines.",
        "b": "another one.",
        **dict.fromkeys("cd", "\\|three\\| of `pipelines.report.model.Report`."),
        "e": "",
    }
