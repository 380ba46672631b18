"""What is printed of a report."""

import html
import re

import orjson
import pytest

from highwater.jobs.cli import highwater
from highwater.jobs.options import SECTION_NAMES
from highwater.pipelines.report.model import Window
from highwater.pipelines.report.page.render import render_html
from highwater.pipelines.report.printed import PAGER_WIDTH, PRINTED, SECTIONS, print_report, write_pager
from highwater.pipelines.report.summary import write_summary
from highwater.pipelines.report.ticket import write_ticket
from tests.unit.report import sample
from tests.unit.report.hostile import TEXTS


@pytest.mark.parametrize("verb", ["audit", "report"])
def test_the_command_offers_all_forms_and_text_unless_asked(verb: str) -> None:
    (option,) = [parameter for parameter in highwater.commands[verb].params if "--format" in parameter.opts]
    assert list(option.type.choices) == list(PRINTED)
    assert option.default == "text"
    assert PRINTED["text"](sample.audited()) == write_summary(sample.audited())


def test_sections_are_printed_instead_of_the_text_and_all_of_them_below_it() -> None:
    (option,) = [parameter for parameter in highwater.commands["report"].params if "--section" in parameter.opts]
    assert list(option.type.choices) == list(SECTION_NAMES) == list(SECTIONS)
    report = sample.audited()
    assert print_report(report, "text") == write_summary(report)
    assert print_report(report, "text", ["accuracy"]).startswith("acks=all produces: 1,000")
    assert print_report(report, "text", SECTION_NAMES).startswith(write_summary(report))
    names = {name: print_report(report, "text", [name]).split(":")[0].split(" ")[0] for name in SECTIONS}
    assert list(names.values()) == [
        "broker",
        "coverage",
        "violations",
        "rules,",
        "acks=all",
        "latency",
        "share",
        "throttled",
        "outages",
    ]


def test_a_rule_with_nothing_to_judge_is_named_apart() -> None:
    idle = sample.rule("isr-shrink-late", applicable=False)
    text = print_report(sample.report(rules=(sample.rule(), idle)), "text", ["rules"])
    assert "1 clean, 1 not applicable" in text
    assert "isr-shrink-late" in text.split("\n")[-1]


def test_forms_for_programs_are_the_files() -> None:
    report = sample.audited()
    assert orjson.loads(PRINTED["json"](report))["verdict"] == report.verdict
    assert orjson.loads(PRINTED["sarif"](report))["version"] == "2.1.0"
    assert PRINTED["markdown"](report).startswith("# Replication audit")


WINDOW = "from 2026-11-20T14:05:00.000Z until the last line"


def test_a_pager_gets_verdict_worst_since_and_next() -> None:
    later = sample.finding("hw-regression", time="2026-11-20T14:09:00.000Z", is_new=True)
    worst = sample.finding(known_bug="KAFKA-1211")
    report = sample.report(verdict="violated", violations=(worst, later))
    assert write_pager(report).split("\n") == [
        f"highwater: violated (data lost), cluster c, {WINDOW}: 2 violations (1 new)",
        "LOST: 3 committed records of orders-3 (offsets 12-14), 2026-11-20 14:05:00 UTC.",
        "Why: Known bug KAFKA-1211, fixed in 0.11.0.",
        "Now: See which replica still has them: highwater survivors orders-3. Send them again; "
        "offsets: highwater trace finding f1",
    ]


def test_a_pager_is_told_why_where_there_is_no_finding() -> None:
    report = sample.report(verdict="inconclusive", inconclusive=("a gap",))
    lines = write_pager(report).split("\n")
    assert lines[0] == f"highwater: inconclusive (not enough evidence), cluster c, {WINDOW}"
    assert lines[2] == "Why: a gap."
    assert write_pager(sample.report(verdict="clean")).startswith(f"highwater: clean, cluster c, {WINDOW}\nCLEAN: ")


@pytest.mark.parametrize("name", [*PRINTED, "html"])
def test_every_format_tells_the_window_and_what_is_outside(name: str) -> None:
    window = Window(since="2026-11-20T14:05:00.000Z", outside=("violated: committed-data-lost a-0 at 3",))
    report = sample.report(verdict="clean", window=window)
    text = render_html(report) if name == "html" else PRINTED[name](report)
    assert "2026-11-20T14:05:00.000Z" in text
    assert "committed-data-lost a-0" in text.replace("\\-", "-")


def test_a_pager_is_told_what_happened_where_no_guarantee_broke() -> None:
    assert write_pager(sample.report(verdict="clean", incidents=(sample.incident(),))).split("\n") == [
        f"highwater: clean, cluster c, {WINDOW}",
        "AT RISK: Broker 3 died without shutting down.",
        "Why: Nothing in the logs explains it.",
        "Now: Over since 2026-11-20 14:05:16. Look at the kernel's log. "
        "highwater compare 2026-11-20T14:04:43Z..2026-11-20T14:05:00Z "
        "2026-11-20T14:05:00Z..2026-11-20T14:05:17Z",
    ]
    on_purpose = sample.incident("broker_stopped", severity="info")
    assert "\nCLEAN: " in write_pager(sample.report(verdict="clean", incidents=(on_purpose,)))


@pytest.mark.parametrize("text", TEXTS)
def test_a_pager_gets_four_printable_lines_whatever_the_logs_hold(text: str) -> None:
    lines = write_pager(sample.hostile(text)).split("\n")
    assert len(lines) <= 4
    assert all(line.isprintable() and len(line) <= PAGER_WIDTH for line in lines)


def test_a_ticket_has_what_happened_and_what_to_do() -> None:
    died = sample.incident("broker_died", incident_id="a", sentence="Broker 2 died.", advice="Look at its disk.")
    out = sample.incident("isr_shrunk", incident_id="b", sentence="Broker 2 left the ISR.", caused_by="a")
    lines = write_ticket(sample.report(incidents=(died, out))).splitlines()
    assert lines[0] == "AT RISK: Broker 2 died."
    assert f"Kafka replication audit: {sample.report().verdict}" in lines
    assert any(line.startswith("1. ") and "Broker 2 died." in line for line in lines)
    assert any(line.startswith("   also: ") and "Broker 2 left the ISR." in line for line in lines)
    assert any(
        line.startswith("   What to do: ") and "Look at its disk. highwater compare 2026" in line for line in lines
    )


@pytest.mark.parametrize("text", TEXTS)
def test_a_ticket_is_printable_lines_whatever_the_logs_hold(text: str) -> None:
    told = write_ticket(sample.hostile(text))
    assert all(char.isprintable() or char == "\n" for char in told)


def test_the_page_has_the_ticket_to_be_copied() -> None:
    report = sample.report(incidents=(sample.incident("broker_died", sentence="Broker <2> & 3 died."),))
    page = render_html(report)
    (copied,) = re.findall(r"<span hidden>(.*?)</span><button[^>]* id=\"ticket\">", page, re.DOTALL)
    assert html.unescape(copied) == write_ticket(report)


@pytest.mark.parametrize("name", SECTIONS)
def test_tables_fit_into_80_columns(name: str) -> None:
    lines = [
        line
        for line in print_report(sample.audited(), "text", [name]).splitlines()
        if re.search(r"\S   *\S", line.lstrip())
    ]
    assert [line for line in lines if len(line) > 80] == []
