"""Messages that can hold a value that a client chose: an id of a group, a member or a transaction, a user's name.

A message begins with constant text, and the text decides the values that follow. Templates declare the values: numbers,
partitions and words have types that no client's text matches. The rest of a template, from its first value of any text,
is written by Kafka itself if enough constant text precedes that value, and the value is not a ``{CLIENT}``. All other
messages can hold a client's value, also those that no template matches.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from highwater.pipelines.grammars.grammar import parse_bare_context, split_atoms
from highwater.pipelines.grammars.templates import CLIENT, TEMPLATES

#: Constant words before the first value of any text, without which a client's value may imitate them.
_WORDS_MIN = 2
#: Characters of a text that select heads.
_KEY = 6
_WORD = re.compile(r"[A-Za-z]{2,}")
#: A value of any text.
_ANY_TEXT = re.compile(r"(?<!\\)\.[*+)]|\[\^|\\S")
_COMPONENT = re.compile(r"[A-Za-z]*")
#: What follows a message in its line: nothing, or the logger.
_ENDS = re.compile(r"\s*(?:\(|\Z)")


class _Head(NamedTuple):
    """The start of a message template, up to its first free text value."""

    #: Constant text, and the pattern of what precedes it, in the order of the template.
    parts: tuple[tuple[str, str], ...]
    is_whole: bool  #: True if the template has no such value.
    is_client: bool  #: True if the template has a value of a client.
    is_client_next: bool  #: True if such a value follows the first constant text.

    @property
    def prefix(self) -> str:
        """Return the constant text at the beginning."""
        return self.parts[0][0]


def can_hold_client_value(message: str) -> bool:
    """Return True if a message may contain a value chosen by a client, False if Kafka writes all values itself.

    The first line may be truncated.
    """
    line = message.partition("\n")[0]
    if not line:
        return False
    start = parse_bare_context(line)[1]
    if line.startswith("["):
        component = _COMPONENT.match(line, 1)
        assert component is not None
        if not any(name.startswith(component[0]) for name in _list_classes()):
            return True
        if "]" not in line:
            return False
        start = line.index("]") + 1
    text = line[start:].lstrip(":, ")
    return not any(_is_beginning(head, text) for key in {text[:_KEY], ""} for head in _collect_heads().get(key, ()))


def _is_beginning(head: _Head, text: str) -> bool:
    """Return True if a text is a prefix of a match of the template's start, or contains it."""
    if not text.startswith(head.prefix[: len(text)]):
        return False
    end = 0
    for constant, before in head.parts:
        match = _compile(before).match(text)
        if match is None:
            return False
        end = match.end()
        if not text.startswith(constant, end):
            return constant.startswith(text[end:])
        end += len(constant)
    return not head.is_whole or _ENDS.match(text, end) is not None


@cache
def _list_classes() -> frozenset[str]:
    """Return the names of logger classes with templates."""
    return frozenset(name for template in TEMPLATES for name in template.loggers)


def compile_heads() -> None:
    """Compile all patterns, which otherwise are compiled on first use."""
    for heads in _collect_heads().values():
        for head in heads:
            _compile(head.parts[-1][1])


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


@cache
def _collect_heads() -> dict[str, list[_Head]]:
    """Return the starts of templates without client values, by the first characters of a text."""
    heads = [_parse_head(branch) for template in TEMPLATES for branch in _split_branches(template.pattern)]
    others = tuple({head.prefix for head in heads if head.is_client_next})
    by_key: dict[str, list[_Head]] = defaultdict(list)
    for head in heads:
        if _is_certain(head) and not head.prefix.startswith(others):
            is_long = len(head.prefix) >= _KEY
            for key in {head.prefix[:end] for end in range(1, _KEY + 1)} if is_long else {""}:
                by_key[key].append(head)
    return dict(by_key)


def _is_certain(head: _Head) -> bool:
    words = sum(len(_WORD.findall(constant)) for constant, _ in head.parts)
    return not head.is_client and words >= (1 if head.is_whole else _WORDS_MIN)


def _split_branches(pattern: str) -> Iterator[str]:
    """Yield the top-level alternatives of a regular expression."""
    if len(list(split_atoms(pattern))) != 1 or not (pattern.startswith("(?:") and pattern.endswith(")")):
        yield pattern
        return
    branch = ""
    for atom, _ in split_atoms(pattern[3:-1]):
        if atom == "|":
            yield from _split_branches(branch)
            branch = ""
        else:
            branch += atom
    yield from _split_branches(branch)


def _parse_head(pattern: str) -> _Head:
    parts: list[tuple[str, str]] = []
    constant = before = ""
    is_whole, is_next = True, False
    for atom, is_character in split_atoms(pattern):
        if is_character:
            constant += atom[-1]
            continue
        parts.append((constant, before))
        before += re.escape(constant)
        constant = ""
        if _ANY_TEXT.search(atom):
            is_whole, is_next = False, CLIENT in atom and len(parts) == 1
            break
        before += atom
    if is_whole:
        parts.append((constant, before))
    return _Head(tuple(parts), is_whole, CLIENT in pattern, is_next)
