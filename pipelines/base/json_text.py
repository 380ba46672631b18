"""JSON that a log holds, with texts that clients chose in it. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import orjson

#: Escapes: of a character of two units, of half of one, any other.
_ESCAPE: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)


def loads(text: str | bytes, decode: Callable[[Any], Any] = orjson.loads) -> Any:
    r"""Decode JSON. An unpaired surrogate is replaced by its escape (``\ud800``).

    Raises:
        ValueError: invalid JSON, or `decode` rejects it; orjson.JSONDecodeError with the default decoder.
    """
    try:
        return decode(text)
    except ValueError:
        content = text.decode(errors="replace") if isinstance(text, bytes) else text
        escaped = _ESCAPE.sub(lambda match: rf"\{match[1]}" if match[1] else match[0], content)
        if escaped == content:
            raise
        return decode(escaped)
