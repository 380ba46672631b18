"""Fingerprints change when results may, and only then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipelines import fingerprint
from pipelines.config import load_config

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


def replay_fingerprint(**overrides: Any) -> str:
    settings = {name.replace("__", "."): value for name, value in overrides.items()}
    return fingerprint.replay_fingerprint(load_config(None, settings).replay_hash)


@pytest.mark.parametrize(
    "setting",
    [
        {"report__timeline_interval_s": 60},
        {"audit__severity": {"late-completion": "observation"}},
        {"audit__clock_skew_max_ms": 5},
        {"quality__enabled": False},
        {"quality__time_slack_ms": 5},
        {"session__driver_memory": "3g"},
        {"replay__driver": "stateful"},
    ],
)
def test_settings_that_the_replay_does_not_read_replay_nothing(setting: dict[str, Any]) -> None:
    assert replay_fingerprint(**setting) == replay_fingerprint()


@pytest.mark.parametrize(
    "setting",
    [
        {"replay__settle_ms": 1},
        {"replay__evidence_tier_max": "T1"},
        {"ingest__timezone": "Europe/Berlin"},
        {"latency__interval_s": 60},  # blame is aggregated from the seal on
    ],
)
def test_settings_that_it_reads_begin_anew(setting: dict[str, Any]) -> None:
    assert replay_fingerprint(**setting) != replay_fingerprint()


@pytest.mark.parametrize(
    ("module", "begins_anew"),
    [
        ("pipelines/replay/kernel.py", True),
        ("pipelines/bronze/reader.py", True),
        ("pipelines/silver/values.py", True),
        ("pipelines/latency/wait.py", True),
        ("schemas/events.py", True),
        ("pipelines/rules/rule.py", False),
        ("pipelines/controllers/plan.py", False),
        ("pipelines/quality/stage.py", False),
        ("pipelines/report/model.py", False),
    ],
)
def test_code_that_the_replay_runs_begins_anew(
    module: str, begins_anew: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / module
    path.parent.mkdir(parents=True)
    monkeypatch.setattr(fingerprint, "_ROOT", tmp_path)
    hashes = []
    for source in ("LIMIT = 5\n", "LIMIT = 6\n"):
        path.write_text(source)
        fingerprint._hash_of.cache_clear()
        hashes.append(fingerprint.replay_fingerprint("same"))
    fingerprint._hash_of.cache_clear()
    assert (hashes[0] != hashes[1]) is begins_anew


def test_an_audit_is_known_by_its_rules_and_its_whole_configuration() -> None:
    config, other = load_config(), load_config(None, {"report.timeline_interval_s": 60})
    assert fingerprint.run_id(["f"], config.config_hash) != fingerprint.run_id(["f"], other.config_hash)
    assert config.config_hash == load_config(None, {"session.driver_memory": "3g"}).config_hash
