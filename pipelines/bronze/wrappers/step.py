"""A step, which removes one wrapper from the lines of a log."""

from __future__ import annotations

from dataclasses import dataclass

from highwater.pipelines.bronze.layout import Unwrap

#: Between the steps of a name, the outermost first, and the layout behind them.
WITHIN = " => "
#: Between the source of a stream (a pod, a service, a host) and what distinguishes streams of one source.
OF_SOURCE = b"\0"


@dataclass(frozen=True)
class Step:
    """The removal of one wrapper from the lines of a log."""

    name: str  #: rebuilds it; a part of the layout's name in ``bronze.log_files.layout``
    unwrap: Unwrap  #: what a piece holds
    pieces: str = ""  #: how a file falls into pieces (`pipelines.bronze.wrappers.pieces`); empty: into lines
    is_entry: bool = False  #: each item is an entry of a container, which may be in another order than its neighbours


def source_of(name: bytes) -> bytes:
    """Return the source in a stream's name. Empty if unknown."""
    return name.partition(OF_SOURCE)[0]
