"""Objects as programs print them: JSON, and the literals of Python, Ruby and JavaScript. Pure."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

from highwater.pipelines.base.json_text import loads

#: A sign that JSON does not have outside of texts.
_NOT_JSON = re.compile(rb"=>|[\[{(,:=]\s*'|[{,]\s*[A-Za-z_]\w*\s*:")
_TOKEN = re.compile(
    rb"\s+|(?P<text>[bru]?(?:'(?:[^'\\\n]|\\.)*+'|\"(?:[^\"\\\n]|\\.)*+\"))|(?P<sign>=>|[{}\[\]:,()+])"
    rb"|(?P<word>[^\s{}\[\]:,()+'\"=]++(?::\d[^\s{}\[\],()'\"]*+)?)"
)
_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_SIGNS = {b"t": b"\t", b"r": b"\r", b"n": b"\n"}
_WORDS = {"None": "null", "nil": "null", "undefined": "null", "True": "true", "False": "false"}
_PLAIN = re.compile(r"null|true|false|-?(?:0|[1-9]\d*)(?:\.\d+)?")


def load_object(text: bytes) -> Any:
    """Decode an object that a program printed.

    Raises:
        ValueError: the text is not one object.
    """
    try:
        return loads(text)
    except orjson.JSONDecodeError:
        if _NOT_JSON.search(text) is None:
            raise
        return orjson.loads(_as_json(text))


def unescape(text: bytes, has_bytes: bool = True) -> bytes:
    """Return the text of a string literal without its escapes.

    Args:
        has_bytes: two hex digits are a byte, and not a character.
    """

    def sign_of(escape: re.Match[bytes]) -> bytes:
        byte, unit, sign = escape.groups()
        if sign is not None:
            return _SIGNS.get(sign, sign)
        return (
            bytes.fromhex(byte.decode()) if byte and has_bytes else chr(int(byte or unit, 16)).encode(errors="replace")
        )

    return _ESCAPE.sub(sign_of, text) if b"\\" in text else text


def _as_json(text: bytes) -> str:
    """Return literals as JSON. Neighbouring texts become one text. Numbers of elements and calls are left out."""
    out: list[str] = []
    kind, said = "", b""  # the kind of the last item, and its text
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise ValueError("not an object")
        position = found.end()
        before, token = kind, found[0].decode(errors="replace")
        if found.lastgroup is None or token in "()+":
            if token == "(" and before == "word":
                out.pop()
            continue
        kind = found.lastgroup
        if kind == "text":
            said = (said if before == "text" else b"") + unescape(found[0].lstrip(b"bru")[1:-1], token[0] == "b")
            out[len(out) - (before == "text") :] = [json.dumps(said.decode(errors="replace"))]
        elif kind == "word":
            word = _WORDS.get(token, token)
            out.append(word if _PLAIN.fullmatch(word) else json.dumps(word))
        else:
            if token in "}]" and out[-1:] == [","]:
                out.pop()
            out.append(":" if token == "=>" else token)
        is_begun = kind != "sign" or token in "{["
        if is_begun and out[-4:-3] == ["["] and out[-2] == "]" and out[-3].isdigit():
            del out[-4:-1]
    return "".join(out)
