"""Single forged records that vary real ones: ``python -m tests.bench.lone_records CORPUS... [--cases N] [--seed N]``.

Each case writes one record into one server log, between the parts of a balanced client value. The record is a real one
about a partition, with up to two other numbers. Prints each verdict that gets a violation or becomes clean.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from random import Random

from tests.generators.client_values import ALL_CARRIERS, write_value
from tests.log_tables import LogTables, judge, read_again, read_logs
from tests.unit.forging import TIME

NUMBER = re.compile(r"(?<![\w.])\d{1,9}(?![\w.])")
BYTES_MAX = 20_000


def main(arguments: Sequence[str]) -> int:
    """Print the verdicts that change, and how many cases there were."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument("--cases", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    bad = 0
    for corpus in given.corpora:
        random = Random(f"{given.seed} {corpus.name}")
        logs = read_logs(corpus)
        whole = judge(logs)
        topics = sorted((topic, partition) for _, topic, partition in whole.violations)
        shapes = list(collect_records(logs, topics or [("orders", 0), ("payments", 0)]).values())
        servers = [log for log in logs if log.kind == "server" and b"\n[20" in log.content[: 1 << 16]]
        for number in range(given.cases):
            record = vary(random.choice(random.choice(shapes)), random)
            hit = random.choice(servers)
            found = judge([write(log, record, random) if log is hit else log for log in logs])
            if found.verdict == "clean" != whole.verdict or not found.violations <= whole.violations:
                bad += 1
                print(f"{corpus.name} {number}: {found.verdict}, {sorted(found.violations)}, {record}", flush=True)
        print(f"{corpus.name}: {given.cases} cases, {whole.verdict}", flush=True)
    return 1 if bad else 0


def collect_records(
    logs: Sequence[LogTables], topics: Sequence[tuple[str, int]]
) -> dict[tuple[str, str], list[tuple[str, str, str]]]:
    """Return level, text and logger of records about partitions, by logger and beginning."""
    names = [f"{topic}-{partition}" for topic, partition in topics]
    shapes: dict[tuple[str, str], list[tuple[str, str, str]]] = defaultdict(list)
    for log in logs:
        columns = [log.lines.column(name).to_pylist() for name in ("level", "message", "logger")]
        for level, text, logger in zip(*columns, strict=True):
            if text and "\n" not in text and len(text) < BYTES_MAX and any(name in text for name in names):
                shapes[logger, re.sub(r"\d+", "#", text[:60])].append((level, text, logger))
    return shapes


def vary(record: tuple[str, str, str], random: Random) -> tuple[str, str, str]:
    """Return a record with up to two other numbers in its text."""
    level, text, logger = record
    for _ in range(random.randint(0, 2)):
        if places := list(NUMBER.finditer(text)):
            place = random.choice(places)
            value = int(place[0])
            new = random.choice([0, 1, 2, 3, value + 1, max(0, value - 1), value * 2, value // 2, 99_999])
            text = f"{text[: place.start()]}{new}{text[place.end() :]}"
    return level, text, logger


def write(log: LogTables, record: tuple[str, str, str], random: Random) -> LogTables:
    """Return a log with a record in a balanced value of a client."""
    carrier = random.choice(ALL_CARRIERS)
    level, text, logger = carrier
    before, _, after = (part.replace("{{", "{").replace("}}", "}") for part in text.partition("{}"))
    forged = f"{TIME}{record[0]} {record[1]} ({record[2]})"
    value = "\n".join([f"g{after} ({logger})", forged, f"{TIME}{level} {before}h"])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / Path(log.path).name.removesuffix(".gz")
        path.write_bytes(write_value(log.content, carrier, value, random, "orders-0"))
        return read_again(log, path) or log


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
