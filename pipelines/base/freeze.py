"""Serialized folds, to resume from in a later run, and results of tasks. Pure.

Objects from outside a fold (a broker's versions, settings, evidence) are not serialized with it: the run that restores
the fold has newer ones.

Other users may write a lake, so its content must not name code to run: the text is JSON, it names only classes of a
fixed list, and restoring fills their attributes without calling their code. Scalars are stored as such, everything else
as an array that begins with its kind (`_LIST` and so on). An object that a fold holds twice (an entry that two fetches
wait for) is written once and referred to by its number, so it is one object after restoring, too.
"""

from __future__ import annotations

import ast
import inspect
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from math import isfinite
from textwrap import dedent
from typing import Any, Final

import orjson

from highwater.pipelines.base.syntax import parse_source

#: Number of the encoding. Text of another encoding is not thawed.
FORMAT: Final = 2

_AGAIN, _LIST, _TUPLE, _SET, _FROZENSET, _DICT, _DEQUE, _RECORD, _OBJECT, _NOT_FINITE, _COUNTER = range(11)
_SCALARS: Final = frozenset((type(None), bool, int, str))


class Freezer:
    """Serializes replay state: containers, and objects of certain classes.

    Args:
        classes: all classes that a state may contain: named tuples, classes with slots and classes without.

    Raises:
        TypeError: two of the classes have the same name.
    """

    def __init__(self, *classes: type) -> None:
        self._classes = {_read_name(cls): cls for cls in classes}
        if len(self._classes) < len(classes):
            raise TypeError(f"duplicate names among {', '.join(map(_read_name, classes))}")

    def shape(self) -> str:
        """Return the layout as text: encoding, classes and attributes. State of another layout cannot be restored."""
        return repr((FORMAT, sorted((name, sorted(_list_attribute_names(cls))) for name, cls in self._classes.items())))

    def freeze(self, fold: object, outside: Sequence[object]) -> bytes:
        """Serialize a state without the objects in `outside`.

        Args:
            outside: objects that `thaw` replaces, in the same order.

        Raises:
            TypeError: the state contains an object of an unlisted class.
        """
        writer = _Writer(self._classes, outside)
        return orjson.dumps({"format": FORMAT, "fold": writer.encode(fold), "classes": writer.classes})

    def thaw(self, frozen: bytes, outside: Sequence[object]) -> Any:
        """Restore a state. `outside` replaces, in order, the objects left out by `freeze`.

        Raises:
            ValueError: `frozen` was not made by `freeze` for these classes.
        """
        try:
            document = orjson.loads(frozen)
            if document["format"] != FORMAT:
                raise ValueError(f"format {document['format']}")
            classes = [(self._classes[name], names) for name, names in document["classes"]]
            return _Reader(classes, outside).decode(document["fold"])
        except RecursionError:
            raise ValueError("not a frozen fold: it is nested deeper than any fold is") from None
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise ValueError(f"not a frozen fold: {error!r}") from error


def _read_name(cls: type) -> str:
    """Return the name of a class in serialized state, without its module, which may differ by installation."""
    return cls.__qualname__


def _list_attribute_names(cls: type) -> set[str]:
    """Return the names of attributes that objects of a class may have."""
    if issubclass(cls, tuple):
        return set(cls._fields)  # type: ignore[attr-defined]
    names: set[str] = set()
    for base in cls.__mro__[:-1]:
        names |= {*getattr(base, "__slots__", ()), *getattr(base, "__annotations__", ())}
        for node in ast.walk(parse_source(dedent(inspect.getsource(base)))):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                names |= {node.attr} if isinstance(node.value, ast.Name) and node.value.id == "self" else set()
    return names


def _list_attributes(cls: type, item: object) -> list[str]:
    """Return the names of an object's attributes; all of them for a class with slots."""
    slots = getattr(cls, "__slots__", None)
    return list(vars(item)) if slots is None else list(slots)


class _Writer:
    """Encodes one state. `classes` lists name and attributes of each class found so far."""

    def __init__(self, known: dict[str, type], outside: Sequence[object]) -> None:
        self.classes: list[tuple[str, list[str]]] = []
        self._known = known
        self._numbers = {id(item): number for number, item in enumerate(outside)}
        self._kinds: dict[type, Callable[[Any], Any]] = {
            list: lambda item: self._encode_mutable(_LIST, item, item),
            tuple: lambda item: self._encode_immutable(_TUPLE, item),
            dict: lambda item: self._encode_mutable(_DICT, item, chain.from_iterable(item.items())),
            Counter: lambda item: self._encode_mutable(_COUNTER, item, chain.from_iterable(item.items())),
            set: lambda item: self._encode_mutable(_SET, item, item),
            frozenset: lambda item: self._encode_immutable(_FROZENSET, item),
            deque: lambda item: self._encode_mutable(_DEQUE, item, (item.maxlen, *item)),
            float: lambda item: item if isfinite(item) else [_NOT_FINITE, str(item)],
        }

    def encode(self, item: Any) -> Any:
        kind = type(item)
        if kind in _SCALARS:
            return item
        number = self._numbers.get(id(item))
        if number is not None:
            return [_AGAIN, number]
        encode = self._kinds.get(kind)
        if encode is None:
            encode = self._kinds[kind] = self._make_encoder(kind, item)
        return encode(item)

    def _note(self, item: object) -> None:
        self._numbers[id(item)] = len(self._numbers)

    def _convert_all(self, tag: int, items: Iterable[Any]) -> list[Any]:
        encoded = self.encode
        return [tag, *[item if type(item) in _SCALARS else encoded(item) for item in items]]

    def _encode_mutable(self, tag: int, item: object, parts: Iterable[Any]) -> list[Any]:
        self._note(item)
        return self._convert_all(tag, parts)

    def _encode_immutable(self, tag: int, item: Iterable[Any]) -> list[Any]:
        # An immutable object is numbered after its parts, which a reader needs first.
        written = self._convert_all(tag, item)
        self._note(item)
        return written

    def _make_encoder(self, cls: type, first: object) -> Callable[[Any], list[Any]]:
        if self._known.get(_read_name(cls)) is not cls:
            raise TypeError(f"{_read_name(cls)} is not among the classes that may be frozen")
        place = len(self.classes)
        if issubclass(cls, tuple):
            self.classes.append((_read_name(cls), []))

            def record(item: Any) -> list[Any]:
                written = self._convert_all(_RECORD, (place, *item))
                self._note(item)
                return written

            return record
        names = _list_attributes(cls, first)
        self.classes.append((_read_name(cls), names))

        def instance(item: Any) -> list[Any]:
            self._note(item)
            if hasattr(item, "__dict__") and list(vars(item)) != names:
                raise TypeError(f"{_read_name(cls)} has attributes {list(vars(item))}, and {names}")
            return self._convert_all(_OBJECT, (place, *[getattr(item, name) for name in names]))

        return instance


class _Reader:
    def __init__(self, classes: Sequence[tuple[type, list[str]]], outside: Sequence[object]) -> None:
        self._classes = classes
        self._items: list[Any] = list(outside)

    def decode(self, part: Any) -> Any:
        if type(part) is not list:
            return part
        tag = part[0]
        if tag == _AGAIN:
            return self._items[part[1]]
        if tag == _OBJECT:
            return self._decode_object(part)
        if tag == _NOT_FINITE:
            return float(part[1])
        if tag in (_LIST, _SET, _DICT, _DEQUE, _COUNTER):
            return self._decode_container(tag, part)
        items = self._convert_all(part, 1 if tag != _RECORD else 2)
        value: Any
        if tag == _TUPLE:
            value = tuple(items)
        elif tag == _FROZENSET:
            value = frozenset(items)
        elif tag == _RECORD:
            value = self._decode_record(part[1], items)
        else:
            raise ValueError(f"tag {tag}")
        self._items.append(value)
        return value

    def _convert_all(self, part: list[Any], first: int) -> list[Any]:
        decoded = self.decode
        return [decoded(item) if type(item) is list else item for item in part[first:]]

    def _decode_container(self, tag: int, part: list[Any]) -> Any:
        if tag in (_DICT, _COUNTER):
            mapping: dict[Any, Any] = {} if tag == _DICT else Counter()
            self._items.append(mapping)
            items = iter(self._convert_all(part, 1))
            mapping.update(dict(zip(items, items, strict=True)))
            return mapping
        container: Any = [] if tag == _LIST else set() if tag == _SET else deque(maxlen=part[1])
        self._items.append(container)
        (container.update if tag == _SET else container.extend)(self._convert_all(part, 2 if tag == _DEQUE else 1))
        return container

    def _decode_record(self, place: int, items: list[Any]) -> Any:
        cls = self._classes[place][0]
        if not issubclass(cls, tuple) or len(items) != len(cls._fields):  # type: ignore[attr-defined]
            raise ValueError(f"{_read_name(cls)} of {len(items)} values")
        return tuple.__new__(cls, items)

    def _decode_object(self, part: list[Any]) -> Any:
        cls, names = self._classes[part[1]]
        if issubclass(cls, tuple):
            raise ValueError(f"{_read_name(cls)} as an object")
        thawed = object.__new__(cls)
        self._items.append(thawed)
        for name, value in zip(names, self._convert_all(part, 2), strict=True):
            object.__setattr__(thawed, name, value)
        return thawed
