"""Rings of tests, some beside each other: ``python -m tests.rings --lanes 2 test-audits test-spark ...``

Each ring is a target of make. The first line says how long they take; every quarter of a minute a line says how far
each is, and a test file that fails is printed at once. At the end: what a ring that failed printed, a line per ring,
and which tests were skipped and why. Ends with 1 if a ring failed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

#: Minutes of each while another one runs beside it, on two cores.
MINUTES = {
    "test-audits": 10,
    "test-spark": 9,
    "test-unit": 7,
    "test-mutants": 3,
    "test-e2e": 1,
    "test-s3": 17,
    "test-airflow": 22,
    "test-cluster-spark": 12,
}
SHOWN_EVERY_S = 15
_PERCENT = re.compile(r"\[ *(\d+)%\]")
_FAILING = re.compile(r"^\S+\.py [.sxX]*[FE][.sxXFE]*")
_SKIPPED = re.compile(r"^SKIPPED \[(\d+)\] (.*)")
_SUMMARY = re.compile(r"^=+ (.*\b(?:passed|failed|skipped|error|deselected)\b.* in .*?) =+$")


@dataclass
class Ring:
    """A ring under way, or at its end."""

    name: str
    percent: int = 0
    lines: list[str] = field(default_factory=list)
    summary: str = ""  #: pytest's last line
    skipped: Counter[str] = field(default_factory=Counter)
    code: int | None = None  #: its exit code; None while it runs

    def run(self) -> Ring:
        """Run it to its end."""
        say(f"{self.name} begins")
        command = ["make", "--no-print-directory", self.name]
        environment = os.environ | {"PYTHONUNBUFFERED": "1"}
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                self.take(line.rstrip("\n"))
        self.code = process.returncode
        say(f"{self.name} {'passed' if self.code == 0 else 'FAILED'}: {self.summary or f'exit code {self.code}'}")
        return self

    def take(self, line: str) -> None:
        """A line that it prints."""
        self.lines.append(line)
        if percent := _PERCENT.search(line):
            self.percent = int(percent[1])
        if _FAILING.match(line):
            say(f"{self.name}: {line}")
        if summary := _SUMMARY.match(line):
            self.summary = summary[1]
        if skipped := _SKIPPED.match(line):
            self.skipped[skipped[2].rpartition(": ")[2]] += int(skipped[1])


_BEGUN_S = time.monotonic()


def say(text: str) -> None:
    """Print a line with the minutes and seconds since the begin."""
    minutes, seconds = divmod(int(time.monotonic() - _BEGUN_S), 60)
    sys.stdout.write(f"{minutes:>3}:{seconds:02}  {text}\n")
    sys.stdout.flush()


def longest(names: list[str], lanes: int) -> int:
    """Minutes until all are done, the next one beginning where a lane is free."""
    ends = [0] * lanes
    for name in names:
        ends[ends.index(min(ends))] += MINUTES.get(name, 1)
    return max(ends)


def main() -> int:
    """Run the rings that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", metavar="RING")
    parser.add_argument("--lanes", type=int, default=2, help="rings beside each other")
    asked = parser.parse_args()
    say(f"{len(asked.names)} rings, {asked.lanes} beside each other: some {longest(asked.names, asked.lanes)} minutes")
    rings = [Ring(name) for name in asked.names]
    is_done = threading.Event()

    def show() -> None:
        while not is_done.wait(SHOWN_EVERY_S):
            running = [f"{ring.name} {ring.percent}%" for ring in rings if ring.lines and ring.code is None]
            say(", ".join(running))

    shower = threading.Thread(target=show, daemon=True)
    shower.start()
    with ThreadPoolExecutor(asked.lanes) as lanes:
        list(lanes.map(Ring.run, rings))
    is_done.set()
    shower.join()
    failed = [ring for ring in rings if ring.code != 0]
    for ring in failed:
        print(f"\n{ring.name} printed:\n" + "\n".join(ring.lines))
    print()
    skipped: Counter[str] = sum((ring.skipped for ring in rings), Counter())
    for ring in rings:
        print(f"{ring.name}: {'passed' if ring.code == 0 else 'FAILED'}, {ring.summary}")
    for reason, count in skipped.most_common():
        print(f"skipped {count}: {reason}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
