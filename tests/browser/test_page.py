"""The page in a real Chromium: clicked and dragged, without an error on the console, without a request to anywhere."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from highwater.pipelines.report.page.render import render_html
from tests.browser.driver import CHROMEDRIVER, CHROMIUM, Browser
from tests.unit.report import hostile, ranges, sample, sample_detail

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (CHROMIUM and CHROMEDRIVER), reason="needs Chromium and ChromeDriver"),
]
#: Space beside the plots, and of the last pixels.
GUTTER, MARGIN = 168, 8
TABLES = (
    "incidents",
    "blame",
    "operations",
    "latency",
    "partitions",
    "requests",
    "clients",
    "moves",
    "restarts",
    "rules",
    "logs",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with tempfile.TemporaryDirectory() as folder:
        made = Browser(Path(folder))
        try:
            yield made
        finally:
            made.close()


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Iterator[Browser]:
    """The sample, open; afterwards nothing has been complained of, or asked for."""
    browser.resize(1400, 1000)
    show(browser, tmp_path, sample_detail.detailed(sample.audited()))
    yield browser
    assert browser.complaints() == []
    assert asked_for(browser) == []


def show(browser: Browser, folder: Path, report: Any, after: str = "") -> None:
    path = folder / "report.html"
    path.write_text(render_html(report), encoding="utf-8")
    browser.run("location.href = 'about:blank'")
    browser.complaints()
    browser.requests()
    browser.open(path.as_uri() + after)


def asked_for(browser: Browser) -> list[str]:
    """Addresses but that of the page; what a browser draws its own controls with is within it."""
    return [url for url in browser.requests() if not url.startswith(("data:", "about:")) and "/report.html" not in url]


def plot(browser: Browser) -> tuple[float, float, float]:
    """Left, top and width of the part of the picture that has times."""
    browser.run("document.getElementById('timeline').scrollIntoView()")
    box = "document.querySelector('#picture svg').getBoundingClientRect()"
    left, top, width = browser.run(f"const box = {box}; return [box.left, box.top, box.width]")
    return left + GUTTER, top, width - GUTTER - MARGIN


def drag(browser: Browser, first: int, last: int, shift: bool = False) -> None:
    """Choose intervals, the last one included."""
    left, top, width = plot(browser)
    number = browser.run("return TIME.number")
    start, end = (left + (at + 0.5) * width / number for at in (first, last))
    browser.drag((start, top + 60), (end, top + 70), shift)


def cells(browser: Browser, place: str) -> list[list[str]]:
    """Texts of a section's first table."""
    script = (
        "const first = document.querySelector('#in-' + arguments[0] + ' table');"
        "const rows = [...first.querySelectorAll('tbody tr:not(.opened)')];"
        "return rows.map((row) => [...row.children].map((cell) => cell.innerText))"
    )
    found: list[list[str]] = browser.run(script, place)
    return found


def test_every_section_has_something(page: Browser) -> None:
    for name in TABLES:
        assert cells(page, name), name
    assert page.run("return document.querySelectorAll('#picture .cell').length") > 10
    assert page.run("return document.querySelectorAll('#picture .band').length") == 3


def test_a_dragged_range_has_the_figures_of_its_intervals(page: Browser) -> None:
    drag(page, 2, 4)
    assert page.run("return state.range") == [2, 5]
    cubes = sample_detail.cubes()
    of_range = ranges.operations(cubes, "produce", 2, 5)
    (produces,) = cells(page, "operations")
    assert produces[1:3] == [str(of_range[None].counts["observed"]), str(of_range[None].counts["with_error"])]
    (blame,) = cells(page, "blame")
    own = of_range[2]
    assert blame[:2] == ["2", str(sum(own.wait.values()))]
    assert float(blame[4]) == pytest.approx(own.counts["wait_us"] / 1_000_000, abs=0.05)
    p99 = ranges.quantile(of_range[None].total, 0.99, cubes.growth)
    without = ranges.quantile(ranges.without(cubes, of_range, 2), 0.99, cubes.growth)
    assert float(blame[7]) == pytest.approx(without, rel=0.01)
    note = page.run("return document.querySelector('#in-blame .note').innerText")
    assert float(note.split("p99 ")[1].split(",")[0]) == pytest.approx(p99, rel=0.01)
    assert "14:05:02 to 14:05:05" in page.run("return document.getElementById('rangeline').innerText")
    command = "highwater report --from 2026-11-20T14:05:02Z --until 2026-11-20T14:05:05Z"
    assert command in page.run("return document.getElementById('rangeline').innerText")
    assert page.run("return location.hash") == "#;range=2-5"


def test_a_second_range_stands_beside_the_first(page: Browser) -> None:
    drag(page, 6, 8)
    drag(page, 0, 1, shift=True)
    assert page.run("return [state.range, state.base]") == [[6, 9], [0, 2]]
    (produces,) = cells(page, "operations")
    first, second = (ranges.operations(sample_detail.cubes(), "produce", *at)[None] for at in ((6, 9), (0, 2)))
    now, then = first.counts["observed"], second.counts["observed"]
    rate = (now / 3) / (then / 2)
    assert produces[1].split() == [
        str(now),
        str(then),
        f"+{(rate - 1) * 100:.0f}%" if rate < 2 else f"\u00d7{rate:.1f}",
    ]
    page.click("#swap")
    assert page.run("return [state.range, state.base]") == [[0, 2], [6, 9]]
    page.click("#reset")
    assert page.run("return [state.range, state.base]") == [[0, 10], None]


def test_without_a_mouse(page: Browser) -> None:
    page.run("document.getElementById('picture').focus()")
    page.press("\ue014")
    assert page.run("return state.range") == [0, 1]
    page.press("\ue014", "\ue014")
    assert page.run("return state.range") == [2, 3]
    page.press("\ue00c")
    assert page.run("return state.range") == [0, 10]
    page.run("from.value = '2026-11-20T14:05:03'; until.value = '2026-11-20T14:05:06'")
    page.click("#asrange")
    assert page.run("return state.range") == [3, 6]


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ("14:05:03", "14:05:06", [3, 6]),
        (" 2026-11-20 14:05:03,250 ", "14:05:06.5Z", [3, 7]),
        ("2026-11-20", "2026-11-21", [0, 10]),
        ("14:05", "14:06", [0, 10]),
        ("13:00", "14:05:02", [0, 2]),
        ("14:05:06", "14:05:03", "Write two times"),
        ("nonsense", "14:05:03", "Write two times"),
        ("15:00", "16:00", "The logs have nothing there: they are of 2026-11-20T14:05:00 to"),
    ],
)
def test_times_are_typed_as_people_write_them(page: Browser, start: str, end: str, expected: Any) -> None:
    page.run("from.value = arguments[0]; until.value = arguments[1]", start, end)
    page.click("#asrange")
    told = page.run("return document.getElementById('rangeproblem').innerText")
    if isinstance(expected, str):
        assert told.startswith(expected)
    else:
        assert (page.run("return state.range"), told) == (expected, "")


def test_a_time_without_a_date_may_be_of_the_next_day(page: Browser) -> None:
    night = "TIME.start = Date.UTC(2026, 10, 20, 23, 59, 55); "
    typed = "return ['23:59:57', '00:00:02', '12:00:00'].map((text) => iso(timeOf(text, TIME.start)))"
    assert page.run(night + typed) == [
        "2026-11-20T23:59:57.000Z",
        "2026-11-21T00:00:02.000Z",
        "2026-11-20T12:00:00.000Z",
    ]


def test_a_request_opens_to_its_story(page: Browser) -> None:
    page.click("#in-requests .twist")
    assert page.run("return document.querySelectorAll('#in-requests .steps li').length") == 2
    page.click("#in-requests .steps summary")
    assert "line 7, byte 512" in page.run("return document.querySelector('#in-requests .line').innerText")


def test_findings_have_what_follows_from_them_within(page: Browser) -> None:
    page.click("#in-findings details.violation > summary")
    inside = page.run("return document.querySelector('#in-findings details.violation').innerText")
    assert "Truncating to 12" in inside
    assert "From it follows:" in inside
    assert "hw-regression" in inside


def commands(browser: Browser, place: str) -> list[str]:
    """Those that are shown at a place."""
    shown: list[str] = browser.run(
        "return [...document.querySelectorAll(arguments[0] + ' .next code')].map((one) => one.textContent)", place
    )
    return shown


def test_each_story_has_the_command_for_the_next_question(page: Browser) -> None:
    page.click("#in-findings details.violation > summary")
    assert commands(page, "#in-findings details.violation")[:1] == ["highwater trace finding f1"]
    page.click("#in-requests .twist")
    assert commands(page, "#in-requests") == [
        f"highwater trace request {'ab' * 16}",
        "highwater trace partition orders-3",
    ]
    page.click("#in-moves .twist")
    assert commands(page, "#in-moves") == [
        "highwater trace partition orders-3",
        "highwater survivors orders-3",
        "highwater survivors",
    ]
    drag(page, 2, 4)
    page.click("#in-partitions .twist")
    span = "--from 2026-11-20T14:05:02Z --until 2026-11-20T14:05:05Z"
    assert commands(page, "#in-partitions")[0] == f"highwater trace partition {span} orders-3"
    assert commands(page, "#in-blame") == [f"highwater whatif {span}"]
    drag(page, 0, 1, shift=True)
    compare = "highwater compare 2026-11-20T14:05:00Z..2026-11-20T14:05:02Z 2026-11-20T14:05:02Z..2026-11-20T14:05:05Z"
    assert compare in page.run("return document.getElementById('rangeline').innerText")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("orders-3", "orders-3"),
        ("-x-3", "-- -x-3"),
        ("a b;$(reboot)`-3", "'a b;$(reboot)`-3'"),
        ("it's-3", "'it'\\''s-3'"),
        ("a\nb-3", None),
        ("a\x1b[201~-3", None),
        ("\u202ea-3", None),
        ("", None),
    ],
)
def test_a_name_cannot_say_more_than_itself_in_a_command(page: Browser, text: str, shown: str | None) -> None:
    expected = None if shown is None else f"highwater survivors {shown}"
    assert page.run("return asked('survivors', arguments[0])", text) == expected


def test_a_line_of_evidence_has_its_time_and_broker(page: Browser) -> None:
    line = {"file": "1/server.log", "line_no": 7, "byte_offset": 512, "text": "x", "time": sample.TIME, "broker_id": 1}
    told = "return lineBlock(arguments[0], true).querySelector('.source').textContent"
    assert page.run(told, line) == "14:05:00.000 broker 1 1/server.log line 7, byte 512"
    of_file = line | {"file": "1/0.log", "line_no": 0, "time": None}
    assert page.run(told, of_file) == "no time broker 1 1/0.log byte 512"


def test_clocks_have_their_bounds(page: Browser) -> None:
    (pair,) = page.run(
        "return [...document.querySelectorAll('#clocks + .tablebox tbody tr')]"
        ".map((row) => [...row.children].map((cell) => cell.innerText))"
    )
    assert pair[:4] == ["1", "2", "-4.00", "12.5"]
    assert pair[5:8] == ["191.0", "14:05:00.000 and 14:05:08.500", "22,471"]
    assert "2 pairs left out" in page.run("return document.querySelector('#clocks + .tablebox').innerText")


@pytest.mark.parametrize(
    "target", ["finding-o1", "request-" + "ab" * 16, "partition-orders-3", "rule-hw-above-isr", "clients"]
)
def test_links_lead_to_one_thing(browser: Browser, tmp_path: Path, target: str) -> None:
    show(browser, tmp_path, sample_detail.detailed(sample.audited()), f"#{target};range=3-5")
    assert browser.run("return state.range") == ([0, 10] if target == "finding-o1" else [3, 5])
    assert browser.run("return document.querySelector('.target').id") == target
    assert browser.complaints() == []


def test_a_broker_is_marked_everywhere(page: Browser) -> None:
    page.click("#in-blame .chip")
    assert page.run("return document.querySelectorAll('.chip.marked').length") > 3
    assert page.run("return document.querySelectorAll('#picture text.marked').length") >= 1
    page.click("#unmark")
    assert page.run("return document.querySelectorAll('.marked').length") == 0


def test_the_filter_hides_rows_without_its_text(page: Browser) -> None:
    page.run("filter.value = 'HW-REGRESSION'; filter.dispatchEvent(new Event('input'))")
    findings = "[...document.querySelectorAll('details.finding')]"
    assert page.run(f"return {findings}.filter((one) => one.offsetParent && !one.closest('.inside')).length") == 1
    assert "None of 3 findings have the text of the filter, hw-regression" in page.run(
        "return document.getElementById('findings').innerText"
    )
    page.run("filter.value = 'orders-3'; filter.dispatchEvent(new Event('input'))")
    (partition,) = cells(page, "partitions")
    assert "orders-3" in partition[0]
    assert "1 of 2 rows has the text of the filter, orders-3." in page.run(
        "return document.getElementById('in-partitions').innerText"
    )


def test_the_filter_leaves_tables_without_such_a_column(page: Browser) -> None:
    before = cells(page, "latency")
    page.run("filter.value = 'orders-3'; filter.dispatchEvent(new Event('input'))")
    assert cells(page, "latency") == before
    assert "Not filtered" in page.run("return document.getElementById('in-latency').innerText")
    page.run("filter.value = 'nothing has this'; filter.dispatchEvent(new Event('input'))")
    assert page.run("return document.querySelectorAll('#in-latency table, .card:not([hidden])').length") == 0


def test_rows_that_are_not_shown_yet_are_filtered_too(page: Browser) -> None:
    page.run(
        "const rows = Array.from({ length: 100 }, (_, at) => ({ key: at, name: 'name ' + at }));"
        "put(byId('in-clients'), table([column('Name', (row) => row.name)], { rows, limit: 5 }));"
        "filter.value = 'name 77'; filter.dispatchEvent(new Event('input'))"
    )
    assert cells(page, "clients") == [["name 77"]]
    assert "not shown" not in page.run("return document.getElementById('in-clients').innerText")


def test_a_column_in_which_no_row_says_anything_is_left_out(page: Browser) -> None:
    heads = "return [...document.querySelectorAll('#in-clients th')].map((one) => one.innerText)"
    made = (
        "const columns = [column('a', (row) => row.a), number('b', (row) => row.b), counted('c', (row) => row.c, {"
        " rare: true }), counted('d', (row) => row.c)];"
        "put(byId('in-clients'), table(columns, { rows: [{ a: 'x', b: null, c: 0 }, { a: '', b: null, c: 0 }] }));"
    )
    assert page.run(made + heads) == ["a", "d"]


def test_a_table_is_given_as_text_with_numbers_as_they_are(page: Browser) -> None:
    lines = page.run(
        "const columns = [column('at', (row) => row.at, when), column('what', (row) => row.what, (text) => h('b', null,"
        " text)), counted('number', (row) => row.n), number('lasted', (row) => row.ms, span), column('none', (row) =>"
        " row.at, () => '-')];"
        "const pairs = [{ row: { at: '2026-11-20T14:05:00.000Z', what: '=cmd()', n: 12345, ms: 1500 }, base: null }];"
        "return [exported(columns, pairs, {}), exported(columns.slice(2, 3), [{ row: { n: 2 }, base: { n: 1 } }],"
        " { base: [] })]"
    )
    assert lines[0] == [
        ["at", "what", "number", "lasted, ms", "none"],
        ["2026-11-20T14:05:00.000Z", "'=cmd()", "12345", "1500", ""],
    ]
    assert lines[1] == [["number", "number, baseline"], ["2", "1"]]


def test_a_table_is_saved_under_its_heading(page: Browser) -> None:
    page.run(
        "window.saved = []; HTMLAnchorElement.prototype.click = function () { saved.push(this.download); };"
        "const made = URL.createObjectURL; URL.createObjectURL = (blob) => {"
        " blob.text().then((text) => saved.push(text)); return made.call(URL, blob); };"
    )
    page.click("#in-requests .export button:last-child")
    page.wait("saved.length === 2")
    name, text = page.run("return saved")
    assert name == "highwater-worst-requests.csv"
    assert text.splitlines()[1].startswith("2026-11-20T14:05:03.250Z,1,orders,")


def test_an_incident_selects_its_range_and_the_rest_says_what_is_of_all_logs(page: Browser) -> None:
    of_all = (
        "return [...document.querySelectorAll('.ofall')].every((one) => Boolean(one.offsetParent)) === arguments[0]"
    )
    assert page.run(of_all, False)
    page.click(".card .choose")
    assert page.run("return state.range") == [0, 10]
    page.run("CARD = document.querySelector('.card .choose').dataset; CARD.until = '2026-11-20T14:05:01.500Z'")
    page.click("#picture .incident")
    assert page.run("return state.range") == [0, 3]
    assert page.run(of_all, True)
    assert page.run("return document.querySelector('.card .choose').getAttribute('aria-pressed')") == "true"
    page.run("for (const part of CHAINS[0].parts) part.end_time = CARD.until")
    drag(page, 5, 7)
    assert page.run("return document.querySelector('.card').classList.contains('beyond')")
    assert page.run("return document.getElementById('inrange').innerText") == "0 of 1 in the range"


@pytest.fixture
def many(browser: Browser, tmp_path: Path) -> Browser:
    """Return the page of 13 incidents, 0.7 s apart; the last three have no card."""
    incidents = tuple(
        sample.incident(
            incident_id=f"i{at}",
            kind="isr_shrunk" if at == 12 else "broker_died",
            start_time=f"2026-11-20T14:05:0{at * 0.7:.3f}Z",
            end_time=f"2026-11-20T14:05:0{at * 0.7 + 0.5:.3f}Z",
            sentence=f"Fault {at}.",
        )
        for at in range(13)
    )
    show(browser, tmp_path, sample_detail.detailed(sample.audited(incidents=incidents)))
    return browser


def test_incidents_without_a_card_are_grouped_by_kind(many: Browser) -> None:
    assert many.run("return [...document.querySelectorAll('#in-rest summary')].map((one) => one.innerText)") == [
        "broker died (2)",
        "isr shrunk (1)",
    ]
    listed = "return [...document.querySelectorAll('#in-rest li')].map((one) => one.textContent)"
    assert [text.split(".")[0] for text in many.run(listed)] == ["11", "12", "13"]


def test_the_timeline_has_a_bar_of_every_chain(many: Browser) -> None:
    assert many.run("return document.querySelectorAll('#picture .incident').length") == 13
    assert many.run("return document.querySelectorAll('#picture .incident text').length") == 10


def test_a_range_has_its_own_incidents(many: Browser) -> None:
    many.run("choose('range', intervalsOf(Date.parse('2026-11-20T14:05:08Z'), Date.parse('2026-11-20T14:05:09Z')))")
    within = many.run("return CHAINS.filter((chain) => isWithin(chain, state.range)).map((chain) => chain.number)")
    assert 12 in within
    assert many.run("return document.querySelectorAll('.card:not(.beyond)').length") == len(
        [number for number in within if number <= 10]
    )
    shown = many.run("return [...document.querySelectorAll('#in-rest li > b')].map((one) => parseInt(one.innerText))")
    assert shown == [number for number in within if number > 10]


def test_findings_with_one_sentence_are_one_card(page: Browser) -> None:
    assert page.run("return document.querySelector('details.observation .tag').innerText") == "3 alike"
    assert page.run("return document.querySelectorAll('details.observation > .inside > details').length") == 3


def test_a_link_opens_the_group_around_its_finding(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, sample_detail.detailed(sample.audited()), "#finding-o2")
    assert browser.run("return byId('finding-o2').parentElement.closest('details').open")


def test_an_incident_leads_to_its_lines_and_commands(page: Browser) -> None:
    page.click(".card p > a")
    page.wait("document.querySelector('#in-incidents .line')")
    assert "3/server.log" in page.run("return document.querySelector('#in-incidents .line').innerText")
    assert commands(page, "#in-incidents")[0].startswith(
        "highwater trace partition orders-3 --from 2026-11-20T14:04:55Z"
    )
    assert [row[0][2:] for row in cells(page, "incidents")] == ["AT RISK", "REJECTED", "NOTE"]
    drag(page, 3, 4)
    assert len(cells(page, "incidents")) == 3
    page.run("DATA.incidents[0].end_time = DATA.incidents[0].start_time; drawSections(false)")
    assert len(cells(page, "incidents")) == 2


def test_the_legend_has_all_that_is_drawn_and_the_scale(page: Browser) -> None:
    legend = page.run("return document.getElementById('legend').innerText")
    drawn = page.run(
        "return [...new Set([...document.querySelectorAll('#picture .glyph')].map((one) => one.firstChild.data))]"
    )
    assert len(drawn) > 2
    assert [glyph for glyph in drawn if glyph not in legend] == []
    assert legend.startswith("p99 of the wait, ms: 0 5 10 15 20 ")


def test_a_summary_has_nothing_in_it_that_can_be_pressed(page: Browser) -> None:
    assert page.run("return document.querySelectorAll('summary button, summary a, summary input').length") == 0
    assert page.run("return [...document.querySelectorAll('th')].filter((one) => !one.textContent.trim()).length") == 0


def test_rules_that_were_kept_or_judge_nothing_are_folded(browser: Browser, tmp_path: Path) -> None:
    idle = (sample.rule(name, applicable=False) for name in ("hw-above-isr", "isr-shrink-late"))
    rules = (sample.rule(verdict="violated", cases=1), sample.rule("hw-regression"), *idle)
    show(browser, tmp_path, sample_detail.detailed(sample.report(rules=rules)))
    assert [row[0].split()[-1] for row in cells(browser, "rules")] == ["committed-data-lost"]
    folded = "[...document.querySelectorAll('#in-rules > details')]"
    heads = browser.run(f"return {folded}.map((one) => one.querySelector('summary').innerText)")
    assert heads[0] == "Kept: 1 rule"
    assert heads[1].startswith("Not applicable: 2 rules")
    assert browser.run(f"return {folded}.some((one) => one.open)") is False
    assert browser.complaints() == []


def test_one_click_shows_times_of_the_browser_s_zone(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, sample_detail.detailed(sample.audited()))
    shown = "return document.querySelector('.about').innerText"
    before = browser.run(shown)
    assert "2026-11-20 14:05:00 to 14:06:00 UTC" in before
    assert " ago)" in before or "(now)" in before
    browser.run("Date.prototype.getTimezoneOffset = () => -345")
    browser.click("#zone")
    assert "2026-11-20 19:50:00 to 19:51:00 local time" in browser.run(shown)
    assert browser.run("return document.querySelector('.card .choose').innerText").startswith("2026-11-20 19:50:00")
    assert cells(browser, "incidents")[0][1].startswith("19:50:00")
    browser.click("#zone")
    assert browser.run(shown) == before
    assert browser.complaints() == []


def test_logs_without_requests_have_a_timeline_too(browser: Browser, tmp_path: Path) -> None:
    report = sample_detail.detailed(sample.audited(blame=()))
    assert report.detail
    show(browser, tmp_path, report.model_copy(update={"detail": report.detail.model_copy(update={"cubes": None})}))
    assert browser.run("return [TIME.number, TIME.step]") == [61, 1000]
    browser.click("#picture .incident")
    assert browser.run("return state.range") == [0, 33]
    assert browser.complaints() == []


@pytest.mark.parametrize("width", [1400, 800])
def test_nothing_is_cut_in_print(page: Browser, width: int) -> None:
    page.resize(width, 900)
    page.wait("document.querySelector('#picture svg').clientWidth <= document.documentElement.clientWidth")
    # Paper does not have the picture drawn anew.
    page.run("picture.draw = () => {}")
    page.print_media(718)
    cut = (
        "return [...document.querySelectorAll('main *, .bar-top')].filter((one) => !one.closest('details:not([open])')"
        " && one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.outerHTML.slice(0, 80))"
    )
    try:
        assert page.run("return document.documentElement.clientWidth") == 718
        assert page.run(cut) == []
        assert page.run("return Boolean(document.getElementById('rangeline').offsetParent)")
    finally:
        page.print_media(None)


def test_the_chart_has_a_table(page: Browser) -> None:
    page.click("#astable")
    assert page.run("return document.querySelectorAll('#charttable tbody tr').length") == 10
    page.run("measure.value = 'slow'; measure.dispatchEvent(new Event('change'))")
    page.run("kind.value = 'coordinator'; kind.dispatchEvent(new Event('change'))")
    assert page.run("return document.querySelectorAll('#charttable tbody tr').length") == 0


@pytest.mark.parametrize("width", [1600, 1024, 360, 320])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_window(page: Browser, width: int, scheme: str) -> None:
    page.resize(width, 900)
    page.emulate(prefers_color_scheme=scheme)
    page.wait("document.querySelector('#picture svg').clientWidth <= document.documentElement.clientWidth")
    assert page.run("return document.documentElement.scrollWidth <= document.documentElement.clientWidth + 1")
    assert page.printed().startswith(b"%PDF")


@pytest.mark.parametrize("report", [sample.report(), sample_detail.detailed(sample.report(blame=(), timeline=()))])
def test_reports_with_little_in_them_open(browser: Browser, tmp_path: Path, report: Any) -> None:
    show(browser, tmp_path, report)
    assert browser.complaints() == []


@pytest.mark.parametrize("text", hostile.TEXTS, ids=range(len(hostile.TEXTS)))
def test_hostile_text_is_shown_as_text(browser: Browser, tmp_path: Path, text: str) -> None:
    show(browser, tmp_path, sample_detail.hostile(text))
    elements = (
        "const names = {}; for (const one of document.querySelectorAll('*')) names[one.tagName] = 1; return names"
    )
    assert not {"IMG", "IFRAME", "OBJECT", "BASE", "LINK"} & browser.run(elements).keys()
    assert browser.run("return document.querySelectorAll('script').length") == 2
    assert browser.run("return document.title") == "BROKEN: replication audit, 2026-11-20 14:05"
    odd = json.dumps(
        "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u061c\\u200b-\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ufeff]"
    )
    assert browser.run(f"return new RegExp({odd}).exec(document.body.innerText)") is None
    drag(browser, 2, 4)
    browser.run("document.querySelectorAll('.twist').forEach((one) => one.click())")
    browser.run("document.querySelectorAll('.chip')[0].click()")
    assert browser.complaints() == []
    assert asked_for(browser) == []
