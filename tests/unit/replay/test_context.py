from __future__ import annotations

from pipelines.replay.context import Contexts

BROKER = ("c", 1, "min.insync.replicas")
TOPIC = ("c", 1, "orders", "min.insync.replicas")


def minimum(contexts: Contexts, time_us: int, topic: str = "orders") -> int:
    return contexts.of("c", 1, topic).min_isr_at(time_us)


def test_the_brokers_value_holds_until_the_topic_gets_its_own():
    contexts = Contexts(broker_configs={BROKER: ((50, "2"),)}, topic_configs={TOPIC: ((100, "3"), (200, "2"))})
    assert [minimum(contexts, at) for at in (10, 60, 150, 250)] == [2, 2, 3, 2]
    assert minimum(contexts, 150, "other") == 2


def test_without_any_line_one_replica_is_enough():
    assert minimum(Contexts(), 10) == 1


def test_lag_time_and_version_come_from_the_log_or_from_the_version():
    told = Contexts({("c", 1): "2.4.1"}, {("c", 1, "replica.lag.time.max.ms"): ((5, "6000"),)})
    assert told.of("c", 1, "orders").lag_time_max_us == 6_000_000
    assert Contexts({("c", 1): "2.4.1"}).of("c", 1, "orders").lag_time_max_us == 10_000_000
    assert Contexts().of("c", 1, "orders").lag_time_max_us == 30_000_000


def test_values_that_are_no_numbers_are_passed_over():
    contexts = Contexts(broker_configs={BROKER: ((0, "2"), (5, "[hidden]"))})
    assert minimum(contexts, 10) == 2
