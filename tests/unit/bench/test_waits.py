"""The table of all that a request may wait for."""

from __future__ import annotations

from highwater.pipelines.kafka.waits import KIND_OF, WAITS
from highwater.pipelines.replay.coordinators import GROUP_APIS
from highwater.pipelines.report.figures import COORDINATOR_APIS
from tests.bench.waits import TARGET, document


def test_the_document_is_up_to_date() -> None:
    assert TARGET.read_text(encoding="utf-8") == document(), "python -m tests.bench.waits writes docs/waits.md anew"


def test_what_is_replayed_has_its_kind() -> None:
    assert {"PRODUCE", "FETCH", "SHARE_FETCH", "SHARE_ACKNOWLEDGE", *COORDINATOR_APIS, *GROUP_APIS} <= KIND_OF.keys()
    assert KIND_OF["FETCH"] == "DelayedFetch"
    assert len({wait.kind for wait in WAITS}) == len(WAITS)
