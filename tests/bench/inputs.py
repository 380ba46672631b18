"""Puts tables of layouts, versions, wrappers and other lines into docs/inputs.md: ``python -m tests.bench.inputs``

Layouts are those that are inferred from the lines beside them; the other tables are those that the audit reads by.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pipelines.bronze.layouts.infer import infer
from pipelines.bronze.wrappers.lines import COLOURS, COLUMNS, WRAPPERS
from pipelines.bronze.wrappers.remarks import REMARKS
from pipelines.kafka.releases import NUMBERINGS

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
    (f'"2026-11-20 15:33:21,101",INFO,kafka.server.KafkaServer,"{_MESSAGE}"', "tables with quoted records"),
)
#: Wrappers whose name has the field in it that holds the line, and behind `by` the one that names the stream.
_OF_FIELDS = (
    (
        "json(log)",
        "an object per line, with the line in any field: shippers, Loki, Splunk, Datadog, Elasticsearch's hits",
    ),
    ("document2(message by logStreamName)", "objects of one document: CloudWatch's events; `document3(..)`: searches"),
    ("csv(2:3 by 1)", "a column of a table, counted from 0: CloudWatch Insights, Splunk, Datadog, Kibana"),
    (f"{COLUMNS}(80)", "lines that a terminal broke at its width"),
)


def written(text: str) -> str:
    """The document with each table between its marks.

    Raises:
        ValueError: it has no such marks.
    """
    for name, rows in (
        ("layouts", _layouts()),
        ("versions", _versions()),
        ("wrappers", _wrappers()),
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


def _wrappers() -> list[str]:
    rows = ["| wrapper | whose |", "|---|---|"]
    named = [(wrapper.name, wrapper.form) for wrapper in (COLOURS, *WRAPPERS)]
    return rows + [f"| {_code(name)} | {form.replace('|', chr(92) + '|')} |" for name, form in (*named, *_OF_FIELDS)]


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
