"""Names in free text: none is left, whatever it looks like, and what is nobody's stays."""

import json
import re

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from highwater.pipelines.redact import pseudonyms as kinds
from highwater.pipelines.redact.pseudonyms import Pseudonyms
from highwater.pipelines.redact.text import CUT_CHARS, Redactor, collect_words, read_vocabulary

KEY = b"0123456789abcdef"


def redactor(*topics: str, key: bytes = KEY, addresses: tuple[str, ...] = (), **names: list[str]) -> Redactor:
    given = {kinds.TOPIC: topics, **{name.replace("_", "-"): values for name, values in names.items()}}
    return Redactor(Pseudonyms(key, given, addresses))


def called(made: Redactor, name: str) -> str:
    return made.pseudonyms.known[name]


# ------------------------------------------------------------------ real lines

PRODUCE = (
    'Completed request:{"requestHeader":{"requestApiKey":0,"clientId":"billing-7","requestApiKeyName":"PRODUCE"},'
    '"request":{"transactionalId":"tx-invoices","acks":-1,"topicData":[{"name":"invoices","partitionData":[{"index":2}]}]},'
    '"connection":"10.1.2.3:9092-10.9.8.7:47498-7","totalTimeMs":1502.477,"principal":"User:alice"}'
)
LEGACY = (
    "Completed request:RequestHeader(apiKey=PRODUCE, apiVersion=5, clientId=billing-7, correlationId=1443) -- "
    "{acks=1,timeout=5000,partitionSizes=[invoices-3=471]} from connection 10.1.2.3:9092-10.9.8.7:47498-7;"
    "totalTime:0.058,principal:User:alice"
)
KNOWN = {
    "client": ["billing-7", "broker-2-fetcher-0"],
    "transactional_id": ["tx-invoices"],
    "principal": ["User:alice", "alice", "User:ANONYMOUS"],
}


@pytest.mark.parametrize("line", [PRODUCE, LEGACY])
def test_a_request_line_keeps_all_but_its_names(line: str) -> None:
    made = redactor("invoices", **KNOWN)
    shown = made.text(line)
    for name in ("invoices", "billing-7", "alice", "10.1.2.3", "10.9.8.7"):
        assert name not in shown
    expected = line
    for name in ("tx-invoices", "invoices", "billing-7", "User:alice"):
        expected = expected.replace(name, called(made, name)) if name in made.pseudonyms.known else expected
    for address in ("10.1.2.3", "10.9.8.7"):
        expected = expected.replace(address, made.pseudonyms.address(address))
    assert shown == expected
    if line is PRODUCE:
        assert json.loads(shown.removeprefix("Completed request:"))["totalTimeMs"] == 1502.477


@pytest.mark.parametrize(
    "line",
    [
        "[ReplicaFetcher replicaId=2, leaderId=3, fetcherId=0] Truncating partition __consumer_offsets-7 to 130",
        "[Log partition=__transaction_state-1, dir=/var/lib/kafka/broker-1] Truncating to offset 115",
        "record batch at offsets 115 to 161, leader epoch 3, 8750 bytes, CRC 9324e1f3, written 2026-11-20 15:54:47.959",
        '{"clientId":"broker-2-fetcher-0","principal":"User:ANONYMOUS","connection":"127.0.0.1:19093-127.0.0.1:4-7"}',
        "Kafka version: 0.10.2.2 at 2026-11-20T14:05:00.000Z, [::1]:9092, broker 3 has T1",
    ],
)
def test_what_is_nobodys_stays(line: str) -> None:
    assert redactor("invoices", **KNOWN).text(line) == line


def test_partitions_keep_their_numbers_in_every_notation() -> None:
    made = redactor("orders", "orders-eu")
    topic, other = called(made, "orders"), called(made, "orders-eu")
    assert made.text("orders-3, [orders,4], orders-eu-5, orders: orders.") == (
        f"{topic}-3, [{topic},4], {other}-5, {topic}: {topic}."
    )
    gone = f"-0.{'0a' * 16}-delete"
    assert made.text(f"/logs/orders{gone}/00000000000000000012.log") == f"/logs/{topic}{gone}/00000000000000000012.log"


def test_names_that_no_table_has_are_replaced_alike() -> None:
    made = redactor("orders")
    shown = made.text("from host kafka-1.prod.example.com:9092 by carol of carol at /mnt/secret/kafka-logs")
    assert not re.search("prod|example|carol|mnt|secret", shown)
    assert ":9092" in shown
    assert "host-" in shown
    assert shown.count(called(made, "carol")) == 2
    assert shown.endswith("/kafka-logs")


def test_a_host_of_common_words_is_known_by_its_port() -> None:
    made = redactor("orders")
    assert re.fullmatch(
        r"Connection to node 1 \(host-\d{6}:9092\)", made.text("Connection to node 1 (broker-1.kafka:9092)")
    )
    kept = "at ReplicaManager.scala:77, totalTime:12, broker-1 and offset:120"
    assert made.text(kept) == kept


def test_what_was_not_read_goes_as_a_whole() -> None:
    made = redactor("orders")
    assert made.unread("request.produce") == "request.produce"
    assert made.unread("Something of alice broke") == "[unread: 24 characters]"


def test_faint_names_are_known_by_their_key() -> None:
    made = redactor("7", client=["2", "x", "12345"])
    assert (
        made.text("clientId=12345, offset 12345, 2 of 7") == f"clientId={called(made, '12345')}, offset 12345, 2 of 7"
    )
    assert made.text('{"clientId":"x","topic":"7"}') == (
        f'{{"clientId":"{called(made, "x")}","topic":"{called(made, "7")}"}}'
    )
    assert made.text("Truncating 7-3") == f"Truncating {called(made, '7')}-3"


def test_a_name_that_was_cut_is_not_half_shown() -> None:
    made = redactor("payments-of-customers", "two words of a name")
    for name in ("payments-of-customers", "two words of a name"):
        for shown_chars in range(1, len(name) + 1):
            text = "offset " * 400
            text = text[: CUT_CHARS - shown_chars - 1] + '"' + name[:shown_chars]
            for cut in (text, f"{text}…", f"{text}… (12 more characters)"):
                shown = made.text(cut)
                assert not re.search("paym|customers|words|two|name\\b(?!-)", shown), (cut[-40:], shown[-60:])
                assert "…" in shown[-30:]


# --------------------------------------------------------------------- hostile

HOSTILE = (
    "offset", "leader", "topic", "clientId", "acks", "orders", "orders-eu", "orders.eu", "eu", "a.b", "a.b.c",
    "x*y", "(.+)", "[a-z]+", "$1\\2", "back\\slash", 'quo"te', "</script>", "</script><script>alert(1)</script>",
    "zwei Wörter", "\u4e2d\u6587", "\U0001f4a5 boom", "right\u202eto left", "half a pair \ud800", "tab\there",
    "User:CN=alice,OU=payments", "{{ 7 * 7 }}", "name-with-3", "-leading", "trailing-", "__init__", "x" * 249,
)  # fmt: skip


def bounded(name: str, text: str) -> bool:
    """Whether a name stands in a text, no part of a longer word."""
    before = r"(?<!\w)" if name[0].isalnum() or name[0] == "_" else ""
    after = r"(?!\w)" if name[-1].isalnum() or name[-1] == "_" else ""
    return re.search(f"{before}{re.escape(name)}{after}", text) is not None


#: Words that pseudonyms are made of are in them.
HEARD = {"topic", "name", "client", "host", "group", "principal", "address"}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_nowhere_left(name: str) -> None:
    made = redactor(*HOSTILE)
    stored = name.encode("utf-8", "replace").decode("utf-8")
    raw, escaped = json.dumps(stored, ensure_ascii=False), json.dumps(stored)
    for text in (
        f"Truncating partition {stored}-3 to offset 12",
        f"Partition [{stored},3] on broker 1",
        f'Completed request:{{"request":{{"topicData":[{{"name":{raw},"index":2}}]}},"totalTimeMs":1.5}}',
        f'Completed request:{{"request":{{"topicData":[{{"name":{escaped},"index":2}}]}},"totalTimeMs":1.5}}',
        f"topic={stored},partition=3",
    ):
        shown = made.text(text)
        assert called(made, name) in shown, (text, shown)
        if stored not in HEARD:
            for spelled in {stored, raw[1:-1], escaped[1:-1]}:
                assert not bounded(spelled, shown), (text, shown)


def test_shuffled_names_give_the_same_pseudonyms() -> None:
    first, second = redactor(*HOSTILE), redactor(*reversed(HOSTILE))
    assert first.pseudonyms.known == second.pseudonyms.known
    assert len(set(first.pseudonyms.known.values())) == len(HOSTILE)
    assert redactor(*HOSTILE, key=b"another key of it").pseudonyms.known != first.pseudonyms.known


NAME = st.text(st.characters(exclude_categories=["Cs"]), min_size=2, max_size=12) | st.from_regex(
    r"[a-z]{2,6}([._-][a-z0-9]{1,4}){0,2}", fullmatch=True
)
WORDS = st.sampled_from(["offset", "12", "leader epoch", '"name":"', '"', ",", "=", " ", "[", "]", "-3", ".", "/", "…"])


@given(st.lists(NAME, min_size=1, max_size=4, unique=True), st.lists(WORDS | st.integers(0, 3), max_size=12))
@example(["aa", "aa-bb"], [1, "-3", 0])
@example(["ab cd", "cd ef"], [0, " ", 1])
def test_no_name_is_left_of_any_text(names: list[str], parts: list[str | int]) -> None:
    assume(all(any(char.isalpha() for char in name) for name in names))
    assume(not any(name in "topic-0123456789?" or name.isdigit() for name in names))
    made = redactor(*names)
    text = " ".join(part if isinstance(part, str) else f"({names[part % len(names)]})" for part in parts)
    shown = made.text(text)
    for name in names:
        remains = re.sub(r"topic-\d{6}|name-\d{6}|host-\d{6}", "|", shown)
        assert not bounded(name, remains), (text, shown)


@given(
    st.from_regex(r"[b-df-hj-np-tv-z]{9,12}", fullmatch=True), st.from_regex(r"[b-df-hj-np-tv-z]{9,12}", fullmatch=True)
)
def test_the_text_tells_nothing_of_a_name_but_that_it_is_there(one: str, other: str) -> None:
    """Two texts that differ in a name only are the same without their pseudonyms."""
    shapes = []
    for name in (one, other):
        made = redactor(name)
        text = (
            f'Leader {name}-1 starts at {name}, "topic":"{name}" of {name}-x in /data/{name}-1/{name}.log and {name}?'
        )
        unknown = re.sub(r"(?:name)-\d{6}", "?", made.text(text))
        shapes.append(unknown.replace(called(made, name), "!"))
    assert shapes[0] == shapes[1]


# ------------------------------------------------------------------- addresses


def test_addresses_stay_addresses_and_apart() -> None:
    every = tuple(f"10.0.{number // 256}.{number % 256}" for number in range(900))
    made = redactor(addresses=every)
    shown = [made.text(f"{address}:9092").removesuffix(":9092") for address in every]
    assert len(set(shown)) == len(every)
    ranges = r"(?:192\.0\.2|198\.51\.100|203\.0\.113|198\.1[89]\.\d+)\.\d+"
    assert all(re.fullmatch(ranges, address) for address in shown)
    assert re.fullmatch(r"\[2001:db8:[0-9a-f:]+\]:9092", made.text("[fd00:1:2::7]:9092"))
    assert made.text("[fd00:1:2::7]:9092") == made.text("[fd00:1:2:0::7]:9092")


def test_a_name_of_two_kinds_has_one_pseudonym() -> None:
    made = redactor("orders", client=["orders"], group=["orders", "g"])
    assert made.name(kinds.CLIENT, "orders") == made.name(kinds.TOPIC, "orders") == made.text("orders")
    assert made.name(kinds.GROUP, "g").startswith("group-")


def test_ids_keep_their_form() -> None:
    made = redactor(cluster=["W-CQybfSRP-OafW0EWRB0Q", "unknown"], topic_id=["-dGw7YrCTUKV8OjYQ3fyjg"])
    assert re.fullmatch(r"[\w-]{22}", called(made, "W-CQybfSRP-OafW0EWRB0Q"))
    assert made.text("id Some(-dGw7YrCTUKV8OjYQ3fyjg)") == f"id Some({called(made, '-dGw7YrCTUKV8OjYQ3fyjg')})"
    assert called(made, "unknown") == "unknown"
    assert re.fullmatch("[0-9a-f]{32}", made.identity("0" * 32))


# ------------------------------------------------------------------ vocabulary


def test_the_vocabulary_is_of_the_codes_words_not_of_its_examples() -> None:
    assert {"Truncating", "leader", "partition", "acks", "totalTimeMs", "baseOffset", "Shrinking"} <= read_vocabulary()
    assert not {"orders", "clicks", "payments", "alice", "billing", "customers"} & read_vocabulary()
    assert collect_words('"""orders"""\ndef f():\n    """payments"""\n    return "leader epoch"') == {"leader", "epoch"}
