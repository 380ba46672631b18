"""Corpora whose times are cut to whole seconds: losses are found, and nobody is accused of what milliseconds excuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.renderings import SECOND_US, Rendering, render_folder
from tests.spark.audits.conftest import Verb
from tests.spark.audits.corpora import available
from tests.verbs import CORPORA, Ended

pytestmark = [
    pytest.mark.corpora,
    pytest.mark.skipif(not available(), reason="the large corpora are not beside this checkout"),
]
#: Without a fraction, and with one that is always 000.
RENDERINGS = (Rendering("kafka-seconds"), Rendering(resolution_us=SECOND_US))
CORPUS = [path.name for path in sorted(CORPORA.iterdir()) if path.is_dir()] if available() else []


def audited(verb: Verb, folder: Path, corpus: str, rendering: Rendering) -> Ended:
    render_folder(CORPORA / corpus, folder / "logs", rendering)
    return verb(folder, "audit", folder / "logs")


def lost(ended: Ended) -> list[tuple[Any, ...]]:
    return [place(one) for one in ended.report["violations"] if one["rule_id"] == "committed-data-lost"]


def place(one: dict[str, Any]) -> tuple[Any, ...]:
    return one["rule_id"], one["topic"], one["partition"], one["offset_start"], one["offset_end"]


def claims(report: dict[str, Any]) -> dict[str, Any]:
    """What would be shown of milliseconds."""
    told = {}
    for kind, operations in report["operations"].items():
        for name in ("explained", "jitter", "late", "contradicted"):
            told[f"{kind} {name}"] = operations[name]
        told |= {f"{kind} within {n}": share for n, share in operations["within_ms"].items()}
    return {name: value for name, value in told.items() if value}


@pytest.mark.parametrize(
    "rendering", [RENDERINGS[0], pytest.param(RENDERINGS[1], marks=pytest.mark.long)], ids=lambda each: each.name
)
def test_the_hole_of_kip_101_shows_in_seconds(verb: Verb, tmp_path: Path, rendering: Rendering) -> None:
    ended = audited(verb, tmp_path, "kip101", rendering)
    assert [place(one) for one in ended.report["violations"]] == [("committed-data-lost", "ledger", 0, 118, 119)]
    assert ended.report["open_cases"] == []
    assert claims(ended.report) == {}
    assert ended.report["operations"]["produce"]["unobservable_reasons"] == {"coarse_times": 711}
    gaps = {gap["rule_id"]: gap["needs"] for gap in ended.report["coverage"]["not_checkable"]}
    assert "yyyy-MM-dd HH:mm:ss,SSS" in gaps["delayed-operations"]
    assert "late-completion" in gaps
    assert "times have whole seconds" in ended.out
    # Where a request's time went stands in its own line.
    assert ended.report["latency"]["produce_acks_all"]["requests"] == 711


@pytest.mark.long
@pytest.mark.parametrize("corpus", CORPUS)
def test_seconds_show_nothing_that_milliseconds_do_not(verb: Verb, tmp_path: Path, corpus: str) -> None:
    fine = verb(tmp_path / "fine", "audit", CORPORA / corpus)
    coarse = audited(verb, tmp_path / "coarse", corpus, RENDERINGS[0])
    assert {place(one) for one in coarse.report["violations"]} <= {place(one) for one in fine.report["violations"]}
    assert lost(coarse) == lost(fine)
    assert claims(coarse.report) == {}
