"""Makes text_lines.jsonl.gz: real lines that become facts, one for each shape: ``python -m tests.data.sample_lines``.

Arguments are corpora of `../shared/corpora` (all, if there are none). A shape is a template of the grammars with the
columns that a line fills and the number of its facts; the first line of a shape, corpus by corpus, is taken.
"""

from __future__ import annotations

import gzip
import re
import sys
from pathlib import Path

import orjson

from highwater.pipelines.grammars.record import LogRecord
from highwater.pipelines.grammars.text_log import parse_text
from tests.bench.coverage import find_logs, read_records
from tests.reading import columns_of

SAMPLE = Path(__file__).parent / "text_lines.jsonl.gz"
_MAX_LENGTH = 900
_MAX_FACTS = 6

#: How an ISR begins: with a bracket, a name or a number.
_ISR = re.compile(r"(?i:isr)([=: ]\W*(?:[A-Z]\w+\(|\d)?)")
_VERSION = re.compile(r"Kafka version ?: (\d[\w.-]*)")


def lines_of(corpus: Path, seen: set[tuple[object, ...]]) -> list[dict[str, str]]:
    """Lines of a corpus whose shape was not seen yet, each with the version that printed it."""
    version = ""
    taken: list[LogRecord] = []
    for path in find_logs(corpus):
        for record in read_records(path):
            if not version and (match := _VERSION.match(record.message)):
                version = match[1]
            parsed = parse_text(record)
            if not parsed.facts or len(record.message) > _MAX_LENGTH or len(parsed.facts) > _MAX_FACTS:
                continue
            columns = {name for fact in parsed.facts for name, value in columns_of(fact).items() if value is not None}
            shape = (
                parsed.template,
                record.logger,
                len(parsed.facts),
                *sorted(columns),
                *_ISR.findall(_numbers(record)),
            )
            if shape not in seen:
                seen.add(shape)
                taken.append(record)
    return [{"version": version, **record._asdict()} for record in taken]


def _numbers(record: LogRecord) -> str:
    return re.sub(r"\d+", "9", record.message)


def main(names: list[str]) -> None:
    """Write the sample."""
    root = Path(__file__).parents[3] / "shared" / "corpora"
    corpora = [root / name for name in names] or sorted(path for path in root.iterdir() if path.is_dir())
    seen: set[tuple[object, ...]] = set()
    lines = [orjson.dumps(line) for corpus in corpora for line in lines_of(corpus, seen)]
    SAMPLE.write_bytes(gzip.compress(b"\n".join(lines) + b"\n", mtime=0))


if __name__ == "__main__":
    main(sys.argv[1:])
