"""Commands in documents can be given: their verbs, options, modules and targets are there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from highwater.jobs.cli import highwater

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
#: In code of its own: a line of a block, or a span that begins with the command.
_COMMAND = re.compile(r"(?:^ *(?:\$ |    )(?:\S+/)?|`)highwater ((?:\\\n|[^\n`])+)", re.MULTILINE)
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
_MODULE = re.compile(r"python -m (tests(?:\.\w+)+)")
_TARGET = re.compile(r"(?:`|^    |^\$ )make ([a-z][a-z0-9-]*)", re.MULTILINE)


def _read(document: Path) -> str:
    # What was is told in the versions' words, and errors are of commands that cannot be given.
    return "" if document.name in ("CHANGELOG.md", "errors.md") else document.read_text(encoding="utf-8")


def _given(text: str) -> Iterator[str]:
    """Commands of a document, without ``highwater``; of alternatives each."""
    for match in _COMMAND.finditer(text):
        command = re.sub(r"\s+#.*|  +\S.*|\\\n", " ", match[1]).replace("[", " ").replace("]", " ")
        verb, *others = command.split(" | ")
        yield verb
        yield from (other for other in others if other.split()[:1] and other.split()[0] in highwater.commands)


def _problems(text: str) -> list[str]:
    problems = []
    for given in _given(text):
        command: click.Command = highwater
        words = given.split()
        while isinstance(command, click.Group) and words and not words[0].startswith("-"):
            names = words.pop(0).split("|")
            found = [command.commands.get(name) for name in names]
            if None in found:
                problems.append(f"no verb: highwater {given}")
                break
            command = next(filter(None, found))
        options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        options |= {"--help", "--version", "--debug"}
        # A group's examples have options of its verbs.
        if not isinstance(command, click.Group):
            problems += [f"no {name}: highwater {given}" for name in _OPTION.findall(given) if name not in options]
    return problems


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_commands_have_verbs_and_options_that_are_there(document: Path) -> None:
    assert _problems(_read(document)) == []


def test_what_is_not_there_is_found() -> None:
    assert _problems("    highwater audit LOGS --nosuch") == ["no --nosuch: highwater audit LOGS --nosuch"]
    assert _problems("run `highwater nosuch`") == ["no verb: highwater nosuch"]


def test_the_list_of_commands_has_all_of_them() -> None:
    listed = {given.split()[0] for given in _given((ROOT / "docs" / "commands.md").read_text(encoding="utf-8"))}
    assert highwater.commands.keys() <= listed


def test_readme_is_short_and_its_sentence_comes_first() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 900
    assert text.splitlines()[2].startswith("**Find out from broker logs whether Kafka lost data")


def test_modules_and_targets_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for document in DOCUMENTS:
        text = _read(document)
        for module in _MODULE.findall(text):
            place = ROOT / module.replace(".", "/")
            assert place.with_suffix(".py").exists() or (place / "__main__.py").exists(), f"{document.name}: {module}"
        for target in _TARGET.findall(text):
            assert re.search(rf"^{target}\b.*:", makefile, re.MULTILINE), f"{document.name}: make {target}"


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "docs/decisions.md", "docs/glossary.md"])
def test_files_are_there(name: str) -> None:
    rooms = [path for path in (ROOT / "pipelines").iterdir() if path.is_dir()]
    for file in set(re.findall(r"`([\w./]+\.(?:py|toml|js))`", (ROOT / name).read_text(encoding="utf-8"))):
        assert any((folder / file).exists() for folder in (ROOT, ROOT / "pipelines", *rooms)), file


_FENCED = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s:]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def _anchors(document: Path) -> set[str]:
    """Anchors of headings as GitHub makes them: of equal headings the second one ends in -1."""
    text = re.sub(r"^```.*?^```", "", document.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    found: dict[str, int] = {}
    anchors = set()
    for heading in _HEADING.findall(text):
        slug = re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-")
        anchors.add(f"{slug}-{found[slug]}" if slug in found else slug)
        found[slug] = found.get(slug, 0) + 1
    return anchors


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    for link in _LINK.findall(_FENCED.sub("", document.read_text(encoding="utf-8"))):
        name, _, anchor = link.partition("#")
        target = document.parent / name if name else document
        assert target.exists(), f"{document.name}: {link}"
        assert not anchor or target.suffix != ".md" or anchor in _anchors(target), f"{document.name}: {link}"
