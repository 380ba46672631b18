"""Columns of views: counts are whole numbers of 64 bits, and old names stay for one release."""

from __future__ import annotations

from pathlib import Path

import pytest

from highwater.pipelines.lake.reader import LakeReader
from highwater.schemas.catalog import TABLES
from highwater.schemas.views import VIEWS, ViewSpec

#: By view: names of 0.6 that stay until 0.8, and what they are called now.
RENAMED = {
    "incidents": {"harm": "rank"},
    "slow_produces": {"broker_id": "leader"},
    "late_operations": {"broker_id": "leader"},
    "broker_blame": {"replica_id": "closing_replica"},
}


def columns(view: ViewSpec) -> dict[str, str]:
    reader = LakeReader(Path("nowhere"), {spec.full_name: Path("nowhere") for spec in TABLES})
    for spec in TABLES:
        if spec.full_name in view.reads:
            reader.show(spec.full_name, spec.arrow_schema.empty_table())
    return dict(reader.list_view_columns(view))


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_no_count_becomes_a_float_in_pandas(view: ViewSpec) -> None:
    found = columns(view)
    assert not [name for name, kind in found.items() if kind == "HUGEINT"]
    for old, new in RENAMED.get(view.name, {}).items():
        assert found[old] == found[new]
        assert list(found).index(new) < list(found).index(old)
