"""docs/incidents.md: its first incident is in `tests/data/lake`, too, and is asked of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench import incidents

LAKE = Path(__file__).parents[2] / "data" / "lake"
BLOCKS = incidents.blocks(incidents.DOCUMENT.read_text(encoding="utf-8"))
OF_KIP_101 = [block for block in BLOCKS if "--lake kip101" in block[0] and not block[0].startswith("audit")]


@pytest.mark.parametrize(("command", "shown"), OF_KIP_101, ids=[command.split(" --")[0] for command, _ in OF_KIP_101])
def test_the_document_shows_what_is_printed(command: str, shown: list[str]) -> None:
    printed = incidents.output(command.replace("--lake kip101", f"--lake {LAKE}"))
    assert list(incidents.not_there(shown, printed)) == []


def test_both_incidents_have_their_commands() -> None:
    assert len(OF_KIP_101) == 4
    assert sum("--lake slow28" in command for command, _ in BLOCKS) == 6


def test_lines_have_to_come_in_their_order_and_at_once_unless_some_are_left_out() -> None:
    printed = ["a", "b", "c", "d"]
    assert list(incidents.not_there(["a", "b", "...", "d"], printed)) == []
    assert list(incidents.not_there(["...", "c"], printed)) == []
    assert list(incidents.not_there(["a", "c"], printed)) == ["c"]
    assert list(incidents.not_there(["...", "d", "a"], printed)) == ["a"]
    assert list(incidents.not_there(["b"], printed)) == ["b"]


def test_a_command_may_have_several_lines() -> None:
    text = '```\n$ highwater sql "select 1 \\\n    as one" --lake x\n1\n...\n```\n'
    assert incidents.blocks(text) == [('sql "select 1 as one" --lake x', ["1", "..."])]
