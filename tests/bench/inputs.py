"""Puts tables of layouts, versions, wrappers and other lines into docs/inputs.md: ``python -m tests.bench.inputs``

Layouts are those that are inferred from the lines beside them; the other tables are those that the audit reads by.
"""

from __future__ import annotations

import sys
from pathlib import Path

from highwater.pipelines.bronze.layouts.infer import infer
from highwater.pipelines.bronze.wrappers.recognise import recognise
from highwater.pipelines.bronze.wrappers.remarks import REMARKS
from highwater.pipelines.kafka.releases import NUMBERINGS

DOCUMENT = Path(__file__).parents[2] / "docs" / "inputs.md"

_MESSAGE = "[KafkaServer id=1] started"
#: Lines, and who writes such.
_LAYOUTS = (
    (
        f"[2026-11-20 15:33:21,101] INFO {_MESSAGE} (kafka.server.KafkaServer)",
        "Kafka, Confluent's and Bitnami's images",
    ),
    (f"2026-11-20 15:33:21,101 INFO {_MESSAGE} (kafka.server.KafkaServer) [main]", "Strimzi up to Kafka 3.9"),
    (f"2026-11-20 15:33:21 INFO  [main] KafkaServer:66 - {_MESSAGE}", "Strimzi since Kafka 4.0"),
    (
        f"[2026-11-20 15:33:21,101] [INFO ] [main] [kafka.server.KafkaServer] - {_MESSAGE}",
        "textbooks, Elastic's samples",
    ),
    (f"2026-11-20 15:33:21.101 [main] INFO  k.s.KafkaServer - {_MESSAGE}", "logback"),
    (f"2026-11-20T15:33:21.101Z  INFO 1 --- [main] k.s.KafkaServer : {_MESSAGE}", "Spring Boot"),
    (f"20 Nov 2026 15:33:21,101 | INFO  | main | KafkaServer | {_MESSAGE}", "log4j's DATE, with other signs"),
    (
        '{"@timestamp":"2026-11-20T15:33:21.101Z","log.level":"INFO","log.logger":"kafka.server.KafkaServer",'
        f'"message":"{_MESSAGE}"}}',
        "ECS; JsonLayout, JsonTemplateLayout, GELF, logstash and any other keys, flat or nested",
    ),
)
#: Lines, and what is around the records in them.
_FRAMES = (
    (("kafka-1  | {}", "kafka-2  | {}"), "Docker Compose"),
    (("2026-11-20T15:33:21.101234567Z stdout F {}", "2026-11-20T15:33:21.201234567Z stdout F {}"), "containerd, CRI-O"),
    (("Nov 20 15:33:21 host-1 kafka[812]: {}", "Nov 20 15:33:21 host-1 kafka[812]: {}"), "syslog, journalctl"),
    (('{{"log":"{}\\n","stream":"stdout"}}', '{{"log":"{}\\n","stream":"stderr"}}'), "Docker's json-file"),
    (('{{"events":[{{"pod":"kafka-1","text":"{}"}},', '{{"pod":"kafka-2","text":"{}"}}]}}'), "a document of a service"),
    (("Time,Host,Message", '1,kafka-1,"{}"', '2,kafka-2,"{}"'), "a table"),
    (
        ("Jan 17, 2026 @ 14:24:20.364", "{}", "Jan 17, 2026 @ 14:24:20.964", "{}", "Jan 17, 2026 @ 14:24:21.364", "{}"),
        "Kibana, copied",
    ),
)


def written(text: str) -> str:
    """The document with each table between its marks.

    Raises:
        ValueError: it has no such marks.
    """
    for name, rows in (
        ("layouts", _layouts()),
        ("versions", _versions()),
        ("frames", _frames()),
        ("remarks", _remarks()),
    ):
        start, end = f"<!-- {name}, written by python -m tests.bench.inputs -->\n", f"<!-- end of {name} -->\n"
        before, _, rest = text.partition(start)
        _, found, after = rest.partition(end)
        if not found:
            raise ValueError(f"{DOCUMENT.name} has no line {start.strip()}, or none that ends it")
        text = before + start + "\n".join(rows) + "\n" + end + after
    return text


def _layouts() -> list[str]:
    rows = ["| lines such as | are of the layout | whose |", "|---|---|---|"]
    for line, whose in _LAYOUTS:
        layout = infer([line.encode()]).layout
        assert layout is not None
        rows.append(f"| {_code(line)} | {_code(layout.name)} | {whose} |")
    return rows


def _versions() -> list[str]:
    rows = ["| logged by | as in | read as | source |", "|---|---|---|---|"]
    for numbering in NUMBERINGS:
        logged, titles = (
            "<br>".join(f"`{text}`" for text in column) for column in zip(*numbering.examples, strict=True)
        )
        rows.append(f"| {numbering.vendor} | {logged} | {titles} | {numbering.source} |")
    return rows


def _frames() -> list[str]:
    rows = ["| lines such as | are read as | whose |", "|---|---|---|"]
    for forms, whose in _FRAMES:
        record = f"[2026-11-20 15:33:21,101] INFO {_MESSAGE} (kafka.server.KafkaServer)"
        layout = recognise([form.format(record).encode() for form in forms]).layout
        assert layout is not None
        lines = "<br>".join(_code(form.format("LINE")) for form in forms[:3])
        rows.append(f"| {lines} | {_code(layout.name)} | {whose} |")
    return rows


def _remarks() -> list[str]:
    rows = ["| program | lines |", "|---|---|"]
    for program in dict.fromkeys(name for name, _ in REMARKS):
        forms = "<br>".join(_code(pattern) for name, pattern in REMARKS if name == program)
        rows.append(f"| {program} | {forms} |")
    return rows


def _code(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"


def main() -> int:
    """Write the document anew."""
    DOCUMENT.write_text(written(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
