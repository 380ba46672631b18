"""Killed at any point, run again: the same lake."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.crash.commands import SMALL_CONF, Command, Ended, Seen, highwater
from tests.crash.conftest import VERDICTS, Undisturbed
from tests.crash.inputs import INSTANTS, size, small_corpus
from tests.crash.killing import Killer, ways
from tests.crash.lakes import compare, tables
from tests.cuts import cut_at, deliver

PIECES = len(INSTANTS) + 1
SEED = 20261120


@dataclass(frozen=True)
class Chain:
    """Runs on one lake, each killed, with nothing in between."""

    killer: Killer
    folder: Path
    shipped: Path
    lake: Path  #: as it was before the first run, if it was there
    reference: Path  #: what it has to be in the end
    tell: Callable[[str], None]

    def kill(self, kills: int) -> None:
        """Kill so many runs, then let one through."""
        before = self.folder / "before"
        if self.lake.exists():
            shutil.copytree(self.lake, before)
        self.killer.new_chain()
        wanted = len(self.killer.kills) + kills
        while len(self.killer.kills) < wanted:
            ended = self.killer.run_and_kill(self.folder, "audit", self.shipped, lake=self.lake)
            tables(self.lake)  # whatever was killed, every table is whole
            if ended is None:
                self.tell(str(self.killer.kills[-1]))
                continue
            # It was done before its moment came, and there is nothing left to kill: a chain has ended early.
            self._compared(ended)
            shutil.rmtree(self.lake)
            if before.exists():
                shutil.copytree(before, self.lake)
            self.killer.new_chain()
        self._compared(highwater(self.folder, "audit", self.shipped, lake=self.lake))
        shutil.rmtree(before, ignore_errors=True)

    def _compared(self, ended: Ended) -> None:
        assert ended.code in VERDICTS, ended.err
        compared = compare(self.reference, self.lake)
        self.tell(f"{len(self.killer.kills)} kills, and one run of {ended.seconds:.0f} s: {compared}")
        assert compared.differences == []


def _sum_up(killer: Killer, lake: Path, tell: Callable[[str], None]) -> None:
    told = ", ".join(f"{count} at a {name}" for name, count in sorted(killer.by_way().items()))
    tell(f"{len(killer.kills)} kills: {told}; {len(killer.by_stage())} places; {killer.missed} runs got through")
    tell(", ".join(f"{name} {count}" for name, count in sorted(killer.by_stage().items())))
    orphans = sum(version.orphans for version in tables(lake).values())
    tell(f"{orphans} files of killed writes, which no version names")


@pytest.mark.crash
def test_killed_fifty_times(tmp_path: Path, tell: Callable[[str], None]) -> None:
    """The input comes in three pieces, as from an hourly rotation.

    On one lake every piece is audited undisturbed. On the other one a run is killed, the next is started at once and
    killed further on, and so on; then one is let through, and the next piece arrives.
    """
    kills = int(os.environ.get("HIGHWATER_KILLS", "50"))
    shipped, reference, disturbed = tmp_path / "shipped", tmp_path / "undisturbed", tmp_path / "disturbed"
    killer = Killer(SEED, 0, ways(SEED))
    for number, piece in enumerate(cut_at(small_corpus(tmp_path / "corpus"), tmp_path / "pieces", INSTANTS)):
        deliver(piece, shipped)
        smooth = highwater(tmp_path, "audit", shipped, lake=reference)
        assert smooth.code in VERDICTS, smooth.err
        killer.duration_s = smooth.seconds
        files, lines = size(shipped)
        tell(f"piece {number + 1}: {files} files, {lines} lines; undisturbed {smooth.seconds:.0f} s")
        chain = Chain(killer, tmp_path, shipped, disturbed, reference, tell)
        chain.kill(kills * (number + 1) // PIECES - len(killer.kills))
    _sum_up(killer, disturbed, tell)
    ledger = [row["run_id"] for row in tables(disturbed)["gold.runs"].rows()]
    assert len(ledger) == len(set(ledger)) == PIECES
    assert len(killer.kills) >= kills


def _first_of(layer: str, seen: Seen) -> str | None:
    return next((name for name in seen.commits if name.startswith(layer)), None)


@pytest.mark.crash
def test_the_driver_alone_is_killed(undisturbed: Undisturbed, tmp_path: Path, tell: Callable[[str], None]) -> None:
    """Its JVM lives on for a moment; the next run does not write beside it."""
    waiting = SMALL_CONF.replace("lock_wait_s = 0", "lock_wait_s = 60")
    for layer in ("silver", "gold"):
        command = Command(tmp_path, "audit", undisturbed.corpus, conf=waiting)
        at = command.until(partial(_first_of, layer))
        assert at is not None, command.err()
        command.kill_driver()
        tell(f"killed the driver after a commit of {at}")
    ended = highwater(tmp_path, "audit", undisturbed.corpus, conf=waiting)
    assert ended.code == undisturbed.ended.code, ended.err
    compared = compare(undisturbed.folder / "lake", tmp_path / "lake")
    tell(str(compared))
    assert compared.differences == []


@pytest.mark.crash
def test_the_jvm_alone_is_killed(undisturbed: Undisturbed, tmp_path: Path, tell: Callable[[str], None]) -> None:
    """As the kernel does when memory runs out: one line, and nothing is torn."""
    command = Command(tmp_path, "audit", undisturbed.corpus)
    assert command.until(partial(_first_of, "silver")), command.err()
    command.kill_jvm()
    ended = command.ended()
    tell(f"{ended.code} after {ended.seconds:.0f} s: {ended.complaints}")
    assert ended.code == 2, ended.err
    assert len(ended.complaints) == 1
    assert "Spark's JVM has ended" in ended.complaints[0]
    # PySpark's server of accumulators tells of its lost connection before.
    assert ended.err.splitlines()[-1] == ended.complaints[0]
    found = tables(tmp_path / "lake")
    assert sum(version.count() for name, version in found.items() if name.startswith("silver.")) > 0
