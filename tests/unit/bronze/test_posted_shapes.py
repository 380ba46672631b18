"""Shapes in which people post logs of brokers: read as the plain log is. Names, hosts and numbers are invented."""

from __future__ import annotations

import html
import json
import quopri
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from pprint import pformat
from textwrap import TextWrapper

import pytest

from highwater.pipelines.bronze.wrappers.remarks import is_text_of_others
from tests.reading import read_folder
from tests.renderings import Written, by_pattern
from tests.unit.bronze.test_literals import javascript, ruby
from tests.unit.bronze.test_random_logs import brokers, facts_of

#: Records of each broker in a file.
RECORDS = 80
KAFKA = by_pattern("[%d] %p %m (%c)")
Entry = tuple[int, str]


def entries_of(several: int, write: Callable[[Written], str] = KAFKA) -> tuple[list[Entry], list[Written]]:
    """Return records of some brokers as texts with the number of each broker, in the order of their times."""
    found = [(number, one) for number in range(several) for one in brokers()[number][:RECORDS]]
    found.sort(key=lambda item: item[1].time_us)
    return [(number, write(one)) for number, one in found], [one for _, one in found]


def by_line(form: str, is_numbered: bool = False) -> Callable[[Sequence[Entry]], str]:
    """Return a writer of a line for each line: ``{b}`` is the broker, ``{n}`` a number, ``{line}`` the line."""

    def write(entries: Sequence[Entry]) -> str:
        lines = [(broker, line) for broker, text in entries for line in text.split("\n")]
        return "".join(
            form.format(b=broker, n=number, line=line) + "\n" for number, (broker, line) in enumerate(lines, 1)
        )

    return write


def by_entry(form: str) -> Callable[[Sequence[Entry]], str]:
    """Return a writer of a block for each record."""
    return lambda entries: "".join(form.format(b=broker, n=n, line=text) for n, (broker, text) in enumerate(entries))


def loki(entries: Sequence[Entry]) -> str:
    streams = [
        {
            "stream": {"app": "kafka", "pod": f"kafka-{broker}"},
            "values": [[str(n), t] for n, (b, t) in enumerate(entries) if b == broker],
        }
        for broker in sorted({broker for broker, _ in entries})
    ]
    return json.dumps({"status": "success", "data": {"resultType": "streams", "result": streams}})


def component_apart(entries: Sequence[Entry]) -> str:
    """Write the context of each message and its exception as fields, as the Kafka module of Filebeat does."""
    rows = []
    for broker, text in entries:
        time, level, said, logger = re.fullmatch(r"(\S+ \S+) (\w+) (.*) \((\S+)\)", text.partition("\n")[0]).groups()
        context = re.match(r"\[([^\]]*)\][:,]? (?=.)", said)
        log = {"class": logger, "component": context[1] if context else "unknown"}
        if context:
            said = said[context.end() :]
        if trace := re.match(r"((?:\w+\.)+\w+(?:Exception|Error)): (.*)", text.partition("\n")[2]):
            log["trace"] = {"class": trace[1], "message": trace[2]}
        rows.append({"@timestamp": time, "agent": {"name": f"kfk-{broker}"}, "log": {"level": level}, "kafka": log})
        rows[-1]["message"] = said
    return "".join(json.dumps(row) + "\n" for row in rows)


def ansible(entries: Sequence[Entry]) -> str:
    lines = [line for _, text in entries for line in text.split("\n")]
    return json.dumps({"changed": True, "rc": 0, "stdout_lines": lines}, indent=4) + "\n"


def vector(entries: Sequence[Entry]) -> str:
    return "".join(
        json.dumps(
            {"file": "/var/log/x", "kubernetes": {"pod_name": f"kfk-{b}"}, "message": line, "source_type": "k8s"}
        )
        + "\n"
        for b, text in entries
        for line in text.split("\n")
    )


def gcloud(entries: Sequence[Entry]) -> str:
    return "".join(
        f"---\ninsertId: q{n}x\nlabels:\n  k8s-pod/app: kafka\nresource:\n  labels:\n    pod_name: kafka-{b}\n"
        f"  type: k8s_container\nseverity: INFO\ntextPayload: '{line.replace(chr(39), chr(39) * 2)}'\n"
        "timestamp: '2026-11-22T05:06:33.287000456Z'\n"
        for n, (b, text) in enumerate(entries)
        for line in text.split("\n")[:1]
    )


def azure(entries: Sequence[Entry]) -> str:
    rows = [
        f'"11/20/2026, 3:33:21.101 PM",aks-{b},"{line.replace(chr(34), chr(34) * 2)}",stdout'
        for b, t in entries
        for line in t.split("\n")
    ]
    return "TimeGenerated [UTC],Computer,LogEntry,Source\n" + "\n".join(rows) + "\n"


def lines_of(entries: Sequence[Entry]) -> list[str]:
    return [line for _, text in entries for line in text.split("\n")]


def bytes_literal(entries: Sequence[Entry]) -> str:
    return f"Traceback (most recent call last):\n>>> container.logs()\n{chr(10).join(lines_of(entries)).encode()!r}\n"


def list_of_literals(entries: Sequence[Entry]) -> str:
    lines = ",\n".join(f"        {json.dumps(line)}" for line in lines_of(entries))
    return (
        f'PLAY [kafka] ***\n\nok: [kafka01] => {{\n    "tail.stdout_lines": [\n{lines}\n    ]\n}}\n\nPLAY RECAP ***\n'
    )


def html_table(entries: Sequence[Entry]) -> str:
    cells = [(f"kfk-{b}", html.escape(text)) for b, text in entries if "\n" not in text]
    rows = "\n".join(f"<tr><td>{n}</td><td>{host}</td><td>{text}</td></tr>" for n, (host, text) in enumerate(cells))
    return f"<html><body><table><tr><th>No</th><th>Host</th><th>Message</th></tr>\n{rows}\n</table></body></html>\n"


def headed(form: str) -> Callable[[Sequence[Entry]], str]:
    """Return a writer of each broker's records below a heading, as tail of several files writes them."""

    def write(entries: Sequence[Entry]) -> str:
        brokers = sorted({broker for broker, _ in entries})
        return "\n".join(
            "\n".join([form.format(b="abc"[b]), *(text for other, text in entries if other == b), ""]) for b in brokers
        )

    return write


def slack(entries: Sequence[Entry]) -> str:
    texts = ["```" + "\n".join(text for _, text in entries[n : n + 9]) + "```" for n in range(0, len(entries), 9)]
    return json.dumps(
        [{"type": "message", "text": text, "ts": f"17180911{n:02}.1"} for n, text in enumerate(texts)], indent=4
    )


def kibana_copy(entries: Sequence[Entry]) -> str:
    """Write the fields of a document on one line, without the line ends of its texts."""
    lines = []
    for broker, text in entries:
        time, level, logger, said = text.split(" ", 3)
        at = f"{time.replace('T', ' @ ')} level:{level} host:kfk-{broker} _type:_doc"
        lines.append(f"> logger_name:{logger} message:{' '.join(said.split())} thread_name:main @timestamp:{at}")
    return "\n\n".join(lines) + "\n"


def quoted_printable(entries: Sequence[Entry]) -> str:
    """Write a mail whose lines have 76 characters at most."""
    body = quopri.encodestring("\n".join(["Hello all,", *lines_of(entries), ""]).encode()).decode()
    return f"Subject: broker\nContent-Transfer-Encoding: quoted-printable\n\n{body}"


def paragraph(entries: Sequence[Entry]) -> str:
    """Write some records on each line, as a form does that takes line ends for blanks."""
    texts = [" ".join(text.split()) for _, text in entries]
    return "\n\n".join(" ".join(texts[n : n + 7]) for n in range(0, len(texts), 7)) + "\n\nWhat is wrong?\n"


def marked(entries: Sequence[Entry]) -> str:
    """Write lines as PowerShell's Select-String does: a match has a sign, its neighbours have blanks."""
    lines = [line for _, text in entries for line in text.split("\n")]
    return "".join(f"{'> ' if n % 3 else '  '}logs\\server.log:{n}:{line}\n" for n, line in enumerate(lines, 1))


def xml(form: str) -> Callable[[Sequence[Entry]], str]:
    """Return a writer of an element for each record, with its trace in an element of its own."""

    def write(entries: Sequence[Entry]) -> str:
        found = []
        for _, text in entries:
            ms, level, logger, said = text.split(" ", 3)
            message, _, trace = said.partition("\n")
            found.append(
                form.format(ms=ms, level=level, logger=logger, message=message, trace=trace, text=html.escape(message))
            )
        return "\n".join(found) + "\n"

    return write


def printed(write: Callable[[object], str], form: str, between: str = "\n") -> Callable[[Sequence[Entry]], str]:
    """Return a writer of an object for each record, as a program prints it."""

    def render(entries: Sequence[Entry]) -> str:
        objects = [{"stream": f"kfk-{b}", "message": text, "id": n, "ok": True} for n, (b, text) in enumerate(entries)]
        return form.format(between.join(map(write, objects)))

    return render


def fluent_bit(entries: Sequence[Entry]) -> str:
    """Write a line for each line: a number, a tag, and a Ruby hash with the tag of the container."""
    lines = [(broker, line) for broker, text in entries for line in text.split("\n")]
    return "".join(
        f'[{n % 7}] kube.kfk-{b}: [[1795{n:06}.1, {{}}], {{"log"=>{json.dumps(line)}, "pod"=>{{"name"=>"kfk-{b}"}}}}]\n'
        for n, (b, line) in enumerate(lines)
    )


def rows_apart(entries: Sequence[Entry]) -> str:
    """Write a document with the names of columns before rows, which are arrays of values."""
    columns = [{"name": name, "type": "string"} for name in ("Time", "Id", "Pod", "Container", "Source", "Text")]
    head = ("2026-11-20T15:33:21Z", "aks")
    rows = [[*head, f"kfk-{b}", "kafka", "stdout", line] for b, text in entries for line in text.split("\n")]
    return json.dumps({"tables": [{"name": "PrimaryResult", "columns": columns, "rows": rows}]})


def fields_apart(entries: Sequence[Entry]) -> str:
    """Write a document with an array of names and values for each record."""
    rows = [{"@message": text, "@logStream": f"kfk-{b}", "@ptr": f"Cm{n}"} for n, (b, text) in enumerate(entries)]
    found = [[{"field": name, "value": said} for name, said in row.items()] for row in rows]
    return json.dumps({"results": found, "status": "Complete"}, indent=4)


def box(entries: Sequence[Entry]) -> str:
    """Write lines within a box of 120 columns, which breaks them."""
    lines = [line.expandtabs(4) for _, text in entries for line in text.split("\n")]
    parts = [line[at : at + 120] for line in lines for at in range(0, max(1, len(line)), 120)]
    return "\n".join(["\u250c" + "\u2500" * 122 + "\u2510", *(f"\u2502 {part:120} \u2502" for part in parts), ""])


def tagged(entries: Sequence[Entry]) -> str:
    """Write coloured lines as a page has them."""
    lines = [(broker, html.escape(line, False)) for broker, text in entries for line in text.split("\n")]
    return "<pre>\n" + "".join(f'<span class="c{b}">kfk-{b}  | </span>{line}\n' for b, line in lines) + "</pre>\n"


def ruled_table(entries: Sequence[Entry]) -> str:
    """Write a table of Markdown with the parts of a record in its cells."""
    rows = ["| Time | Broker | Level | Logger | Text |", "|---|:--|---|---|---|"]
    for broker, text in entries:
        time, level, logger, said = text.replace("|", "\\|").replace("\n", "<br>").split(" ", 3)
        rows.append(f"| {time} | kfk-{broker} | {level} | {logger} | `{said}` |")
    return "## Our incident\n\n" + "\n".join(rows) + "\n\nMore tomorrow.\n"


def journal_export(entries: Sequence[Entry]) -> str:
    """Write fields of systemd. The number of bytes is before a value with line ends."""
    found = []
    for number, (_, text) in enumerate(entries):
        size = len(text.encode()).to_bytes(8, "little").decode("latin-1")
        is_plain = "\n" not in text or any(sign in size for sign in map(chr, range(128, 256)))
        said = f"MESSAGE={text.partition(chr(10))[0]}" if is_plain else f"MESSAGE\n{size}{text}"
        found.append(f"__CURSOR=s=8a1;i={number}\nPRIORITY=6\n_PID=4711\n{said}\n_HOSTNAME=kfk\n\n")
    return "".join(found)


_LINKEDIN = by_pattern("%d{yyyy/MM/dd HH:mm:ss.SSS} %p [%c{1}] [%t] [kafka-server] [] %m")
_PARTS = by_pattern("%d{UNIX_MILLIS} %p %c %m")
#: Each shape: how a record is written, how records become a file, and the number of brokers in it.
SHAPES: dict[str, tuple[Callable[[Written], str], Callable[[Sequence[Entry]], str], int]] = {
    "mdc-brackets": (_LINKEDIN, by_entry("{line}\n"), 1),
    "tanuki-wrapper": (KAFKA, by_line("INFO   | jvm 1    | 2026/11/20 15:33:21 | {line}"), 1),
    "kail": (KAFKA, by_line("data/kafka-{b}[kafka]: {line}"), 3),
    "papertrail": (KAFKA, by_line("Nov 20 15:33:21 kfk-{b} kafka: {line}"), 3),
    "cat-numbered": (KAFKA, by_line("{n:6}\t{line}"), 1),
    "code-box": (KAFKA, by_line("{n} | {line}"), 1),
    "grep-several": (KAFKA, by_line("kafka-{b}/server.log:{n}:{line}"), 3),
    "html-table": (KAFKA, html_table, 3),
    "html-cells": (KAFKA, by_line("<tr><td>{n}</td><td>{line}</td></tr>"), 1),
    "testcontainers": (KAFKA, by_line("15:33:21.101 [docker-java-stream--{n}] INFO tc.kafka - STDOUT: {line}"), 1),
    "loki-api": (KAFKA, loki, 3),
    "loki-api-indented": (KAFKA, lambda entries: json.dumps(json.loads(loki(entries)), indent=2), 3),
    "ansible": (KAFKA, ansible, 1),
    "vector": (KAFKA, vector, 3),
    "gcloud-yaml": (KAFKA, gcloud, 3),
    "azure-csv": (KAFKA, azure, 3),
    "otel-debug": (
        KAFKA,
        by_entry("LogRecord #{n}\nObservedTimestamp: 2026-11-20 15:33:21 +0000 UTC\nBody: Str({line})\nFlags: 0\n"),
        1,
    ),
    "journal-verbose": (
        KAFKA,
        by_entry("Fri 2026-11-20 15:33:21.101 UTC [s=1;i={n}]\n    PRIORITY=6\n    MESSAGE={line}\n    _UID=0\n"),
        1,
    ),
    "numbered-colours": (KAFKA, by_line("\x1b[2m{n:5}\x1b[0m \x1b[36mbroker{b}\x1b[0m {line}"), 3),
    "heroku": (KAFKA, by_line("2026-11-20T15:33:21.101234+00:00 app[kafka.{b}]: {line}"), 3),
    "nomad": (KAFKA, by_line("alloc=7f{b} task=kafka stdout> {line}"), 3),
    "teamcity": (KAFKA, by_line("[15:33:21]W:\t [kafka-{b}] {line}"), 3),
    "sql-table": (KAFKA, by_line("| {n} | kafka-{b} | {line} |"), 3),
    "bullets": (KAFKA, by_line("  * {line}"), 1),
    "explore-text": (KAFKA, by_entry("2026-11-20 15:33:21.101\t{line}\n"), 1),
    "component-apart": (by_pattern("%d %p %m (%c)"), component_apart, 3),
    "bytes-literal": (KAFKA, bytes_literal, 1),
    "list-of-literals": (KAFKA, list_of_literals, 1),
    "tail-of-several": (KAFKA, headed("==> /logs/kfk-{b}/server.log <=="), 3),
    "rows-of-hosts": (KAFKA, headed("kfk-{b} | CHANGED | rc=0 >>"), 3),
    "echoed-names": (KAFKA, headed("------- broker {b} -------"), 3),
    "slack-export": (KAFKA, slack, 1),
    "kibana-copy": (by_pattern("%d{yyyy-MM-dd'T'HH:mm:ss.SSS} %p %c %m"), kibana_copy, 3),
    "quoted-printable": (KAFKA, quoted_printable, 1),
    "paragraphs": (KAFKA, paragraph, 1),
    "select-string": (KAFKA, marked, 1),
    "method-behind-logger": (by_pattern("[%p] %d [%t] %c info - %m"), by_entry("{line}\n"), 1),
    "xml-log4j": (
        _PARTS,
        xml(
            '<log4j:event logger="{logger}" timestamp="{ms}" level="{level}" thread="main">\n<log4j:message>'
            "<![CDATA[{message}]]></log4j:message>\n<log4j:throwable><![CDATA[{trace}]]></log4j:throwable>\n</log4j:event>\n"
        ),
        1,
    ),
    "xml-jul": (
        _PARTS,
        xml(
            "<record>\n  <millis>{ms}</millis>\n  <logger>{logger}</logger>\n  <level>{level}</level>\n"
            "  <message>{text}</message>\n</record>"
        ),
        1,
    ),
    "ruby-hashes": (KAFKA, printed(ruby, "{}\n"), 3),
    "python-dicts": (KAFKA, printed(pformat, ">>> pprint(events)\n[{}]\n", ",\n "), 3),
    "javascript-objects": (KAFKA, printed(javascript, "fetching ...\n[\n{}\n]\n", ",\n"), 3),
    "fluent-bit": (KAFKA, fluent_bit, 3),
    "rows-apart": (KAFKA, rows_apart, 3),
    "fields-apart": (KAFKA, fields_apart, 3),
    "box": (KAFKA, box, 1),
    "tagged": (KAFKA, tagged, 3),
    "ruled-table": (by_pattern("%d{yyyy-MM-dd'T'HH:mm:ss.SSS} %p %c %m"), ruled_table, 3),
    "journal-export": (KAFKA, journal_export, 1),
    "arrows": (KAFKA, by_line("{n} => kfk-{b} => {line}"), 3),
    "padded-loggers": (by_pattern("%d %5p 42 --- [%15t] %-40c{1.} : %m"), by_entry("{line}\n"), 1),
    "two-threads": (by_pattern("%d %p |%t| - [%c{1}] %t - %m"), by_entry("{line}\n"), 1),
    "service-wrapper": (KAFKA, by_line("INFO|5652/0|Service org.apache.kafka|26-11-20 15:33:21|{line}"), 1),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_says_what_the_plain_log_says(shape: str, tmp_path: Path) -> None:
    write, render, several = SHAPES[shape]
    entries, records = entries_of(several, write)
    (tmp_path / "server.log").write_text(render(entries), encoding="utf-8")
    found = read_folder(tmp_path)
    assert [file.problem for file in found.files.values() if file.layout is None] == []
    facts = Counter(
        (one.time_us, repr(fact)) for one in found.records for fact in one.parsed.facts if one.time_us is not None
    )
    expected = Counter(fact for record in records for fact in facts_of(record))
    layouts = {file.layout for file in found.files.values()}
    assert facts - expected == Counter(), layouts
    assert (expected - facts).total() <= 0.02 * expected.total(), (layouts, list(expected - facts)[:2])
    named = {identity.broker_id for identity in found.identities.values()} - {None}
    assert len(named) == several


#: What other programs print into the output of a broker, before it, between its records and behind it.
REMARKS = (
    "STRIMZI_BROKER_ID=0\nPreparing truststore for replication listener\nCertificate was added to keystore\n",
    "===> User\nuid=1000(appuser) gid=1000(appuser)\nLog directory /var/lib/kafka is already formatted.\n",
    "\x1b[38;5;6mkafka \x1b[38;5;5m05:00:09.18 \x1b[0m\x1b[38;5;2mINFO \x1b[0m ==> ** Starting Kafka **\n\n",
    "OpenJDK 64-Bit Server VM warning: INFO: os::commit_memory(0x0, 12288, 0) failed\n#\n# There is not enough\n",
    "kafka 10:10:24.67 \nkafka 10:10:24.67 Welcome to the Bitnami kafka container\n",
    "root@02aeb061d8dd:/opt/kafka# cat config/server.properties\n",
    "{noformat}\n\nThe data is on NFS:\n{code:yaml}\n",
    "and a bit later, on the same machine:\n",
)


@pytest.mark.parametrize("remark", REMARKS)
def test_what_other_programs_print_changes_no_record(remark: str, tmp_path: Path) -> None:
    entries, records = entries_of(1)
    texts = [text + "\n" for _, text in entries]
    middle = len(texts) // 2
    (tmp_path / "kafka-0.log").write_text(
        "".join([remark, *texts[:middle], remark, *texts[middle:], remark]), encoding="utf-8"
    )
    found = read_folder(tmp_path)
    facts = Counter(
        (one.time_us, repr(fact)) for one in found.records for fact in one.parsed.facts if one.time_us is not None
    )
    assert facts == Counter(fact for record in records for fact in facts_of(record))
    of_others = [one for one in found.records if one.message and one.message in remark]
    assert of_others
    assert {(one.problem or "").partition(".")[0] for one in of_others} == {"foreign"}


@pytest.mark.parametrize(
    "text", ["EndOfStreamException: server closed socket", "OutOfMemoryError", "A$RefusedException: no"]
)
def test_an_exception_without_a_package_begins_a_stack_trace(text: str) -> None:
    assert not is_text_of_others(text.encode())
    assert is_text_of_others(b"Error: no such container")


@pytest.mark.parametrize("form", ["^C{}", "`{}`  ", "> {}", "* {}", "\u2022 {}"])
def test_signs_before_some_records_are_no_part_of_them(form: str, tmp_path: Path) -> None:
    entries, records = entries_of(1)
    texts = [text for _, text in entries]
    signed = [form.format(text) if number % 9 == 4 and "\n" not in text else text for number, text in enumerate(texts)]
    (tmp_path / "kafka-0.log").write_text("\n".join(signed) + "\n", encoding="utf-8")
    found = read_folder(tmp_path)
    facts = Counter(
        (one.time_us, repr(fact)) for one in found.records for fact in one.parsed.facts if one.time_us is not None
    )
    assert facts == Counter(fact for record in records for fact in facts_of(record))


@pytest.mark.parametrize(("quotes", "width"), [("", 72), ("> ", 76), (">> ", 72), ("| ", 80)])
def test_a_mail_that_breaks_lines_between_words_is_read(quotes: str, width: int, tmp_path: Path) -> None:
    entries, records = entries_of(1)
    kept = [number for number, (_, text) in enumerate(entries) if "\n" not in text]
    wrap = TextWrapper(width, break_long_words=False, break_on_hyphens=False)
    lines = [quotes + line for number in kept for line in wrap.wrap(entries[number][1])]
    text = "From: Jo <jo@a.example>\nSubject: broker 1 is slow\n\nHi all,\nthis is what we have:\n\n"
    (tmp_path / "mail.txt").write_text(text + "\n".join(lines) + "\n\nAny idea?\n\nJo\n", encoding="utf-8")
    found = read_folder(tmp_path)
    facts = Counter(
        (one.time_us, repr(fact)) for one in found.records for fact in one.parsed.facts if one.time_us is not None
    )
    assert facts == Counter(fact for number in kept for fact in facts_of(records[number]))


def test_lines_of_one_length_by_chance_are_not_joined(tmp_path: Path) -> None:
    """Lines of one width go on in the next line if a terminal broke them: joined records would be one less each."""
    entries, _ = entries_of(1)
    same = "[2026-11-20 15:33:21,101] INFO [KafkaServer id=0] started (kafka.server.KafkaServer)"
    lines = [same] * 90 + [text for _, text in entries]
    (tmp_path / "kafka-0.log").write_text("\n".join(lines) + "\nAny idea?\n", encoding="utf-8")
    (layout,) = {file.layout for file in read_folder(tmp_path).files.values()}
    assert layout is not None
    assert "columns" not in layout


def test_objects_about_a_container_cost_no_coverage(tmp_path: Path) -> None:
    entries, records = entries_of(1)
    pairs = zip(entries, records, strict=True)
    results = [{"timestamp": one.time_us // 1000, "message": text} for (_, text), one in pairs]
    answer = {"data": {"nrql": {"metadata": {"timeWindow": {"begin": 1, "end": 2}}, "results": results}}}
    (tmp_path / "export.json").write_text(json.dumps(answer, indent=1), encoding="utf-8")
    found = read_folder(tmp_path)
    assert found.coverage == 1
    assert len([one for one in found.records if one.problem is None]) == len(records)


def test_an_id_in_an_environment_names_the_broker_of_a_log(tmp_path: Path) -> None:
    (tmp_path / "previous.txt").write_text(
        'Defaulted container "kafka" out of: kafka, jmx-exporter\n[cfg]KAFKA_CFG_NODE_ID=101\n'
        "[2026-05-11 10:10:27,604] INFO Registered kafka:type=kafka.Log4jController MBean "
        "(kafka.utils.Log4jControllerRegistration$)\n"
        "[2026-05-11 10:10:28,004] ERROR Exiting Kafka due to fatal exception (kafka.Kafka$)\n"
        "org.apache.kafka.common.config.ConfigException: controller.quorum.voters is missing\n"
        "\tat kafka.Kafka$.main(Kafka.scala:90)\n",
        encoding="utf-8",
    )
    found = read_folder(tmp_path)
    assert {identity.broker_id for identity in found.identities.values()} == {101}
    assert [one.message.partition("\n")[0] for one in found.records if one.logger] == [
        "Registered kafka:type=kafka.Log4jController MBean",
        "Exiting Kafka due to fatal exception",
    ]
    assert found.coverage == 1
