"""What is audited again, in one run or in another, is there once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.catalog import NAME_FILES, PLACE
from tests.crash.commands import SMALL_CONF, Command, highwater
from tests.crash.conftest import VERDICTS, Undisturbed
from tests.crash.inputs import INSTANTS, size
from tests.crash.lakes import compare
from tests.cuts import cut_at, cut_at_random, deliver

#: Ids of runs and paths of files are those of places.
OF_THE_PLACE = ("gold.runs", *(spec.full_name for spec in NAME_FILES))


@pytest.mark.crash
def test_two_runs_of_one_input_at_once(undisturbed: Undisturbed, tmp_path: Path, tell: Callable[[str], None]) -> None:
    """One fails at once, as it is told not to wait, and names the other."""
    one = Command(tmp_path, "audit", undisturbed.corpus, out=tmp_path / "one")
    two = Command(tmp_path, "audit", undisturbed.corpus, out=tmp_path / "two")
    ends = sorted([(one, one.ended()), (two, two.ended())], key=lambda pair: pair[1].code == 2)
    (winner, won), (_, lost) = ends
    tell(f"{won.code} after {won.seconds:.0f} s, {lost.code} after {lost.seconds:.1f} s: {lost.complaints}")
    assert (won.code, lost.code) == (undisturbed.ended.code, 2)
    assert len(lost.complaints) == 1
    assert f"is being written by highwater audit, process {winner.process.pid} on" in lost.complaints[0]
    assert compare(undisturbed.folder / "lake", tmp_path / "lake").differences == []


@pytest.mark.crash
def test_two_runs_of_two_inputs_at_once(undisturbed: Undisturbed, tmp_path: Path, tell: Callable[[str], None]) -> None:
    """Logs of one broker, and of the others: the second run waits, and then all is as if they had come together."""
    waiting = SMALL_CONF.replace("lock_wait_s = 0", "lock_wait_s = 1200")
    brokers = sorted(undisturbed.corpus.glob("broker-*"))
    one = Command(tmp_path, "audit", brokers[0], conf=waiting, out=tmp_path / "one")
    holds = one.until(lambda seen: seen.stages)  # who is first decides on nothing, but on what is told
    two = Command(tmp_path, "audit", *brokers[1:], conf=waiting, out=tmp_path / "two")
    first, second = one.ended(), two.ended()
    assert holds
    assert {first.code, second.code} <= set(VERDICTS), first.err + second.err
    assert f"is being written by highwater audit, process {one.process.pid} on" in second.err
    compared = compare(undisturbed.folder / "lake", tmp_path / "lake", layers=("gold",), without=["gold.runs"])
    tell(f"the second waited and ended after {second.seconds:.0f} s; {compared}")
    assert compared.differences == []


@pytest.mark.crash
@pytest.mark.parametrize("seed", [None, 1])
def test_piece_by_piece(
    seed: int | None, undisturbed: Undisturbed, tmp_path: Path, tell: Callable[[str], None]
) -> None:
    """Rotated files one after the other, at instants or at random, give the gold of all at once.

    Pieces are other files, so timelines rest on lines in other places: columns of places are not compared.
    """
    target = tmp_path / "pieces"
    pieces = (
        cut_at(undisturbed.corpus, target, INSTANTS)
        if seed is None
        else cut_at_random(undisturbed.corpus, target, 3, seed)
    )
    shipped = tmp_path / "shipped"
    for piece in pieces:
        if not deliver(piece, shipped):
            continue
        ended = highwater(tmp_path / "in-turn", "audit", shipped)
        assert ended.code in VERDICTS, ended.err
        tell(f"{size(shipped)} files and lines after {ended.seconds:.0f} s")
    compared = compare(undisturbed.folder / "lake", tmp_path / "in-turn" / "lake", ("gold",), OF_THE_PLACE, PLACE)
    tell(str(compared))
    assert compared.differences == []
