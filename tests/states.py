"""States of keys in a dictionary: what a stateful fold is given where Spark's operator does not drive it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from highwater.pipelines.base.groups import Key


class DictStates:
    """As `pipelines.base.groups.States`."""

    def __init__(self, frozen: Mapping[Key, bytes] | None = None) -> None:
        self._frozen = dict(frozen or {})

    def take(self, key: Key) -> bytes | None:
        return self._frozen.pop(key, None)

    def rest(self) -> Iterator[tuple[Key, bytes]]:
        yield from sorted(self._frozen.items())
