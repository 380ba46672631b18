"""How much of real logs the text grammars know, and how fast: ``python -m tests.bench.coverage LOGS...``.

Reads the default layout ``[time] LEVEL text (logger)``, plain or gzipped, with continuation lines joined to the record
before them, and parses everything but request logs. Each argument is a folder (a corpus) or a file.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC
from itertools import islice
from pathlib import Path

from highwater.pipelines.bronze.layouts.patterns import KAFKA, pattern_layout
from highwater.pipelines.bronze.source import Source
from highwater.pipelines.grammars.record import KNOWN, TYPED, UNPARSED, LogRecord
from highwater.pipelines.grammars.text_log import parse_text
from tests.reading import log_records

_RECORD_BYTES_MAX = 1 << 26
_BATCH = 10_000
_KINDS = ("state-change", "controller", "log-cleaner", "server")


def kind_of(path: Path) -> str:
    """Kind of file by its name, as bronze names them."""
    return next((kind for kind in _KINDS if path.name.startswith(kind)), "other")


def read_records(path: Path) -> Iterator[LogRecord]:
    """Records of one file in the default layout; what comes before the first one is dropped."""
    kind, layout = kind_of(path), pattern_layout(KAFKA)
    parse = layout.parser(UTC)
    with path.open("rb") as file:
        for raw in log_records(Source(file).blocks(), layout, _RECORD_BYTES_MAX):
            head = parse(raw.text)
            if head is not None:
                message = head.message.decode(errors="replace")
                yield LogRecord(kind, head.time_us, head.level or "", head.logger or "", message)


def batched(records: Iterator[LogRecord], size: int) -> Iterator[list[LogRecord]]:
    """Lists of at most so many records."""
    while batch := list(islice(records, size)):
        yield batch


def find_logs(root: Path) -> list[Path]:
    """Text logs below a folder; the request log has a grammar of its own."""
    if root.is_file():
        return [root]
    return sorted(
        path
        for path in root.rglob("*.log*")
        if path.is_file()
        and "request" not in path.name
        and kind_of(path) != "other"
        and "data" not in path.relative_to(root).parts
    )


def _show(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def main(argv: list[str] | None = None) -> int:
    """Print a table per corpus and kind of file, then what is not parsed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", nargs="+", type=Path, help="folders or files")
    parser.add_argument("--top", type=int, default=15, help="unparsed texts to list per corpus")
    parser.add_argument("--facts", action="store_true", help="count the facts per table")
    options = parser.parse_args(argv)
    _show("corpus             kind            records     typed     known unparsed     share  records/s")
    for root in options.logs:
        unparsed: Counter[tuple[str, str, str]] = Counter()
        tables: Counter[str] = Counter()
        outcomes: dict[str, Counter[str]] = {}
        seconds: defaultdict[str, float] = defaultdict(float)
        for path in find_logs(root):
            kind = kind_of(path)
            counts = outcomes.setdefault(kind, Counter())
            for batch in batched(read_records(path), _BATCH):
                begin = time.process_time()  # not the wall clock: other processes share the machine
                results = [parse_text(record) for record in batch]
                seconds[kind] += time.process_time() - begin
                for record, parsed in zip(batch, results, strict=True):
                    counts[parsed.outcome] += 1
                    if parsed.outcome == UNPARSED:
                        unparsed[record.level, record.logger, parsed.problem or parsed.template] += 1
                    for fact in parsed.facts:
                        tables[fact.table] += 1
        for kind, counts in sorted(outcomes.items()):
            total = counts.total()
            share = (counts[TYPED] + counts[KNOWN]) / total if total else 1.0
            _show(
                f"{root.name[:18]:18} {kind:13} {total:9} {counts[TYPED]:9} {counts[KNOWN]:9} {counts[UNPARSED]:8} "
                f"{share:9.5%} {total / seconds[kind] if seconds[kind] else 0:10.0f}"
            )
        for (level, logger, text), count in unparsed.most_common(options.top):
            _show(f"    {count:6} {level:5} {logger}: {text}")
        if options.facts:
            _show("    facts: " + ", ".join(f"{table} {count}" for table, count in tables.most_common()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
