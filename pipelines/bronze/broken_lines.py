"""Reasons why lines of Kafka cannot be read, and what to do, from the first lines of a file. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise

from highwater.pipelines.bronze.wrappers.terminals import goes_on, quotes_of

#: What tools end a line with that they cut at the width of a terminal.
_MARKS = (b">", b"\xe2\x80\xa6", b"...")
#: Shorter lines are no terminal's width, and longer ones are no terminal's.
_WIDTHS = range(60, 400)
#: Widths of mails, with quotes before the lines.
_MAIL_WIDTHS = range(60, 100)
_SHARE_MIN = 0.2
_LINES_MIN = 3


def width_of(lines: Sequence[bytes], has_longer: bool = False) -> int | None:
    """Return the width at which lines were wrapped or cut, in characters. None if they were not.

    Args:
        has_longer: lines longer than the width may exist.
    """
    sizes = Counter(len(line.decode(errors="replace")) for line in lines if line)
    ((width, count),) = sizes.most_common(1) or ((0, 0),)
    is_widest = has_longer or width == max(sizes, default=0)
    return width if width in _WIDTHS and is_widest and count >= max(_LINES_MIN, _SHARE_MIN * len(lines)) else None


def width_of_words(lines: Sequence[bytes]) -> int | None:
    """Return the width at which lines were wrapped between words, in characters. None if they were not."""
    widths: dict[bytes, list[int]] = defaultdict(list)
    for line in lines:
        if b" " in line[len(quotes := quotes_of(line)) :].strip():  # a long word has a line of its own
            widths[quotes].append(len(line.rstrip().decode(errors="replace")))
    # A mail and what it quotes are broken at widths of their own.
    longest = [max(those) for those in widths.values() if len(those) > _LINES_MIN]
    width = min((each for each in longest if each in _MAIL_WIDTHS), default=None)
    if width is None or max(longest) not in _MAIL_WIDTHS:
        return None
    broken = sum(goes_on(before, line, width) for before, line in pairwise(lines))
    return width if broken >= max(_LINES_MIN, _SHARE_MIN * len(lines)) else None


def cut_lines(lines: Sequence[bytes]) -> str | None:
    """Return a problem with its remedy if a tool truncated the lines. None otherwise."""
    marked = [line for line in lines if len(line) > _WIDTHS.start and line.rstrip().endswith(_MARKS)]
    whole = [line for line in lines if line.strip()]
    widths = Counter(len(line.decode(errors="replace").rstrip()) for line in marked)
    is_cut = 2 * max(widths.values(), default=0) > len(marked)
    if not is_cut or len(marked) < _LINES_MIN or len(marked) < _SHARE_MIN * len(whole):
        return None
    mark = next(mark for mark in _MARKS if marked[0].rstrip().endswith(mark)).decode()
    return (
        f'its lines are truncated (they end with "{mark}"): write them whole with journalctl --no-pager -o cat, or '
        "with systemctl status --no-pager -l, and into a file"
    )


def wrapped_lines(lines: Sequence[bytes]) -> str | None:
    """Return a problem with its remedy if a terminal wrapped the lines at its width. None otherwise."""
    width = width_of(lines)
    if width is None:
        return None
    return f"its lines are wrapped, or truncated, at {width} columns: copy the file itself, not what a terminal shows"
