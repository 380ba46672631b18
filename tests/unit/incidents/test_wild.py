"""What happened, told of logs as people post them in the very words that were read aloud."""

from __future__ import annotations

import pytest

from tests.incident_texts import WILD, cases, golden_of, text_of_case

pytestmark = pytest.mark.skipif(not WILD.is_dir(), reason="needs ../shared/wild")


@pytest.mark.parametrize("case", cases())
def test_what_happened_is_told_in_these_words(case: str) -> None:
    text = text_of_case(case)
    assert text == golden_of(case).read_text(encoding="utf-8"), "run `python -m tests.incident_texts`, and read it"


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("13-power-loss-leader-behind-followers", ("Broker 304 ended itself", "Known bug KAFKA-3410")),
        (
            "14-log-truncation-not-allowed",
            ("Broker 2 ended itself", "262 records", "KAFKA-3410", "Do not wipe broker 2"),
        ),
        ("16-last-replica-controlled-shutdown", ("failed 3 times", "events-9 and licences-21", "ISR")),
        ("18-new-leader-without-high-watermark", ("returns-0 cannot replicate from 11:00:00", "KAFKA-9491")),
        ("26-kraft-331-controller-renounces", ("(node 3) resigned 3 times", "2641 to 2649", "6 min 56 s")),
        ("27-zk-kraft-migration-stuck", ("waited for brokers 1 and 2 to register with KRaft at 09:20:25", "still")),
        ("28-cp-image-disk-full", ("No space left on device", "Broker 1001 ended itself", "ingest-0")),
        ("29-embedded-windows-crlf", ("AccessDeniedException", "KAFKA-1194", "Broker 0 ended itself")),
        ("41-pipes-caller-class-map-failed", ("Map failed", "vm.max_map_count", "Broker 2 ended itself")),
        ("43-kibana-copied-two-lines", ("pay-gateway rebalanced 8 times", "6 times because", "twice because")),
        ("47-tiered-copy-fails", ("20 times", "invoices.change_log-0", "NullPointerException", "grows")),
        (
            "48-transaction-log-under-min-isr",
            ("11 acks=all produces were refused", "__transaction_state-18", "quotes-4", "replicas (2)"),
        ),
        ("50-powershell-utf16-record-too-large", ("RecordTooLargeException", "4718604", "message.max.bytes")),
        ("52-cloudera-one-disk-of-six", ("Broker 152 ended itself", "Input/output error", "log.dirs")),
        ("54-wrong-cluster-id-on-start", ("did not start, 3 times", "zC5vWq8oTnGd0eLx2RkYiA", "Do not delete")),
        ("57-strimzi4-dedicated-controllers-flip", ("changed 5 times", "3, 5, 4, 3, 4, 5", "3,000 ms", "2611 ms")),
        (
            "61-migration-begun-again-topics-gone",
            ("deleted 5 topics", "removed 9 replicas", "policy-events", "-delete"),
        ),
    ],
)
def test_a_case_that_nobody_told_of_is_told_as_its_expected_md_says(case: str, words: tuple[str, ...]) -> None:
    text = golden_of(case).read_text(encoding="utf-8")
    assert [word for word in words if word not in text] == []
