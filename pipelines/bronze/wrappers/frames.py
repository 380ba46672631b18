"""Frames: what is around the record on each line of a text, learned by aligning lines. Pure.

A frame is everything before the record's own first field and, where lines that continue a record have it too, what is
behind their text. It is written as a pattern: ``%X{source} | %m`` takes ``kafka-1  | `` off. ``%m`` is the line within,
``%d`` any time, ``%X`` text without blanks (within brackets: up to their end), ``%X{source}`` the source,
``%X{stream}`` what distinguishes streams of one source, ``%X{part}`` CRI's mark of a line in parts, ``%T`` a tab.

Lines between records, such as a viewer's time on a line of its own, are a frame as well: a pattern without ``%m``, in
which ``%i`` is a number.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from highwater.pipelines.bronze.layout import Item
from highwater.pipelines.bronze.layouts.anchors import CONTINUATION, has_anchor, is_continued
from highwater.pipelines.bronze.layouts.loggers import is_kafka
from highwater.pipelines.bronze.layouts.patterns import LEVEL_ALIASES
from highwater.pipelines.bronze.layouts.structured import object_at
from highwater.pipelines.bronze.layouts.times import TIME, spelled
from highwater.pipelines.bronze.wrappers.labels import is_one_each, label_column
from highwater.pipelines.bronze.wrappers.step import OF_SOURCE, Step

FRAME = "frame "
LINES = "lines "
#: Bytes of a line in which its frame ends, and tokens of it.
_WITHIN = 600
_TOKENS_MAX = 60
_EPOCH_WITHIN = 200
_SAMPLE = 600
#: Share of the number of records that lines between them have at least, and their length at most.
_BETWEEN_SHARE_MIN = 0.3
_BETWEEN_LENGTH_MAX = 200
#: Tokens behind a time in which a bracket around it ends.
_CLOSED_WITHIN = 6
#: Frames that are tried of lines with the same time as the record's own: the file may change its layout.
_FRAMES_MAX = 2
#: Times of a line that are tried as the record's own.
_TIMES_MAX = 4
_PIECE = re.compile(
    rb"(?P<space>[ \t\xa0]+)|(?P<bracket>\[[^\[\]\n]*\]|\{[^{}\n]*\}|\([^()\n]*\)|<[^<>\n]*>|\"[^\"\n]*\")"
    rb"|(?P<word>[^\s\[\](){}<>\"|:;,=]+)|(?P<sign>.)"
)
#: Signs that no word of a pattern with more fields than these has.
_SIGNS, _FIELDS_MAX = frozenset('[](){}<>"|:;,='), 8
_COARSE = re.compile(rb"(?P<space>[ \t\xa0]+)|(?P<word>\S+)")
_CLOSER = {"[": "]", "(": ")", "{": "}", "<": ">", '"': '"', "'": "'", "`": "`"}
_FIELD = re.compile(r"%d|%X(?:\{(\w+)\})?|%m|%i|%%|%T|(.)", re.DOTALL)
_NUMBER = re.compile(r"\d+")
_LAST_BRACKET = re.compile(r"\[%X\] *\Z")
_LINE_NO = re.compile(rb":\d+\Z")
_TABS = re.compile(rb"(?:#011)+")
#: A column that has a sign in some lines and a blank in others begins a pattern: marks of matches, of added lines.
_MARKED = re.compile(r"[>*+!-]? ")


class _Token(NamedTuple):
    kind: str  #: time, space, bracket, word, sign
    text: bytes


class _Head(NamedTuple):
    """The start of a line, split into tokens."""

    tokens: tuple[_Token, ...]
    times: tuple[int, ...]  #: numbers of the tokens that are times


def _head(line: bytes, piece: re.Pattern[bytes]) -> _Head:
    tokens: list[_Token] = []
    times: list[int] = []
    position, end = 0, min(len(line), _WITHIN)
    while position < end and len(tokens) < _TOKENS_MAX and len(times) <= _TIMES_MAX:
        time = spelled(line, end, position, _EPOCH_WITHIN)
        stop = end if time is None else time.start
        while position < stop and len(tokens) < _TOKENS_MAX:
            match = piece.match(line, position, stop)
            if match is None:
                break
            tokens.append(_Token(match.lastgroup or "", match[0]))
            position = match.end()
        if time is not None and position == time.start:
            times.append(len(tokens))
            tokens.append(_Token("time", line[time.start : time.end]))
            position = time.end
        else:
            break
    return _Head(tuple(tokens), tuple(times))


def frames(lines: Sequence[bytes]) -> Iterator[Step]:
    """Yield steps that remove possible frames: text around the record on each line. The longest first."""
    some = [line for line in lines if line.strip()]
    some = some[:: max(1, len(some) // _SAMPLE)]
    # A container of whole records frames only the first line of each: its other lines show nothing of the frame.
    continued = [line for line in some if is_continued(line) and not CONTINUATION.match(line)]
    seen: set[str] = set()
    for piece in (_PIECE, _COARSE):
        heads = {line: _head(line, piece) for line in dict.fromkeys(some)}
        records = [line for line in some if heads[line].times and line not in continued and has_anchor(line)]
        places = {line: at for line in heads if (at := object_at(line, _WITHIN)) > 0}
        objects = [line for line in some if line in places]
        # Lines that continue a record may be of another layout of the file, and in its frame.
        options = [
            (records, [cut_of(heads[line], number) for line in records], others)
            for cut_of, others in ([(_time_of, continued)] if continued else []) + [(_cut, [])]
            for number in range(_TIMES_MAX - 1, -1, -1)
        ]
        if 5 * len(objects) > len(some):
            heads |= {line: _head(line[:at], piece) for line, at in places.items()}
            options.insert(0, (objects, [len(heads[line].tokens) for line in objects], []))  # an object is one line
        for of_lines, cut, others in options:
            for step in _learned([(heads[line], at) for line, at in zip(of_lines, cut, strict=True)], others, some):
                if step.name not in seen:
                    seen.add(step.name)
                    yield step


def lines_between(lines: Sequence[bytes]) -> Iterator[Step]:
    """Yield steps that skip lines of a form that occurs about as often as records do."""
    texts = [line for line in lines if line.strip()]
    shapes = Counter(shape for line in texts if (shape := _shape_between(line)) is not None)
    step = max(1, len(texts) // 100)
    records = sum(map(has_anchor, texts[::step])) * step
    often = [shape for shape, count in shapes.most_common(4) if count > 2 and count >= _BETWEEN_SHARE_MIN * records]
    yield from (of_name(LINES + shape) for shape in often)


def _shape_between(line: bytes) -> str | None:
    """Return the form of a line: ``%d`` for its time and ``%i`` for numbers. None if it contains anything else."""
    if len(line) > _BETWEEN_LENGTH_MAX or is_continued(line) or has_anchor(line):
        return None
    text = line.decode("latin-1").replace("%", "%%").rstrip("\r ")
    if (time := spelled(line, len(line))) is not None:
        begun, ended = (
            _NUMBER.sub("%i", part.decode("latin-1").replace("%", "%%"))
            for part in (line[: time.start], line[time.end :].rstrip(b"\r "))
        )
        return f"{begun}%d{ended}" if len(line) - (time.end - time.start) < 40 else None
    return _NUMBER.sub("%i", text) if text[:1] not in "\t " else None


def _time_of(head: _Head, number: int) -> int:
    """Return the index of the token with the n-th time. -1 if there is none."""
    return head.times[number] if number < len(head.times) else -1


def _cut(head: _Head, number: int) -> int:
    """Return the index of the token at which the record begins, if it has the n-th time. -1 if there is none."""
    if number >= len(head.times):
        return -1
    at = cut = head.times[number]
    while at:
        at -= 1
        token = head.tokens[at]
        bare = _LINE_NO.sub(b"", token.text.strip(b"[]()<>:,|- "))
        is_own = len(bare) > 1 and (bare.upper() in LEVEL_ALIASES or is_kafka(bare.decode("latin-1")))
        if is_own or (at == head.times[number] - 1 and _is_closed(token.text, head.tokens[at + 2 :][:_CLOSED_WITHIN])):
            cut = at
        elif bare.strip() and not bare.isdigit():
            break
    return cut


def _is_closed(opened: bytes, following: Sequence[_Token]) -> bool:
    """Return True if a token opens a bracket that closes within the following tokens."""
    closer = _CLOSER.get(opened.decode("latin-1"), "") if opened in (b"[", b"(", b"<") else ""
    return closer != "" and any(closer.encode() in token.text for token in following)


def _learned(cuts: Sequence[tuple[_Head, int]], continued: Sequence[bytes], lines: Sequence[bytes]) -> Iterator[Step]:
    """Yield the frame before the records that begin at the given tokens, if other lines also have it."""
    cut = [(head, at) for head, at in cuts if at > 0]
    if 5 * len(cut) < len(cuts) or not cut:
        return
    alike: dict[tuple[str, ...], list[tuple[_Token, ...]]] = defaultdict(list)
    for head, at in cut:
        alike[_signature(head.tokens[:at])].append(head.tokens[:at])
    for same in sorted(alike.values(), key=len, reverse=True)[:_FRAMES_MAX]:
        if 5 * len(same) >= len(cut):
            yield from _of_columns(same, continued, lines)


def _of_columns(same: Sequence[Sequence[_Token]], continued: Sequence[bytes], lines: Sequence[bytes]) -> Iterator[Step]:
    """Yield the frame of line starts with the same kinds of tokens.

    Args:
        same: tokens before the record, per line.
        continued: lines that continue a record.
    """
    columns = [list(column) for column in zip(*same, strict=True)]
    patterns = [
        "".join(_written(column, number == length - 1) for number, column in enumerate(columns[:length]))
        for length in range(len(columns), 0, -1)
        if length == len(columns) or columns[length - 1][0].kind in ("space", "sign")
    ]
    # Other lines that continue a record may have another frame.
    within = {pattern: _lines_within(pattern, continued) for pattern in patterns}
    most = max(within.values(), default=0)
    if most < 0.2 * len(continued):
        return
    pattern = next(pattern for pattern, number in within.items() if number >= 0.8 * most)
    yield from _with_fields(pattern, continued, lines)


def _lines_within(pattern: str, lines: Sequence[bytes]) -> int:
    """Return the number of lines that continue a record once the frame is removed."""
    frame = compiled(pattern + "%m")
    found = (frame.match(line) for line in lines)
    return sum(match is not None and CONTINUATION.match(match["m"]) is not None for match in found)


def _signature(tokens: Sequence[_Token]) -> tuple[str, ...]:
    return tuple(token.text.decode("latin-1") if token.kind == "sign" else token.kind for token in tokens)


def _written(column: Sequence[_Token], is_last: bool) -> str:
    """Return the pattern for the tokens at one position of all lines."""
    texts = {token.text for token in column}
    kind, example = column[0].kind, column[0].text.decode("latin-1")
    if kind == "time":
        return "%d"
    if kind == "sign":
        return example.replace("%", "%%")
    if kind == "space":
        shortest = min(texts, key=len).decode("latin-1") if is_last else example[:1]
        return shortest.replace("\t", "%T")
    if len(texts) == 1 and not any(sign.isalnum() for sign in example):
        return example.replace("%", "%%")
    if kind == "bracket":
        return f"{example[0]}%X{_CLOSER[example[0]]}"
    begun, ended = _common_signs(list(texts)), _common_signs([text[::-1] for text in texts])[::-1]
    return begun.replace("%", "%%") + "%X" + ended.replace("%", "%%")


def _common_signs(texts: Sequence[bytes]) -> str:
    """Return the non-word characters that all texts begin with."""
    shortest = min(texts, key=len)
    size = 0
    while size < len(shortest) and all(text[size] == shortest[size] for text in texts) and not _is_name(shortest[size]):
        size += 1
    return shortest[:size].decode("latin-1") if size < len(shortest) else ""


def _is_name(byte: int) -> bool:
    return chr(byte).isalnum() or byte > 127 or chr(byte) in "_-."


def _with_fields(pattern: str, continued: Sequence[bytes], lines: Sequence[bytes]) -> Iterator[Step]:
    """Yield the frame with meanings (source, time, ...) for its fields."""
    parts = re.split(r"(%%|%X)", pattern)
    places = [number for number, part in enumerate(parts) if part == "%X"]
    found = [match for line in lines if (match := compiled(pattern + "%m", is_numbered=True).match(line))]
    if not found:
        return
    texts = [match["m"] for match in found]
    values = {
        place: [match[f"x{number}"].decode(errors="replace") for match in found] for number, place in enumerate(places)
    }
    names: dict[int, str] = {}
    for place, items in values.items():
        said = set(items)
        if said <= {"F", "P"} and "F" in said and "part" not in names.values():
            names[place] = "part"
        elif said <= {"stdout", "stderr"} and "stream" not in names.values():
            names[place] = "stream"
    labels = {str(place): items for place, items in values.items() if place not in names}
    by = label_column(labels, texts)
    if by is None and not _is_bare(pattern, lines):
        # Nothing shows sources: the first word that changes now and then, as a service of compose does.
        services = (name for name, items in labels.items() if _is_service(items) and is_one_each(items, texts))
        by = next(services, None)
    if by is not None:
        names[int(by)] = "source"
    last = _LAST_BRACKET.search(pattern)
    if last and not continued and places[-1] not in names and _is_thread(values[places[-1]]):
        # No line shows if the frame has it. Without it, the layout has.
        yield from _with_fields(pattern[: last.start()], continued, lines) if last.start() else ()
        return
    named = "".join(f"%X{{{names[number]}}}" if number in names else part for number, part in enumerate(parts))
    yield of_name(FRAME + named + "%m" + _suffix(named, texts, continued))


def _is_thread(items: Sequence[str]) -> bool:
    """Return True if texts in brackets vary as thread names do."""
    return len({re.sub(r"\d+", "", item) for item in items}) > 2


def is_field(step: Step, lines: Sequence[bytes]) -> bool:
    """Return True if a frame may be a field of the layout, for example a thread: no time, and only on records."""
    pattern = step.name.removeprefix(FRAME).partition("%m")[0]
    return step.name.startswith(FRAME) and not re.search(r"%d|%X\{", pattern) and _is_bare(pattern, lines)


def _is_bare(pattern: str, lines: Sequence[bytes]) -> bool:
    """Return True if more continuation lines lack the frame than have it."""
    return sum(CONTINUATION.match(line) is not None for line in lines) > _lines_within(pattern, lines)


def _is_service(items: Sequence[str]) -> bool:
    said = Counter(items)
    is_few = 1 < len(said) <= 50 and 3 * len(said) <= len(items)
    return is_few and not all(item.isdigit() or is_kafka(item) for item in said)


def _suffix(pattern: str, texts: Sequence[bytes], continued: Sequence[bytes]) -> str:
    """Return the common end of lines: one that continuation lines share, or that closes an opened bracket."""
    ends = [text.rstrip(b"\r") for text in texts if text.strip()]
    if not ends:
        return ""
    opened = re.search(r"(?<![^\w\s%])[^\w\s%]*+\Z", pattern)
    closer = "".join(_CLOSER[sign] for sign in reversed(opened[0]) if sign in _CLOSER) if opened else ""
    if (
        closer
        and not pattern.endswith("%m")
        and 10 * sum(text.endswith(closer.encode()) for text in ends) >= 9 * len(ends)
    ):
        return closer
    common = _common_signs([text[::-1] for text in ends])[::-1]
    if all(text.startswith(b"{") for text in ends):
        return common.rpartition("}")[2].replace("%", "%%")
    if sum(map(is_continued, ends)) < 3:
        return ""
    return common.replace("%", "%%") if common and common not in (")", "]", "}", '"') else ""


@lru_cache(maxsize=256)
def compiled(pattern: str, is_numbered: bool = False) -> re.Pattern[bytes]:
    """Return a regular expression for a frame's pattern. Group ``m`` is the line within the frame.

    Args:
        is_numbered: True makes a group of each field.
    """
    pieces: list[bytes] = []
    number = 0
    before = ""
    if (marked := _MARKED.match(pattern)) is not None:
        pieces.append(rb"(?:[>*+!-](?=[ \t\xa0]|\r?\Z))?")
        pattern = pattern[marked.end() - 1 :]
    fields = list(_FIELD.finditer(pattern))
    is_long = pattern.count("%X") > _FIELDS_MAX
    for place, field in enumerate(fields):
        after = fields[place + 1][0] if place + 1 < len(fields) else ""
        text = field[0]
        if text in ("%d", "%i"):
            pieces.append(TIME if text == "%d" else rb"\d+")
        elif text.startswith("%X"):
            inside = _CLOSER.get(before[-1:])
            if inside is not None and after == inside:
                # syslog's fields may have the sign in quotes.
                piece = rb'(?:="[^"\n]*+"|[^\n' + re.escape(inside.encode()) + rb"])*+"
            else:
                piece = rb"\S+?" if after and after != " " else rb"\S+"
                if is_long and after in _SIGNS:
                    piece = rb"[^\s" + re.escape(after.encode()) + rb"]++"  # a search with many fields has to end
            name = f"x{number}" if is_numbered else field[1]
            number += 1
            pieces.append(b"(?P<" + name.encode() + b">" + piece + b")" if name else piece)
        elif text == "%m":
            suffix = pattern[field.end() :].replace("%%", "%").encode("latin-1")
            end = rb"(?P<m>.*?)(?:" + re.escape(suffix) + rb")?\r?\Z" if suffix else rb"(?P<m>.*)\Z"
            pieces.append(end)
            break
        elif text in (" ", "%T", "\xa0"):
            blank = b" " if text == " " else b"\t" if text == "%T" else b"\xa0"
            if after == "%m":
                pieces.append(b"(?:" + blank + rb"|(?=\r?\Z))")
            elif pattern[field.end() :].lstrip(" ").startswith("%m"):
                pieces.append(blank)
            else:
                pieces.append(rb"[ \t\xa0]+")
        elif text == ":":
            pieces.append(rb"[:-]")  # grep writes one before lines that match, the other before their neighbours
        else:
            pieces.append(re.escape(text.replace("%%", "%").encode("latin-1")))
        before = text
    return re.compile(b"".join(pieces), re.DOTALL)


def of_name(name: str) -> Step:
    """Return the step for a frame's name.

    Raises:
        ValueError: the name is invalid.
    """
    if name.startswith(LINES):
        is_between = re.compile(compiled(name.removeprefix(LINES)).pattern + rb"[\r ]*\Z").match
        return Step(name, lambda line: [] if is_between(line) else [(b"", line, False, 0)])
    pattern = name.removeprefix(FRAME)
    if "%m" not in pattern:
        raise ValueError(f"invalid frame {pattern!r}; expected %m in it")
    match = compiled(pattern).match
    fields = compiled(pattern).groupindex
    has_source, has_stream, has_part = ("source" in fields), ("stream" in fields), ("part" in fields)

    def unwrap(line: bytes) -> list[Item] | None:
        found = match(line)
        if found is None:
            return None
        stream = found["source"] if has_source else b""
        if has_stream:
            stream += OF_SOURCE + found["stream"]
        text = found["m"]
        if text.startswith(b"#011") and (tabs := _TABS.match(text)) is not None:  # as rsyslog writes tabs
            text = b"\t" * (tabs.end() // 4) + text[tabs.end() :]
        return [(stream, text, has_part and found["part"] == b"P", 0)]

    return Step(name, unwrap)


#: Of lines of several programs, without anything around them.
NO_FRAME = of_name(f"{FRAME}%m")
