"""Readers of printed objects and collections: each form that a release prints, and nothing beside it."""

from __future__ import annotations

import pytest

from highwater.pipelines.grammars.printed import STATES, parse_fields, parse_mapping, parse_partitions, split_items
from highwater.pipelines.grammars.record import UNPARSED, LogRecord
from highwater.pipelines.grammars.states import parse_partition_state
from highwater.pipelines.grammars.text_log import parse_text
from highwater.pipelines.grammars.values import ints, option


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("", []),
        ("[]", []),
        ("HashSet()", []),
        ("3", [3]),
        ("1,3", [1, 3]),
        ("[1, 3]", [1, 3]),
        ("[1,3]", [1, 3]),
        ("List(3, 1, 2)", [3, 1, 2]),
        ("ArrayBuffer(1001)", [1001]),
        ("ArraySeq(2, 1)", [2, 1]),
    ],
)
def test_a_list_of_ids_in_every_form(text: str, ids: list[int]) -> None:
    assert ints(text) == ids


@pytest.mark.parametrize(
    "text", ["1, 3", "1,", ",1", "[1", "1]", "[1 3]", "List(1, 2", "Leader(1)", "1,1", "[2, 2]", "Set(a)", "-1", "1,-"]
)
def test_what_is_no_list_of_ids(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        ints(text)


def test_collections_maps_and_options() -> None:
    assert split_items("Set(a(1, 2), b)") == ["a(1, 2)", "b"]
    assert split_items("[a,0],[b,1]") == ["[a,0]", "[b,1]"]
    assert parse_partitions("[a,0]") == [("a", 0)]
    assert parse_mapping("Map([a,0] -> List(1, 2), [a,1] -> List(2))", " -> ") == {
        "[a,0]": "List(1, 2)",
        "[a,1]": "List(2)",
    }
    assert parse_mapping("{a-0=(offset=1, maxBytes=2)}", "=") == {"a-0": "(offset=1, maxBytes=2)"}
    assert [option(text) for text in ("Some(2)", "Optional[2]", "OptionalInt[2]", "2")] == ["2"] * 4
    assert [option(text) for text in ("None", "Optional.empty", "OptionalInt.empty", "null", None)] == [None] * 5
    for text, read in (
        ("Set(a, b", split_items),
        ("a, b", split_items),
        ("Set(a-0, a-0)", parse_partitions),
        ("[a]", parse_partitions),
    ):
        with pytest.raises(ValueError, match=r"."):
            read(text)
    for text in ("Map(a -> 1, a -> 2)", "Map(a)", "List(a -> 1)"):
        with pytest.raises(ValueError, match=r"."):
            parse_mapping(text, " -> ")


OLD = "PartitionState(controllerEpoch=1, leader=2, leaderEpoch=1, isr=1,3, zkVersion=3, replicas=2,3,1, isNew=false)"


def test_a_state_whose_lists_have_no_brackets() -> None:
    """0.11 to 2.3; it was once read as ISR [1] and replicas [2]."""
    state = parse_partition_state(OLD)
    assert (state["isr"], state["replicas"], state["partition_epoch"]) == ([1, 3], [2, 3, 1], 3)
    assert state["is_new"] is False


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("isr=1,3, ", ""),
        ("isr=1,3", "isr=1,3,"),
        ("zkVersion=", ""),
        ("leader=2, ", "leader=2, leader=2, "),
        ("replicas=", "replica="),
        ("isNew=false", "isNew=no"),
        (")", ""),
        ("PartitionState", "PartitionStates"),
        ("isr=1,3", "isr=1, 3"),
        ("isr=1,3", "isr=[1, 3"),
    ],
)
def test_a_state_is_read_wholly_or_not_at_all(before: str, after: str) -> None:
    assert before in OLD
    text = OLD.replace(before, after, 1)
    with pytest.raises(ValueError, match=r"."):
        parse_partition_state(text)
    line = "[Broker id=1] Received LeaderAndIsr request {} correlation id 1 from controller 2 epoch 1 for partition t-0"
    assert parse_text(LogRecord("state-change", 0, "TRACE", "state.change.logger", line.format(OLD))).facts
    parsed = parse_text(LogRecord("state-change", 0, "TRACE", "state.change.logger", line.format(text)))
    assert parsed.outcome == UNPARSED
    assert not parsed.facts


def test_the_two_partitions_of_a_line_must_be_one() -> None:
    state = (
        "LeaderAndIsrPartitionState(topicName='t', partitionIndex=0, controllerEpoch=1, leader=1, leaderEpoch=0, "
        "isr=[1], zkVersion=0, replicas=[1], addingReplicas=[], removingReplicas=[], isNew=true)"
    )
    line = f"[Controller id=1 epoch=1] Sending become-leader LeaderAndIsr request {state} to broker 1 for partition "
    record = LogRecord("state-change", 0, "TRACE", "state.change.logger", line)
    assert parse_text(record._replace(message=line + "t-0")).facts
    assert parse_text(record._replace(message=line + "t-1")).outcome == UNPARSED


def test_forms_are_those_of_a_class() -> None:
    text = "LeaderAndIsr(leader=1, leaderEpoch=0, isr=List(1), zkVersion=0)"
    assert parse_fields(text, STATES)["isr"] == "List(1)"
    assert parse_fields(text.replace("(leader", "[leader").replace("=0)", "=0]"), STATES)["isr"] == "List(1)"
    for wrong in (text + " ", text.replace("zkVersion", "isNew"), text.replace(", isr=List(1)", ""), "LeaderAndIsr()"):
        with pytest.raises(ValueError, match=r"."):
            parse_fields(wrong, STATES)
