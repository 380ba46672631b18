"""What a KRaft node reads of the past as it starts is no detection of anything."""

from __future__ import annotations

from highwater.pipelines.kafka.replayed import drop_past, is_past, start_ups

LIVES = [
    ("c", 2, 100, "starting"),
    ("c", 2, 200, "started"),
    ("c", 2, 700, "shut_down"),
    ("c", 2, 900, "starting"),
    ("c", 3, 100, "starting"),
]
REPLAYED = "Replayed BrokerRegistrationChangeRecord modifying the registration for broker 1: ..."


def past(node_id: int | None, time_us: int, detail: str | None = REPLAYED) -> bool:
    return is_past(start_ups(LIVES), "c", node_id, time_us, detail)


def test_a_node_that_starts_replays_what_is_long_past() -> None:
    assert past(2, 150)
    assert past(2, 950), "no line says yet that it has started"
    assert past(3, 10**9)


def test_a_node_that_has_started_replays_a_record_as_it_is_written() -> None:
    assert not past(2, 50)
    assert not past(2, 200)
    assert not past(2, 800)
    assert not past(1, 150), "of a node that no line tells of"
    assert not past(None, 150)


def test_what_the_active_controller_decides_is_no_replay() -> None:
    assert not past(2, 150, "Fencing broker 1 at epoch 13 because its session has timed out.")
    assert not past(2, 150, "Unfenced broker 1 has requested and been granted a controlled shutdown.")
    assert not past(2, 150, None)


def test_lines_of_2_8_to_3_5_are_replays_too() -> None:
    assert past(2, 150, "Re-registered broker incarnation: RegisterBrokerRecord(brokerId=1, ...)")
    assert past(2, 150, "Fenced broker: FenceBrokerRecord(id=1, epoch=5)")


def test_rows_of_a_lake() -> None:
    lifecycle = [
        {"cluster_id": cluster, "broker_id": node, "time": time_us, "event": event}
        for cluster, node, time_us, event in LIVES
    ]
    rows = [
        {"cluster_id": "c", "broker_id": 2, "time": time_us, "event": "broker_fenced", "detail": REPLAYED}
        for time_us in (150, 300)
    ]
    assert [row["time"] for row in drop_past(rows, lifecycle)] == [300]
