"""The machinery: dispatch, totality, masks, and that rows fit their tables."""

import re
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import ArrayType, BooleanType, IntegerType, LongType, StringType, StructType

from highwater.pipelines.grammars.grammar import Grammar, Template, find_literal_prefix, parse_context, shorten_logger
from highwater.pipelines.grammars.printed import parse_partitions
from highwater.pipelines.grammars.record import KNOWN, TYPED, UNPARSED, LineFact, LogRecord, Parsed
from highwater.pipelines.grammars.templates import TEMPLATES
from highwater.pipelines.grammars.text_log import MAX_MASKED, mask, parse_text
from highwater.pipelines.grammars.values import parse_partition
from highwater.schemas.silver import BY_NAME, SOURCE_NAMES
from tests.examples import examples
from tests.unit.silver.lines import parse

LOGGERS = sorted({name for template in TEMPLATES for name in template.loggers})


@cache
def texts(pattern: str) -> st.SearchStrategy[str]:
    """Texts that match; to read a pattern takes longer than to draw one."""
    return st.from_regex(re.compile(pattern, re.ASCII), fullmatch=True)


def assert_fits(fact: LineFact) -> None:
    """Require only columns of the table, the required ones, and values of their types and words."""
    columns = {field.name: field for field in BY_NAME[fact.table].columns if field.name not in SOURCE_NAMES}
    assert set(fact.row) <= set(columns), fact
    for name, field in columns.items():
        value = fact.row.get(name)
        assert value is not None or field.nullable, (fact, name)
        if value is not None:
            _assert_type(value, field.dataType)
            assert value in BY_NAME[fact.table].words.get(name, (value,)), fact


def _assert_type(value: object, data_type: object) -> None:
    match data_type:
        case ArrayType():
            assert isinstance(value, list)
            for element in value:
                _assert_type(element, data_type.elementType)
        case StructType():
            assert isinstance(value, dict)
            assert set(value) <= set(data_type.names)
            for field in data_type.fields:
                assert value.get(field.name) is not None or field.nullable
                if value.get(field.name) is not None:
                    _assert_type(value[field.name], field.dataType)
        case BooleanType():
            assert isinstance(value, bool)
        case IntegerType():
            assert type(value) is int
            assert -(2**31) <= value < 2**31
        case LongType():
            assert type(value) is int
            assert -(2**63) <= value < 2**63
        case StringType():
            assert isinstance(value, str)
        case _:
            raise AssertionError(data_type)


def assert_sound(parsed: Parsed) -> None:
    assert parsed.template or parsed.outcome == UNPARSED
    assert bool(parsed.facts) == (parsed.outcome == TYPED)
    assert (parsed.reason is not None) == (parsed.outcome == UNPARSED)
    for fact in parsed.facts:
        assert_fits(fact)


@pytest.mark.parametrize(
    ("logger", "expected"),
    [
        ("kafka.log.UnifiedLog$", "UnifiedLog"),
        ("org.apache.kafka.storage.internals.log.UnifiedLog", "UnifiedLog"),
        ("kafka.log.LogCleaner$CleanerThread", "LogCleaner$CleanerThread"),
        ("state.change.logger", "state.change.logger"),
        ("", ""),
    ],
)
def test_simple_names(logger: str, expected: str) -> None:
    assert shorten_logger(logger) == expected


@pytest.mark.parametrize(
    ("pattern", "prefix"),
    [
        (r"Recorded replica (\d+) log", "Recorded replica "),
        (r"ISR updated (?:x )?to", "ISR updated "),
        (r"Cleared entries\.*", "Cleared entries"),
        (r"\[a\] b", "[a] b"),
        (r"[Rr]eceived", ""),
        (r"\d+ written", ""),
        (r"", ""),
    ],
)
def test_literal_prefixes(pattern: str, prefix: str) -> None:
    assert find_literal_prefix(pattern) == prefix


def test_templates_are_well_formed() -> None:
    for template in TEMPLATES:
        assert re.fullmatch(r"[a-z_]+\.[a-z_0-9]+", template.id), template
        assert template.loggers, template
        assert template.source, template


@examples(500)
@given(st.data())
def test_the_guard_of_a_template_is_never_stricter_than_its_pattern(data: st.DataObject) -> None:
    template = data.draw(st.sampled_from(TEMPLATES))
    text = data.draw(texts(template.pattern))
    assert text.startswith(find_literal_prefix(template.pattern))


@pytest.mark.parametrize(
    ("text", "topic", "index"),
    [
        ("ops.orders-1", "ops.orders", 1),
        ("scratch-1-3", "scratch-1", 3),
        ("a_b.c-d-0012", "a_b.c-d", 12),
        ("__consumer_offsets-49", "__consumer_offsets", 49),
        ("[scratch-1,3]", "scratch-1", 3),
        ("9Za0zO_TSsWU_Yh-8h27Jw:scratch-1-3", "scratch-1", 3),
    ],
)
def test_partitions_split_at_the_last_dash(text: str, topic: str, index: int) -> None:
    assert parse_partition(text) == (topic, index)


@pytest.mark.parametrize("text", ["", "orders", "-1", "orders-", "orders-x", "orders-99999999999", "[orders]"])
def test_what_is_no_partition(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_partition(text)


def test_lists_of_partitions() -> None:
    assert parse_partitions("Set(a-1-0, b.c-2)") == [("a-1", 0), ("b.c", 2)]
    assert parse_partitions("[a,0],[b,1]") == [("a", 0), ("b", 1)]
    assert parse_partitions("[a-0, b-1]") == [("a", 0), ("b", 1)]
    with pytest.raises(ValueError, match="no partition"):
        parse_partitions("Set(a-0, what is this)")


def test_contexts() -> None:
    context = parse_context("Partition scratch-1-3 broker=12")
    assert (context.topic, context.partition, context.node) == ("scratch-1", 3, 12)
    for name in ("Log", "UnifiedLog", "LocalLog", "LogLoader", "MergedLog"):
        context = parse_context(f"{name} partition=scratch-1-3, dir=/var/lib/kafka")
        assert (context.topic, context.partition) == ("scratch-1", 3)
    context = parse_context("ReplicaFetcher replicaId=1, leaderId=2, fetcherId=3")
    assert (context.node, context.leader, context.fetcher_id) == (1, 2, 3)
    context = parse_context("ReplicaFetcherThread-3-2")
    assert (context.leader, context.fetcher_id) == (2, 3)
    context = parse_context("Controller id=1 epoch=4")
    assert (context.node, context.epoch) == (1, 4)
    assert parse_context("SessionExpirationListener on 2").node == 2
    assert parse_context("no such thing").node is None


def test_an_unknown_line_is_masked_and_counted() -> None:
    parsed = parse("kafka.cluster.Partition", "[Partition t-0 broker=1] Something that no version says about 12 of t-3")
    assert parsed == Parsed(
        "[Partition <partition> broker=<n>] Something that no version says about <n> of <partition>",
        UNPARSED,
        (),
        "no_grammar",
    )


def test_a_number_that_no_column_holds_is_a_problem_not_an_error() -> None:
    parsed = parse(
        "kafka.cluster.Partition", f"[Partition t-0 broker=1] ISR updated to 1,2 and version updated to {10**12}"
    )
    assert (parsed.outcome, parsed.reason) == (UNPARSED, "no_grammar")
    assert parsed.problem == "partition.isr_committed: beyond 32 bits: 1000000000000"
    assert parsed.template == "[Partition <partition> broker=<n>] ISR updated to <n>,<n> and version updated to <n>"


def test_a_prefix_that_names_no_partition_is_a_problem() -> None:
    parsed = parse("kafka.cluster.Partition", "ISR updated to 1,2 and version updated to 3")
    assert (parsed.outcome, parsed.problem) == (UNPARSED, "partition.isr_committed: the prefix names no partition")


def test_a_grammar_never_raises() -> None:
    def broken(*_: object) -> tuple[LineFact, ...]:
        raise RuntimeError("broken")

    grammar = Grammar([Template("a.b", r"text .*", "nowhere", broken, ("X",))])
    parsed = grammar.parse(LogRecord("server", 0, "INFO", "X", "text 1"))
    assert parsed is not None
    assert (parsed.outcome, parsed.problem) == (UNPARSED, "a.b: broken")


@pytest.mark.parametrize(
    ("message", "masked"),
    [
        ("Node 3 disconnected.", "Node <n> disconnected."),
        ("from orders-1 and ops.orders-12, scratch-1-3.", "from <partition> and <partition>, <partition>."),
        ("(/127.0.0.1:19195) is 10.0.0.1:9092", "(/<address>) is <address>"),
        ("dir=/var/lib/kafka/broker-1] x", "dir=<path>] x"),
        ("ID 0V_0lTx2Rzi0bfK055WW7g.", "ID <id>."),
        ("id 1de35a5d-5ccf-402d-9592-717f47ce0fd7", "id <uuid>"),
        ("request kafka.server.X$Y@263fa475", "request kafka.server.X$Y@<hash>"),
        ("took 1.5 ms\nat x", "took <n> ms"),
        ("", ""),
    ],
)
def test_masks(message: str, masked: str) -> None:
    assert mask(message) == masked


@settings(deadline=None)
@given(st.text(max_size=600))
def test_masks_are_bounded_and_idempotent(message: str) -> None:
    masked = mask(message)
    assert len(masked) <= MAX_MASKED
    assert "\n" not in masked
    assert mask(masked) == masked


TOKENS = st.sampled_from(
    [
        *("/a/b-1.log", "@abcdef", "@12zz", "0V_0lTx2Rzi0bfK055WW7g", "1de35a5d-5ccf-402d-9592-717f47ce0fd7"),
        *("orders-1", "a-b-c", "1.2.3.4:5", "<n>", "<id>", "12", "1a", "-", "/", ".", ":", "<"),
    ]
)


@settings(deadline=None)
@given(st.lists(TOKENS | st.text("aA1-/.@<>", max_size=30), max_size=60).map("".join))
def test_masks_of_values_in_a_row_are_idempotent(message: str) -> None:
    masked = mask(message)
    assert len(masked) <= MAX_MASKED
    assert mask(masked) == masked


@examples(300)
@given(st.sampled_from(LOGGERS) | st.text(max_size=40), st.text(max_size=300))
def test_any_text_is_parsed(logger: str, message: str) -> None:
    assert_sound(parse_text(LogRecord("server", 0, "INFO", logger, message)))


@examples(300)
@given(st.data())
def test_whatever_matches_a_template_fits_its_table(data: st.DataObject) -> None:
    fits_its_table(data)


@pytest.mark.long
@settings(max_examples=1_500, deadline=None)
@given(st.data())
def test_more_that_matches_a_template_fits_its_table(data: st.DataObject) -> None:
    fits_its_table(data)


def fits_its_table(data: st.DataObject) -> None:
    """Texts made from the patterns themselves, odd numbers included."""
    template = data.draw(st.sampled_from(TEMPLATES))
    logger = data.draw(st.sampled_from(template.loggers))
    prefix = data.draw(
        st.sampled_from(
            ["", "[Partition a-b-7 broker=1] ", "[Log partition=a-b-7, dir=/d] ", "[Controller id=1 epoch=2] ", "[x]: "]
        )
    )
    text = data.draw(texts(template.pattern))
    parsed = parse_text(LogRecord("server", 0, "INFO", logger, prefix + text))
    assert_sound(parsed)


def test_known_lines_are_counted_by_template() -> None:
    assert parse("kafka.network.SocketServer", "[SocketServer brokerId=1] Started").template == "known.network"
    assert (
        parse("org.apache.zookeeper.ZooKeeper", "Client environment:user.name=kafka").template
        == "known.zookeeper_client"
    )
    assert parse("anything.at.All", "[some-thread]: Starting ") == Parsed("known.thread_started", KNOWN)


def test_a_zookeeper_broker_in_migration_names_itself():
    context = parse_context("BrokerLifecycleManager id=0 isZkBroker=true")
    assert (context.node, context.is_read) == (0, True)
