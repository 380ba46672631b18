"""A text with placeholders, matched against a line in linear time."""

from __future__ import annotations

import re
from typing import NamedTuple

_PLACEHOLDER = re.compile(r"\{(\w*)\}")


class Wording(NamedTuple):
    """One wording of a log text, such as ``Stopping serving logs in dir {directory}``."""

    literals: tuple[str, ...]  #: constant parts; one more than placeholders
    names: tuple[str, ...]  #: names of the placeholders; empty: the value is not captured

    @property
    def weight(self) -> int:
        """Return the number of constant characters. More characters make a match more certain."""
        return sum(map(len, self.literals))

    @property
    def longest(self) -> str:
        """Return the longest constant part."""
        return max(self.literals, key=len)


def parse_wording(text: str) -> Wording:
    """Return the constant parts and placeholders of a text. The last value may be empty, with the space before it."""
    parts = _PLACEHOLDER.split(text.strip())
    literals, names = parts[::2], parts[1::2]
    if names and not literals[-1]:
        literals[-2] = literals[-2].rstrip(" ")
    return Wording(tuple(literals), tuple(names))


def match_wording(wording: Wording, text: str, is_whole: bool = True) -> dict[str, str] | None:
    """Return the captured values by name. None if the text does not match.

    Each constant part is matched at its leftmost occurrence, which finds a match if there is one.

    Args:
        text: the first line of a message.
        is_whole: the wording must match the whole text. False: other text may surround it.
    """
    first, *others = wording.literals
    if is_whole:
        if not text.startswith(first):
            return None
        position = len(first)
    else:
        found = text.find(first)
        if found < 0:
            return None
        position = found + len(first)
    values = {}
    for number, (name, literal) in enumerate(zip(wording.names, others, strict=True)):
        is_last = number == len(others) - 1
        if is_last and is_whole:
            end = len(text) - len(literal)
            if end < position or not text.endswith(literal):
                return None
        elif is_last and not literal:
            end = len(text)
        else:
            end = text.find(literal, position)
            if end < 0:
                return None
        if name:
            values[name] = text[position:end].strip()
        position = end + len(literal)
    if is_whole and not others and position != len(text):
        return None
    return values
