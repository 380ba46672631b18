"""The comparison of an audit with the truth says no where it has to."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.bench.truth import LOSS, Place, Truth, judged, truth_of

LOST = Place(LOSS, "events", 0, 848, 849)


def finding(**values: Any) -> dict[str, Any]:
    row = {"rule_id": "committed-data-lost", "severity": "violation", "implied_by": None, "known_bug": None}
    place = {"topic": "events", "partition": 0, "offset_start": 848, "offset_end": 898, "message": "text"}
    return {**row, **place, **values}


def test_a_loss_that_is_found_agrees() -> None:
    assert judged(Truth((LOST,)), [finding()]).agrees


@pytest.mark.parametrize(
    "values",
    [
        {"offset_start": 849},
        {"offset_end": 848},
        {"partition": 1},
        {"topic": "other"},
        {"rule_id": "late-completion"},
        {"severity": "open"},
        {"severity": "observation"},
        {"offset_start": None},
        {"implied_by": "another"},
    ],
)
def test_a_loss_that_is_not_found_is_missed(values: dict[str, Any]) -> None:
    judgement = judged(Truth((LOST,)), [finding(**values)])
    assert judgement.missed == (
        "committed-data-lost or acked-as-duplicate-of-another-batch events-0, 1 places from 848 on",
    )
    assert not judgement.agrees


@pytest.mark.parametrize("severity", ["violation", "open"])
def test_what_nothing_confirms_is_accused(severity: str) -> None:
    judgement = judged(Truth(), [finding(severity=severity)])
    assert judgement.accused == (f"{severity} committed-data-lost events-0 848 to 898: text",)
    assert not judgement.agrees


def test_an_observation_accuses_nobody() -> None:
    assert judged(Truth(), [finding(severity="observation")]).agrees


def test_a_bug_of_the_release_may_show_anywhere_and_has_to_show() -> None:
    truth = Truth(bugs=frozenset({("late-completion", "KAFKA-13091")}))
    late = finding(rule_id="late-completion", known_bug="KAFKA-13091", offset_start=None)
    assert judged(truth, [late]).agrees
    assert judged(truth, []).missed == ("late-completion KAFKA-13091",)
    assert judged(truth, [late, finding(rule_id="late-completion")]).accused


def test_records_of_the_leader_alone_are_counted_where_an_observation_has_them() -> None:
    one, other = (Place(("acked-by-leader-only-lost",), "events", 0, at, at + 1) for at in (850, 900))
    seen = finding(rule_id="acked-by-leader-only-lost", severity="observation")
    assert judged(Truth(leader_only=(one, other)), [seen]).leader_only_found == 1


def test_the_truth_of_a_corpus_is_what_stands_beside_its_logs(tmp_path: Path) -> None:
    lost = {"topic": "events", "partition": 0, "offset": 848, "key": "k"}
    (tmp_path / "lost.json").write_text(json.dumps([{**lost, "acks": "all"}, {**lost, "offset": 9, "acks": "1"}]))
    truth = truth_of(tmp_path)
    assert truth.broken == (LOST,)
    assert [place.offset_start for place in truth.leader_only] == [9]
    assert truth_of(tmp_path / "lostwake28").bugs == {("late-completion", "KAFKA-13091")}
    assert [place.offset_start for place in truth_of(tmp_path / "unclean28").broken] == [115, 948]


def test_records_of_acks_1_in_whose_place_others_were_read_are_gone(tmp_path: Path) -> None:
    place = {"topic": "clicks", "partition": 0}
    sent = [
        {**place, "kind": "produce", "offset": 7, "key": "gone", "error": None, "acks": "1"},
        {**place, "kind": "produce", "offset": 8, "key": "read again", "error": None, "acks": "1"},
        {**place, "kind": "produce", "offset": 9, "key": "not reached", "error": None, "acks": "1"},
        {**place, "kind": "produce", "offset": 7, "key": "instead", "error": None, "acks": "all"},
    ]
    read = [(7, "instead"), (8, "other"), (8, "read again")]
    rows = [*sent, *({**place, "kind": "consume", "offset": offset, "key": key} for offset, key in read)]
    with gzip.open(tmp_path / "client-history.jsonl.gz", "wt") as lines:
        lines.write("\n".join(map(json.dumps, rows)))
    assert truth_of(tmp_path).leader_only == (Place(("acked-by-leader-only-lost",), "clicks", 0, 7, 8),)


def test_an_unclean_election_where_there_was_none_is_an_accusation() -> None:
    row = finding(rule_id="unclean-election", severity="observation")
    assert judged(Truth(uncleanly=True), [row]).agrees
    assert len(judged(Truth(), [row]).accused) == 1
