"""What a report says of its sources."""

from __future__ import annotations

import pytest

from highwater.pipelines.bronze.excerpts import has_gaps
from highwater.pipelines.report.sources import describe_source, make_sources, summarize_sources

KAFKA = "[%d] %p %m (%c)"
ROWS = [
    {"path": "/l/b", "layout": f"newest-first => json {{}} => frame %X %m => {KAFKA}", "encoding": "utf-16-le"},
    {"path": "/l/a", "layout": KAFKA, "excerpt": "levels"},
    {"path": "/l/c", "layout": None},
    {"path": "/l/d", "layout": f"{KAFKA} => | => frame %d %m => %d %m"},
]


def test_each_source_says_how_it_was_read() -> None:
    first, second, third, changed = make_sources(ROWS)
    assert (first.path, first.excerpt, first.around) == ("/l/a", "no line below WARN", ())
    assert (second.layout, second.around, second.encoding) == (KAFKA, ("json {}", "frame %X %m"), "utf-16-le")
    assert second.order == "its records are newest first; they were read backwards"
    assert (third.layout, third.around) == (None, ())
    assert (changed.layout, changed.around) == (f"{KAFKA}; %d %m", ("frame %d %m",))
    assert describe_source(third) is None
    assert describe_source(first) == "/l/a: an excerpt: no line below WARN"


def test_one_line_says_what_is_unusual() -> None:
    assert summarize_sources(make_sources(ROWS)) == (
        "sources: 3 complete logs, 1 excerpt (1: no line below WARN), 1 newest first, 1 in utf-16-le"
    )


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [((1, 2, 3, 4, 5, 6), False), ((4, 7, 90, 91, 200, 201), True), ((9, 7, 90, 2, 200, 4), False)],
)
@pytest.mark.parametrize("form", ["{}:[2026-11-20", "kafka-1/server.log:{}:[2026", "{}-\tat x"])
def test_numbers_of_lines_with_gaps(form: str, numbers: tuple[int, ...], expected: bool) -> None:
    assert has_gaps([form.format(number).encode() for number in numbers]) is expected


def test_times_are_no_numbers_of_lines() -> None:
    assert not has_gaps([f"15:33:{second:02} [main]".encode() for second in range(0, 60, 7)])
    assert not has_gaps([f"2026-11-20 15:33:{second:02} [main]".encode() for second in range(0, 60, 7)])
