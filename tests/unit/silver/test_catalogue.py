"""docs/event_catalogue.md is what the grammars and the releases' texts say."""

from __future__ import annotations

from highwater.pipelines.grammars.templates import TEMPLATES
from tests.bench.catalogue import DOCUMENT, document, tables_of


def test_the_document_is_up_to_date() -> None:
    assert DOCUMENT.read_text() == document(), "run `python -m tests.bench.catalogue`"


def test_every_typed_template_names_a_table() -> None:
    assert all(tables_of(template.facts) for template in TEMPLATES if template.facts is not None)
