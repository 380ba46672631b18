"""Connections that go on after a silence that an earlier run took for their end."""

from collections.abc import Iterable

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.base.blobs import read_blobs
from highwater.pipelines.replay.connections import GONE_US
from highwater.pipelines.replay.silences import COLUMNS, KEY_TYPES, ORDER, SCHEMA, SILENCES, SilenceWorker, silent_since

SECOND_US = 1_000_000
SEALED = {("c", 1): 100 * SECOND_US}


def found(rows: Iterable[tuple[str, float, bool]]) -> int | None:
    """The earliest silence, seconds; the seal lies at 100 s."""
    columns = (*KEY_TYPES, *ORDER, "is_new")
    values = [
        dict(zip(columns, ("c", 1, connection, int(second * SECOND_US), 0 if is_new else 1, is_new), strict=True))
        for connection, second, is_new in rows
    ]
    order = [(name, "ascending") for name in (*KEY_TYPES, *ORDER)]
    table = pa.Table.from_pylist(values, SCHEMA).sort_by(order).select([*KEY_TYPES, *COLUMNS])
    blobs = SilenceWorker(SEALED)(iter(table.to_batches(max_chunksize=2)))
    tables = read_blobs((row["table"], row["rows"]) for blob in blobs for row in blob.to_pylist())
    silences = [row["silent_us"] // SECOND_US for row in tables[SILENCES]]
    return silences[0] if silences else None


def test_a_connection_that_goes_on_was_silent_since_its_last_fetch() -> None:
    assert found(("stopped", second, second > 160) for second in (10, 20, 170, 171)) == 20
    # A file between two that were there.
    assert found(("filled in", second, second == 120) for second in (80, 120, 130)) == 80
    both = [("a", 50, False), ("a", 170, True), ("b", 30, False), ("b", 170, True)]
    assert found(both) == 30


def test_what_was_heard_of_since_or_is_another_one_was_not_silent() -> None:
    assert found(("alive", second, second > 160) for second in (90, 130, 159, 161)) is None
    assert found(("ended", second, False) for second in (10, 20)) is None
    assert found(("began", second, True) for second in (170, 171)) is None
    later = 20 + GONE_US / SECOND_US + 1
    assert found([("another of that name", 20, False), ("another of that name", later, True)]) is None


@given(st.lists(st.tuples(st.integers(0, 3 * GONE_US), st.booleans())))
def test_the_silence_is_between_the_first_new_fetch_and_the_known_one_before(fetches: list[tuple[int, bool]]) -> None:
    new = [arrival_us for arrival_us, is_new in fetches if is_new]
    before = [us for us, is_new in fetches if new and not is_new and min(new) - GONE_US <= us < min(new)]
    ordered = sorted(fetches, key=lambda fetch: (fetch[0], not fetch[1]))
    assert silent_since(ordered) == max(before, default=None)
