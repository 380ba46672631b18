"""Tables on terminals of any width: words and numbers stay whole, and nothing is left out."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.base.grid import format_grid

WORDS = st.text("abcdefghij0123456789,.-_/", min_size=1, max_size=24)
CELLS = st.lists(WORDS, max_size=8).map(" ".join)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[list[str]], list[bool]]:
    width = draw(st.integers(1, 9))
    right = draw(st.lists(st.booleans(), min_size=width, max_size=width))
    heads = [draw(st.lists(WORDS, min_size=1, max_size=3).map(" ".join)) for _ in range(width)]
    rows = [[draw(WORDS if is_right else CELLS) for is_right in right] for _ in range(draw(st.integers(1, 5)))]
    return heads, rows, right


@given(tables(), st.integers(20, 120))
def test_each_word_is_whole_and_each_line_fits(given_table: tuple, width: int) -> None:
    heads, rows, right = given_table
    lines = format_grid(heads, rows, right, width).split("\n")
    words = Counter(word for row in rows for cell in row for word in cell.split())
    assert not words - Counter(word for line in lines for word in line.split())
    longest = max(len(word) for row in (heads, *rows) for cell in row for word in cell.split())
    assert all(len(line) <= max(width, longest + 5) for line in lines)
    assert lines[0].startswith("(one block per row") or set(lines[0].split()) <= {
        w for head in heads for w in head.split()
    }


@given(tables())
def test_without_a_limit_a_row_is_a_line(given_table: tuple) -> None:
    heads, rows, right = given_table
    lines = format_grid(heads, rows, right, None).split("\n")
    assert len(lines) == 2 + len(rows)
    starts = [0]
    for rule in lines[1].split("  "):
        starts.append(starts[-1] + len(rule) + 2)
    for line, row in zip(lines[2:], rows, strict=True):
        assert [line[a : b - 2].strip() for a, b in pairwise(starts)] == row


def test_a_table_that_does_not_fit_is_a_block_per_row() -> None:
    heads = ["request", *(f"p{n} in a" for n in (50, 99, 999)), "change"]
    row = ["PRODUCE acks=all", "1,204.5", "20,393", "120,356", "0.47x"]
    assert format_grid(heads, [row], [False, True, True, True, True], 40).split("\n") == [
        "(one block per row: 5 columns are too",
        "wide for a terminal of 40)",
        "request: PRODUCE acks=all",
        "  p50 in a: 1,204.5  p99 in a: 20,393",
        "  p999 in a: 120,356  change: 0.47x",
    ]
