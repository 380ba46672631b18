"""Every operation that a broker may let wait: its trigger, its log lines, and its replay. Pure.

A waiting request is held by a delayed operation in a purgatory (``DelayedOperation``), by an event that a coordinator
or controller defers until its record is replicated (``DeferredEvent``), or by a call to another broker. The API mostly
decides which; otherwise the first of its waits below is the usual one.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Final

import msgspec


class Wait(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One kind of wait."""

    kind: str  #: Kafka's class
    releases: str  #: that have it
    apis: tuple[str, ...]  #: requests that wait so
    completed_by: str  #: what completes it, apart from its timer
    timer: str  #: how long it waits at most
    shown: str  #: lines that show it, apart from the request's own line
    replayed: str  #: replayed part; "waited" if only the wait and its duration are known


#: The first wait of an API is its usual one.
WAITS: Final = msgspec.toml.decode(
    files(__package__).joinpath("waits.toml").read_bytes(), type=dict[str, tuple[Wait, ...]]
)["waits"]

#: Usual kind of wait by API.
KIND_OF: Final[Mapping[str, str]] = {
    api: wait.kind for wait in reversed(WAITS) for api in wait.apis if wait.kind != "DelayedRemoteFetch"
}
#: Wait of APIs that are not listed.
OTHER: Final = "another broker, or the handler's own thread"
