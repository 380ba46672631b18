"""Values of clients in logs, at random: ends of their records, whole records, and beginnings of others."""

from __future__ import annotations

import gzip
import json
import re
from bisect import bisect_left
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import NamedTuple

from highwater.pipelines.bronze.layout import Layout
from highwater.pipelines.grammars.facts import parse_record
from highwater.pipelines.kafka.raw_record import DOUBTFUL
from tests.reading import log_records
from tests.unit.forging import ATLAS_CARRIERS, CARRIERS, FORGED, TIME, Carrier, logged
from tests.unit.silver.test_hostile_texts import JSON, KAFKA, MIB

#: Lines that print a client's value, in all releases.
ALL_CARRIERS = (*CARRIERS, *ATLAS_CARRIERS)
#: Records that name another cluster and another broker.
_OF_CLUSTERS = (
    f"INFO Cluster ID = {'A' * 22} (kafka.server.KafkaServer)",
    "INFO [KafkaServer id=77] started (kafka.server.KafkaServer)",
)
#: Bytes of a log around the line with the value.
AROUND_BYTES = 30_000


class Case(NamedTuple):
    """What a value in a log changes."""

    carrier: Carrier
    value: str
    facts: int  #: Facts of the lines around it.
    adds_no_fact: bool
    costs_no_fact: bool
    is_doubted: bool  #: A record is doubtful.
    is_text_in_json: bool  #: In JSON logs the value changes nothing.


def make_case(log: Path, random: Random, carrier: Carrier | None = None) -> Case:
    """Return what a random value changes at a random place of a log.

    Args:
        carrier: the line that prints the value. None for a random one.
    """
    before, after = window_of(log, random)
    carrier = carrier or random.choice(ALL_CARRIERS)
    value = value_of(random)
    honest = facts_of(before, KAFKA)[0] + facts_of(after, KAFKA)[0]
    found, is_doubted = facts_of(before + logged(carrier, value) + after, KAFKA)
    level, text, logger = carrier
    fields = {"timestamp": "2026-11-20T15:39:28.132Z", "level": level, "loggerName": logger}
    line = json.dumps({**fields, "message": text.format(value)}) + "\n"
    whole, _ = facts_of(as_json(before) + as_json(after), JSON)
    is_text = facts_of(as_json(before) + line + as_json(after), JSON) == (whole, False)
    is_text &= sum(whole.values()) == sum(honest.values())
    return Case(carrier, value, sum(honest.values()), found <= honest, found == honest, is_doubted, is_text)


def window_of(log: Path, random: Random) -> tuple[str, str]:
    """Return the lines of a log before and after a random place."""
    stored = log.read_bytes()
    text = (gzip.decompress(stored) if log.suffix == ".gz" else stored).decode(errors="replace")
    starts = [match.start() + 1 for match in re.finditer(r"\n(?=\[20)", text)]
    at = random.choice(starts)
    first, last = (starts[bisect_left(starts, at - AROUND_BYTES)], starts[bisect_left(starts, at + AROUND_BYTES) - 1])
    return text[first:at], text[at:last]


def value_of(random: Random) -> str:
    """Return a value of one to four parts: ends of its record, whole records, and beginnings of others."""
    ends = ["g", "g (a.b)", "g (kafka.server.KafkaApis)", "g\njava.lang.Exception: x", f"g\n{TIME}INFO z"]
    parts = [random.choice(ends), *_forged(random)]
    if random.random() < 0.5:
        parts += [logged(random.choice(CARRIERS), "h").removesuffix("\n"), TIME + random.choice(FORGED)]
    return "\n".join([*parts, random.choice(["", "y", "y (a.b)", "java.lang.Exception: y", "\tat a.b(C.java:1)"])])


def balanced_value(random: Random, carrier: Carrier) -> str:
    """Return a value that ends its record as its broker does, and begins a record that the rest of the line ends.

    Its line is three or four records, each as a broker logs one. So facts are made of them, and rules judge them.
    """
    level, text, logger = carrier
    before, _, after = (part.replace("{{", "{").replace("}}", "}") for part in text.partition("{}"))
    return "\n".join([f"g{after} ({logger})", *_forged(random), f"{TIME}{level} {before}h"])


def _forged(random: Random) -> list[str]:
    return [TIME + forged for forged in random.choices((*FORGED, *_OF_CLUSTERS), k=random.randint(1, 2))]


def facts_of(text: str, layout: Layout) -> tuple[Counter[str], bool]:
    """Return the facts that lines give, and whether a record is doubtful."""
    parse, found, is_doubted = layout.parser(UTC), Counter[str](), False
    for raw in log_records([text.encode(errors="surrogatepass")], layout, MIB):
        head = parse(raw.text)
        is_doubted |= raw.problem == DOUBTFUL
        if head is not None:
            message = head.message.decode(errors="replace")
            read = parse_record("server", head.time_us, head.level, head.logger, raw.problem, message)
            found += Counter(map(repr, read.facts))
    return found, is_doubted


def as_json(text: str) -> str:
    """Return lines as a JSON layout prints them."""
    parse, lines = KAFKA.parser(UTC), []
    for raw in log_records([text.encode()], KAFKA, MIB):
        head = parse(raw.text)
        assert head is not None
        time = datetime.fromtimestamp(head.time_us / 1e6, UTC).isoformat(timespec="milliseconds")
        fields = {"timestamp": time.replace("+00:00", "Z"), "level": head.level, "loggerName": head.logger}
        lines.append(json.dumps({**fields, "message": head.message.decode(errors="replace")}))
    return "".join(f"{line}\n" for line in lines)


def write_value(content: bytes, carrier: Carrier, value: str, random: Random, partition: str) -> bytes:
    """Return a log with a line that prints a client's value at a random place, with the time of that place.

    Args:
        partition: the partition about which the value forges lines.
    """
    starts = [match.start() + 1 for match in re.finditer(rb"\n(?=\[20)", content)]
    at = random.choice(starts)
    time = content[at : content.index(b"]", at) + 1].decode() + " "
    line = logged(carrier, value).replace(TIME, time).replace("orders-0", partition)
    return content[:at] + line.encode(errors="replace") + content[at:]
