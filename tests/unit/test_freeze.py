"""What is frozen comes back as it was, and text of others names nothing that runs."""

from __future__ import annotations

import pickle
from collections import deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.base.freeze import FORMAT, Freezer


class Line(NamedTuple):
    at_us: int
    texts: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class Slotted:
    lines: list[Line] = field(default_factory=list)
    other: Any = None


class Plain:
    def __init__(self, content: Any) -> None:
        self.content = content


class Unlisted:
    """Nothing that a fold may hold."""


FREEZER = Freezer(Line, Slotted, Plain)

scalars = st.none() | st.booleans() | st.integers(-(1 << 62), 1 << 62) | st.floats(allow_nan=False) | st.text()
keys = st.recursive(scalars, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=4)
values = st.recursive(
    keys,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(keys, inner, max_size=4)
        | st.sets(keys, max_size=4)
        | st.lists(inner, max_size=4).map(lambda items: deque(items, maxlen=5))
        | st.builds(Line, st.integers(0, 9), st.tuples(st.text()))
    ),
    max_leaves=20,
)


def thawed(item: Any) -> Any:
    return FREEZER.thaw(FREEZER.freeze(item, ()), ())


def typed(item: Any) -> Any:
    """An item with the type of everything in it, so that 1, 1.0 and True differ."""
    if isinstance(item, dict):
        return dict, [(typed(key), typed(value)) for key, value in item.items()]
    if isinstance(item, set | frozenset):
        return type(item), frozenset(typed(part) for part in item)
    if isinstance(item, tuple):
        return type(item), tuple(typed(part) for part in item)
    if isinstance(item, list | deque):
        return type(item), getattr(item, "maxlen", None), [typed(part) for part in item]
    return type(item), item


@given(values)
def test_whatever_consists_of_containers_comes_back(item: Any) -> None:
    assert typed(thawed(item)) == typed(item)


def test_numbers_that_json_does_not_know() -> None:
    infinite, nothing = thawed((float("inf"), float("nan")))
    assert infinite == float("inf")
    assert nothing != nothing


def test_what_stands_twice_is_one_thing_afterwards() -> None:
    entry, shared = Slotted([Line(1)]), {1, 2}
    fold = Plain([entry, {"k": entry}, shared, (shared, shared)])
    fold.content.append(fold)
    back = thawed(fold)
    first, mapping, numbers, pair, itself = back.content
    assert (first is mapping["k"], pair[0] is numbers, pair[1] is numbers, itself is back) == (True,) * 4
    assert (type(first), first.lines, first.other) == (Slotted, [Line(1)], None)


def test_what_comes_from_outside_is_replaced() -> None:
    old, new = Plain("what was given before"), Plain("new")
    frozen = FREEZER.freeze([old, Slotted(other=old)], (old,))
    assert b"given before" not in frozen
    items = FREEZER.thaw(frozen, (new,))
    assert items[0] is new
    assert items[1].other is new


@pytest.mark.parametrize("item", [Unlisted(), print, Slotted([]).__repr__, b"bytes", 1 << 70])
def test_anything_else_is_not_frozen(item: Any) -> None:
    with pytest.raises(TypeError):
        FREEZER.freeze([item], ())


def test_classes_of_one_name_are_refused() -> None:
    """Frozen text names a class without its module."""
    with pytest.raises(TypeError, match="duplicate names among Line, Line"):
        Freezer(Line, type("Line", (), {}))


def document(fold: Any, classes: Any = (), version: int = FORMAT) -> bytes:
    return orjson.dumps({"format": version, "fold": fold, "classes": list(classes)})


OBJECT = FREEZER.freeze(Plain(1), ())
PLAIN = orjson.loads(OBJECT)["classes"][0]
LINE = orjson.loads(FREEZER.freeze(Line(1), ()))["classes"][0]
TAG_OF_RECORD, TAG_OF_OBJECT = orjson.loads(FREEZER.freeze(Line(1), ()))["fold"][0], orjson.loads(OBJECT)["fold"][0]


@pytest.mark.parametrize(
    "text",
    [
        pickle.dumps([1]),
        b"",
        b"[]",
        b"{}",
        document(1, version=FORMAT + 1),
        document([99]),
        document([TAG_OF_OBJECT, 0], [["subprocess.Popen", ["args"]]]),
        document([TAG_OF_OBJECT, 0], [["builtins.eval", []]]),
        document([TAG_OF_OBJECT, 0], [PLAIN]),  # an attribute is missing
        document([TAG_OF_OBJECT, 0, 1, (1, ())], [LINE]),
        document([TAG_OF_RECORD, 0, 1], [LINE]),
        document([TAG_OF_RECORD, 0, 1], [PLAIN]),
        document([TAG_OF_OBJECT, 5, 1], [PLAIN]),
    ],
)
def test_text_of_others_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match="not a frozen fold"):
        FREEZER.thaw(text, ())


def test_no_text_makes_an_object_callable_or_of_another_class() -> None:
    """Attributes are filled, nothing is called."""
    odd = document([TAG_OF_OBJECT, 0, 1, 2], [[PLAIN[0], ["__class__", "content"]]])
    with pytest.raises(ValueError, match="not a frozen fold"):
        FREEZER.thaw(odd, ())


@pytest.mark.parametrize("depth", [900, 2_000, 100_000])
def test_what_is_nested_deeper_than_any_fold_is_said_to_be_so(depth: int) -> None:
    text = b'{"format":1,"classes":[],"fold":' + b"[1," * depth + b"1" + b"]" * depth + b"}"
    with pytest.raises(ValueError, match="not a frozen fold"):
        Freezer().thaw(text, ())
