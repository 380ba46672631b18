"""Batches of more keys than are held at once."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pipelines.metrics.fold import Sums


def test_rows_of_many_keys_are_added_up_a_few_times_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.metrics.fold._TOGETHER", 50)
    fold, grouped = Sums(("key",), ("number",)), []
    group = fold._grouped
    monkeypatch.setattr(fold, "_grouped", lambda rows: grouped.append(rows.num_rows) or group(rows))
    for start in range(0, 4000, 10):
        fold.add(pa.table({"key": list(range(start, start + 10)), "number": [1] * 10}))
    assert sum(grouped) <= 4 * 4000
    found = fold.result()
    assert found is not None
    assert found.num_rows == 4000
