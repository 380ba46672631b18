"""Times on the page in the zone of the browser. The page's own functions run in Node, if it is there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from highwater.pipelines.base.zones import Localizer
from highwater.pipelines.report.page.render import make_page_data
from tests.unit.report import sample, sample_detail

PAGE = Path(__file__).parents[3] / "pipelines" / "report" / "page"
NODE = shutil.which("node")
ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Kiritimati")
#: Instants near midnights and changes of summer time.
EDGES = [datetime(2026, *edge, tzinfo=UTC) for edge in ((3, 29, 1), (11, 1, 6), (11, 20))]
SPANS = st.tuples(st.sampled_from(EDGES), st.integers(-90_000, 90_000), st.integers(0, 3600))


def ran(zone: str, expression: str, values: object) -> object:
    """Return what an expression over `given` is, by the functions of dom.js in a zone."""
    script = (PAGE / "dom.js").read_text(encoding="utf-8") + (
        f"\nZONE.local = true; const given = {json.dumps(values)}; console.log(JSON.stringify({expression}));"
    )
    environment = {**os.environ, "TZ": zone}
    done = subprocess.run([str(NODE), "-e", script], capture_output=True, text=True, check=True, env=environment)
    return json.loads(done.stdout)


@pytest.mark.skipif(NODE is None, reason="needs Node")
@pytest.mark.parametrize("zone", ZONES)
@settings(max_examples=5, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(EDGES), st.integers(-90_000, 90_000), st.integers(0, 3600)), min_size=9, max_size=40
    )
)
def test_a_sentence_has_the_same_times_as_on_the_console(zone: str, drawn: list[tuple[datetime, int, int]]) -> None:
    spans = [(edge + timedelta(seconds=before), timedelta(seconds=length)) for edge, before, length in drawn]
    texts = [
        f"{start:%Y-%m-%d %H:%M:%S} to {start + length:%Y-%m-%d %H:%M:%S}: at {start + length:%H:%M:%S}: it froze, "
        f"then {start:%H:%M:%S}; highwater sql --from {start:%Y-%m-%dT%H:%M:%SZ}"
        for start, length in spans
    ]
    wanted = [Localizer(ZoneInfo(zone)).localize(text) for text in texts]
    assert ran(zone, "given.map((text) => told(text, ''))", texts) == wanted
    times = [f"{start:%Y-%m-%dT%H:%M:%S}.123Z" for start, _ in spans]
    walls = [f"{start.astimezone(ZoneInfo(zone)):%H:%M:%S}.123" for start, _ in spans]
    assert ran(zone, "given.map(when)", times) == walls


@pytest.mark.skipif(NODE is None, reason="needs Node")
def test_the_age_has_the_words_of_the_console() -> None:
    minutes = [0, 1, 2, 119, 120, 2879, 2880, 14_400]
    ages = ran("UTC", "given.map((minutes) => ago(0, minutes * 60000))", minutes)
    assert ages == [
        *("now", "now", "2 minutes ago", "119 minutes ago", "2 hours ago", "47 hours ago", "2 days ago", "10 days ago")
    ]


def test_names_of_the_figures_are_on_the_page_once() -> None:
    report = sample_detail.detailed(sample.audited())
    assert report.detail is not None
    whole, cut = report.detail.model_dump(mode="json")["cubes"], make_page_data(report)["detail"]["cubes"]
    named = 0
    for name, cells in cut.items():
        for column, packed in cells.items() if isinstance(cells, dict) else ():
            if isinstance(packed, dict) and "names" in packed:
                named += 1
                assert [packed["names"][place] for place in packed["at"]] == whole[name][column]
                assert len(set(packed["names"])) == len(packed["names"])
    assert named >= 3
