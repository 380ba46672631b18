"""Reader of a file that comes in blocks: memory holds a block and the requested bytes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


class ByteStream:
    """A file read sequentially.

    Attributes:
        position: offset of the next byte in the (decompressed) file.
    """

    def __init__(self, blocks: Iterable[bytes]) -> None:
        self._blocks = iter(blocks)
        self._held = b""
        self._start = 0
        self.position = 0

    def peek(self, size: int) -> bytes:
        """Return up to ``size`` bytes without consuming them; fewer at the end of the file."""
        self._fill(size)
        return self._held[self._start : self._start + size]

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes; fewer at the end of the file."""
        piece = self.peek(size)
        self._start += len(piece)
        self.position += len(piece)
        return piece

    def pieces(self, size: int) -> Iterator[bytes]:
        """Yield the next ``size`` bytes in pieces; fewer at the end of the file."""
        while size > 0:
            if self._start == len(self._held):
                self._fill(1)
            piece = self._held[self._start : self._start + size]
            if not piece:
                return
            self._start += len(piece)
            self.position += len(piece)
            size -= len(piece)
            yield piece

    def _fill(self, size: int) -> None:
        there = len(self._held) - self._start
        if there >= size:
            return
        parts = [self._held[self._start :]]
        for block in self._blocks:
            parts.append(block)
            there += len(block)
            if there >= size:
                break
        self._held = b"".join(parts)
        self._start = 0
