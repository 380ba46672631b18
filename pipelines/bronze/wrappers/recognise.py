"""How a file is to be read: the steps and the layout by which templates read most of its records."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC
from functools import partial
from typing import NamedTuple

from pipelines.bronze.broken_lines import width_of
from pipelines.bronze.layout import Item, Layout, Part, Unwrap
from pipelines.bronze.layouts.anchors import time_shape
from pipelines.bronze.layouts.given import REGEX, given_layout, regex_layout
from pipelines.bronze.layouts.infer import Inferred, infer, is_plain_kafka
from pipelines.bronze.layouts.structured import layout_of_name
from pipelines.bronze.wrappers import frames, rows, separators
from pipelines.bronze.wrappers.order import ORDERS, order_of
from pipelines.bronze.wrappers.pieces import split
from pipelines.bronze.wrappers.remarks import has_others, is_preamble
from pipelines.bronze.wrappers.step import OF_SOURCE, WITHIN, Step
from pipelines.bronze.wrappers.terminals import COLOURS, COLUMNS, ENTITIES, columns, has_colours, has_entities

#: Steps within steps, colours not counted.
DEPTH_MAX = 4
#: A step is taken if this share of the lines is in it: what is before the first log line may be long.
_SHARE_MIN = 0.2
#: A line of a sample is not longer than the sample.
_SAMPLE_MAX = 1 << 24
#: Before the byte at which a file changes its layout, in the name of the layout.
CHANGED_AT = "@"
CHANGE = re.compile(rf"{WITHIN}{CHANGED_AT}(\d+){WITHIN}")
#: Where templates read this share of the records, no other reading is tried.
_READ = 0.85


NOT_GIVEN = "no line is of the layout that --log-format names"


class Recognised(NamedTuple):
    """What a file is written in."""

    layout: Layout | None  #: with its steps; None if none is known
    missing: str | None = None  #: what its lines lack, if that is known


def recognise(lines: Sequence[bytes], log_format: str = "") -> Recognised:
    """Find out what lines of a file are written in.

    Args:
        lines: without line ends.
        log_format: the layout that a user names; empty: it is inferred.

    Raises:
        ValueError: the log format is invalid.
    """
    written = [line for line in lines if line.strip()]
    if log_format:
        given = given_layout(log_format)
        judge = partial(_fitting, given)
        chain, inferred = ((), judge(written)) if given.unwrap else _within(written, DEPTH_MAX, judge)
        return Recognised(_in_order(chain, given, written) if inferred.proven else None, NOT_GIVEN)
    if is_plain_kafka(written):
        plain = infer(written).layout
        return Recognised(plain and _in_order((), plain, written))
    chain, inferred = _within(written, DEPTH_MAX)
    if inferred.layout is None:
        return Recognised(None, inferred.missing)
    return Recognised(_in_order(chain, inferred.layout, written))


def _fitting(given: Layout, lines: Sequence[bytes]) -> Inferred:
    """Return a layout that a user names, with the number of lines that are of it."""
    parse = given.parser(UTC)
    starts = [line for line in lines if given.start.match(line)]
    number = sum(parse(line) is not None for line in starts)
    return Inferred(given if number else None, number, number, share=number / len(starts) if starts else 0.0)


def layout_named(name: str) -> Layout:
    """Return the layout that `recognise` gave a name.

    Raises:
        ValueError: it gave no such name.
    """
    first, *changed = CHANGE.split(name)
    if changed:
        from pipelines.bronze.changes import in_parts

        of_parts = zip([0, *map(int, changed[::2])], [first, *changed[1::2]], strict=True)
        return in_parts([Part(offset, layout_named(of_part)) for offset, of_part in of_parts])
    *names, layout = name.split(WITHIN)
    order = names.pop(0) if names and names[0] in ORDERS else ""
    inner = regex_layout(layout) if layout.startswith(REGEX) else layout_of_name(layout)
    return around([step_named(step) for step in names], inner, order)


def step_named(name: str) -> Step:
    """Return the step of a name.

    Raises:
        ValueError: no step has the name.
    """
    if name in (COLOURS.name, ENTITIES.name):
        return COLOURS if name == COLOURS.name else ENTITIES
    kind = name.partition(" ")[0] + " "
    if kind == COLUMNS:
        return columns(int(name.removeprefix(COLUMNS)))
    if kind == frames.FRAME:
        return frames.of_name(name)
    if kind == separators.SEPARATORS:
        return separators.of_name(name)
    return rows.of_name(name)


def _in_order(chain: Sequence[Step], layout: Layout, lines: Sequence[bytes]) -> Layout:
    starts = layout.start.match
    first = next((number for number, line in enumerate(lines) if starts(line)), 0)
    own = time_shape(lines[first]) if lines else None
    # The plain reader, which is the fast one, reads lines before the first record as one text.
    seen = lines[first:] if is_preamble(lines[:first]) else lines
    if not chain and has_others(seen, starts, own):
        chain = (frames.NO_FRAME,)
    read = around(chain, layout)
    return around(chain, layout, order_of(read, lines))


def _within(
    lines: Sequence[bytes], depth: int, judge: Callable[[Sequence[bytes]], Inferred] = infer
) -> tuple[tuple[Step, ...], Inferred]:
    """Return the steps and the layout that most speaks for; of equally good ones those with the frame taken off."""
    # In JSON the sign of a colour is escaped as often as containers are nested: they are taken off within.
    if any(map(has_colours, lines)) and not rows.is_json(lines):
        chain, inferred = _within(_unwrapped(COLOURS, lines), depth, judge)
        return (COLOURS, *chain), inferred
    if has_entities(lines):
        chain, inferred = _within(_unwrapped(ENTITIES, lines), depth, judge)
        return (ENTITIES, *chain), inferred
    best_chain: tuple[Step, ...] = ()
    is_json = depth > 0 and rows.is_json(lines)
    is_container = is_json and rows.is_document(lines)
    best = Inferred(None) if is_container else judge(lines)
    if not depth or (judge is infer and is_plain_kafka(lines)):
        return best_chain, best
    for step in rows.documents(lines) if is_container else _steps(lines):
        if is_json and best_chain and not step.is_entry:
            break
        inner = _unwrapped(step, lines)
        if not inner:
            continue
        chain, inferred = _within(inner, depth - 1, judge)
        is_equal = inferred.score == best.score and not best_chain and not frames.is_field(step, lines)
        is_better = inferred.score > best.score or is_equal
        if inferred.proven and is_better:
            best_chain, best = (step, *chain), inferred
            if inferred.share >= _READ:
                break
    if is_container and not best.proven:
        return (), judge(lines)
    return best_chain, best


def _steps(lines: Sequence[bytes]) -> Iterator[Step]:
    yield from rows.documents(lines)
    yield from rows.tables(lines)
    yield from frames.frames(lines)
    yield from rows.stanzas(lines)
    yield from separators.candidates(lines)
    if (width := width_of(lines)) is not None:
        yield columns(width)


def _unwrapped(step: Step, lines: Sequence[bytes]) -> list[bytes]:
    """Return the whole lines within; none if too few are in the step."""
    pieces: Sequence[bytes] = lines
    if step.pieces:
        pieces = [piece.text for piece in split([b"\n".join(lines) + b"\n"], step.pieces, _SAMPLE_MAX)]
    found = [inner for piece in pieces if (inner := step.unwrap(piece)) is not None]
    items = [item for inner in found for item in inner]
    if not items or len(found) < _SHARE_MIN * len(pieces):
        return []
    return [line for text in _joined(items) for line in text.split(b"\n") if line.strip()]


def _joined(items: Sequence[Item]) -> Iterator[bytes]:
    """Yield whole lines. A last part that goes on is left out, and so is what never ends: such lines are no parts."""
    parts: dict[bytes, list[bytes]] = {}
    if all(goes_on for _, _, goes_on, _ in items):
        return
    for name, text, goes_on, _ in items:
        parts.setdefault(name, []).append(text)
        if not goes_on:
            yield b"".join(parts.pop(name)).removesuffix(b"\r")


def around(chain: Sequence[Step], layout: Layout, order: str = "") -> Layout:
    """Return a layout within steps, the outermost first."""
    if not chain and not order:
        return layout
    unwrap = chain[-1].unwrap if chain else layout.unwrap or _as_is
    for step in reversed(chain[:-1]):
        begins = layout.start.match if step.name.startswith(COLUMNS) else None
        unwrap = _both(step.unwrap, unwrap, begins)
    broken = next((number for number, step in enumerate(chain) if step.name.startswith(COLUMNS)), len(chain))
    name = WITHIN.join([*([order] if order else []), *(step.name for step in chain), layout.name])
    return replace(
        layout,
        name=name,
        unwrap=unwrap,
        pieces=next((step.pieces for step in chain if step.pieces), ""),
        is_broken=broken < len(chain),
        suffix=b"".join(step.suffix for step in reversed(chain[broken:])),
        is_entry=any(step.is_entry for step in chain),
        order=order,
    )


def _as_is(line: bytes) -> list[Item] | None:
    return [(b"", line, False, 0)]


def _both(outer: Unwrap, inner: Unwrap, begins: Callable[[bytes], object] | None) -> Unwrap:
    """Take two steps off. A line in parts of the outer one has the inner one's frame on its first part.

    Args:
        begins: finds the start of a record, which ends a line in parts; None if parts say where a line ends.
    """
    under_way: dict[bytes, bytes] = {}

    def unwrap(line: bytes) -> list[Item] | None:
        outside = outer(line)
        if not outside:
            return outside
        found: list[Item] = []
        is_known = False
        for name, text, goes_on, at in outside:
            whole, inside = under_way.pop(name, None), None
            if whole is not None and begins is not None and (inside := inner(text)) and begins(inside[0][1]):
                whole = None
            if whole is None:
                inside = inner(text) if inside is None else inside
                if inside is None:
                    continue
                is_known = True
                found += [(_of_both(name, item[0]), item[1], item[2] or goes_on, at + item[3]) for item in inside]
                if goes_on and inside:
                    under_way[name] = found[-1][0]
            else:
                is_known = True
                found.append((whole, text, goes_on, at))
                if goes_on:
                    under_way[name] = whole
        return found if is_known else None

    return unwrap


def _of_both(outer: bytes, inner: bytes) -> bytes:
    """Return the stream within a stream: the inner source is the more particular one."""
    outer_source, _, outer_rest = outer.partition(OF_SOURCE)
    source, _, rest = inner.partition(OF_SOURCE)
    return (source or outer_source) + OF_SOURCE + outer_rest + rest if outer_rest + rest else source or outer_source
