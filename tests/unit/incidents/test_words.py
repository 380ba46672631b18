"""Words of incidents: times, durations, lists."""

import pytest

from highwater.pipelines.incidents import words
from highwater.pipelines.incidents.incident import LoggedIncident

NOON = 1_795_176_000_000_000  # 2026-11-20 12:00:00


@pytest.mark.parametrize(
    ("duration_us", "text"),
    [
        (340_000, "340 ms"),
        (14_000_000, "14.0 s"),
        (119_900_000, "119.9 s"),
        (200_000_000, "3 min 20 s"),
        (600_000_000, "10 min"),
        (7_500_000_000, "2 h 5 min"),
        (273_600_000_000, "3 days 4 h"),
    ],
)
def test_durations(duration_us: int, text: str) -> None:
    assert words.lasting(duration_us) == text


def test_a_span_has_dates_only_across_days() -> None:
    assert words.span(NOON, NOON + 5_000_000) == "from 12:00:00 to 12:00:05 (5.0 s)"
    assert words.span(NOON, None) == "from 12:00:00 to the end of the logs"
    assert words.span(NOON, NOON + 86_400_000_000) == "from 2026-11-20 12:00:00 to 2026-11-21 12:00:00 (24 h)"


def test_partitions_are_named_while_few() -> None:
    assert words.partitions(["orders-10", "orders-2"]) == "partitions orders-2 and orders-10"
    assert words.partitions(["my-topic-0"]) == "partition my-topic-0"
    assert words.partitions([f"t{number}-0" for number in range(6)]) == "6 partitions of t0, t1, t2 and 3 more topics"
    assert words.partitions([f"t{number}-0" for number in range(4)]) == "4 partitions of t0, t1, t2 and t3"


def test_brokers_and_counts() -> None:
    assert words.brokers({3, 1}) == "brokers 1 and 3"
    assert words.brokers([7]) == "broker 7"
    assert words.brokers(range(9)) == "9 brokers"
    assert words.times(1), words.times(2) == ("once", "twice")
    assert words.times(1200) == "1,200 times"


@pytest.mark.parametrize("ids", [(None,), (None, 1), (2, None, 1), (None, None), ()])
def test_a_node_of_unknown_id_is_not_in_a_list(ids: tuple[int, ...]) -> None:
    """Lines of a node whose id no line shows: a null in a list of a table ended every later audit of the lake."""
    known = tuple(broker_id for broker_id in ids if broker_id is not None)
    made = LoggedIncident(
        severity="minor", cluster_id="c", start_us=0, end_us=None, sentence="", broker_ids=ids, by=ids
    )
    assert (made.broker_ids, made.by) == (known, known)
    assert made.incident_id
    assert "None" not in words.brokers(ids)
