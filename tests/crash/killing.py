"""Where runs are killed: at every boundary that can be seen, and at moments that nobody chose."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.crash.commands import Command, Ended, Seen

STAGES = ("start Spark", "ingest", "parse", "replay", "report")


@dataclass(frozen=True)
class Kill:
    """One kill."""

    way: str  #: what made the harness kill: commit, file, stage or moment
    where: str  #: the table or stage, or the stage that was at work
    seconds: float  #: after the start of the run
    commits: int  #: that the run had made
    processes: int  #: that were killed

    def __str__(self) -> str:
        what = f"{self.way} {self.where}"
        return f"{what:<44} {self.seconds:6.1f} s {self.commits:3} commits {self.processes:2} processes"


@dataclass
class Killer:
    """Kills runs; remembers at which boundaries, so that each run of a chain gets further than the one before."""

    seed: int  #: of the random moments
    duration_s: float  #: how long an undisturbed run takes: random moments are within it
    #: how the next runs are killed: at the first commit to a table, at the first file written for one or at the end
    #: of a stage, each at one at which the chain was not killed yet; or at a random moment
    ways: Iterator[str]
    kills: list[Kill] = field(default_factory=list)  #: what was done
    missed: int = 0  #: runs that ended before their moment

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        self._reached: set[tuple[str, str]] = set()

    def new_chain(self) -> None:
        """All boundaries count again."""
        self._reached.clear()

    def run_and_kill(self, folder: Path, verb: str, *arguments: object, lake: Path | str, **how: Any) -> Ended | None:
        """Start a run and kill it; gives how it ended if it did by itself."""
        command = Command(folder, verb, *arguments, lake=lake, **how)
        hit = command.until(self._trigger(next(self.ways), self._chance.uniform(0, self.duration_s)))
        if hit is None:
            self.missed += 1
            return command.ended()
        seen = command.seen()
        processes = command.kill()
        self._reached.add(hit)
        self.kills.append(Kill(*hit, seen.seconds, sum(seen.commits.values()), processes))
        return None

    def _trigger(self, way: str, moment: float) -> Callable[[Seen], tuple[str, str] | None]:
        def reached(seen: Seen) -> tuple[str, str] | None:
            if way == "moment":
                return ("moment", f"in {_at_work(seen)}") if seen.seconds >= moment else None
            boundaries = {"commit": seen.commits, "file": seen.written, "stage": seen.stages}[way]
            return next(((way, name) for name in boundaries if (way, name) not in self._reached), None)

        return reached

    def by_way(self) -> Counter[str]:
        """How many kills there were of each way."""
        return Counter(kill.way for kill in self.kills)

    def by_stage(self) -> Counter[str]:
        """How many kills hit each stage or table."""
        return Counter(kill.where for kill in self.kills)


def ways(seed: int) -> Iterator[str]:
    """Ways to kill, without end: half of them at commits, of which there are most."""
    chance = random.Random(seed)
    while True:
        block = ["stage", "commit", "commit", "commit", "commit", "commit", "file", "file", "moment", "moment"]
        chance.shuffle(block)
        yield from block


def _at_work(seen: Seen) -> str:
    return next((stage for stage in STAGES if stage not in seen.stages), "ledger")
