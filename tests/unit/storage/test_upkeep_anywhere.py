"""Upgrades and retention on a disk and in a store."""

from __future__ import annotations

from typing import Any

import pytest

from highwater.pipelines.base.errors import InputError, LeaseLost
from highwater.pipelines.lake.delta_commits import allow_commits
from highwater.pipelines.lake.delta_log import find_version, read_log
from highwater.pipelines.lake.program import note_program, require_known_version
from highwater.pipelines.storage.place import Place
from highwater.pipelines.upkeep import upgrade
from highwater.schemas.catalog import TABLES
from highwater.schemas.silver import FETCH_REQUESTS
from highwater.schemas.state import EXPIRIES
from tests.unit.platform import test_expiry as expiries
from tests.unit.platform import test_upgrade as upgrades
from tests.unit.storage.stores import disk as root  # noqa: F401


def test_an_older_lake_is_brought_up(root: Any) -> None:  # noqa: F811
    upgrades.older_lake(root, upgrades.without_last(upgrades.LEDGER))
    assert "state.runs: columns added: silver_versions" in upgrade.upgrade(root, allow_commits)
    assert all(find_version(root / spec.layer / spec.name) is not None for spec in TABLES)
    assert upgrade.upgrade(root, allow_commits) == []
    upgrade.require_up_to_date(root)


def test_a_newer_lake_is_refused(root: Place, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    note_program(root, "")
    require_known_version(root)
    monkeypatch.setattr("highwater.pipelines.lake.program.code_version", lambda: "0.4.9")
    with pytest.raises(InputError, match="was written by highwater"):
        require_known_version(root)


def test_old_days_are_dropped(root: Any) -> None:  # noqa: F811
    expiries.expired(expiries.written(root))
    assert expiries.hours_left(root, FETCH_REQUESTS) == [-1.5, 3]
    assert len(read_log(root / "state" / EXPIRIES.name).files) == 1


def test_who_has_lost_the_lease_changes_nothing(root: Any) -> None:  # noqa: F811
    def lost() -> None:
        raise LeaseLost(root, "it is over")

    upgrades.older_lake(root, upgrades.without_last(upgrades.LEDGER))
    with pytest.raises(LeaseLost):
        upgrade.upgrade(root, lost)
    assert upgrade.plan_upgrade(root) != []
