from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.replay.produce_worker import split_by_fetch, split_by_isr_change, split_without_follower

instants = st.integers(0, 10**7)


def test_a_wait_is_split_along_the_closing_replicas_cycle():
    split = split_by_fetch(
        100,
        1_000,
        carrier_arrival_us=200,
        carrier_sent_us=350,
        closing_arrival_us=700,
        satisfied_us=900,
    )
    assert tuple(split.values()) == (100, 150, 350, 200, 100)


def test_a_fetch_that_was_parked_already_costs_no_waiting_for_it():
    split = split_by_fetch(
        100, 1_000, carrier_arrival_us=50, carrier_sent_us=350, closing_arrival_us=700, satisfied_us=900
    )
    assert split["wait_for_fetch"] == 0
    assert split["wait_carry"] == 250


def test_without_the_carrying_fetch_the_follower_is_charged():
    split = split_by_fetch(
        100, 1_000, carrier_arrival_us=None, carrier_sent_us=None, closing_arrival_us=700, satisfied_us=900
    )
    assert tuple(split.values())[:3] == (0, 0, 600)


@given(instants, instants, st.none() | instants, st.none() | instants, instants, instants)
def test_the_parts_add_up_to_the_wait_whatever_the_clock_says(handled, wait, carrier, sent, arrival, satisfied):
    split = split_by_fetch(
        handled,
        handled + wait,
        carrier_arrival_us=carrier,
        carrier_sent_us=sent,
        closing_arrival_us=arrival,
        satisfied_us=satisfied,
    )
    assert sum(split.values()) == wait
    assert all(part >= 0 for part in split.values())


@given(instants, instants, instants)
def test_an_isr_change_splits_in_two(handled, wait, satisfied):
    split = split_by_isr_change(handled, handled + wait, satisfied_us=satisfied)
    assert sum(split.values()) == wait
    assert "wait_follower" not in split
    assert split_without_follower(handled, handled + wait) == {"wait_completion": wait}
