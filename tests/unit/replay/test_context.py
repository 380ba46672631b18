"""Which configuration held, from the lines that tell it."""

from __future__ import annotations

import pytest

from highwater.pipelines.kafka.context import (
    ALL_BROKERS,
    BROKER,
    DYNAMIC,
    LAG_TIME_MAX,
    LAST_KEY,
    LOG,
    LOG_ALL,
    MIN_ISR,
    OFFSETS_PARTITIONS,
    PROTOCOL_VERSION,
    REPLICA_FETCHERS,
    STARTED,
    TOPIC,
    TRANSACTIONS_PARTITIONS,
    ConfigLine,
    Contexts,
    build_contexts,
)

KEY = ("c", 1, MIN_ISR)


def told(*lines: ConfigLine) -> Contexts:
    return build_contexts({}, {("c", 1): lines}, 0)


def line(time_us: int, scope: str, entity: str | None = None, **values: str) -> ConfigLine:
    """A line; ``min_isr`` stands for min.insync.replicas."""
    return ConfigLine(
        time_us, scope, entity, {{"min_isr": MIN_ISR}.get(key, key): text for key, text in values.items()}
    )


def minimum(contexts: Contexts, *times_us: int, topic: str = "orders") -> list[int]:
    return [contexts.of("c", 1, topic).find_min_isr(time_us) for time_us in times_us]


def test_the_brokers_value_holds_until_the_topic_gets_its_own_and_again_when_it_is_removed():
    contexts = told(
        line(50, BROKER, min_isr="2"),
        line(100, TOPIC, "orders", min_isr="3"),
        line(200, TOPIC, "orders", **{"max.message.bytes": "1000"}),
        line(300, TOPIC, "orders"),
    )
    assert minimum(contexts, 10, 60, 150, 250, 350) == [2, 2, 3, 2, 2]
    assert minimum(contexts, 150, topic="other") == [2]
    assert contexts.topic_configs["c", 1, "orders", MIN_ISR] == ((100, "3"), (200, None))
    assert contexts.history("c", 1, "orders", "max.message.bytes") == ((200, "1000"),)


def test_without_any_line_one_replica_is_enough():
    assert minimum(Contexts(), 10) == [1]


def test_dynamic_values_of_the_broker_come_before_those_of_all_brokers_and_both_before_static_ones():
    contexts = told(
        line(0, STARTED, "zookeeper"),
        line(1, BROKER, min_isr="1"),
        line(100, DYNAMIC, ALL_BROKERS, min_isr="2"),
        line(200, DYNAMIC, "1", min_isr="3"),
        line(250, DYNAMIC, "2", min_isr="9"),  # of another broker
        line(300, DYNAMIC, ALL_BROKERS, min_isr="4"),
        line(400, DYNAMIC, "1"),
        line(500, DYNAMIC, ALL_BROKERS),
    )
    assert minimum(contexts, 50, 150, 250, 350, 450, 550) == [1, 2, 3, 3, 4, 1]


def test_a_dump_tells_what_holds_dynamic_values_included():
    contexts = told(
        line(0, STARTED, "zookeeper"),
        line(1, BROKER, min_isr="1"),
        line(2, BROKER, min_isr="2"),  # after the dynamic values were read
        line(100, DYNAMIC, ALL_BROKERS),
        line(101, BROKER, min_isr="1"),
    )
    assert minimum(contexts, 50, 150) == [2, 1]


def test_a_value_that_is_first_told_by_a_change_did_not_hold_before():
    assert minimum(told(line(100, DYNAMIC, ALL_BROKERS, min_isr="3")), 50, 150) == [1, 3]


def test_a_restart_reads_the_static_values_again():
    contexts = told(
        line(0, STARTED, "zookeeper"),
        line(1, BROKER, **{LAG_TIME_MAX: "8000"}),
        line(100, STARTED, "zookeeper"),
        line(101, BROKER, **{LAG_TIME_MAX: "6000"}),
    )
    assert contexts.list_lag_times("c", 1) == ((0, 8_000_000), (101, 6_000_000))
    assert contexts.of("c", 1, "orders").lag_time_max_us == 6_000_000


def test_overrides_survive_restarts_and_kraft_lists_them_again():
    before = [line(1, BROKER, min_isr="1"), line(10, TOPIC, "orders", min_isr="3")]
    assert minimum(told(*before, line(100, STARTED, "zookeeper")), 150) == [3]
    # Between the start and the list the broker serves no client: what it had before holds.
    listed = told(*before, line(100, STARTED, "kraft"), line(20_000_000, TOPIC, "orders", min_isr="3"))
    assert minimum(listed, 100, 150, 19_999_999, 90_000_000) == [3, 3, 3, 3]
    assert listed.min_isr("c", "orders", 1, 150, None) == 3
    changed = told(*before, line(100, STARTED, "kraft"), line(20_000_000, TOPIC, "orders", min_isr="2"))
    assert minimum(changed, 150, 20_000_000, 90_000_000) == [3, 2, 2]
    # Not listed: it was removed. A process that ended soon may not have come to list it.
    assert minimum(told(*before, line(100, STARTED, "kraft")), 150, 60_000_100) == [3, 1]
    twice = told(*before, line(100, STARTED, "kraft"), line(50_000_000, STARTED, "kraft"))
    assert minimum(twice, 60_000_100, 110_000_000) == [3, 1]


def test_a_log_is_created_with_all_overrides_of_its_topic():
    contexts = told(
        line(1, BROKER, min_isr="1"), line(10, LOG, "orders", min_isr="2"), line(100, LOG, "orders")
    )  # deleted, and created again without any
    assert minimum(contexts, 50, 150) == [2, 1]


def test_among_all_properties_of_a_log_those_unlike_the_brokers_are_overrides():
    contexts = told(
        line(1, BROKER, min_isr="1"),
        line(10, LOG_ALL, "orders", min_isr="1"),
        line(10, LOG_ALL, "payments", min_isr="2"),
        line(50, TOPIC, "clicks", min_isr="1"),
        line(60, LOG_ALL, "clicks", min_isr="1"),
        line(100, DYNAMIC, ALL_BROKERS, min_isr="3"),
    )
    assert [minimum(contexts, 150, topic=topic) for topic in ("orders", "payments", "clicks")] == [[3], [2], [1]]


def test_a_line_that_comes_twice_changes_nothing():
    lines = [line(1, BROKER, min_isr="1"), line(10, TOPIC, "orders", min_isr="3"), line(20, TOPIC, "orders")]
    twice = [each for each in lines for _ in range(2)]
    assert told(*twice) == told(*lines)


def test_lag_time_comes_from_the_log_or_from_the_version():
    contexts = Contexts({("c", 1): "2.4.1"}, {("c", 1, LAG_TIME_MAX): ((5, "6000"),)})
    assert contexts.of("c", 1, "orders").lag_time_max_us == 6_000_000
    assert Contexts({("c", 1): "2.4.1"}).of("c", 1, "orders").lag_time_max_us == 10_000_000
    assert Contexts().of("c", 1, "orders").lag_time_max_us == 30_000_000


def test_values_that_are_no_numbers_are_passed_over():
    contexts = Contexts(broker_configs={KEY: ((0, "2"), (5, "[hidden]"))})
    assert minimum(contexts, 10) == [2]


def test_settings_are_the_last_values_told():
    contexts = told(line(1, BROKER, **{REPLICA_FETCHERS: "1"}), line(9, BROKER, **{REPLICA_FETCHERS: "4"}))
    assert contexts.setting("c", 1, REPLICA_FETCHERS) == "4"
    assert contexts.setting("c", 1, PROTOCOL_VERSION) is None
    assert contexts.settings(REPLICA_FETCHERS) == {("c", 1): ((0, "1"), (9, "4"))}


def test_the_first_count_told_is_that_of_a_topic_made_by_it():
    dumps = [ConfigLine(at, BROKER, None, {OFFSETS_PARTITIONS: count}) for at, count in ((1, "25"), (9, "100"))]
    contexts = build_contexts({}, {("c", 1): dumps, ("c", 2): [], ("d", 1): dumps[1:], ("d", 2): dumps[:1]}, 0)
    assert contexts.list_first_counts(OFFSETS_PARTITIONS) == {"c": 25, "d": 100}
    assert contexts.list_first_counts(REPLICA_FETCHERS) == {}


def test_where_no_line_tells_the_version_that_of_the_protocol_is_predicted_with():
    dump = ConfigLine(5, BROKER, None, {PROTOCOL_VERSION: "0.10.0-IV1"})
    contexts = build_contexts({("c", 2): ((0, "0.10.2.2"),)}, {("c", 1): [dump], ("c", 2): [dump]}, 0)
    assert contexts.likely_versions == {("c", 1): "0.10.0-IV1", ("c", 2): "0.10.2.2"}
    assert contexts.of("c", 1, "t").rules.version == (0, 10, 0)
    assert ("c", 1) not in contexts.versions


def test_what_keys_a_whole_dump_has_tells_a_release_that_no_line_names():
    """m-0.10.0.1: up to 0.10.2 the version is logged by a logger that goes to no file by default."""
    old = {PROTOCOL_VERSION: "0.9.0.X", LAST_KEY: "2000"}
    dumps = {
        "0.9.0.X": old,
        "0.10.0": old | {"log.message.format.version": "0.9.0.X"},  # upgraded, and speaks the old protocol still
        "0.10.1": old | {"log.message.format.version": "0.10.1-IV2", "replication.quota.window.num": "11"},
        "0.10.2": old | {"replication.quota.window.num": "11", "listener.security.protocol.map": "SSL:SSL"},
        None: old | {"listener.security.protocol.map": "SSL:SSL", TRANSACTIONS_PARTITIONS: "50"},
    }
    for release, values in dumps.items():
        versions = told(ConfigLine(5, BROKER, "1", values)).versions
        assert versions.get(("c", 1)) == release
    # Cut off, it may have had any key; and a line that names the version is the better one.
    assert told(ConfigLine(5, BROKER, "1", {PROTOCOL_VERSION: "0.10.0-IV1"})).versions == {}
    lines = {("c", 1): [ConfigLine(5, BROKER, "1", old)]}
    assert build_contexts({("c", 1): ((0, "0.9.0.1"),)}, lines, 0).versions == {("c", 1): "0.9.0.1"}


def test_a_broker_that_was_upgraded_ran_each_version_from_its_start_on():
    contexts = build_contexts({("c", 1): ((100, "2.3.1"), (500, "2.8.2"))}, {}, 0)
    assert contexts.versions == {("c", 1): "2.8.2"}
    assert [contexts.find_version(("c", 1), time_us) for time_us in (50, 100, 499, 500)] == [
        *(None, "2.3.1", "2.3.1", "2.8.2")
    ]
    assert contexts.find_version(("c", 2), 50) is None
    assert contexts.eras == {("c", 1): ((0, "2.3.1"), (500, "2.8.2"))}
    assert contexts.spans(lambda rules: rules.version < (2, 4, 0)) == {("c", 1): [(0, 500)]}
    assert contexts.spans(lambda rules: rules.version > (3, 0, 0)) == {}


def test_a_start_as_the_same_version_begins_no_era():
    contexts = build_contexts({("c", 1): ((100, "2.8.2"), (500, "2.8.2"), (900, "3.0.0"), (950, "3.0.0"))}, {}, 0)
    assert contexts.eras == {("c", 1): ((0, "2.8.2"), (900, "3.0.0"))}
    assert Contexts({("c", 2): "4.0.0"}).eras == {("c", 2): ((0, "4.0.0"),)}


@pytest.mark.parametrize(
    ("lines", "known"),
    [
        ([line(50, BROKER, min_isr="2")], (None, None)),
        ([line(5, STARTED, "zookeeper"), line(50, BROKER, min_isr="2")], (None, None)),
        ([line(5, STARTED, "kraft"), line(50, BROKER, min_isr="2")], ("2", "2")),
        ([line(50, BROKER, min_isr="2"), line(90, TOPIC, "orders", min_isr="3")], (None, "3")),
        ([line(50, BROKER, min_isr="2"), line(90, TOPIC, "orders")], (None, "2")),
        ([line(50, BROKER, min_isr="2"), line(10, LOG, "orders")], ("2", "2")),
        ([line(50, BROKER, min_isr="2"), line(90, LOG_ALL, "orders", min_isr="1")], (None, "1")),
        ([line(50, BROKER, min_isr="2"), line(10, TOPIC, "others", min_isr="3")], (None, None)),
        ([line(10, TOPIC, "orders")], (None, None)),
    ],
)
def test_an_override_from_before_the_logs_begin_is_unknown(
    lines: list[ConfigLine], known: tuple[str | None, str | None]
) -> None:
    """A topic's overrides are known from the first line that lists them; the same holds at a peer that has lines."""
    contexts = told(*lines)
    assert tuple(contexts.min_isr("c", "orders", 1, at, None) for at in (60, 95)) == tuple(
        None if text is None else int(text) for text in known
    )
    beside = build_contexts({}, {("c", 1): lines, ("c", 2): [line(0, BROKER, min_isr="2")]}, 0)
    assert beside.min_isr("c", "orders", 2, 95, None) == (None if not contexts.listed_us else beside_of(lines))


def beside_of(lines: list[ConfigLine]) -> int | None:
    """Return what broker 2, whose own value is 2, has for orders by the lines of broker 1."""
    if any(each.scope == STARTED and each.entity == "kraft" for each in lines):
        return 2
    listings = [each for each in lines if each.entity == "orders"]
    return int(listings[-1].values.get(MIN_ISR, "2")) if listings else None
