"""ARCHITECTURE.md is a map: short, and of what there is."""

import re
from pathlib import Path

import pytest

from tests.unit.test_dependencies import ROOMS

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
BYTES_MAX = 12 * 1024
_PATH = re.compile(r"`([\w./]+(?:\.py|/))`")


def test_it_is_short() -> None:
    assert len(TEXT.encode()) <= BYTES_MAX


def test_it_lists_the_rooms_in_their_order() -> None:
    assert tuple(re.findall(r"^\| (\w+) \| .* \| `.*` \|$", TEXT, re.MULTILINE)) == ROOMS


@pytest.mark.parametrize("name", sorted(set(_PATH.findall(TEXT))))
def test_what_it_names_is_there(name: str) -> None:
    places = [ROOT, ROOT / "pipelines", *((ROOT / "pipelines" / room) for room in ROOMS)]
    assert any((place / name).exists() for place in places)


def test_every_room_begins_with_a_file_that_is_there() -> None:
    for room, begin in re.findall(r"^\| (\w+) \| .* \| (`.*`) \|$", TEXT, re.MULTILINE):
        for name in re.findall(r"`([^`]+)`", begin):
            assert (ROOT / "pipelines" / room / name).exists(), f"{room}: {name}"


def test_the_index_has_every_document() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"\]\((\w+\.md)\)", index))
    assert listed == {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
