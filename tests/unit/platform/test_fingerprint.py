"""Fingerprints change when results may, and only then."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import StructField

from pipelines.base import fingerprint
from pipelines.base.config import load_config
from schemas import silver
from schemas.table import STRING, TableSpec, column

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
    return fingerprint.code_hash({name: source.encode()})


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
    return fingerprint.replay_fingerprint(load_config(None, settings).replay_hash, grammar)


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
    assert fingerprint.components_changed(replay_fingerprint(), replay_fingerprint(**setting)) == ["settings"]


def fingerprints() -> dict[str, str]:
    return {
        "grammar": fingerprint.grammar_fingerprint(),
        "replay": fingerprint.replay_fingerprint("same", "same"),
        "rules": fingerprint.run_id("same", "same"),
        "all": fingerprint.rules_fingerprint(),
    }


@pytest.mark.parametrize(
    ("module", "changed"),
    [
        ("pipelines/grammars/values.py", {"grammar", "all"}),
        ("pipelines/grammars/known.toml", {"grammar", "all"}),
        ("pipelines/replay/kernel.py", {"replay", "all"}),
        ("pipelines/replay/wait.py", {"replay", "all"}),
        ("schemas/events.py", {"replay", "all"}),
        ("pipelines/rules/rule.py", {"rules", "all"}),
        ("pipelines/controllers/plan.py", {"rules", "all"}),
        ("pipelines/kafka/topic_lives.py", {"replay", "all"}),
        ("pipelines/bronze/reader.py", {"all"}),
        ("pipelines/quality/stage.py", set()),
        ("pipelines/report/model.py", set()),
        ("schemas/gold.py", set()),
    ],
)
def test_a_component_changes_with_the_code_that_it_rests_on(
    module: str, changed: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / module
    path.parent.mkdir(parents=True)
    monkeypatch.setattr(fingerprint, "_ROOT", tmp_path)
    told = []
    for source in ("LIMIT = 5\n", "LIMIT = 6\n"):
        path.write_text(source)
        fingerprint._hash_of.cache_clear()
        told.append(fingerprints())
    fingerprint._hash_of.cache_clear()
    assert {name for name in told[0] if told[0][name] != told[1][name]} == changed


def test_what_silver_was_parsed_by_counts_for_the_replay_and_not_what_is_installed() -> None:
    before, now = replay_fingerprint("older"), replay_fingerprint("newer")
    assert fingerprint.components_changed(before, now) == ["grammar"]
    assert fingerprint.components_changed(now, now) == []
    assert fingerprint.components_changed(fingerprint.TABLES, now) == ["tables"]
    assert fingerprint.components_changed("0" * 32, now) == ["replay"], "of a version that told nothing apart"


def test_the_grammar_is_also_what_silver_is_declared_to_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint.grammar_fingerprint()
    spec = silver.TOPICS
    reworded = replace(spec, comment="Other words.", columns=(*spec.columns[:-1], _REWORDED))
    wider = replace(spec, columns=(*spec.columns, column("owner", STRING, "Owner")))
    assert {_with_topics(monkeypatch, each) == before for each in (spec, reworded)} == {True}
    assert _with_topics(monkeypatch, wider) != before


_LAST = silver.TOPICS.columns[-1]
_REWORDED = StructField(_LAST.name, _LAST.dataType, _LAST.nullable, {"comment": "Other words"})


def _with_topics(monkeypatch: pytest.MonkeyPatch, spec: TableSpec) -> str:
    tables = tuple(spec if table.name == spec.name else table for table in silver.TABLES)
    monkeypatch.setattr(silver, "TABLES", tables)
    return fingerprint.grammar_fingerprint()


def test_an_audit_is_known_by_its_files_its_replay_and_its_rules() -> None:
    config, other = load_config(), load_config(None, {"audit.clock_skew_max_ms": 5})
    inputs = fingerprint.inputs_fingerprint(["b", "a"], "replay")
    assert inputs == fingerprint.inputs_fingerprint(["a", "b"], "replay")
    assert inputs != fingerprint.inputs_fingerprint(["a", "b"], "another")
    assert fingerprint.run_id(inputs, config.rules_hash) != fingerprint.run_id(inputs, other.rules_hash)
    drawn_otherwise = load_config(None, {"report.timeline_interval_s": 60, "session.driver_memory": "3g"})
    assert fingerprint.run_id(inputs, config.rules_hash) == fingerprint.run_id(inputs, drawn_otherwise.rules_hash)
