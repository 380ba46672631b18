"""The key under which names are replaced."""

from __future__ import annotations

import secrets
from pathlib import Path

from highwater.pipelines.base.errors import InputError

#: Shorter ones could be tried out.
KEY_BYTES_MIN = 16


def read_redaction_key(path: Path | None) -> bytes:
    """Return the key in a file, without surrounding blanks.

    Args:
        path: file with the key. None: return a random key, which is not stored.

    Raises:
        InputError: the file cannot be read, or the key is too short.
    """
    if path is None:
        return secrets.token_bytes(32)
    try:
        key = path.read_bytes().strip()
    except OSError as error:
        raise InputError(
            path, f"cannot be read ({error.strerror or error})", "name a file that holds the key"
        ) from None
    if len(key) < KEY_BYTES_MIN:
        problem = f"holds {len(key)} bytes, too few for a key"
        raise InputError(path, problem, f"make one of {KEY_BYTES_MIN} or more: openssl rand -hex 32 > FILE")
    return key
