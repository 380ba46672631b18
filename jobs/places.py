"""Places that the command is given: paths of this machine, also as ``file:`` URIs. No other store is supported yet."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pipelines.errors import InputError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")


def local_path(text: str) -> Path:
    """The path that ``text`` names.

    Raises:
        InputError: it is the URI of another store, or of another machine's file. As a path it would silently become a
            folder of this machine by that name.
    """
    scheme = _SCHEME.match(text)
    if scheme is None:
        return Path(text)
    if scheme.group(1).lower() != "file":
        raise InputError(text, f"{scheme.group(1)} is not supported yet", "give a local path, or a file:// URI")
    parts = urlsplit(text)
    if parts.netloc not in ("", "localhost"):
        raise InputError(text, f"names a file of the host {parts.netloc}", "write file:///path for a file of this one")
    return Path(unquote(parts.path))
