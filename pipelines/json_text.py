"""JSON that a log holds, with texts that clients chose in it. Pure."""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

#: Escapes: of a character of two units, of half of one, any other.
_ESCAPE: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)


def loads(text: str | bytes) -> Any:
    r"""Read JSON as it is written; a half of a surrogate pair, which no text can hold, becomes its escape (``\ud800``).

    Raises:
        orjson.JSONDecodeError: it is no JSON.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        content = text.decode(errors="replace") if isinstance(text, bytes) else text
        escaped = _ESCAPE.sub(lambda match: rf"\{match[1]}" if match[1] else match[0], content)
        if escaped == content:
            raise
        return orjson.loads(escaped)
