"""Encodings of text: UTF-16, UTF-32 and lone carriage returns become UTF-8 lines, as a stream. Pure.

Readers receive UTF-8 with LF or CRLF, so offsets count bytes of the converted content. UTF-8 needs no conversion. Bytes
that are not UTF-8 stay in the content. `decode_text` reads a text with such bytes as Windows-1252.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from itertools import chain

#: Marks and their encodings, longer marks first.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
#: Encodings of content without a mark: width of a code unit, and the index of the byte that holds ASCII.
_UNITS = {"utf-32-le": (4, 0), "utf-32-be": (4, 3), "utf-16-le": (2, 0), "utf-16-be": (2, 1)}
_ASCII = frozenset(b"\t\n\r\x1b" + bytes(range(0x20, 0x7F)))
#: Minimum share of ASCII among the code units that are not NUL, and minimum number of these code units.
_ASCII_SHARE_MIN = 0.7
_UNITS_MIN = 8
#: Minimum size of a beginning, unless the content is shorter.
_BEGINNING_BYTES_MIN = 1 << 12
#: Text may have this share of control characters. A block of NULs after a power loss is mostly shorter than the text.
_CONTROL_SHARE_MAX = 0.1
_CONTROLS = bytes(byte for byte in range(32) if byte not in b"\t\n\r\f\x1b")
_CARRIAGE_RETURNS = "carriage returns"
#: Windows-1252. Its five unassigned bytes are read as Latin-1.
_WINDOWS_1252 = "".join(bytes([byte]).decode("cp1252", errors="ignore") or chr(byte) for byte in range(256))


def encoding_of(beginning: bytes) -> str | None:
    """Return the encoding from which a content must be converted. None if its lines can be read as they are."""
    for mark, encoding in _MARKS:
        if beginning.startswith(mark):
            return encoding
    if b"\0" in beginning:
        return next((name for name in _UNITS if _is_in(beginning, name)), None)
    if b"\r" in beginning and b"\n" not in beginning:
        # The line feed of a CRLF may follow what was read.
        return _CARRIAGE_RETURNS if b"\r" in beginning[:-1] else None
    return None


def convert(blocks: Iterator[bytes]) -> tuple[str | None, Iterator[bytes]]:
    """Return (encoding as in `encoding_of`, content in UTF-8).

    Half a code unit at the end is dropped, so the last line has no line end.

    Args:
        blocks: the content. Only its beginning is examined.
    """
    first, whole = _begun(blocks)
    encoding = encoding_of(first)
    if encoding in _UNITS:
        first, whole = _begun(_decoded(whole, encoding))
    if encoding_of(first) == _CARRIAGE_RETURNS:
        return encoding or _CARRIAGE_RETURNS, (block.replace(b"\r", b"\n") for block in whole)
    return encoding, whole


def decode_text(text: bytes) -> str:
    """Decode a text as UTF-8.

    Decode it as Windows-1252 if it has bytes that are not UTF-8, and no valid UTF-8 letter beyond ASCII.
    """
    try:
        return text.decode()
    except UnicodeDecodeError:
        damaged = text.decode(errors="replace")
        if any(sign > "\x7f" and sign != "\ufffd" for sign in damaged):
            return damaged
        return codecs.charmap_decode(text, "strict", _WINDOWS_1252)[0]


def is_binary(sample: bytes) -> bool:
    """Return True if a converted content has too many control characters for a text. NULs count."""
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    return controls > len(sample) * _CONTROL_SHARE_MAX


def _is_in(beginning: bytes, encoding: str) -> bool:
    """Return True if nearly all code units other than NUL are ASCII in this encoding."""
    width, at = _UNITS[encoding]
    size = len(beginning) // width * width
    lanes = [beginning[lane:size:width] for lane in range(width)]
    letters = lanes.pop(at)
    ascii_units = others = 0
    for letter, *rest in zip(letters, *lanes, strict=True):
        if any(rest):
            others += 1
        elif letter in _ASCII:
            ascii_units += 1
        else:
            others += letter != 0
    return ascii_units >= _UNITS_MIN and ascii_units >= _ASCII_SHARE_MIN * (ascii_units + others)


def _begun(blocks: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Return (the first bytes of a content, all of the content)."""
    first = next(blocks, b"")
    while len(first) < _BEGINNING_BYTES_MIN and (block := next(blocks, b"")):
        first += block
    return first, chain((first,), blocks)


def _decoded(blocks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    for block in blocks:
        # Files that were put together have marks within.
        if text := decoder.decode(block).replace("\ufeff", ""):
            yield text.encode(errors="replace")
