"""Language of the code, per room: the shares below may only rise, and the words only become fewer.

The rules are in CONTRIBUTING.md. `python -m tests.unit.test_style` prints the figures of today.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Words that code, comments and documents do without.
BANNED = re.compile(
    r"\b(tells?|told|telling|stands?|stood|lies?|lay|goes on|go on|went on|anew|beside|of which|that of|those of|"
    r"nobody|whoever|is no [a-z]+|as far as|by then|so many|so long|if need be|all else|in all)\b",
    re.IGNORECASE,
)
#: First words of docstrings and functions that are verbs, in the imperative; booleans begin with is, has or can.
_VERBS = (
    "accept acquire add adjust advance alert align allow alter answer append apply archive arrange ask assemble assign "
    "assume audit await balance be begin bind blame blur bring build bundle call can cancel carry cast catch change "
    "check choose classify clear clip close collect combine commit compact compare compile compress compute confirm "
    "consume convert copy count cover create cut decide declare decode decompress decorate deduplicate defer define "
    "delete deliver derive describe detect digest discover do drain drop dump emit empty encode end enter escape "
    "estimate evaluate evict examine execute expect expire explain explode export extend extract fail fence fetch fill "
    "filter find finish fire fit fix flatten flush fold follow forget format forward freeze gather generate get give "
    "go group guess hand handle has have hold identify ignore import include indent infer inflate init insert inspect "
    "install interrupt invert is join judge keep leave let limit link list load locate lock look lower maintain make "
    "map mark mask match measure merge miss move name note number observe open order override pack pad pair parse pass "
    "pick place plan poke post predict prefer prepare print probe profile propose prove prune publish put quarantine "
    "raise rank read rebuild receive recognise recognize record recount redact refresh refuse register reject release "
    "relax remember remind remove rename render renew repeat replace replay report require reset resolve restart "
    "restore resume return run sample satisfy save say scan search see seek select send serialize set settle share "
    "shift shorten show shut sign skip sort split spread stage start state stop store strip stub sum summarize supply "
    "take test thaw thin trace track transform translate trim truncate try turn undo unescape unpack unwrap update "
    "upgrade use validate verify wait walk warn watch work wrap write yield zip"
)
VERBS = frozenset(_VERBS.split())
_PREPOSITIONS = "of in at by for from to with on until since before after between within over"
PREPOSITIONS = frozenset(_PREPOSITIONS.split())


class Style(NamedTuple):
    """Figures of a room."""

    banned: float  #: banned words per 1,000 words of docstrings and comments, at most
    docstrings: int  #: docstrings of functions that begin with a verb, percent, at least
    verbs: int  #: functions whose first word is a verb, percent, at least
    vague: int  #: functions named by a preposition or a single participle, percent, at most


#: The figures of each room. Lower `banned` and `vague`, and raise the others, as a room is rewritten.
BOUNDS: dict[str, Style] = {
    "jobs": Style(0.5, 94, 76, 5),
    "schemas": Style(0.5, 99, 83, 4),
    "airflow_dags": Style(0.5, 95, 95, 0),
    "pipelines/base": Style(0.5, 99, 76, 5),
    "pipelines/bronze": Style(0.5, 99, 32, 23),
    "pipelines/cluster": Style(0.5, 99, 93, 7),
    "pipelines/controllers": Style(0.5, 99, 84, 4),
    "pipelines/data_dir": Style(0.5, 99, 81, 4),
    "pipelines/gold": Style(2.2, 99, 99, 0),
    "pipelines/grammars": Style(0.5, 99, 66, 13),
    "pipelines/incidents": Style(0.5, 99, 13, 24),
    "pipelines/inquiry": Style(0.5, 99, 93, 4),
    "pipelines/kafka": Style(0.5, 99, 74, 13),
    "pipelines/lake": Style(0.5, 99, 86, 1),
    "pipelines/messages": Style(0.5, 99, 45, 12),
    "pipelines/metrics": Style(0.5, 99, 95, 0),
    "pipelines/quality": Style(0.5, 99, 91, 2),
    "pipelines/redact": Style(0.5, 99, 80, 0),
    "pipelines/replay": Style(0.5, 99, 60, 12),
    "pipelines/report": Style(0.5, 99, 90, 5),
    "pipelines/rules": Style(0.5, 99, 61, 15),
    "pipelines/silver": Style(0.5, 99, 94, 6),
    "pipelines/spark": Style(0.5, 99, 94, 0),
    "pipelines/storage": Style(0.5, 99, 86, 3),
    "pipelines/timelines": Style(0.5, 99, 31, 31),
    "pipelines/timing": Style(0.5, 99, 99, 1),
    "pipelines/upkeep": Style(0.5, 99, 95, 4),
}


#: Banned words per 1,000 words of documents, at most.
DOCUMENTS = 4.0


def _rooms() -> dict[str, list[Path]]:
    rooms = {folder: sorted((ROOT / folder).rglob("*.py")) for folder in ("jobs", "schemas", "airflow_dags")}
    for folder in sorted((ROOT / "pipelines").iterdir()):
        if (folder / "__init__.py").is_file():
            rooms[f"pipelines/{folder.name}"] = sorted(folder.rglob("*.py"))
    return rooms


def _prose(source: str, tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string.lstrip("#: ")


def _is_vague(name: str) -> bool:
    words = name.strip("_").split("_")
    return {words[0], words[-1]} & PREPOSITIONS != set() or (len(words) == 1 and words[0].endswith("ed"))


@cache
def style_of(sources: tuple[str, ...]) -> Style:
    """Return the figures of some modules."""
    words = banned = 0
    named: list[str] = []
    described: list[str] = []
    for source in sources:
        tree = ast.parse(source)
        for text in _prose(source, tree):
            words += len(text.split())
            banned += len(BANNED.findall(text))
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name.startswith("__"):
                continue
            if document := ast.get_docstring(node):
                described.append(document.split()[0].lower())
            if not any("property" in ast.unparse(decorator) for decorator in node.decorator_list):
                named.append(node.name)
    verbs = sum(name.strip("_").split("_")[0] in VERBS for name in named)
    begun = sum(word in VERBS for word in described)
    return Style(
        round(1000 * banned / max(words, 1), 1),
        100 * begun // max(len(described), 1),
        100 * verbs // max(len(named), 1),
        -(-100 * sum(map(_is_vague, named)) // max(len(named), 1)),
    )


def _style(room: str) -> Style:
    return style_of(tuple(path.read_text(encoding="utf-8") for path in _rooms()[room]))


@pytest.mark.parametrize("room", _rooms())
def test_a_room_reads_no_worse_than_before(room: str) -> None:
    now, bound = _style(room), BOUNDS[room]
    assert now.banned <= bound.banned, "a docstring or comment has a word that the rules ban"
    assert now.docstrings >= bound.docstrings, "docstrings of functions begin with a verb"
    assert now.verbs >= bound.verbs, "functions are verbs"
    assert now.vague <= bound.vague, "names have no preposition at an end, and are no participles"


def test_documents_read_no_worse_than_before() -> None:
    words = banned = 0
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")):
        if path.name != "CHANGELOG.md":
            text = path.read_text(encoding="utf-8")
            words += len(text.split())
            banned += len(BANNED.findall(text))
    assert 1000 * banned / words <= DOCUMENTS


def test_each_figure_is_counted() -> None:
    source = '''
def placed(x):
    """What a line tells of it."""

def load_rows(x):
    """Return rows."""
    # nobody
'''
    assert style_of((source,)) == Style(222.2, 50, 50, 50)


if __name__ == "__main__":
    for name in _rooms():
        print(f'    "{name}": Style{tuple(_style(name))},')
