"""The report in a few lines for a terminal: plain text of at most 100 columns that needs no colour."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from pipelines.report.model import UNKNOWN_BROKER, Operations, Report
from pipelines.report.plain import count, ms, plain, share

WIDTH = 100
#: Of a list that may be long only so many entries are shown.
SHOWN_MAX = 5


def summary_text(report: Report) -> str:
    """What one wants to know first: verdict, brokers, coverage, operations, blame."""
    return "\n".join(_lines(report))


def _lines(report: Report) -> Iterator[str]:
    yield f"verdict: {report.verdict}   evidence: {report.tier}"
    yield from _list("", report.inconclusive)
    yield ""
    yield from _table(
        ("broker", "kafka", "mode", "tier", "files", "lines", "from", "to"),
        [
            (
                _broker(broker.broker_id),
                broker.kafka_version or "-",
                broker.mode or "-",
                broker.tier,
                count(broker.files),
                count(broker.lines),
                broker.first_time or "-",
                broker.last_time or "-",
            )
            for broker in report.brokers
        ],
        left={1, 2, 3, 6, 7},
    )
    yield ""
    coverage = report.coverage
    yield f"coverage: {count(coverage.parsed)} of {count(coverage.lines)} log records ({share(coverage.share_parsed)})"
    yield from _list("cannot be shown: ", [f"{gap.reason}: {gap.needs}" for gap in coverage.not_checkable])
    yield from _list("input: ", report.problems)
    yield ""
    yield from _operations(report.operations.produce)
    if report.blame:
        yield ""
        yield from _blame(report)


def _operations(produce: Operations) -> Iterator[str]:
    classes = ("explained", "jitter", "late", "unobservable", "contradicted")
    counted = ", ".join(f"{name} {count(getattr(produce, name))}" for name in classes)
    yield from _wrapped(f"acks=all produces: {count(produce.observed)} ({counted})")
    if produce.succeeded:
        near = ", ".join(f"{n} ms {share(value)}" for n, value in produce.within_ms.items())
        yield from _wrapped(f"answered within n ms of the predicted interval: {near}")
    if produce.known_bugs:
        bugs = ", ".join(f"{plain(bug)} {count(number)}" for bug, number in produce.known_bugs.items())
        yield from _wrapped(f"signatures of known bugs: {bugs}")


def _blame(report: Report) -> Iterator[str]:
    yield f"waited for (slow: beyond {report.slow_ms} ms):"
    yield from _table(
        ("broker", "operations", "slow", "share", "waited s", "wait p99 ms", "p99 ms", "p99 without", ""),
        [
            (
                _broker(row.broker_id),
                count(row.operations),
                count(row.operations_slow),
                share(row.share),
                f"{row.wait_ms_total / 1000:,.1f}",
                ms(row.wait_ms_p99),
                ms(row.p99_ms_actual),
                ms(row.p99_ms_without),
                "stands out" if row.singled_out else "",
            )
            for row in report.blame
        ],
        left={8},
    )


def _broker(broker_id: int) -> str:
    return "?" if broker_id == UNKNOWN_BROKER else str(broker_id)


def _list(prefix: str, texts: Sequence[str]) -> Iterator[str]:
    for text in texts[:SHOWN_MAX]:
        yield from _wrapped(f"  {prefix}{plain(text)}")
    if len(texts) > SHOWN_MAX:
        yield f"  {prefix}and {len(texts) - SHOWN_MAX} more, see the report"


def _wrapped(line: str) -> Iterator[str]:
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    yield from textwrap.wrap(line, WIDTH, subsequent_indent=indent, break_on_hyphens=False) or [""]


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], left: set[int]) -> Iterator[str]:
    """Aligned columns; text that does not fit is cut."""
    cells = [list(columns), *([plain(cell, 26) for cell in row] for row in rows)]
    widths = [max(len(row[number]) for row in cells) for number in range(len(columns))]
    for row in cells:
        aligned = [
            cell.ljust(widths[number]) if number in left else cell.rjust(widths[number])
            for number, cell in enumerate(row)
        ]
        yield plain("  ".join(aligned).rstrip(), WIDTH)
