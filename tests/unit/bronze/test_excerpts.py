"""Which files are excerpts, by their lines."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest

from highwater.pipelines.bronze.excerpts import REASONS, excerpt_of
from highwater.pipelines.bronze.identity import Hints
from highwater.pipelines.bronze.layouts.patterns import KAFKA, pattern_layout
from highwater.schemas.bronze import LOG_FILES

PARSE = pattern_layout(KAFKA).parser(ZoneInfo("UTC"))
SHRINK = "[Partition orders-1 broker=1] Shrinking ISR from 1,2 to 1 (kafka.cluster.Partition)"
EXPAND = "[Partition orders-1 broker=1] Expanding ISR from 1 to 1,2 (kafka.cluster.Partition)"
STARTED = "[KafkaServer id=1] started (kafka.server.KafkaServer)"
TRUNCATED = "[Log partition=orders-1, dir=/kafka] Truncating to offset 7 (kafka.log.Log)"
OTHER = "[Partition clicks-0 broker=1] Shrinking ISR from 1,2 to 1 (kafka.cluster.Partition)"


@pytest.mark.parametrize(
    ("kind", "level", "messages", "reason"),
    [
        ("server", "INFO", [SHRINK, STARTED], None),
        ("server", "WARN", [SHRINK, STARTED], "levels"),
        ("controller", "ERROR", [SHRINK, STARTED], "levels"),
        ("server", "INFO", [SHRINK, OTHER], "logger"),
        ("controller", "INFO", [SHRINK, OTHER], None),
        ("server", "INFO", [SHRINK, TRUNCATED], "partition"),
        ("server", "INFO", [SHRINK, EXPAND], "partition"),
        ("state-change", "INFO", [SHRINK, EXPAND], "partition"),
        ("server", "INFO", [STARTED, TRUNCATED], None),
    ],
)
def test_what_all_lines_share_was_chosen(kind: str, level: str, messages: list[str], reason: str | None) -> None:
    hints = Hints()
    for number in range(12):
        assert excerpt_of(kind, hints) is None or number >= 5
        head = PARSE(f"[2026-11-20 15:33:{number + 10},394] {level} {messages[number % 2]}".encode())
        assert head is not None
        hints.observe(head)
    assert excerpt_of(kind, hints) == reason


def test_reasons_are_words_of_the_table() -> None:
    assert LOG_FILES.words["excerpt"] == REASONS
