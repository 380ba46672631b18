"""Whether a text with holes can be one that a pattern matches: the two as automata, and a walk over both."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from re import _constants as c  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

#: What a release fills in: ``{}`` of the compiled templates, directives of ``String.format``.
_HOLE = re.compile(r"\{\}|%[-\d.]*[sdfbx]")

Accepts = Callable[[str], bool]
_WORD = re.compile(r"\w", re.ASCII)


class Automaton:
    """A pattern's states: `steps[state]` are (accepted characters, next state), `free[state]` steps for nothing."""

    def __init__(self, pattern: str) -> None:
        """Build it; lookarounds are taken as fulfilled, and whatever backtracks may backtrack."""
        self.steps: list[list[tuple[Accepts, int]]] = []
        self.free: list[list[int]] = []
        self.start = self._state()
        self.end = self._add(parser.parse(pattern, re.ASCII), self.start)

    def _state(self) -> int:
        self.steps.append([])
        self.free.append([])
        return len(self.steps) - 1

    def _add(self, items: Any, state: int) -> int:
        for kind, value in items:
            state = self._add_one(kind, value, state)
        return state

    def _add_one(self, kind: Any, value: Any, state: int) -> int:
        if kind in (c.LITERAL, c.NOT_LITERAL, c.ANY, c.IN):
            after = self._state()
            self.steps[state].append((_accepts(kind, value), after))
            return after
        if kind is c.SUBPATTERN:
            return self._add(value[3], state)
        if kind is c.ATOMIC_GROUP:
            return self._add(value, state)
        if kind is c.BRANCH:
            after = self._state()
            for branch in value[1]:
                self.free[self._add(branch, state)].append(after)
            return after
        if kind in (c.MAX_REPEAT, c.MIN_REPEAT, c.POSSESSIVE_REPEAT):
            least, most, inner = value
            for _ in range(least):
                state = self._add(inner, state)
            if most is c.MAXREPEAT:
                loop = self._state()
                self.free[state].append(loop)
                self.free[self._add(inner, loop)].append(loop)
                return loop
            after = self._state()
            self.free[state].append(after)
            for _ in range(least, most):
                state = self._add(inner, state)
                self.free[state].append(after)
            return after
        if kind in (c.ASSERT, c.ASSERT_NOT, c.AT):
            return state
        raise NotImplementedError(str(kind))


def _accepts(kind: Any, value: Any) -> Accepts:
    if kind is c.LITERAL:
        return lambda char: ord(char) == value
    if kind is c.NOT_LITERAL:
        return lambda char: ord(char) != value
    if kind is c.ANY:
        return lambda char: char != "\n"
    pattern = re.compile(_class(value), re.ASCII)
    return lambda char: pattern.match(char) is not None


_CATEGORIES = {
    c.CATEGORY_DIGIT: r"\d",
    c.CATEGORY_NOT_DIGIT: r"\D",
    c.CATEGORY_SPACE: r"\s",
    c.CATEGORY_NOT_SPACE: r"\S",
    c.CATEGORY_WORD: r"\w",
    c.CATEGORY_NOT_WORD: r"\W",
}


def _class(items: Any) -> str:
    text = ""
    negated = ""
    for kind, value in items:
        if kind is c.NEGATE:
            negated = "^"
        elif kind is c.LITERAL:
            text += re.escape(chr(value))
        elif kind is c.RANGE:
            text += f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
        else:
            text += _CATEGORIES[value]
    return f"[{negated}{text}]"


@lru_cache(maxsize=4096)
def automaton(pattern: str) -> Automaton:
    """The automaton of a pattern, built once."""
    return Automaton(pattern)


def constants(template: str) -> list[str]:
    """A template's constant texts: one more than it has holes."""
    return _HOLE.split(template)


def can_match(pattern: str, template: str) -> bool:
    """Whether some filling of a template's holes is matched by a pattern as a whole."""
    machine = automaton(pattern)
    texts = constants(template.strip())
    flat: list[str | None] = []  # None: a hole
    for index, text in enumerate(texts):
        flat.extend(([None] if index else []) + list(text))
    seen: set[tuple[int, int]] = set()
    waiting = [(machine.start, 0)]
    while waiting:
        pair = waiting.pop()
        if pair in seen:
            continue
        seen.add(pair)
        state, place = pair
        waiting.extend((after, place) for after in machine.free[state])
        if place == len(flat):
            if state == machine.end:
                return True
            continue
        char = flat[place]
        if char is None:
            waiting.append((state, place + 1))
            waiting.extend((after, place) for _, after in machine.steps[state])
        else:
            waiting.extend((after, place + 1) for accepts, after in machine.steps[state] if accepts(char))
    return False
