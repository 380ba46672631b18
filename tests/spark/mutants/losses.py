"""Losses of lines: at random, in bursts, a whole broker, a rotated file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from tests.spark.mutants.slices import SLICES, Record, Records

SHARE_MAX = 0.3
#: A log is cut into so many files where one of them gets lost.
PIECES = 5

Lose = Callable[[Records, Random], Records]


@dataclass(frozen=True)
class Loss:
    """A seeded loss in a slice."""

    name: str
    part: str
    lose: Lose
    seed: int
    long: bool

    def apply(self) -> Records:
        """What is left of the slice."""
        return self.lose(SLICES[self.part].read(), Random(self.seed))


def at_random(records: Records, random: Random) -> Records:
    """Each line with the same probability, up to 30%."""
    share = random.uniform(0, SHARE_MAX)
    return tuple(record for record in records if random.random() >= share)


def in_bursts(records: Records, random: Random) -> Records:
    """Consecutive lines of files, until up to 30% are gone."""
    wanted = int(len(records) * random.uniform(0.02, SHARE_MAX))
    gone: set[int] = set()
    while len(gone) < wanted:
        start = random.randrange(len(records))
        length = random.randint(2, 120)
        gone.update(range(start, min(start + length, len(records))))
    return tuple(record for at, record in enumerate(records) if at not in gone)


def of_a_broker(records: Records, random: Random) -> Records:
    """All files of one broker, and some lines of the others."""
    lost = random.choice(sorted({record.broker_id for record in records}))
    rest = tuple(record for record in records if record.broker_id != lost)
    return at_random(rest, random) if random.random() < 0.5 else rest


def of_a_file(records: Records, random: Random) -> Records:
    """One of the files that a broker's log was rotated into; or one kind of file."""
    file = random.choice(sorted({record.file for record in records}))
    if random.random() < 0.3:
        return tuple(record for record in records if record.file != file)
    times = sorted(record.time_us for record in records if record.file == file)
    cuts = sorted(random.choice(times) for _ in range(PIECES - 1))
    piece = random.randrange(PIECES)
    since = cuts[piece - 1] if piece else times[0]
    until = cuts[piece] if piece < len(cuts) else times[-1] + 1

    def lost(record: Record) -> bool:
        return record.file == file and since <= record.time_us < until

    return tuple(record for record in records if not lost(record))


def of_a_kind(records: Records, random: Random) -> Records:
    """Lines of a few loggers only: what one rarely thinks of losing alone."""
    loggers = sorted({record.logger for record in records})
    chosen = set(random.sample(loggers, k=min(3, len(loggers))))
    share = random.uniform(0.3, 1)
    return tuple(record for record in records if record.logger not in chosen or random.random() >= share)


KINDS: dict[str, Lose] = {
    "random": at_random,
    "bursts": in_bursts,
    "broker": of_a_broker,
    "file": of_a_file,
    "logger": of_a_kind,
}
#: Runs of each kind in each slice. `make test` has the first one; the others are for `make test-corpora`.
RUNS = 7


def losses() -> Iterator[Loss]:
    """All runs: every slice, five kinds, seven seeds."""
    for part in SLICES:
        for name, lose in KINDS.items():
            for run in range(RUNS):
                seed = hash_of(part, name, run)
                yield Loss(f"loss {part} {name} {run}", part, lose, seed, long=run > 0)


def hash_of(*parts: object) -> int:
    """A seed that stays the same."""
    return Random("|".join(map(str, parts))).getrandbits(32)
