"""The wrappers of a file and the layout within, recognised by its first lines, and made again from their name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from pipelines.bronze.broken_lines import width_of
from pipelines.bronze.layout import Layout, Unwrap, Unwrapped
from pipelines.bronze.layouts.infer import Inferred, infer, is_plain_kafka
from pipelines.bronze.layouts.structured import layout_of_name
from pipelines.bronze.wrappers import fields
from pipelines.bronze.wrappers.lines import COLOURS, COLUMNS, OF_SOURCE, WRAPPERS, Wrapper, columns, has_colours
from pipelines.bronze.wrappers.pieces import split

#: Wrappers within wrappers, colours not counted.
DEPTH_MAX = 2
#: A wrapper is looked into if it is on this share of the lines: what stands before the first log line may be long.
_SHARE_MIN = 0.2
#: A line of a sample is not longer than the sample.
_SAMPLE_MAX = 1 << 24
_WRAPPER_OF = {wrapper.name: wrapper for wrapper in (COLOURS, *WRAPPERS)}
_NAME = re.compile(r"(?:[a-z0-9-]+|[a-z]+\d?\([^()]*+(?:\([^()]*+\)[^()]*+)?\))/")


_COLUMNS = re.compile(COLUMNS + r"\((\d+)\)")


class Recognised(NamedTuple):
    """What a file is written in."""

    layout: Layout | None  #: with its wrappers; None if none is known
    missing: str | None = None  #: what its lines lack, if that is known


def recognise(lines: Sequence[bytes]) -> Recognised:
    """What the lines that a file begins with are written in.

    Args:
        lines: without line ends.
    """
    written = [line for line in lines if line.strip()]
    if is_plain_kafka(written):
        return Recognised(infer(written).layout)
    chain, inferred = _within(written, DEPTH_MAX)
    if inferred.layout is None:
        return Recognised(None, inferred.missing)
    return Recognised(_around(chain, inferred.layout))


def layout_named(name: str) -> Layout:
    """The layout that `recognise` gave this name.

    Raises:
        ValueError: it gave no such name.
    """
    chain = []
    while match := _NAME.match(name):
        wrapper = _WRAPPER_OF.get(match[0][:-1])
        width = _COLUMNS.fullmatch(match[0][:-1])
        if wrapper is None:
            wrapper = columns(int(width[1])) if width else fields.of_name(match[0][:-1])
        chain.append(wrapper)
        name = name[match.end() :]
    layout = layout_of_name(name)
    return _around(tuple(chain), layout) if chain else layout


def _within(lines: Sequence[bytes], depth: int) -> tuple[tuple[Wrapper, ...], Inferred]:
    """The wrappers and the layout that most speaks for; of equally good ones that with more wrappers."""
    if any(map(has_colours, lines)):
        chain, inferred = _within(_unwrapped(COLOURS, lines), depth)
        return (COLOURS, *chain), inferred
    best_chain: tuple[Wrapper, ...] = ()
    best = infer(lines)
    if not depth or is_plain_kafka(lines):
        return best_chain, best
    width = width_of(lines)
    broken = [] if width is None else [columns(width)]
    for wrapper in (*WRAPPERS, *fields.wrappers(lines), *broken):
        inner = _unwrapped(wrapper, lines)
        if not inner:
            continue
        chain, inferred = _within(inner, depth - 1)
        if inferred.proven and (inferred.score > best.score or (not best_chain and inferred.score >= best.score)):
            best_chain, best = (wrapper, *chain), inferred
    return best_chain, best


def _unwrapped(wrapper: Wrapper, lines: Sequence[bytes]) -> list[bytes]:
    """The whole lines within; none if too few stand in the wrapper."""
    pieces: Sequence[bytes] = lines
    if wrapper.pieces:
        pieces = [piece.text for piece in split([b"\n".join(lines) + b"\n"], wrapper.pieces, _SAMPLE_MAX)]
    unwrapped = [inner for piece in pieces if (inner := wrapper.unwrap(piece)) is not None]
    if not unwrapped or len(unwrapped) < _SHARE_MIN * len(pieces):
        return []
    return [line for text in _joined(unwrapped) for line in text.split(b"\n") if line.strip()]


def _joined(lines: Sequence[Unwrapped]) -> Iterator[bytes]:
    """Whole lines. A last piece that goes on is left out, and so is what never ends: then lines are no pieces."""
    pieces: dict[bytes, list[bytes]] = {}
    if all(goes_on for _, _, goes_on in lines):
        return
    for name, text, goes_on in lines:
        pieces.setdefault(name, []).append(text)
        if not goes_on:
            yield b"".join(pieces.pop(name)).removesuffix(b"\r")


def _around(chain: Sequence[Wrapper], layout: Layout) -> Layout:
    """The layout within wrappers, the outermost first."""
    if not chain:
        return layout
    unwrap = chain[-1].unwrap
    for wrapper in reversed(chain[:-1]):
        unwrap = _both(wrapper.unwrap, unwrap)
    name = "/".join([*(wrapper.name for wrapper in chain), layout.name])
    pieces = next((wrapper.pieces for wrapper in chain if wrapper.pieces), "")
    is_broken = chain[-1].name.startswith(COLUMNS)
    return replace(layout, name=name, unwrap=unwrap, pieces=pieces, is_broken=is_broken)


def _both(outer: Unwrap, inner: Unwrap) -> Unwrap:
    """Takes two wrappers off. A line that comes in pieces of the outer one has the inner one's prefix on the first."""
    under_way: dict[bytes, bytes] = {}

    def unwrap(line: bytes) -> Unwrapped | None:
        outside = outer(line)
        if outside is None:
            return None
        name, text, goes_on = outside
        if (whole := under_way.get(name)) is None:
            inside = inner(text)
            if inside is None:
                return None
            whole, text, inside_goes_on = _of_both(name, inside[0]), inside[1], inside[2]
            if not goes_on:
                return whole, text, inside_goes_on
        under_way[name] = whole
        if not goes_on:
            del under_way[name]
        return whole, text, goes_on

    return unwrap


def _of_both(outer: bytes, inner: bytes) -> bytes:
    """The stream within a stream: the inner source is the more particular one."""
    outer_source, _, outer_rest = outer.partition(OF_SOURCE)
    source, _, rest = inner.partition(OF_SOURCE)
    return (source or outer_source) + OF_SOURCE + outer_rest + rest if outer_rest + rest else source or outer_source
