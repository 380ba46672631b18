"""The steps and the layout of a file, chosen so that templates match most of its records."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC
from functools import partial
from typing import NamedTuple

from highwater.pipelines.bronze.broken_lines import width_of, width_of_words
from highwater.pipelines.bronze.layout import Clock, Item, Layout, Parser, RecordHead, Unwrap
from highwater.pipelines.bronze.layouts.anchors import time_shape
from highwater.pipelines.bronze.layouts.given import REGEX, given_layout, regex_layout
from highwater.pipelines.bronze.layouts.infer import Inferred, infer, is_plain_kafka
from highwater.pipelines.bronze.layouts.structured import layout_of_name
from highwater.pipelines.bronze.wrappers import frames, rows
from highwater.pipelines.bronze.wrappers.flattened import FLATTENED, flattened
from highwater.pipelines.bronze.wrappers.order import ORDERS, order_of
from highwater.pipelines.bronze.wrappers.pieces import split
from highwater.pipelines.bronze.wrappers.remarks import has_others, is_preamble
from highwater.pipelines.bronze.wrappers.sections import SECTIONS, headed, sections
from highwater.pipelines.bronze.wrappers.step import OF_SOURCE, WITHIN, Step
from highwater.pipelines.bronze.wrappers.terminals import (
    BORDERS,
    COLOURS,
    COLUMNS,
    ENTITIES,
    WORDS,
    columns,
    find_dress,
    has_entities,
    rejoin,
    words,
)

#: Steps within steps, colours not counted.
DEPTH_MAX = 4
#: A step is taken if this share of the lines is in it: what is before the first log line may be long.
_SHARE_MIN = 0.2
#: A line of a sample is not longer than the sample.
_SAMPLE_MAX = 1 << 24
#: Between the layouts of one file, in the name of the layout.
ALTERNATIVE = f"{WITHIN}|{WITHIN}"
#: An arrow within a part of a name, which `WITHIN` would cut otherwise.
_ARROW = "=%>"
#: Where templates read this share of the records, no other reading is tried.
_READ = 0.85
#: Containers are tried first: another reading has to be better by this factor.
_BETTER = 1.03


_NAMED = {step.name: step for step in (COLOURS, BORDERS, ENTITIES)} | FLATTENED
NOT_GIVEN = "no line is of the layout that --log-format names"


class Recognised(NamedTuple):
    """The wrappers and the layout found for a file."""

    layout: Layout | None  #: with its steps; None if none is known
    missing: str | None = None  #: what its lines lack, if that is known
    is_proven: bool = True  #: some of its lines can only be Kafka's


def recognise(lines: Sequence[bytes], log_format: str = "") -> Recognised:
    """Find the wrappers and the layout of a file's lines.

    Args:
        lines: lines without line ends.
        log_format: layout given by the user. Empty to infer it.

    Raises:
        ValueError: the log format is invalid.
    """
    written = [line for line in lines if line.strip()]
    if log_format:
        given = given_layout(log_format)
        judge = partial(_fitting, given)
        chain, inferred = ((), judge(written)) if given.unwrap else _within(written, DEPTH_MAX, judge)
        return Recognised(_in_order(chain, given, written) if inferred.proven else None, NOT_GIVEN)
    if is_plain_kafka(written) and not has_entities(written) and next(sections(written), None) is None:
        plain = infer(written).layout
        return Recognised(plain and _in_order((), plain, written))
    chain, inferred = _within(written, DEPTH_MAX)
    if inferred.layout is None:
        return Recognised(None, inferred.missing)
    return Recognised(_in_order(chain, inferred.layout, written), is_proven=inferred.proven > 0)


def _fitting(given: Layout, lines: Sequence[bytes]) -> Inferred:
    """Return the layout given by the user, with the number of lines that it parses."""
    parse = given.parser(UTC)
    starts = [line for line in lines if given.start.match(line)]
    number = sum(parse(line) is not None for line in starts)
    return Inferred(given if number else None, number, number, share=number / len(starts) if starts else 0.0)


class Reading(NamedTuple):
    """How lines are read, by the name of their layout."""

    order: str  #: one of `pipelines.bronze.wrappers.order.ORDERS`; empty: by time
    steps: tuple[str, ...]  #: containers and frames, the outermost first
    layout: str


def readings_of(name: str) -> list[Reading]:
    """Parse the name of a layout: one item, or several if the file has several layouts."""
    found = []
    for one in name.split(ALTERNATIVE):
        *steps, layout = (part.replace(_ARROW, "=>") for part in one.split(WITHIN))
        order = steps.pop(0) if steps and steps[0] in ORDERS else ""
        found.append(Reading(order, tuple(steps), layout))
    return found


def layout_named(name: str) -> Layout:
    """Return the layout for a name that `recognise` returned.

    Raises:
        ValueError: the name is invalid.
    """
    found = []
    for order, steps, layout in readings_of(name):
        inner = regex_layout(layout) if layout.startswith(REGEX) else layout_of_name(layout)
        found.append(around([step_named(step) for step in steps], inner, order))
    return either(found) if len(found) > 1 else found[0]


def step_named(name: str) -> Step:
    """Return the step (removal of one wrapper) for its name.

    Raises:
        ValueError: no step has the name.
    """
    if (known := _NAMED.get(name)) is not None:
        return known
    kind = name.partition(" ")[0] + " "
    if kind == SECTIONS:
        return headed(name)
    if kind == COLUMNS:
        return columns(int(name.removeprefix(COLUMNS)))
    if kind == WORDS:
        return words(int(name.removeprefix(WORDS)))
    return frames.of_name(name) if kind in (frames.FRAME, frames.LINES) else rows.of_name(name)


def _in_order(chain: Sequence[Step], layout: Layout, lines: Sequence[bytes]) -> Layout:
    starts = layout.start.match
    first = next((number for number, line in enumerate(lines) if starts(line)), 0)
    own = time_shape(lines[first]) if lines else None
    # The plain reader, which is the fast one, reads lines before the first record as one text.
    seen = lines[first:] if is_preamble(lines[:first]) else lines
    if not chain and has_others(seen, layout, own):
        chain = (frames.NO_FRAME,)
    read = around(chain, layout)
    return around(chain, layout, order_of(read, lines))


def _within(
    lines: Sequence[bytes], depth: int, judge: Callable[[Sequence[bytes]], Inferred] = infer
) -> tuple[tuple[Step, ...], Inferred]:
    """Return (wrappers, layout) with the highest score. Among equal scores, the one with more wrappers removed.

    Args:
        depth: maximum number of wrappers.
        judge: returns the layout and score of plain lines.
    """
    # In JSON the sign of a colour is escaped as often as containers are nested: they are taken off within.
    dress = find_dress(lines)
    if dress is not None and (dress is ENTITIES or not rows.is_json(lines)):
        chain, inferred = _within(_unwrapped(dress, lines), depth, judge)
        return (dress, *chain), inferred
    best_chain: tuple[Step, ...] = ()
    is_json = depth > 0 and rows.is_json(lines)
    is_container = is_json and rows.is_document(lines)
    best = Inferred(None) if is_container else judge(lines)
    if not depth or (depth < DEPTH_MAX and judge is infer and is_plain_kafka(lines)):
        return best_chain, best
    for step in _steps(lines, depth, is_container):
        if is_json and best_chain and not step.is_entry:
            break
        inner = _unwrapped(step, lines)
        if not inner:
            continue
        chain, inferred = _within(inner, depth - 1, judge)
        # Lines that have one length by chance become fewer records when joined, and each may be read.
        is_joined = _joins(step)
        is_first = not best_chain or (_joins(best_chain[0]) and not is_joined)
        is_equal = inferred.score == best.score and is_first and not is_joined and not frames.is_field(step, lines)
        is_better = is_equal or inferred.score > best.score * (1 if is_first else _BETTER)
        if inferred.proven and is_better:
            # Rows that are handed on are rows again; a text may be within another one of the same shape.
            is_again = bool(chain) and chain[0].name == step.name and rows.hands_on(step)
            best_chain, best = (chain if is_again else (step, *chain)), inferred
            if inferred.share >= _READ and not is_joined:
                break
    if is_container and not best.proven:
        return (), judge(lines)
    return best_chain, best


def _joins(step: Step) -> bool:
    """Return True if a step joins wrapped lines."""
    return step.name.startswith((COLUMNS, WORDS))


def _steps(lines: Sequence[bytes], depth: int, is_container: bool) -> Iterator[Step]:
    yield from rows.documents(lines)
    if not is_container:
        yield from rows.tables(lines)
    if depth == DEPTH_MAX:
        yield from sections(lines)
    if depth == DEPTH_MAX and (width := width_of(lines, has_longer=True)) is not None:
        yield columns(width)
    if depth == DEPTH_MAX and (width := width_of_words(lines)) is not None:
        yield words(width)
    if is_container:
        return
    yield from flattened(lines)
    yield from frames.frames(lines)
    if depth == DEPTH_MAX:
        yield from rows.elements(lines)
    yield from rows.stanzas(lines)
    yield from frames.lines_between(lines)


def _unwrapped(step: Step, lines: Sequence[bytes]) -> list[bytes]:
    """Return the lines without the wrapper of a step. Empty if too few lines have it."""
    pieces: Sequence[bytes] = lines
    if step.pieces:
        pieces = [piece.text for piece in split([b"\n".join(lines) + b"\n"], step.pieces, _SAMPLE_MAX)]
    found = [inner for piece in pieces if (inner := step.unwrap(piece)) is not None]
    items = [item for inner in found for item in inner]
    if not items or len(items) < _SHARE_MIN * (len(items) + len(pieces) - len(found)):
        return []
    return [line for text in _joined(items) for line in text.split(b"\n") if line.strip()]


def _joined(items: Sequence[Item]) -> Iterator[bytes]:
    """Yield whole lines from parts. An incomplete last line is dropped. Empty if no text ever ends."""
    parts: dict[bytes, list[bytes]] = {}
    if all(goes_on for _, _, goes_on, _ in items):
        return
    for name, text, goes_on, _ in items:
        parts.setdefault(name, []).append(text)
        if not goes_on:
            yield b"".join(parts.pop(name)).removesuffix(b"\r")


def around(chain: Sequence[Step], layout: Layout, order: str = "") -> Layout:
    """Return a layout with wrappers around it, the outermost first."""
    if not chain and not order and "=>" not in layout.name:
        return layout
    unwrap = layout.unwrap or _as_is
    parts = [*([order] if order else []), *(step.name for step in chain), layout.name]
    for step in reversed(chain):
        unwrap = rejoin(layout, unwrap, step) if _joins(step) else _both(step.unwrap, unwrap)
    return replace(
        layout,
        name=WITHIN.join(part.replace("=>", _ARROW) for part in parts),
        unwrap=unwrap,
        pieces=next((step.pieces for step in chain if step.pieces), ""),
        is_entry=any(step.is_entry for step in chain),
        order=order,
    )


def either(layouts: Sequence[Layout]) -> Layout:
    """Return a layout that reads lines of several layouts, which must split a file equally."""
    readings = [(layout.start.match, layout.unwrap or _as_is) for layout in layouts]
    last = readings[0][1]

    def unwrap(piece: bytes) -> list[Item] | None:
        nonlocal last
        for starts, inner in readings:
            if (items := inner(piece)) and any(starts(item[1]) for item in items):
                last = inner
                return items
        return last(piece)

    def make(clock: Clock) -> Parser:
        parsers = [(layout.start.match, layout.make(clock)) for layout in layouts]

        def parse(text: bytes) -> RecordHead | None:
            return next((head for starts, read in parsers if starts(text) and (head := read(text)) is not None), None)

        return parse

    tails = [layout.tail.pattern for layout in layouts if layout.tail is not None]
    return Layout(
        name=ALTERNATIVE.join(layout.name for layout in layouts),
        start=re.compile(b"|".join(b"(?:" + layout.start.pattern + b")" for layout in layouts)),
        make=make,
        unwrap=unwrap,
        tail=re.compile(b"|".join(tails)) if len(tails) == len(layouts) else None,
        pieces=layouts[0].pieces,
        is_entry=all(layout.is_entry for layout in layouts),
    )


def _as_is(line: bytes) -> list[Item] | None:
    return [(b"", line, False, 0)]


def _both(outer: Unwrap, inner: Unwrap) -> Unwrap:
    """Return a function that removes two wrappers.

    The outer one may split a line into parts. Only the first part then has the inner wrapper.
    """
    if inner is _as_is:
        return outer
    under_way: dict[bytes, bytes] = {}

    def unwrap(piece: bytes) -> list[Item] | None:
        outside = outer(piece)
        if not outside:
            return outside
        found: list[Item] = []
        is_known = False
        for name, text, goes_on, at in outside:
            if (whole := under_way.pop(name, None)) is not None:
                inside: list[Item] | None = [(whole, text, goes_on, 0)]
            elif (inside := inner(text)) is not None:
                inside = [(_of_both(name, item[0]), item[1], item[2] or goes_on, item[3]) for item in inside]
            is_known = is_known or inside is not None
            found += [(*item[:3], at + item[3]) for item in inside or ()]
            if goes_on and inside:
                under_way[name] = inside[-1][0]
        return found if is_known else None

    return unwrap


def _of_both(outer: bytes, inner: bytes) -> bytes:
    """Return the name of a stream within a stream. The inner source takes precedence."""
    outer_source, _, outer_rest = outer.partition(OF_SOURCE)
    source, _, rest = inner.partition(OF_SOURCE)
    return (source or outer_source) + OF_SOURCE + outer_rest + rest if outer_rest + rest else source or outer_source
