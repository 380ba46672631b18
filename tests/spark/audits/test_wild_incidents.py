"""What happened, told of logs as people post them: the sentences of each case of ../shared/wild."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.faults import incidents_in
from bench.wild_incidents import golden_of, text_of
from tests.verbs import ROOT, Ended

WILD = ROOT.parent / "shared" / "wild"
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not WILD.is_dir(), reason="needs ../shared/wild"),
]
#: Times without a date: nothing is read, and the message says why.
REFUSED = ("09-time-of-day-only",)
CASES = sorted(path.name for path in WILD.glob("*/") if path.name not in REFUSED) if WILD.is_dir() else []


@pytest.mark.parametrize("case", CASES)
def test_what_happened_is_told_in_these_words(verb: Callable[..., Ended], case: str, tmp_path: Path) -> None:
    ended = verb(tmp_path, "audit", WILD / case / "input")
    assert text_of(incidents_in(tmp_path / "lake")) == golden_of(case).read_text(encoding="utf-8"), ended.err
