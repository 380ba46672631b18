"""Corpora in other layouts, wrappers and resolutions: their records say what they say in Kafka's layout."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

from highwater.pipelines.grammars.facts import parse_record
from tests.reading import read_folder, reasons
from tests.renderings import LAYOUTS, MILLISECOND_US, SECOND_US, WRAPPERS, Rendering, Written, logs_of, records_of

ROOT = Path(__file__).parents[3]
SLICE = ROOT / "tests" / "data" / "slice"
CORPORA = ROOT.parent / "shared" / "corpora"
#: Records of a log that are rendered, from its beginning: in them a broker starts, and says who it is.
RECORDS_MAX = 250
#: Layouts that give whole seconds only, and those that do not name most loggers: nothing but the text tells.
_SECONDS = ("kafka-seconds", "strimzi-4", "textbook")
_NO_NAMES = ("caller", "no-logger")
RENDERINGS = [
    *(Rendering(layout, resolution_us=SECOND_US if layout in _SECONDS else MILLISECOND_US) for layout in LAYOUTS),
    *(Rendering("kafka", (wrapper,)) for wrapper in WRAPPERS if wrapper),
    Rendering("strimzi-4", ("compose-colours",), SECOND_US),
    Rendering("strimzi", ("docker-desktop", "compose-colours")),
    Rendering("json-logstash", ("stern",)),
    Rendering("json-other", ("cloudwatch-insights",)),
    Rendering("logback", ("compose-colours", "elasticsearch-ndjson")),
    Rendering("kafka", ("syslog-german", "quoted")),
]


@cache
def logs(folder: Path) -> list[tuple[str, list[Written]]]:
    """Text logs of one broker and the request log of another, with their records."""
    found = {path: content for path, content in logs_of(folder) if path.parts[0] == "broker-1"}
    return [(path.name, records_of(content[: 4 << 20])[:RECORDS_MAX]) for path, content in found.items()]


def same(folder: Path, rendering: Rendering, target: Path) -> None:
    target.mkdir(exist_ok=True)
    written: dict[str, list[Written]] = {name: records for name, records in logs(folder) if len(records) > 20}
    for name, records in written.items():
        (target / name).write_bytes(rendering.render(("broker-1", record) for record in records))
    found = read_folder(target)
    assert [path for path, file in found.files.items() if file.layout is None] == []
    facts = Counter(
        (one.time_us, repr(fact)) for one in found.records for fact in one.parsed.facts if one.time_us is not None
    )
    records = [one.at(rendering.resolution_us) for one in chain(*written.values())]
    expected = Counter(chain.from_iterable(map(_facts, records)))
    if rendering.layout in _NO_NAMES:
        assert facts <= expected
        assert facts.total() > 0.9 * expected.total()
    else:
        assert facts == expected
    share = 0.6 if rendering.layout in _NO_NAMES else 0.98
    assert found.coverage >= share, reasons(found.records).most_common(5)


def _facts(record: Written) -> list[tuple[int, str]]:
    about = (record.time_us, record.level, record.logger, None, record.message + record.trace)
    return [(record.time_us, repr(fact)) for fact in parse_record("server", *about).facts]


@pytest.mark.parametrize("rendering", RENDERINGS, ids=lambda rendering: rendering.name)
def test_the_slice_says_the_same_in_any_form(rendering: Rendering, tmp_path: Path) -> None:
    same(SLICE, rendering, tmp_path / "logs")


@pytest.mark.long
@pytest.mark.parametrize("corpus", sorted(path.name for path in CORPORA.glob("*/")) if CORPORA.is_dir() else [])
def test_each_corpus_says_the_same_in_any_form(corpus: str, tmp_path: Path) -> None:
    for number, rendering in enumerate(RENDERINGS):
        same(CORPORA / corpus, rendering, tmp_path / str(number))
