"""The page: hostile text stays text, nothing comes from outside, limits are told."""

from __future__ import annotations

import base64
import csv
import hashlib
import re
import shlex
import shutil
import subprocess
from html.parser import HTMLParser
from importlib.resources import files
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from highwater.pipelines.base.answers import format_csv_lines
from highwater.pipelines.report.model import ClusterVerdict, IncidentBug
from highwater.pipelines.report.page import render
from highwater.pipelines.report.page.render import (
    FINDINGS_MAX,
    INPUTS_MAX,
    LINE_CHARS_MAX,
    encode_value,
    make_anchor,
    make_first_screen,
    make_page_data,
    render_html,
)
from highwater.pipelines.report.render_markdown import render_markdown
from highwater.pipelines.report.summary import write_summary
from highwater.schemas.clocks import CLOCK_BOUNDS
from highwater.schemas.views import make_alias
from tests.unit.report import hostile, sample, sample_detail

JIRA = "https://issues.apache.org/jira/browse/"
SOURCES = {
    file.name: file.read_text(encoding="utf-8")
    for file in files("highwater.pipelines.report.page").iterdir()
    if file.name.endswith((".js", ".css"))
}


class Shape(HTMLParser):
    """Elements with the names of their attributes, in order; and the text within scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.attributes: list[dict[str, str | None]] = []
        self.raw: dict[str, str] = {}
        self.text: list[str] = []
        self._open: str | None = None
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(name for name, _ in attrs)))
        self.attributes.append(dict(attrs))
        if tag in ("script", "style"):
            self._open = "data" if dict(attrs).get("id") == "data" else tag

    def handle_endtag(self, tag: str) -> None:
        self._open = None if tag in ("script", "style") else self._open

    def handle_data(self, data: str) -> None:
        if self._open:
            self.raw[self._open] = self.raw.get(self._open, "") + data
        else:
            self.text.append(data)


def shape(text: str) -> list[tuple[str, tuple[str, ...]]]:
    return Shape(render_html(sample_detail.hostile(text))).elements


HARMLESS = shape("x")


@settings(max_examples=25, deadline=None)
@given(st.text(min_size=1))
@example("x\ud800")
def test_no_text_changes_what_the_page_is_made_of(text: str) -> None:
    assert shape(text) == HARMLESS


@pytest.mark.parametrize("text", hostile.TEXTS, ids=range(len(hostile.TEXTS)))
def test_hostile_text_stays_text_in_every_format(text: str) -> None:
    report = sample_detail.hostile(text)
    page = Shape(render_html(report))
    if text.strip():
        assert page.elements == HARMLESS
    shown = "".join(page.text)
    assert all(char.isprintable() or char == "\n" for char in shown)
    assert not re.search("[<>&\u2028\u2029]", page.raw["data"])
    assert orjson.loads(page.raw["data"]) == make_page_data(report)
    assert all(line.isprintable() for line in write_summary(report).split("\n"))
    assert all(line.isprintable() for line in render_markdown(report).split("\n"))


def test_embedded_json_is_the_same_value() -> None:
    value = {"</script>": ["<!--", "&amp;", "\u2028\u2029", "\x1b", "\u202e", 1.5, None]}
    assert orjson.loads(encode_value(value)) == value
    assert not set(encode_value(value)) & set("<>&\u2028\u2029")


def test_the_policy_names_the_one_script_and_the_one_style_sheet_by_their_hashes() -> None:
    page = Shape(render_html(sample_detail.detailed(sample.audited())))
    policies = [
        attributes["content"]
        for attributes in page.attributes
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert len(policies) == 1
    rules = dict(rule.split(" ", 1) for rule in str(policies[0]).split("; "))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    for name, kind in (("script-src", "script"), ("style-src", "style")):
        digest = base64.b64encode(hashlib.sha256(page.raw[kind].encode()).digest()).decode()
        assert rules[name] == f"'sha256-{digest}'"


def test_statements_on_the_page_name_tables_as_sql_does() -> None:
    assert f"from {make_alias(CLOCK_BOUNDS.full_name)} order by" in SOURCES["logs.js"]


def test_nothing_comes_from_outside() -> None:
    page = Shape(render_html(sample_detail.detailed(sample.audited())))
    for attributes in page.attributes:
        assert not {"src", "srcset", "action", "style", "background"} & attributes.keys()
        assert re.match(f"#|{re.escape(JIRA)}KAFKA-[0-9]+$", attributes.get("href") or "#")
        assert not [name for name in attributes if name.startswith("on")]
    addresses = {match for text in SOURCES.values() for match in re.findall(r"\w+://[^\s\"'`)]+", text)}
    wiki = "https://cwiki.apache.org/confluence/dosearchsite.action?cql=space%3DKAFKA+and+title~%22"
    assert addresses == {"http://www.w3.org/2000/svg", JIRA, wiki}


@pytest.mark.parametrize(
    "name",
    [
        *(
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "Function(",
            "DOMParser",
            "srcdoc",
        ),
        *("fetch(", "XMLHttpRequest", "WebSocket", "import(", "localStorage", "@import", "url(http"),
    ],
)
def test_the_sources_make_no_markup_of_text_and_ask_for_nothing(name: str) -> None:
    assert [source for source, text in SOURCES.items() if name in text] == []


def test_all_sources_are_in_the_page_and_small() -> None:
    assert {*render._SCRIPTS, "page.css"} == SOURCES.keys()
    assert sum(len(text) for text in SOURCES.values()) < 120_000


def test_a_report_without_detail_is_a_page_too() -> None:
    page = Shape(render_html(sample.report()))
    assert orjson.loads(page.raw["data"])["detail"]["cubes"] is None


def test_the_detail_is_not_in_report_json() -> None:
    report = sample_detail.detailed(sample.report())
    assert report.model_dump(mode="json") == sample.report().model_dump(mode="json")


def test_limits_are_told() -> None:
    long = sample.finding(
        evidence=(sample.finding().evidence[0].model_copy(update={"text": "y" * (LINE_CHARS_MAX + 7)}),),
        finding_id="long",
    )
    many = (long, *(sample.finding(finding_id=f"f{number}") for number in range(FINDINGS_MAX + 4)))
    inputs = sample.report().provenance.inputs * (INPUTS_MAX + 3)
    provenance = sample.report().provenance.model_copy(update={"inputs": inputs})
    data = make_page_data(sample.audited(violations=many, provenance=provenance))
    assert len(data["violations"]) == FINDINGS_MAX
    assert data["page"] == {"findings_left_out": 5, "inputs_left_out": 3}
    assert data["violations"][0]["evidence"][0]["text"].endswith("(7 more characters)")


def test_lines_are_left_out_once_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render, "EVIDENCE_CHARS_MAX", 20)
    data = make_page_data(sample.audited())
    left_out: list[Any] = [
        data["violations"][0]["evidence_left_out"],
        data["violations"][0]["implied"][0]["evidence_left_out"],
    ]
    assert left_out == [1, 2]


# ------------------------------------------------------------------ the first screen


def test_the_first_screen_says_what_happened_and_what_to_do() -> None:
    first = make_first_screen(sample_detail.detailed(sample.audited()))
    assert first.verdict == "violated (data lost)"
    assert first.headline == "Broken: committed-data-lost. 1 guarantee kept, 1 undecided, 1 not checkable."
    assert first.about.startswith("cluster c, Kafka 2.8.2, 1 broker, 2026-11-20 14:05:00 to ")
    assert [(chain.cause.kind, len(chain.effects)) for chain in first.story.chains] == [("broker_died", 1)]
    assert first.made == "2026-11-20 14:05:08"
    assert first.next[0].text == "highwater explain committed-data-lost"
    assert any("highwater compare 2026-11-20T14:04:43Z..2026-11-20T14:05:00Z" in item.text for item in first.next)
    assert [item.text for item in first.gaps] == ["cmd"]


def test_an_incident_selects_its_window() -> None:
    page = render_html(sample_detail.detailed(sample.audited()))
    assert 'data-from="2026-11-20T14:05:00.000Z" data-until="2026-11-20T14:05:16.300Z"' in page
    assert "Partition orders-3 had fewer in-sync replicas" in page


def test_known_bugs_are_links_and_texts_of_logs_are_none() -> None:
    known = sample.incident(known_bug=IncidentBug(id="KAFKA-3410", fixed_in="2.0.1"), sentence="KAFKA-7 died.")
    page = render_html(sample_detail.detailed(sample.audited(incidents=(known,))))
    assert f"{JIRA}KAFKA-7" not in page
    assert f'Known bug <a href="{JIRA}KAFKA-3410" rel="noreferrer noopener" target="_blank">KAFKA-3410</a>' in page


def test_the_first_screen_of_nothing() -> None:
    first = make_first_screen(sample.report(blame=(), timeline=(), rules=(), violations=(), brokers=()))
    assert first.rules == "No rule of correctness was run."
    assert (first.when, first.made) == ("", "")


def test_several_clusters_are_on_the_first_screen_those_first_that_most_is_to_be_said_of() -> None:
    parts = [ClusterVerdict(cluster_id=f"c {n}", verdict="clean", tier="T1", inconclusive=()) for n in range(7)]
    reasons = ("a broker is missing", "an hour is missing", "a file is cut")
    parts += [ClusterVerdict(cluster_id="open", verdict="inconclusive", tier="T0", inconclusive=reasons)]
    parts += [ClusterVerdict(cluster_id="it's", verdict="violated", tier="T1", inconclusive=())]
    first = make_first_screen(sample.report(clusters=tuple(parts)))
    assert [item.lead for item in first.clusters[:3]] == [
        "it's: violated, T1",
        "open: inconclusive, T0",
        "c 0: clean, T1",
    ]
    assert first.clusters[1].text == "a broker is missing; an hour is missing; and 1 more reason"
    assert first.clusters[-1].lead == "3 more clusters"
    assert shlex.split(first.next[0].text) == ["highwater", "report", "--cluster", "it's"]
    assert "open: inconclusive, T0" in "".join(Shape(render_html(sample.report(clusters=tuple(parts)))).text)


def test_one_cluster_is_not_listed() -> None:
    only = ClusterVerdict(cluster_id="c", verdict="clean", tier="T1", inconclusive=())
    first = make_first_screen(sample.report(clusters=(only,)))
    assert first.clusters == ()
    assert not any("--cluster" in item.text for item in first.next)


@pytest.mark.parametrize("verdict", ["clean", "violated", "inconclusive"])
def test_every_verdict_has_its_sentence(verdict: str) -> None:
    page = "".join(Shape(render_html(sample.report(verdict=verdict))).text)
    assert f"Replication audit of all logs: {verdict}" in page


def test_anchors_hold_nothing_that_an_address_would_change() -> None:
    assert make_anchor("partition", "orders-3") == "partition-orders-3"
    assert re.fullmatch(r"partition-[A-Za-z0-9._-]+", make_anchor("partition", "a b</script>\u202e%'"))


@pytest.mark.skipif(shutil.which("node") is None, reason="no node is installed")
def test_a_formula_is_text_in_the_csv_of_the_page() -> None:
    """The page quotes what `highwater sql` quotes."""
    texts = ["=HYPERLINK(1)", "+1+1", "-1+cmd", "@SUM(1)", " =1", "-5", "+5.25", "a=b", "-", "orders-4", ""]
    (function,) = re.findall(r"^function plainText\(.*?^}", SOURCES["table.js"], re.MULTILINE | re.DOTALL)
    asked = f"{function}\nconsole.log(JSON.stringify({orjson.dumps(texts).decode()}.map(plainText)))"
    done = subprocess.run(["node", "-e", asked], capture_output=True, text=True, check=True)
    assert orjson.loads(done.stdout) == [next(csv.reader([format_csv_lines([[text, 1]])]))[0] for text in texts]
