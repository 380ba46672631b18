"""The suites as declarations: complete, stable, and the document that is made of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from highwater.pipelines.base.config import load_config
from highwater.pipelines.base.errors import ConfigError
from highwater.pipelines.quality.document import build_suites_markdown
from highwater.pipelines.quality.expectation import NOT_NULL, UNIQUE, Expectation
from highwater.pipelines.quality.ledger import LEDGERS
from highwater.pipelines.quality.suites import ASKED, EXPECTATIONS, SUITES, choose_severities, require_expectations
from highwater.schemas.silver import ISR_CHANGES
from highwater.schemas.table import TableSpec

ROOT = Path(__file__).resolve().parents[3]
ALL = [item for suite in (*SUITES.values(), *LEDGERS.values()) for item in suite]


def test_ids_are_there_once() -> None:
    assert len(EXPECTATIONS) == len(ALL)


def test_ids_that_results_and_configurations_refer_to_stay() -> None:
    assert {
        "silver.isr_changes.change:known_value",
        "bronze.log_files.broker_id:not_null",
        "silver.isr_changes.file_id+byte_offset+fact_no:unique",
        "silver.leader_and_isr.isr_is_assigned:holds",
        "silver.leader_and_isr.start_offset+previous_start_offset:not_below",
        "silver.replica_fetches.fetch_offset+previous_fetch_offset:not_below",
        "ledger.logs.stored_lines+line_count:equal",
        "ledger.logs.counted_records+stored_records:equal",
        "ledger.data.stored_rows+row_count:equal",
        "ledger.kinds.parsed_share+parsed_share_min:not_below",
        "ledger.brokers.newest_time_us+newest_before_us:not_below",
    } <= EXPECTATIONS.keys()


@pytest.mark.parametrize("spec", ASKED, ids=lambda spec: spec.full_name)
def test_a_suite_asks_what_no_constraint_of_its_table_holds(spec: TableSpec) -> None:
    suite = SUITES[spec.full_name]
    assert [item.columns for item in suite if item.kind == UNIQUE and item.severity == "critical"] == [spec.keys]
    required = {column.name for column in spec.columns if not column.nullable}
    assert not required & {item.columns[0] for item in suite if item.kind == NOT_NULL}
    assert not set(spec.checks) & {item.columns[0] for item in suite}


@pytest.mark.parametrize("item", ALL, ids=lambda item: item.expectation_id)
def test_an_expectation_names_columns_that_there_are(item: Expectation) -> None:
    spec = next((spec for spec in ASKED if spec.full_name == item.table), None)
    if spec is not None:
        assert set(item.stored_columns) <= set(spec.column_names)
        assert not set(item.derived) & set(spec.column_names)
    assert item.question.strip()


def test_the_configuration_changes_what_an_expectation_counts_as() -> None:
    suite = SUITES[ISR_CHANGES.full_name]
    changed, gone = "silver.isr_changes.change:known_value", "silver.isr_changes.partition:at_least"
    severities = {
        item.expectation_id: severity for item, severity in choose_severities(suite, {changed: "warning", gone: "off"})
    }
    assert severities[changed] == "warning"
    assert gone not in severities
    assert len(severities) == len(suite) - 1


def test_a_setting_of_an_expectation_that_there_is_not_is_an_error(tmp_path: Path) -> None:
    conf = tmp_path / "conf.toml"
    conf.write_text('[quality.severity]\n"silver.isr_changes.change:know_value" = "off"\n', encoding="utf-8")
    with pytest.raises(ConfigError, match="is not an expectation"):
        require_expectations(load_config(conf).quality.severity, conf)


def test_the_document_is_made_from_the_suites() -> None:
    assert (ROOT / "docs" / "quality.md").read_text(encoding="utf-8") == build_suites_markdown(), (
        "run `highwater quality --markdown > docs/quality.md`"
    )
