"""Components: code that changed has another number, and a number begins anew what rests on it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import StructField

from highwater.pipelines.base import fingerprint
from highwater.pipelines.base.config import load_config
from highwater.pipelines.base.fingerprint import NUMBERS
from highwater.schemas import silver
from highwater.schemas.table import STRING, column
from tests import components

SOURCE = '''"""A module."""

LIMIT = 5


class Reader:
    """Reads.

    Args:
        name: of what.
    """

    name: str

    def read(self, text: str) -> str:
        """Read it."""
        return text.strip()[:LIMIT]
'''
SAME = {
    "comment": SOURCE.replace("LIMIT = 5", "# why\nLIMIT = 5  # because"),
    "docstring": SOURCE.replace("Reads.", "Reads a lot.").replace('        """Read it."""\n', ""),
    "docstring of the module": SOURCE.replace("A module.", "Another module."),
    "layout": SOURCE.replace("[:LIMIT]", "[\n            :LIMIT\n        ]"),
}
OTHER = {
    "constant": SOURCE.replace("LIMIT = 5", "LIMIT = 6"),
    "text that is none of a docstring": SOURCE.replace("text.strip()", "text.strip('x')"),
    "name": SOURCE.replace("strip", "rstrip"),
    "order": SOURCE.replace("text.strip()[:LIMIT]", "text[:LIMIT].strip()"),
}


def code_hash(source: str, name: str = "a.py") -> str:
    return components.code_hash({name: source.encode()})


@pytest.mark.parametrize("change", SAME)
def test_what_changes_no_result_changes_no_hash(change: str) -> None:
    assert SAME[change] != SOURCE
    assert code_hash(SAME[change]) == code_hash(SOURCE)


@pytest.mark.parametrize("change", OTHER)
def test_what_may_change_a_result_changes_the_hash(change: str) -> None:
    assert code_hash(OTHER[change]) != code_hash(SOURCE)


def test_a_module_that_is_moved_is_another_one() -> None:
    assert code_hash(SOURCE, "b.py") != code_hash(SOURCE)


def replay_fingerprint(grammar: str = "grammar", **overrides: Any) -> str:
    settings = {name.replace("__", "."): value for name, value in overrides.items()}
    return fingerprint.compute_replay_fingerprint(load_config(None, settings).replay_hash, grammar)


@pytest.mark.parametrize(
    "setting",
    [
        {"report__timeline_interval_s": 60},
        {"audit__severity": {"late-completion": "observation"}},
        {"audit__clock_skew_max_ms": 5},
        {"quality__enabled": False},
        {"quality__time_slack_ms": 5},
        {"session__driver_memory": "3g"},
        {"ingest__timezone": "Europe/Berlin"},  # files that were read are not read again
    ],
)
def test_settings_that_the_replay_does_not_read_replay_nothing(setting: dict[str, Any]) -> None:
    assert replay_fingerprint(**setting) == replay_fingerprint()


@pytest.mark.parametrize(
    "setting",
    [
        {"replay__settle_ms": 1},
        {"replay__evidence_tier_max": "T1"},
        {"latency__interval_s": 60},  # blame is aggregated from the seal on
    ],
)
def test_settings_that_it_reads_begin_anew(setting: dict[str, Any]) -> None:
    assert replay_fingerprint(**setting) != replay_fingerprint()
    assert fingerprint.list_changed_components(replay_fingerprint(), replay_fingerprint(**setting)) == ["settings"]


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="a syntax tree is written otherwise by each Python")
@pytest.mark.parametrize("name", NUMBERS)
def test_other_code_has_another_number(name: str) -> None:
    known, there = components.pinned()[name], components.now()[name]
    assert there == known, (
        f"code of the component {name} changed: if anything that it gives may differ, raise its number in "
        "pipelines/base/fingerprint.py; then run python -m tests.bench.components"
    )


@pytest.mark.parametrize("name", NUMBERS)
def test_a_component_is_the_code_that_it_rests_on(name: str, tmp_path: Path) -> None:
    for place in components.PLACES[name]:
        assert (components.ROOT / place).exists()
        path = tmp_path / (place if place.endswith(".py") else f"{place}/a.toml")
        path.parent.mkdir(parents=True, exist_ok=True)
        hashes = set()
        for source in ("LIMIT = 5\n", "LIMIT = 6\n"):
            path.write_text(source)
            hashes.add(components.hash_of(components.PLACES[name], tmp_path))
        assert len(hashes) == 2


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("grammar", {"grammar", "all"}),
        ("replay", {"replay", "audit", "all"}),
        ("rules", {"rules", "audit", "all"}),
        ("readers", {"all"}),
    ],
)
def test_a_number_changes_what_rests_on_its_component(
    name: str, changed: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fingerprints() -> dict[str, str]:
        return {
            "grammar": fingerprint.compute_grammar_fingerprint(),
            "replay": fingerprint.compute_replay_fingerprint("same", "same"),
            "rules": fingerprint.run_id("same", "same"),
            "audit": fingerprint.compute_audit_fingerprint(),
            "all": fingerprint.rules_fingerprint(),
        }

    before = fingerprints()
    monkeypatch.setitem(NUMBERS, name, NUMBERS[name] + 1)
    now = fingerprints()
    assert {what for what in now if now[what] != before[what]} == changed


def test_what_silver_was_parsed_by_counts_for_the_replay_and_not_what_is_installed() -> None:
    before, now = replay_fingerprint("older"), replay_fingerprint("newer")
    assert fingerprint.list_changed_components(before, now) == ["grammar"]
    assert fingerprint.list_changed_components(now, now) == []
    assert fingerprint.list_changed_components(fingerprint.TABLES, now) == ["tables"]
    assert fingerprint.list_changed_components("0" * 32, now) == ["replay"], "of a version that told nothing apart"


def test_the_grammar_is_also_what_silver_is_declared_to_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    before = components.silver_columns()
    spec = silver.TOPICS
    reworded = replace(spec, comment="Other words.", columns=(*spec.columns[:-1], _REWORDED))
    wider = replace(spec, columns=(*spec.columns, column("owner", STRING, "Owner")))
    for table, is_same in ((spec, True), (reworded, True), (wider, False)):
        monkeypatch.setattr(silver, "TABLES", tuple(table if s.name == spec.name else s for s in silver.TABLES))
        assert (components.silver_columns() == before) == is_same
        monkeypatch.undo()


_LAST = silver.TOPICS.columns[-1]
_REWORDED = StructField(_LAST.name, _LAST.dataType, _LAST.nullable, {"comment": "Other words"})


def test_an_audit_is_known_by_its_files_its_replay_and_its_rules() -> None:
    config, other = load_config(), load_config(None, {"audit.clock_skew_max_ms": 5})
    inputs = fingerprint.compute_inputs_fingerprint(["b", "a"], "replay")
    assert inputs == fingerprint.compute_inputs_fingerprint(["a", "b"], "replay")
    assert inputs != fingerprint.compute_inputs_fingerprint(["a", "b"], "another")
    assert fingerprint.run_id(inputs, config.rules_hash) != fingerprint.run_id(inputs, other.rules_hash)
    drawn_otherwise = load_config(None, {"report.timeline_interval_s": 60, "session.driver_memory": "3g"})
    assert fingerprint.run_id(inputs, config.rules_hash) == fingerprint.run_id(inputs, drawn_otherwise.rules_hash)
