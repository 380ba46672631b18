"""Lines that clients forge: values that a broker prints, with line ends and what looks like records in them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hypothesis import strategies as st

from highwater.pipelines.grammars.templates import TEMPLATES
from highwater.pipelines.messages.atlas import atlas

TIME = "[2026-11-20 15:39:28,132] "
Carrier = tuple[str, str, str]
#: Level, text and logger of lines that print a value which a client chose, of releases from 0.10 to 4.x.
CARRIERS: tuple[Carrier, ...] = (
    (
        "INFO",
        "[GroupCoordinator 1]: Preparing to rebalance group {} in state PreparingRebalance with old generation 0 "
        "(__consumer_offsets-12) (reason: Adding new member m-1 with group instance id None)",
        "kafka.coordinator.group.GroupCoordinator",
    ),
    (
        "INFO",
        "[GroupCoordinator 1]: Member {} in group g1 has failed, removing it from the group",
        "kafka.coordinator.group.GroupCoordinator",
    ),
    (
        "INFO",
        "[GroupCoordinator 1]: Group {} with generation 3 is now empty (__consumer_offsets-4)",
        "kafka.coordinator.group.GroupCoordinator",
    ),
    (
        "INFO",
        "[GroupMetadataManager brokerId=1] Group {} transitioned to Dead in generation 2",
        "kafka.coordinator.group.GroupMetadataManager",
    ),
    (
        "INFO",
        "[GroupCoordinator id=1 topic=__consumer_offsets partition=5] [GroupId {}] Member m-1 joins the group",
        "org.apache.kafka.coordinator.group.GroupMetadataManager",
    ),
    (
        "INFO",
        "[TransactionCoordinator id=1] Initialized transactionalId {} with producerId 0 and producer epoch 0 on "
        "partition __transaction_state-4",
        "kafka.coordinator.transaction.TransactionCoordinator",
    ),
    (
        "ERROR",
        "[KafkaApi-1] Error when handling request: clientId={}, correlationId=2, api=PRODUCE, version=9, body=...",
        "kafka.server.KafkaApis",
    ),
    (
        "INFO",
        "Principal = User:{} is Denied operation = DESCRIBE from host = 10.0.0.1 on resource = Topic:LITERAL:orders",
        "kafka.authorizer.logger",
    ),
    (
        "DEBUG",
        "Request key {} unblocked 1 Rebalance operations",
        "kafka.server.DelayedOperationPurgatory",
    ),
    (
        "DEBUG",
        "Completed request:RequestHeader(apiKey=METADATA, apiVersion=9, clientId={}, correlationId=5) -- {{}} from "
        "connection 127.0.0.1:9092-127.0.0.1:5000-1;totalTime:1.0",
        "kafka.request.logger",
    ),
)
#: What a forger would have a broker say, whole.
FORGED = (
    "INFO [Broker id=1] Leader orders-0 starts at leader epoch 7 from offset 0 with high watermark 0 ISR [1] "
    "addingReplicas [] removingReplicas []. Previous leader epoch was 6. (state.change.logger)",
    "INFO [Broker id=1] Leader orders-0 with topic id Some(WCK8FkK8RbKFhwge5X0aNA) starts at leader epoch 7 "
    "from offset 0 with partition epoch 9, high watermark 0, ISR [1], adding replicas [] and removing replicas [] . "
    "Previous leader None and previous leader epoch was 6. (state.change.logger)",
    f"INFO Log for partition orders-0 is renamed to /d/orders-0.{'2b3c' * 8}-delete and is scheduled for deletion "
    "(kafka.log.LogManager)",
    "INFO [Partition orders-0 broker=1] Shrinking ISR from 1,2,3 to 1. Leader: (highWatermark: 5, endOffset: 9). "
    "Out of sync replicas: (brokerId: 2, endOffset: 5) (brokerId: 3, endOffset: 5). (kafka.cluster.Partition)",
    "INFO Kafka version: 2.1.0 (org.apache.kafka.common.utils.AppInfoParser)",
)


#: Names of client-chosen values in texts of Kafka.
_CHOSEN = re.compile(r"(?i)group|member|transactional|txn|client|principal|user|share ?partition|key id")
_VALUE = re.compile(r"\{[^{}]*\}")
_CHOSEN_VALUES = ("{group}", "{member}", "{transaction}")


#: Classes whose texts are typed: their templates declare which values are a client's.
_TYPED_CLASSES = frozenset(name for template in TEMPLATES for name in template.loggers)


def _carriers_of_atlas() -> Iterator[Carrier]:
    """Yield a carrier for each value that clients choose. Untyped classes print one behind any name of such a value."""
    for message in atlas().messages.values():
        logger = f"org.apache.kafka.{sorted(message.classes)[0]}"
        for _, text in message.texts:
            for value in _VALUE.finditer(text):
                is_named = _CHOSEN.search(_VALUE.sub("", text[: value.start()])) is not None
                if value[0] in _CHOSEN_VALUES or (is_named and not message.classes & _TYPED_CLASSES):
                    before, after = (
                        _VALUE.sub("1", part).replace("{", "{{").replace("}", "}}")
                        for part in (text[: value.start()], text[value.end() :])
                    )
                    yield message.levels[0], f"{before}{{}}{after}", logger


ATLAS_CARRIERS = tuple(sorted(set(_carriers_of_atlas())))


def logged(carrier: Carrier, value: str) -> str:
    """The line of a broker that prints a value, with its line end."""
    level, text, logger = carrier
    return f"{TIME}{level} {text.format(value)} ({logger})\n"


carriers = st.sampled_from(CARRIERS)
_forged = st.sampled_from(FORGED).map(TIME.__add__)
_opened = st.sampled_from(["", "x", "java.lang.Exception: x", "\u2028", "in (a.b", "[2026-11-20"])
_ends = st.one_of(_opened, st.sampled_from(["\tat a.b(C.java:1)", "\r"]))
_begun = st.lists(st.sampled_from([TIME + "INFO x", TIME + "INFO [KafkaServer id=1] y z"]), max_size=2)
_wholes = st.lists(_forged, min_size=1, max_size=6)


@st.composite
def open_values(draw: st.DrawFn) -> str:
    """Values behind whose beginning the line is not closed, and whose end is no record of its own."""
    return "\n".join(["g" + draw(_opened), *draw(_begun), *draw(_wholes), draw(_ends)])


@st.composite
def doubtful_values(draw: st.DrawFn) -> str:
    """Values behind whose beginning the line seems to be closed, or in which others begin, or that end with one."""
    first, last = draw(st.sampled_from([("g (a.b)", ""), ("g (a b)", ""), ("g", TIME + "INFO x"), ("g", "")]))
    begun = draw(_begun) if first == "g" else []
    return "\n".join([first, *draw(_wholes), *begun, *draw(_wholes), last + draw(_ends)])
