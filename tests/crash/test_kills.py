"""Killed at any point, run again: the same lake.

The input comes in three pieces, as from an hourly rotation. On one lake every piece is audited undisturbed. On the
other one a run is killed, the next is started at once and killed further on, and so on; then one is let through, and
the next piece arrives.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.crash.commands import SMALL_CONF, Command, Seen, highwater
from tests.crash.conftest import VERDICTS, Undisturbed
from tests.crash.inputs import INSTANTS, size, small_corpus
from tests.crash.killing import Killer, ways
from tests.crash.lakes import compare, tables
from tests.cuts import cut_at, deliver

PIECES = len(INSTANTS) + 1
SEED = 20261120


def _killed_often(folder: Path, kills_per_piece: list[int], tell: Callable[[str], None]) -> Killer:
    """The whole test, for so many kills while each piece is new."""
    shipped, undisturbed, disturbed = folder / "shipped", folder / "undisturbed", folder / "disturbed"
    killer = Killer(SEED, duration_s=0)
    way = ways(SEED)
    instants = INSTANTS[: len(kills_per_piece) - 1]
    for number, piece in enumerate(cut_at(small_corpus(folder / "corpus"), folder / "pieces", instants)):
        deliver(piece, shipped)
        reference = highwater(folder / "runs", "audit", shipped, lake=undisturbed)
        assert reference.code in VERDICTS, reference.err
        killer.duration_s = reference.seconds
        killer.new_chain()
        wanted = len(killer.kills) + kills_per_piece[number]
        missed = killer.missed
        while len(killer.kills) < wanted:
            # A run that gets through leaves less to do for the next: its boundaries no longer come.
            assert killer.missed - missed <= kills_per_piece[number], "the boundaries have run out"
            ended = killer.run_and_kill(folder / "runs", next(way), shipped, lake=disturbed)
            assert ended is None or ended.code in VERDICTS, ended.err
            tables(disturbed)  # whatever was killed, every table is whole
            if ended is None:
                tell(str(killer.kills[-1]))
        last = highwater(folder / "runs", "audit", shipped, lake=disturbed)
        assert last.code == reference.code, last.err
        files, lines = size(shipped)
        tell(f"piece {number + 1}: {files} files, {lines} lines; undisturbed {reference.seconds:.0f} s")
        compared = compare(undisturbed, disturbed)
        tell(str(compared))
        assert compared.differences == []
    found = tables(disturbed)
    orphans = sum(version.orphans for version in found.values())
    ledger = [row["run_id"] for row in found["gold.runs"].rows()]
    assert len(ledger) == len(set(ledger)) == len(kills_per_piece)
    told = ", ".join(f"{count} at a {name}" for name, count in sorted(killer.by_way().items()))
    tell(f"{len(killer.kills)} kills: {told}; {len(killer.by_stage())} places; {killer.missed} runs got through")
    tell(", ".join(f"{name} {count}" for name, count in sorted(killer.by_stage().items())))
    tell(f"{orphans} files of killed writes, which no version names")
    return killer


def test_killed_three_times(tmp_path: Path, tell: Callable[[str], None]) -> None:
    killer = _killed_often(tmp_path, [3], tell)
    assert len(killer.kills) == 3


@pytest.mark.crash
def test_killed_fifty_times(tmp_path: Path, tell: Callable[[str], None]) -> None:
    wanted = int(os.environ.get("HIGHWATER_KILLS", "50"))
    share = wanted // PIECES
    killer = _killed_often(tmp_path, [wanted - share * (PIECES - 1), *([share] * (PIECES - 1))], tell)
    assert len(killer.kills) >= wanted


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
