"""The name that a broker gives to a connection, ``local:port-remote:port-index``. Pure."""

from __future__ import annotations

import re
from typing import Final

import pyarrow as pa

#: The client's host in it. A host name has at most 255 characters.
REMOTE_HOST: Final = r"^.{0,300}:\d{1,5}-(.{0,300}):\d{1,5}(?:-\d+)*$"
_REMOTE_HOST: Final = re.compile(REMOTE_HOST)


def parse_remote_host(connection: str | None) -> str:
    """Return the client's host in the name of a connection. Empty if the name does not show it."""
    shown = _REMOTE_HOST.match(connection or "")
    return shown.group(1) if shown else ""


def parse_remote_hosts(connections: pa.Array) -> pa.Array:
    """Return an array of the client hosts in an array of connection names."""
    hosts: dict[str | None, str] = {}
    names = connections.to_pylist()
    return pa.array([hosts.setdefault(name, parse_remote_host(name)) for name in names], pa.string())
