"""Logs that lack lines: a violated cluster never becomes clean, and no violation appears that the whole logs lack."""

from __future__ import annotations

from pathlib import Path
from random import SystemRandom

import pytest

from tests.bench.losses import cases_of
from tests.generators.losses import LOSSES, Logs, at_default_levels
from tests.log_tables import Judged, judge, read_logs
from tests.verbs import CORPORA, SLICE

#: A clean cluster, and one with a lost record.
FOLDERS = [
    pytest.param(SLICE, id="slice"),
    pytest.param(
        CORPORA / "kip101",
        id="kip101",
        marks=pytest.mark.skipif(not CORPORA.is_dir(), reason="the large corpora are not beside this checkout"),
    ),
]
#: Cases of each kind of loss, by seed. The seed of the last ones differs in each run.
SEEDS = ((1, 2), (SystemRandom().getrandbits(32), 1))


@pytest.fixture(scope="module", params=FOLDERS)
def whole(request: pytest.FixtureRequest) -> tuple[Logs, Judged]:
    folder: Path = request.param
    logs = read_logs(folder)
    return logs, judge(logs)


def test_whole_logs_have_no_hole(whole: tuple[Logs, Judged]) -> None:
    logs, judged = whole
    assert judged.holes == judge(at_default_levels(logs)).holes == ()
    assert judged.verdict == ("clean" if len(logs) <= 15 else "violated")


@pytest.mark.parametrize("levels", ["all levels", "default levels"])
def test_no_loss_makes_a_verdict_clean_or_a_violation(whole: tuple[Logs, Judged], levels: str) -> None:
    logs, judged = whole
    left = logs if levels == "all levels" else at_default_levels(logs)
    cases = [case for seed, count in SEEDS for case in cases_of(left, judged, count, seed)]
    bad = [str(case) for case in cases if case.became_clean or case.has_false_violations]
    assert not bad, (SEEDS, bad)
    assert {case.kind for case in cases} >= LOSSES.keys() - {"API", "level"}
    assert any(case.is_seen for case in cases)
