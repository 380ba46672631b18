"""The bundled slice as an hourly rotation would have left it: its one minute put astride the full hour.

All times of all lines are moved by the same 26 minutes, so the logs stay one history; the request logs are cut to some
seconds on both sides of the hour, which keeps the run short.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.dags.conftest import ROOT

SLICE = ROOT / "tests" / "data" / "slice"
SHIFT = timedelta(minutes=26)
#: Where the hour changes in the slice's own time: within it a broker is paused before, and killed after.
REQUESTS = (datetime(2026, 11, 20, 15, 33, 56, tzinfo=UTC), datetime(2026, 11, 20, 15, 34, 9, tzinfo=UTC))

_LINE = re.compile(r"\[(2026-11-20 \d\d:\d\d:\d\d),(\d{3})\]")
#: Milliseconds since the epoch of that day, where lines hold any.
_MILLIS = re.compile(r"(?<!\d)17951[3-9]\d{7}(?!\d)")


def write_hours(target: Path) -> None:
    """Write the slice's logs below a folder, a file per broker, log and hour: `server.log.2026-11-20-15.gz`."""
    for source in sorted(SLICE.glob("broker-*/logs/*.log.gz")):
        hours: dict[str, list[str]] = {}
        for moment, line in _lines(source):
            if source.name.startswith("kafka-request") and not REQUESTS[0] <= moment < REQUESTS[1]:
                continue
            hours.setdefault(f"{moment + SHIFT:%Y-%m-%d-%H}", []).append(_moved(moment, line))
        folder = target / source.parent.relative_to(SLICE)
        folder.mkdir(parents=True, exist_ok=True)
        for hour, lines in hours.items():
            file = folder / f"{source.name.removesuffix('.gz')}.{hour}.gz"
            file.write_bytes(gzip.compress("".join(lines).encode(), 1, mtime=0))


def _lines(source: Path) -> Iterator[tuple[datetime, str]]:
    """Lines with their time; one that has none belongs to the line before it."""
    moment = None
    for line in gzip.decompress(source.read_bytes()).decode().splitlines(keepends=True):
        if match := _LINE.match(line):
            moment = datetime.strptime(f"{match[1]}.{match[2]}+0000", "%Y-%m-%d %H:%M:%S.%f%z")
        assert moment is not None, f"{source} begins with a line that has no time"
        yield moment, line


def _moved(moment: datetime, line: str) -> str:
    if match := _LINE.match(line):
        there = f"{moment + SHIFT:%Y-%m-%d %H:%M:%S},{match[2]}"
        line = f"[{there}]{line[match.end() :]}"
    shift_ms = SHIFT // timedelta(milliseconds=1)
    return _MILLIS.sub(lambda millis: str(int(millis[0]) + shift_ms), line)
