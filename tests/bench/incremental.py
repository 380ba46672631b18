"""What one more hour costs, by the hours before it: ``python -m tests.bench.incremental [LOGS] [--history 1 20 200]``.

The hours are those of `tests.bench.hours`: copies of a log folder, of which all but the first have its request logs
only, from the last change of a leader on. The hours of a history are audited in one run, then one by one as many as
``--runs`` says, and one before them. Those are measured, as processes of their own, since an hourly audit is one, and
with a report of their hour, as the hourly DAG has it; a row is the one that took the median. Beside seconds by stage it
counts how often a Parquet file of the lake was opened, whoever opened it. Ratios are to the row of the shortest
history. The last column is a report of all hours, a process again.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from pathlib import Path
from threading import Event, Thread
from typing import NamedTuple

from inotify_simple import INotify, flags

from tests.bench.figures import insert, markdown
from tests.bench.hours import settled, write_hour
from tests.bench.performance import STAGES, stages_of

SLICE = Path(__file__).parents[1] / "data" / "slice"
HEADS = (
    *("hours before", "MB of text", "hour, s", *STAGES, "files opened", "of them report", "ratio", "ratio of files"),
    "report of all, s",
)
_MB = 1e6
_SETTLE_S = 0.5
_HOUR = timedelta(hours=1)
_COMMAND = (sys.executable, "-m", "highwater.jobs.cli")
_VERDICTS = (0, 1, 3)


class Hour(NamedTuple):
    """What an audit took."""

    seconds: float
    stages: dict[str, float]  #: seconds by stage
    in_report: int  #: how often files were opened after its report had begun
    opened: Counter[str]  #: how often files were, by table


def main(arguments: list[str]) -> None:
    """Measure, print, and write the document."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("logs", type=Path, nargs="?", default=SLICE)
    parser.add_argument("--history", type=int, nargs="+", default=(1, 20, 200), help="hours, ascending")
    parser.add_argument("--runs", type=int, default=3, help="hours after each history, of which a row is the median")
    parser.add_argument("--markdown", type=Path, help="a document that holds the table")
    given = parser.parse_args(arguments)
    rows: list[tuple[str, ...]] = []
    first: Hour | None = None
    with tempfile.TemporaryDirectory(prefix="highwater-bench-") as scratch:
        folder, lake, hours, size = Path(scratch, "logs"), Path(scratch, "lake"), 0, 0
        since = settled(given.logs)
        for history in given.history:
            for until in (history, history + 1):
                while hours < until:
                    size += write_hour(given.logs, folder, hours, since)
                    hours += 1
                _audited(folder, lake, _window(since, hours - 1))
            before, measured = hours, []
            for _ in range(given.runs):
                size += write_hour(given.logs, folder, hours, since)
                hours += 1
                measured.append(_hour(folder, lake, _window(since, hours - 1)))
            hour = sorted(measured, key=attrgetter("seconds"))[given.runs // 2]
            first = first or hour
            count = hour.opened.total()
            ratios = (f"{hour.seconds / first.seconds:.2f}", f"{count / first.opened.total():.2f}")
            spent = (f"{hour.stages.get(stage, 0.0):.1f}" for stage in STAGES)
            counts = (str(count), str(hour.in_report), *ratios, f"{_report_of_all(lake):.1f}")
            rows.append((str(before), f"{size / _MB:,.0f}", f"{hour.seconds:.1f}", *spent, *counts))
            print(*rows[-1], sep="  ", flush=True)
            print("  of", ", ".join(f"{other.seconds:.1f} s" for other in measured), flush=True)
            most = ", ".join(f"{table} {times}" for table, times in hour.opened.most_common(12))
            print("  most opened:", most, flush=True)
    lines = markdown(HEADS, rows)
    print("\n" + "\n".join(lines))
    if given.markdown:
        insert(given.markdown, lines)


def _window(since: str, hour: int) -> list[str]:
    """Options of a report of one of the hours."""
    begin = datetime.fromisoformat(since).replace(minute=0, second=0, tzinfo=UTC) + hour * _HOUR
    return ["--from", begin.isoformat(), "--until", (begin + _HOUR).isoformat()]


def _report_of_all(lake: Path) -> float:
    started = time.perf_counter()
    command = [*_COMMAND, "report", "--lake", str(lake), "--out", str(lake.parent / "o")]
    ended = subprocess.run(command, stdout=subprocess.DEVNULL)
    if ended.returncode not in _VERDICTS:
        raise SystemExit(f"{' '.join(command)} ended with {ended.returncode}")
    return time.perf_counter() - started


def _hour(logs: Path, lake: Path, window: Sequence[str]) -> Hour:
    with opened_files(lake) as opened:
        seconds, stages, before_report = _audited(logs, lake, window, opened)
    return Hour(seconds, stages, opened.total() - before_report, opened)


def _audited(
    logs: Path, lake: Path, window: Sequence[str], opened: Counter[str] | None = None
) -> tuple[float, dict[str, float], int]:
    """Seconds of an audit, by stage too, and how many files had been opened when its report began."""
    command = [*_COMMAND, "audit", str(logs), "--lake", str(lake), "--out", str(lake.parent / "o"), *window]
    started, before_report, said = time.perf_counter(), 0, []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            if line.startswith("replay ") and opened is not None:
                time.sleep(_SETTLE_S)
                before_report = opened.total()
    seconds = time.perf_counter() - started
    if process.returncode not in _VERDICTS:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}:\n{''.join(said)}")
    return seconds, stages_of("".join(said)), before_report


@contextmanager
def opened_files(lake: Path) -> Iterator[Counter[str]]:
    """Count, by table, how often Parquet files that are there already are opened below a folder within the block."""
    opened: Counter[str] = Counter()
    ended = Event()
    with INotify() as watch:
        table_of = {
            watch.add_watch(folder, flags.OPEN): f"{folder.parent.name}.{folder.name}"
            for folder in lake.glob("*/*")
            if folder.is_dir()
        }
        there = {path.name for path in lake.glob("*/*/*.parquet")}

        def count() -> None:
            while not ended.is_set():
                for event in watch.read(timeout=100):
                    if event.name in there:
                        opened[table_of[event.wd]] += 1

        thread = Thread(target=count, daemon=True)
        thread.start()
        try:
            yield opened
        finally:
            time.sleep(_SETTLE_S)
            ended.set()
            thread.join()


if __name__ == "__main__":
    main(sys.argv[1:])
