"""The report's files: their shape is a contract, and hostile text stays text."""

import errno
import os
import re
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from highwater.pipelines.base.errors import InputError
from highwater.pipelines.base.plain import WIDTH_MAX, count, markdown, ms, plain, share
from highwater.pipelines.report.lines import indent_text
from highwater.pipelines.report.model import NotCheckable, Report, Window
from highwater.pipelines.report.printed import SECTIONS, write_parts
from highwater.pipelines.report.render_markdown import FINDINGS_MAX, render_markdown
from highwater.pipelines.report.summary import write_summary
from highwater.pipelines.report.tiers import DELAYED_OPERATIONS, explain_coarse_times
from highwater.pipelines.report.write import render_json, write_report
from tests.unit.report import sample

QUANTILES = ["p50", "p95", "p99", "p999"]
HEADER = ["request_queue", "local", "remote", "throttle", "response_queue", "send", "unaccounted"]
JUDGED = [
    *("observed", "replayed", "explained", "jitter", "late", "unobservable", "contradicted", "interval_width_ms"),
    *("by_cause", "residual_ms", "within_ms", "succeeded", "with_error", "late_reasons", "unobservable_reasons"),
    "known_bugs",
]
SPLIT = ["wait_for_fetch", "carry", "follower", "closing_fetch", "completion", "isr_change"]


def keys(value: Any) -> list[str]:
    return list(value)


def test_json_has_the_contracts_names_in_order() -> None:
    document = orjson.loads(render_json(sample.report()))
    assert keys(document) == [
        *(
            "schema_version",
            "verdict",
            "verdict_class",
            "headline",
            "inconclusive",
            "tier",
            "tier_by_broker",
            "window",
            "brokers",
            "coverage",
        ),
        *("rules", "incidents", "violations", "observations", "open_cases", "topics", "operations", "latency"),
        *("slow_ms", "blame", "blame_coordinator", "timeline", "provenance", "notes", "problems", "clusters"),
        "share_members",
        "throttled",
    ]
    assert (document["schema_version"], document["verdict"], document["tier"]) == (1, "clean", "T1")
    assert keys(document["brokers"][0]) == [
        *("broker_id", "cluster_id", "kafka_version", "mode", "files", "lines", "first_time", "last_time", "tier"),
        "config",
    ]
    assert keys(document["coverage"]) == [
        "lines",
        "parsed",
        "unparsed",
        "share_parsed",
        "not_checkable",
        "top_unparsed",
        "missing",
        "sources",
    ]
    assert keys(document["coverage"]["not_checkable"][0]) == ["rule_id", "reason", "needs", "cost"]
    assert keys(document["coverage"]["top_unparsed"][0]) == ["template", "logger", "count"]
    assert (document["rules"], document["violations"], document["observations"]) == ([], [], [])
    assert keys(document["provenance"]) == [
        *("run_id", "code_version", "config_hash", "rules_fingerprint", "inputs", "delta_versions", "run_before"),
    ]
    assert keys(document["provenance"]["inputs"][0]) == ["file", "sha256"]


def test_json_of_rules_and_findings() -> None:
    document = orjson.loads(render_json(sample.audited()))
    assert keys(document["rules"][0]) == [
        *("rule_id", "verdict", "checked", "cases", "observations", "open_cases"),
        *("left_out", "reason", "is_new", "applicable"),
    ]
    shape_of_a_finding = [
        *("rule_id", "topic", "partition", "leader_epoch", "offset_start", "offset_end", "time", "brokers", "message"),
        *("evidence", "finding_id", "known_bug", "cause", "records", "implied", "fingerprint", "is_new"),
        *("evidence_order", "cluster_id"),
    ]
    violation = document["violations"][0]
    findings = (violation, violation["implied"][0], document["observations"][0], document["open_cases"][0])
    assert all(keys(finding) == shape_of_a_finding for finding in findings)
    assert keys(violation["evidence"][0]) == [
        "file",
        "line_no",
        "byte_offset",
        "text",
        "time",
        "broker_id",
        "byte_length",
    ]


def test_json_of_operations_latency_blame_and_timeline() -> None:
    document = orjson.loads(render_json(sample.report()))
    assert keys(document["operations"]) == ["produce", "fetch", "coordinator"]
    produce = document["operations"]["produce"]
    assert keys(produce) == [*JUDGED, "worst"]
    assert keys(produce["worst"][0]) == [
        *("broker_id", "client_id", "correlation_id", "arrival_time", "wait_ms", "residual_ms", "topic", "partition"),
        *("cause", "closing_replica", "closing_role", "operation_class", "class_reason", "api"),
    ]
    assert keys(produce["interval_width_ms"]) == ["p50", "p99"]
    assert keys(produce["residual_ms"]) == [*QUANTILES, "max"]
    assert keys(produce["within_ms"]) == ["1", "5", "20"]
    fetch, coordinator = document["operations"]["fetch"], document["operations"]["coordinator"]
    assert keys(fetch) == [*JUDGED, "worst", "parked", "cause_known", "groups"]
    assert keys(fetch["parked"]) == JUDGED
    classes = ["explained", "jitter", "late", "unobservable"]
    assert keys(fetch["groups"][0]) == [
        *("reader", "min_bytes", "isolation_level", "observed", "parked", *classes, "within_ms", "by_cause"),
        "read_from",
    ]
    assert keys(coordinator) == [*JUDGED, "worst", "by_api"]
    assert keys(coordinator["by_api"]["END_TXN"]) == ["observed", *classes, "contradicted", "within_ms"]
    latency = document["latency"]
    kinds = ["produce_acks_all", "produce_acks_1", "fetch_follower", "fetch_consumer"]
    # Of requests to coordinators only those kinds that there are.
    kinds.append("end_txn")
    assert keys(latency) == [*kinds, "phases_within_1_ms"]
    for kind in kinds:
        assert keys(latency[kind]) == ["requests", "total_ms", "phases_ms", "phases_within_1_ms", "split"]
        assert keys(latency[kind]["total_ms"]) == QUANTILES
        assert keys(latency[kind]["phases_ms"]) == HEADER + (SPLIT if kind == "produce_acks_all" else [])
        assert all(keys(phase) == ["mean", "p99"] for phase in latency[kind]["phases_ms"].values())
    assert keys(document["blame"][0]) == [
        *("broker_id", "operations", "share", "wait_ms_total", "wait_ms_p99", "p99_ms_actual", "p99_ms_without"),
        *("cluster_id", "role", "operations_slow", "slow_wait_ms_total", "share_wait", "singled_out"),
    ]
    assert keys(document["blame_coordinator"][0]) == keys(document["blame"][0])
    assert keys(document["timeline"][0]) == [
        *("time", "interval_s", "observed", "explained", "jitter", "late", "unobservable", "contradicted"),
        *("with_error", "slow", "total_ms_p99"),
    ]


def test_json_is_the_same_each_time() -> None:
    assert render_json(sample.report()) == render_json(sample.report())
    assert render_json(sample.report()).endswith(b"}\n")


def test_markdown_says_it_in_order() -> None:
    text = render_markdown(sample.report())
    places = [text.index(part) for part in ("# Replication audit: clean", "## Coverage", "## Operations", "## Latency")]
    places += [text.index(part) for part in ("## Blame", "## Worst operations", "## Provenance")]
    assert places == sorted(places)
    assert "within 1 ms of the predicted interval" in text
    assert "unobservable ones count as not within" in text
    assert "| 2 | 700 | 30 | 91.00% | 123,457 | 5,800 | 52.2 | 6.50 | yes | isr\\_member 690, left\\_isr 10 |" in text
    assert (
        "| consumer | leader | 65,536 | read\\_committed | 1,000 | 900 | 98.00% | 980 | 7 | 3 | 10 | bytes 900, timer"
        in text
    )
    assert "| follower | - | - | - | 1,000 |" in text
    assert "Requests to group and transaction coordinators" in text
    assert "(requests, share): 3 (70, 91.00%).\n" in text
    assert "| END\\_TXN | 1,000 |" in text
    assert "\n\n\n" not in text
    assert not re.search(r"[^|\n]\n\|", text), "a table needs an empty line before it"
    assert text.endswith("|\n")


def test_markdown_of_findings() -> None:
    text = render_markdown(sample.audited())
    parts = [
        "## Violations",
        "### committed-data-lost: orders-3, offsets 12-14, leader epoch 5",
        "- Cause: unclean",
        "- Known bug: KAFKA-1",
        "- From it follows: hw-regression, orders-3",
        "| 1/server.log:7 | Truncating to 12 |",
        "## Undecided cases",
        "## Observations",
        "## Rules",
        "| committed-data-lost | violated | 1,234 | 1 |",
    ]
    places = [text.index(part) for part in (*parts, "## Coverage")]
    assert places == sorted(places)
    assert text.startswith("# Replication audit: violated (data lost)\n\nLOST: 3 acknowledged records of orders-3")
    assert "### hw-regression" not in text
    assert not re.search(r"[^|\n]\n\|", text), "a table needs an empty line before it"
    assert not re.search(r"[^\n]\n#", text)
    assert "\n\n\n" not in text
    many = render_markdown(sample.audited(violations=(sample.finding(),) * (FINDINGS_MAX + 2)))
    assert "\nAnd 2 more, listed in report.json.\n\n## Undecided cases" in many


def test_parts_without_anything_are_left_out() -> None:
    empty = sample.report(
        window=Window(),
        brokers=(),
        blame=(),
        blame_coordinator=(),
        operations=sample.operations(
            produce=sample.produce(observed=0, succeeded=0, worst=(), known_bugs={}),
            fetch=sample.fetch(observed=0, groups=()),
            coordinator=sample.coordinator(observed=0),
        ),
    )
    text = render_markdown(empty)
    assert "Fetches were replayed" not in text
    assert "coordinators" not in text
    assert "fetches" not in everything(empty)
    assert "coordinators" not in everything(empty)
    assert "## Worst operations" not in text
    assert not any(f"## {part}" in text for part in ("Violations", "Undecided cases", "Observations", "Rules"))
    assert not any(part in everything(empty) for part in ("violations:", "undecided cases:", "observations:"))
    assert not re.search(r"[^\n]\n## ", text)
    assert "Configuration that brokers logged" not in text
    assert "Signature of a known bug" not in text
    assert "## Provenance" in text


@pytest.mark.parametrize("verdict", ["clean", "violated", "inconclusive"])
def test_every_verdict_renders(verdict: str) -> None:
    document = sample.report(verdict=verdict, inconclusive=("too little was logged",))
    assert f"# Replication audit: {verdict}" in render_markdown(document)
    assert "- too little was logged" in render_markdown(document)
    assert f"\nverdict: {verdict}" in write_summary(document)


NASTY = (
    "a|b\n|---|\n# x `c` <script>alert(1)</script> ![x](http://e.org) **b** &lt; \\| \r\u2028\x1b[31m www.e.org a@b.c"
)


def cells(line: str) -> list[str]:
    """Cells of a row: split at the pipes that no backslash makes text."""
    return re.findall(r"(?:\\.|[^\\|])+", line)


def everything(report: Report) -> str:
    """All sections."""
    return write_parts(report, [*SECTIONS])


def shape(text: str) -> list[tuple[str, int]]:
    """What a document is made of, line by line: rows with their number of cells, list items, headings, text."""
    kinds = []
    for line in text.split("\n"):
        kind = next((mark for mark in ("|", "- ", "#") if line.startswith(mark)), "text" if line else "")
        kinds.append((kind, len(cells(line)) if kind == "|" else 0))
    return kinds


HARMLESS = shape(render_markdown(sample.hostile("x")))


@given(st.text(min_size=1))
@example(NASTY)
@example("|")
@example("\\")
@example("\\|")
@example("- - -")
@example("===")
@example("1. a")
@example("\ud800")
def test_hostile_text_never_changes_the_documents_shape(text: str) -> None:
    document = render_markdown(sample.hostile(text))
    assert shape(document) == HARMLESS
    assert len(document.splitlines()) == document.count("\n")
    assert not re.search(r"(?<!\\)[`<>]", document.replace("&gt;", "").replace("&lt;", ""))


@given(st.text())
@example(NASTY)
def test_escaped_text_is_one_line_without_markup(text: str) -> None:
    shown = markdown(text)
    assert len(shown.splitlines()) <= 1
    assert not any(mark in shown for mark in ("<", ">", "@", "://"))
    assert not re.search(r"(?:^|[^\\])(?:\\\\)*[`|*_\[\]~]", shown)


@given(st.text())
def test_hostile_text_fits_the_terminal(text: str) -> None:
    hostile = sample.hostile(text)
    lines = f"{write_summary(hostile)}\n{everything(hostile)}".split("\n")
    # A command is whole, on a line of its own.
    wide = [line for line in lines if len(line) > WIDTH_MAX and not line.lstrip().startswith(("highwater ", "kafka-"))]
    assert wide == []
    assert all(line.isprintable() for line in lines)


def test_ordinary_text_stays_as_it_is() -> None:
    command = "kafka-configs.sh --entity-name 2 --alter --add-config kafka.request.logger=DEBUG"
    assert markdown(command) == command
    assert markdown("1/server.log.2026-11-20-14.gz") == "1/server.log.2026-11-20-14.gz"
    assert markdown("isr_member") == r"isr\_member"
    assert plain("x" * 500) == "x" * 399 + "…"


def test_numbers() -> None:
    assert (ms(None), ms(0.0), ms(9.994), ms(52.25), ms(12345.6)) == ("-", "0.00", "9.99", "52.2", "12,346")
    assert (share(None), share(0), share(1), share(0.99999), share(0.00001)) == (
        "-",
        "0.00%",
        "100.00%",
        ">99.99%",
        "<0.01%",
    )
    assert (count(None), count(12345)) == ("-", "12,345")


def test_summary() -> None:
    text = everything(sample.report(problems=tuple(f"file {number}: cut" for number in range(7))))
    assert "coverage: 990 of 1,000 log records (99.00%)" in text
    assert "input: and 2 more, see the report" in text
    assert "KAFKA-13091 3" in text
    assert "coordinators' requests: 1,000 (explained 980" in text
    assert "fetches: 1,000 (explained 980" in text
    assert re.search(r"^follower +- +- +1,000 +900 +98\.00% +7 +3 +10$", text, re.MULTILINE)
    assert re.search(r"^ +2 +700 +30 +91\.00% +123\.5 .*outlier$", text, re.MULTILINE)
    assert re.search(r"^ +\? +700", text, re.MULTILINE)


def test_the_summary_answers_what_how_much_why_and_what_now_in_its_first_lines() -> None:
    assert write_summary(sample.audited()).split("\n") == [
        "LOST: 3 acknowledged records of orders-3 (offsets 12-14), 2026-11-20 14:05:00 UTC.",
        "Why: Known bug KAFKA-1.",
        "Now: See which replica still has them: highwater survivors orders-3. Send them again; clients and",
        "     offsets: highwater trace write orders-3",
        "",
        "verdict: violated (data lost)",
        "  Broken: committed-data-lost. 1 guarantee kept, 1 undecided, 1 not checkable.",
        "  cluster c, Kafka 2.8.2, 1 broker, 2026-11-20 14:05:00 to 14:06:00 UTC",
        "  window: from 2026-11-20T14:05:00.000Z until the last line",
        "",
        "What happened: 1 incident, worst first (times in UTC)",
        "",
        "1. REJECTED  2026-11-20 14:05:00 to 14:05:16",
        "   Partition orders-3 had fewer in-sync replicas than min.insync.replicas.",
        "   because  Broker 3 died without shutting down.",
        "   do       Look at the kernel's log.",
        "            highwater trace partition orders-3 --from 2026-11-20T14:04:55Z --until 2026-11-20T14:05:17Z",
        "",
        "Also logged at WARN or above:",
        "  Broker 1 also logged at WARN twice: x",
        "",
        "findings: 1 violation, 1 undecided case, 3 observations. Rules, of all logs read: 1 violated, 1",
        "  inconclusive, 1 clean, 1 not checkable.",
        "replay accuracy: 98.00% of 999 acks=all produces and 98.00% of 1,000 waiting fetches within 5 ms of",
        "  the predicted time.",
        "coverage: 990 of 1,000 log records (99.00%). Evidence T1: with the request log: which writes were",
        "  lost, and what every request waited for.",
        "more: highwater report --verbose (or --section NAME), highwater incidents, and report.html",
        "not checked: 1 rule. To check next time: cmd.",
    ]


def test_a_command_that_is_longer_than_a_line_is_whole() -> None:
    command = "highwater compare 2026-11-20T15:38:30Z..2026-11-20T15:39:52Z 2026-11-20T15:39:52Z..2026-11-20T15:41:14Z"
    lines = indent_text(f"{'Look at its disk. ' * 6}{command}", "  do  ", " " * 6)
    assert lines[-1] == f"      {command}"
    assert all(len(line) <= 100 and "highwater" not in line for line in lines[:-1])


def test_the_summary_says_that_whole_seconds_show_no_accuracy_and_what_to_set() -> None:
    plain_report = sample.report()
    never = dict.fromkeys(("1", "5", "20"))
    operations = plain_report.operations
    parked = operations.fetch.parked.model_copy(update={"within_ms": never})
    kinds = {
        "produce": operations.produce.model_copy(update={"within_ms": never}),
        "fetch": operations.fetch.model_copy(update={"within_ms": never, "parked": parked}),
    }
    coverage = plain_report.coverage.model_copy(
        update={"not_checkable": (explain_coarse_times(DELAYED_OPERATIONS, [1]),)}
    )
    coarse = {"operations": operations.model_copy(update=kinds), "coverage": coverage}
    (line,) = [
        line for line in write_summary(sample.report(**coarse)).split("\n") if line.startswith("replay accuracy")
    ]
    assert line.startswith("replay accuracy: cannot be shown, times have whole seconds: write times with milliseconds")


def test_ten_chains_are_shown_and_the_others_are_grouped_by_kind() -> None:
    many = tuple(sample.incident(f"kind-{number}") for number in range(14))
    text = write_summary(sample.report(incidents=many))
    assert "What happened: 14 incidents, worst first" in text
    assert "\n10. AT RISK" in text
    assert "\n11. " not in text
    assert "4 more incidents, see highwater incidents: kind-10, kind-11, kind-12, kind-13" in text


def test_summary_of_findings() -> None:
    text = everything(sample.audited())
    parts = [
        "coverage:",
        "  cannot be shown: hw-above-isr: cmd",
        "violations: 1\n  committed-data-lost orders-3, offsets 12-14, leader epoch 5, KAFKA-1: Offsets below",
        "(2 lines of evidence, implies 1 finding more)\n  with all lines: highwater trace finding f1\n",
        "undecided cases: 1\n  two-leaders-one-epoch orders-3, offset 12 and later, leader epoch 5: Offsets",
        "observations: 3\n  late-completion: 3\n    orders-3, leader epoch 5: Offsets",
        "    and 1 more, see the report",
        "rules, of all logs read: 1 violated, 1 inconclusive, 1 clean, 1 not checkable\nrule ",
        "acks=all produces:",
    ]
    places = [text.find(part) for part in parts]
    assert -1 not in places
    assert places == sorted(places)


def test_summary_of_many_findings() -> None:
    names = [f"rule-{number}" for number in range(9)]
    gaps = tuple(NotCheckable(rule_id=name, reason=name, needs="the command") for name in names)
    text = everything(
        sample.audited(
            violations=(sample.finding(message="x" * 900),) * 8,
            observations=tuple(sample.finding(name) for name in names),
            coverage=sample.report().coverage.model_copy(update={"not_checkable": gaps}),
        )
    )
    assert text.count("(2 lines of evidence)") == 6
    assert "  and 3 more, see the report" in text
    assert "  and of 4 more rules, see the report" in text
    assert "rule-0, rule-1, rule-2, rule-3, rule-4 and 4 more rules: the command" in text
    assert all(len(line) <= WIDTH_MAX for line in text.split("\n"))


def test_files_are_written_whole(tmp_path: Path) -> None:
    out = tmp_path / "a" / "b"
    first = write_report(sample.report(), out)
    write_report(sample.report(verdict="violated"), out)
    assert [path.name for path in first] == ["report.json", "report.md", "report.html", "report.sarif"]
    assert sorted(path.name for path in out.iterdir()) == sorted(path.name for path in first)
    assert orjson.loads((out / "report.json").read_bytes())["verdict"] == "violated"
    assert (out / "report.json").stat().st_mode & 0o400


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EFBIG, errno.EMFILE])
@pytest.mark.parametrize("written", range(4))
def test_files_of_one_report_appear_together_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int, code: int
) -> None:
    write_report(sample.report(), tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    left = iter(range(written))

    def fsync(handle: int) -> None:
        if next(left, None) is None:
            raise OSError(code, os.strerror(code))

    monkeypatch.setattr("highwater.pipelines.storage.local.os.fsync", fsync)
    with pytest.raises(InputError, match="cannot hold the report") as raised:
        write_report(sample.report(verdict="violated"), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert ("--out" in raised.value.remedy) == (code == errno.ENOSPC)


def test_names_that_are_no_text_do_not_stop_the_report(tmp_path: Path) -> None:
    write_report(sample.hostile("bad\udcff.log"), tmp_path)
    assert orjson.loads((tmp_path / "report.json").read_bytes())["problems"] == ["bad?.log"]


def test_a_folder_that_cannot_be_written_is_an_input_error(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(InputError, match="--out"):
        write_report(sample.report(), blocked)
    (tmp_path / "out" / "report.json").mkdir(parents=True)
    with pytest.raises(InputError, match="cannot hold the report"):
        write_report(sample.report(), tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["report.json"]
