"""Every operation that a broker may let wait: what completes it, what logs show of it, and what is replayed. Pure.

A request that waits is held by a delayed operation in a purgatory (``DelayedOperation``), by an event that a
coordinator or controller defers until its record is replicated (``DeferredEvent``), or by another broker that is asked
first. Which it is follows from the API, mostly; where it does not, the first of its waits below is the usual one.
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
    completed_by: str  #: what completes it, beside its timer
    timer: str  #: how long it waits at most
    shown: str  #: what logs show of it, beside the request's own line
    replayed: str  #: what is replayed of it; "waited" where it is known only that and how long a request waited


#: Of an API with several the first is the usual one.
WAITS: Final = msgspec.toml.decode(
    files(__package__).joinpath("waits.toml").read_bytes(), type=dict[str, tuple[Wait, ...]]
)["waits"]

#: The usual kind of wait of an API.
KIND_OF: Final[Mapping[str, str]] = {
    api: wait.kind for wait in reversed(WAITS) for api in wait.apis if wait.kind != "DelayedRemoteFetch"
}
#: Of APIs that are not listed.
OTHER: Final = "another broker, or the handler's own thread"
