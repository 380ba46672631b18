"""A lake that is written from a wheel and from a checkout in turn."""

from __future__ import annotations

from pathlib import Path

from tests.catalog import NAME_FILES, PLACE
from tests.crash.commands import ROOT, highwater
from tests.crash.conftest import VERDICTS, Undisturbed
from tests.crash.inputs import INSTANTS
from tests.crash.lakes import compare, digest
from tests.cuts import cut_at, deliver
from tests.unit.test_packaging import BUILD


def test_a_lake_is_continued_from_a_wheel_and_from_a_checkout(undisturbed: Undisturbed, tmp_path: Path) -> None:
    site, shipped, lake = tmp_path / "site", tmp_path / "shipped", tmp_path / "lake"
    BUILD.lay_out(ROOT, site / BUILD.PACKAGE)
    pieces = cut_at(undisturbed.corpus, tmp_path / "pieces", INSTANTS[:1])
    for piece, where in zip(pieces, (site, ROOT), strict=True):
        deliver(piece, shipped)
        ended = highwater(tmp_path / "run", "audit", shipped, lake=lake, site=where)
        assert ended.code in VERDICTS, ended.err
    without = ("gold.runs", *(spec.full_name for spec in NAME_FILES))
    assert compare(undisturbed.folder / "lake", lake, ("gold",), without, PLACE).differences == []
    before = digest(lake)
    ended = highwater(tmp_path / "run", "audit", shipped, lake=lake, site=site)
    assert ended.code == undisturbed.ended.code, ended.err
    changed = {name for name, value in digest(lake).items() if before.get(name) != value}
    assert not {name for name in changed if name.startswith(("bronze", "silver"))}
