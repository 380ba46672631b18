"""Folds as bytes, to go on from in a later run. Pure.

What a fold was given from outside (a broker's versions, settings, evidence) is not frozen with it: the run that thaws
it has newer ones. Only what this program wrote into its own lake under the same fingerprint is ever thawed.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from typing import Any


def freeze(fold: object, outside: Sequence[object]) -> bytes:
    """A fold without the objects from outside.

    Args:
        outside: what `thaw` will be given in the same order, newer.
    """
    buffer = io.BytesIO()
    _Freezer(buffer, outside).dump(fold)
    return buffer.getvalue()


def thaw(frozen: bytes, outside: Sequence[object]) -> Any:
    """The fold, holding on to the objects given instead of those that it was frozen without."""
    return _Thawer(io.BytesIO(frozen), outside).load()


class _Freezer(pickle.Pickler):
    def __init__(self, file: io.BytesIO, outside: Sequence[object]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._places = {id(one): place for place, one in enumerate(outside)}

    def persistent_id(self, obj: Any) -> int | None:
        return self._places.get(id(obj))


class _Thawer(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, outside: Sequence[object]) -> None:
        super().__init__(file)
        self._outside = outside

    def persistent_load(self, pid: Any) -> Any:
        return self._outside[pid]
