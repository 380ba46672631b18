"""Infers the layout that the lines of a file were written by. Kafka's message templates prove the layout.

Lines are split and aligned. A part that all lines have in one place (a level, a bracket, a name, a sign) is a field of
the layout, in any order. If several layouts are possible, each is tried. The score of a layout counts its lines of
Kafka. Lines that match a template of their logger count most. Lines with a full logger name of Kafka count less. A line
that only fits the pattern proves nothing. Kafka's own layout is by far the most common. It alone is accepted as soon as
lines end with full logger names.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC
from functools import lru_cache
from typing import Any, NamedTuple

from highwater.pipelines.bronze.broken_lines import width_of
from highwater.pipelines.bronze.identity import OTHER, kind_of_logger
from highwater.pipelines.bronze.layout import Layout, RecordHead
from highwater.pipelines.bronze.layouts import structured
from highwater.pipelines.bronze.layouts.anchors import CONTINUATION, is_context
from highwater.pipelines.bronze.layouts.loggers import is_kafka, own_template, without_method
from highwater.pipelines.bronze.layouts.patterns import KAFKA, LEVEL, pattern_layout
from highwater.pipelines.bronze.layouts.times import DEFAULT_FORM, Spelled, form_of, spelled
from highwater.pipelines.grammars.grammar import parse_bare_context

#: At least this share of the sampled lines that start as records do has to parse.
FIT_SHARE = 0.9
#: Lines that a candidate is tried on, and lines by which the best one is compared with other readings.
TRIED, _COMPARED = 40, 400
#: Lines that neither begin nor continue a record, per line that begins one, at most. More of them are a frame.
_OTHERS_MAX = 0.2
#: Candidates that are tried of a group of lines, and what settles it: nearly all of its lines are read by templates.
_CANDIDATES_MAX = 40
#: Without a logger name, each line is matched against all templates.
_NAMELESS_MAX = 40
_SETTLED = 1.5
#: Bytes of a line within which its time is searched.
_TIME_WITHIN = 120
_FIELDS_MAX = 7
#: What a line counts: a template of its logger's own reads it; the full name of its logger is Kafka's; a simple name is
#: a class of Kafka's, which any word of a text may match; its logger is a class with a package.
_TEMPLATE, _LOGGER, _WORD, _CLASS = 2.0, 1.0, 0.5, 0.01
#: What a level adds, whatever the line counts.
_LEVEL = 0.005

#: A frame of a stack trace, whose caller looks like a logger.
_STACK_FRAME = re.compile(rb"(?:^|\s)at [\w.$/<>@-]+(?:\(|\Z)")
_QUALIFIED = re.compile(r"(?:[a-z_][\w-]*\.)+[A-Z]\w*\$?")
_LEVEL_AT = re.compile(rb" {0,6}(?i:" + LEVEL + rb")(?=[ \t\])>|:,;-]|$)")
_NAME_AT = re.compile(rb"([A-Za-z_][\w.$/]*(?:<\w+>)?)(:\d{1,6})?(?=[ \t\])>|:,;-]|$)")
_BRACKETS = {b"[": rb"\[([^\]\n]*)\]", b"(": rb"\(([^()\n]*+(?:\([^()\n]*+\)[^()\n]*+)?)\)", b"<": rb"<([^>\n]*)>"}
_BRACKET_AT = {sign: re.compile(pattern) for sign, pattern in _BRACKETS.items()} | {b"{": re.compile(rb"\{([^}\n]*)\}")}
_CLASS_AT = re.compile(rb"(?:[a-z_]\w*\.)*[A-Z]\w{3,}")
_WORD_AT = re.compile(rb"[^\s|]*")
#: The caller's method, behind a logger and before the message.
_METHOD_AT = re.compile(rb"(?:[a-z$][\w$]*|<init>|<clinit>)(?=(?:\(\))? ?[-:|] )")
_SIGNS = b"-|:;,/>~*=#])}"
#: Brackets, names and signs at the end of a line, from the right.
_LAST_BRACKET = re.compile(rb"[ ]?(?:\[([^\[\]\n]*)\]|\(([^()\n]*)\)|<([^<>\n]*)>|\{([^{}\n]*)\})\Z")
_LAST_NAME = re.compile(rb"( - |[ |:=,;/>])([A-Za-z_][\w.$/-]{0,200}(?::\d{1,6})?)\Z")
_LAST_NAME_BYTES = 211
_LAST_SIGN = re.compile(rb"[^\w\s.]\Z")
_ENDS_OF_MESSAGES = {bytes((sign,)) for sign in b")]}>\"'!?:"}
#: Parts of a line behind the message, at most, and the share of lines that end in one. Other messages have more lines.
_TAIL_MAX = 8
_TAIL_SHARE = 1 / 3
_BARE_WORD = re.compile(r"(?<![\[(<{])%[tX]")
_PREFIX = re.compile(rb"(?P<space>[ \t]+)|(?P<bracket>\[[^\]\n]*\])|(?P<word>[^\s\[\]|]+)|(?P<open>[\[\]|])")


class Inferred(NamedTuple):
    """A layout with its score: how well it parses the sampled lines."""

    layout: Layout | None
    score: float = 0.0  #: score of its lines, estimated from the lines that were tried
    proven: int = 0  #: of those that were tried, the lines that cannot be anybody else's
    missing: str | None = None  #: without a layout, what the lines lack, if that is known
    share: float = 0.0  #: of the lines that begin a record, those that templates read


@lru_cache(maxsize=64)
def _known(lines: tuple[bytes, ...]) -> Inferred:
    return _inferred(lines)


def infer(lines: Sequence[bytes]) -> Inferred:
    """Return the best layout for `lines`, given without line ends and wrappers."""
    return _known(tuple(lines))


def _inferred(lines: Sequence[bytes]) -> Inferred:
    if is_plain_kafka(lines):
        # A piece of a line starts no record, and counts nothing.
        begun = len(_starts(pattern_layout(KAFKA), lines))
        return Inferred(pattern_layout(KAFKA), round((_TEMPLATE + _LEVEL) * begun, 3), begun, share=1.0)
    best = Inferred(None)
    lines = [line for line in lines if line.strip()]
    objects = [fields for line in lines if line.startswith(b"{") and (fields := structured.parsed(line))]
    if 2 * len(objects) >= len(lines):
        table = _table(objects)
        found = [layout for layout in structured.layouts(table) if "[" not in layout.name]
        return max((scored(layout, _starts(layout, lines), _COMPARED) for layout in found), default=best, key=_score)
    groups = _groups(lines)
    # A truncated line may look like one of a shorter template. Without loggers they cannot be distinguished.
    for is_named in (True, False) if width_of(lines) is None else (True,):
        for group in groups:
            inferred = _of_group(group, is_named)
            best = max(best, inferred, key=_score)
        if best.proven:
            break
    if not best.proven and _kafka_share(lines) >= FIT_SHARE:
        return Inferred(pattern_layout(KAFKA), _WORD * len(_starts(pattern_layout(KAFKA), lines)), 1)
    missing = next((group.missing for group in groups if group.missing and sees_kafka(group.lines)), None)
    return best if best.layout is not None else best._replace(missing=missing)


def _table(objects: Sequence[dict[str, Any]]) -> list[structured.Row]:
    return [structured.leaves(fields, "", {}) for fields in objects[: 10 * TRIED]]


def sees_kafka(lines: Sequence[bytes]) -> bool:
    """Return True if at least half of the lines name a class of Kafka."""
    some = [line for line in lines[: 2 * TRIED] if line.strip()]
    seen = sum(any(is_kafka(word.decode()) for word in _CLASS_AT.findall(line[:400])) for line in some)
    return bool(some) and 2 * seen >= len(some)


def _score(inferred: Inferred) -> tuple[float, int]:
    """Return the sort key of an inferred layout. If equal, the one with the fewest plain words as fields is best."""
    return inferred.score, -_bare_words(inferred.layout.name if inferred.layout is not None else "")


def _bare_words(pattern: str) -> int:
    """Return the number of fields outside of brackets that could be words of a message."""
    return len(_BARE_WORD.findall(pattern))


def _starts(layout: Layout, lines: Iterable[bytes]) -> list[bytes]:
    return [line for line in lines if layout.start.match(line)]


def _of_group(group: _Group, is_named: bool) -> Inferred:
    """Return the best layout of a group of lines, among the patterns with a logger name or those without."""
    best = Inferred(None)
    patterns = (pattern for pattern in group.patterns() if ("%c" in pattern or "%C" in pattern) == is_named)
    candidates = list(dict.fromkeys(patterns))
    if not is_named:
        # Words of a message may look like fields: with nothing to hold them against, the fewest go first.
        candidates.sort(key=lambda pattern: pattern.count("%"))
    is_settled = False
    for pattern in candidates[: _CANDIDATES_MAX if is_named else _NAMELESS_MAX]:
        if is_settled and _bare_words(pattern) >= -_score(best)[1]:
            continue
        best = max(best, tried(pattern, group.lines), key=_score)
        is_settled = best.score >= _SETTLED * len(group.lines)
    compared = best if best.layout is None else scored(best.layout, group.lines, _COMPARED)
    return best if compared.layout is None else compared


def is_plain_kafka(lines: Sequence[bytes]) -> bool:
    """Return True if lines are in the layout that Kafka ships, and in nothing else. Quick, since each file is asked."""
    layout = pattern_layout(KAFKA)
    starts = _starts(layout, lines)
    parse = layout.parser(UTC)
    heads = [head for line in starts if (head := parse(line)) is not None]
    if not starts or len(heads) < FIT_SHARE * len(starts):
        return False
    if sum(1 for line in starts for _ in layout.start.finditer(line)) >= 2 * len(starts):
        return False  # the line ends are lost
    if len(lines) > len(starts):
        others = [line for line in lines if not layout.start.match(line) and line[:1] not in b"\t "]
        if _OTHERS_MAX * len(starts) < sum(CONTINUATION.match(line) is None for line in others):
            return False
    # A record of several lines has its logger on its last one.
    named = [head.logger for head in heads if head.logger is not None]
    is_full = 2 * sum(kind_of_logger(name) != OTHER for name in named) >= len(named)
    if 2 * len(named) < len(heads) or not is_full or not any("." in name for name in named):
        return False
    first = {head.message[:1] for head in heads}
    if len(heads) > 1 and len(first) == 1 and not first <= {b"["} and not next(iter(first)).isalnum():
        return False
    # A bracket at the end of nearly all messages is a thread.
    if len(heads) > 3 and sum(head.message.endswith(b"]") for head in heads) > FIT_SHARE * len(heads):
        return False
    return not all(_is_thread(head.message) for head in heads)


def _kafka_share(lines: Sequence[bytes]) -> float:
    """Return the share of lines that parse in Kafka's default layout, among those that start like it."""
    layout = pattern_layout(KAFKA)
    starts = _starts(layout, lines)
    parse = layout.parser(UTC)
    return sum(parse(line) is not None for line in starts) / len(starts) if starts else 0.0


def _is_thread(message: bytes) -> bool:
    """Return True if a message begins with a thread name in brackets, not with a Kafka component."""
    bracket = _BRACKET_AT[b"["].match(message)
    return bracket is not None and message[bracket.end() : bracket.end() + 1] == b" " and not is_context(bracket[1])


class _Group:
    """Lines with their time in the same place and in the same format."""

    def __init__(self, lines: list[bytes], times: list[Spelled]) -> None:
        self.lines = lines
        self._times = times
        self.form, self.missing = form_of(times) if times[0].shape else (None, times[0].missing)

    def patterns(self) -> Iterator[str]:
        """Yield the conversion patterns that the lines may be of, the ones with most fields first."""
        if self.form is None:
            return
        lines = _spread(list(zip(self.lines, self._times, strict=True)))
        time = "%d" if self.form == DEFAULT_FORM else f"%d{{{self.form}}}"
        rests = [line[time.end :] for line, time in lines]
        before = [line[: time.start] for line, time in lines]
        for prefix in _prefixes(before):
            yield from _walk(prefix + time, rests, _FIELDS_MAX)


def _groups(lines: Iterable[bytes]) -> list[_Group]:
    """Return at most three groups of lines that may start records, the largest first."""
    members: dict[tuple[str, str], tuple[list[bytes], list[Spelled]]] = defaultdict(lambda: ([], []))
    for line in lines:
        time = spelled(line, _TIME_WITHIN, epoch_within=_TIME_WITHIN)
        if time is None:
            continue
        signature = _signature(line[: time.start])
        if signature is not None:
            those = members[re.sub("S+", "S", time.shape) or time.missing or "", signature]
            those[0].append(line)
            those[1].append(time)
    largest = sorted(members.items(), key=lambda item: -len(item[1][0]))[:3]
    return [_Group(*those) for _, those in largest]


def _signature(before: bytes) -> str | None:
    """Return the kinds of text pieces before a time. None if there are more than a layout has."""
    signs = []
    for piece in _PREFIX.finditer(before):
        kind = piece.lastgroup or ""
        if kind == "word" and _LEVEL_AT.fullmatch(piece[0]):
            kind = "level"
        signs.append(piece[0].decode() if kind == "open" else kind)
    return " ".join(signs) if len(signs) <= 6 else None


def _prefixes(before: Sequence[bytes]) -> Iterator[str]:
    """Yield patterns of the text before the time, if the tokens of every line have the same kinds."""
    columns = zip(*(_PREFIX.findall(text) for text in before), strict=True)
    pattern = ""
    for column in columns:
        texts = ["".join(piece.decode(errors="replace") for piece in pieces) for pieces in column]
        raw = [text.encode() for text in texts]
        if all(text.isspace() for text in texts):
            pattern += " "
        elif all(_LEVEL_AT.fullmatch(text) for text in raw):
            pattern += "%p"
        elif all(text.startswith("[") and len(text) > 1 for text in texts):
            inner = [text[1:-1] for text in texts]
            if all(_LEVEL_AT.fullmatch(text.encode()) for text in inner):
                pattern += "[%p]"
            else:
                pattern += f"[{_named(inner) or '%t'}]"
        elif len(set(texts)) == 1 and not any(sign.isalnum() for sign in texts[0]):
            pattern += texts[0].replace("%", "%%")
        else:
            pattern += _named(texts) or "%X"
    yield pattern


def _named(names: Sequence[str]) -> str | None:
    """Return the layout field for logger names. None if most names are not Kafka's."""
    bare = [re.sub(r":\d+$", "", name.strip()) for name in names]
    if 2 * sum(map(is_kafka, bare)) < len(bare):
        return None
    line = ":%L" if all(re.search(r":\d+$", name.strip()) for name in names) else ""
    is_full = all(kind_of_logger(name) != OTHER and without_method(name) == name for name in bare if is_kafka(name))
    return ("%c" if is_full else "%c{1}") + line


def _walk(pattern: str, rests: list[bytes], left: int) -> Iterator[str]:
    """Yield patterns that continue at the current position of all lines.

    Args:
        rests: remaining text of each line.
        left: maximum number of further fields.
    """
    if left > 0 and any(rests):
        yield from _fields(pattern, rests, left)
    if _has_logger(pattern) and not _have_one_end(rests):
        yield pattern + "%m"
    yield from _ended(pattern, rests)


def _has_level(pattern: str) -> bool:
    return "%p" in pattern or "%-5p" in pattern


def _has_logger(pattern: str) -> bool:
    return "%c" in pattern or "%C" in pattern


def _have_one_end(rests: Sequence[bytes]) -> bool:
    """Return True if all lines end with the same character, which no message ends with."""
    ends = {rest.rstrip(b"\r ")[-1:] for rest in rests}
    return len(ends) == 1 and _LAST_SIGN.search(next(iter(ends))) is not None and not ends & _ENDS_OF_MESSAGES


def _ended(pattern: str, rests: Sequence[bytes]) -> Iterator[str]:
    """Yield patterns whose message begins here, with what may follow the message."""
    for tail in reversed(list(_tails([rest.rstrip(b"\r ") for rest in rests], _has_logger(pattern)))):
        yield f"{pattern}%m{tail}"
    yield pattern + "%m"


def _tails(rests: Sequence[bytes], has_logger: bool) -> Iterator[str]:
    """Yield patterns of what follows a message: brackets, a name, characters. Learned from the right end."""
    tail, is_named = "", has_logger
    for _ in range(_TAIL_MAX):
        enough = _TAIL_SHARE * len(rests)
        bracketed = [match for rest in rests if (match := _LAST_BRACKET.search(rest))]
        named = [match for rest in rests if (match := _LAST_NAME.search(rest, len(rest) - _LAST_NAME_BYTES))]
        field = _field_of([match[match.lastindex or 0] for match in bracketed], enough)
        name = None if is_named else _named([match[2].decode(errors="replace") for match in named])
        if not is_named and name is not None and len(named) >= enough and field != "%c":
            signs = Counter(match[1].decode() for match in named)
            ((sign, count),) = signs.most_common(1)
            if count >= enough:
                tail, is_named = f"{sign}{name}{tail}", True
                rests = [match.string[: match.start()] for match in named]
                yield tail
                continue
        shapes = Counter(_shape(match) for match in bracketed)
        ((shape, count),) = shapes.most_common(1) or (("", 0),)
        if field is not None and count >= enough and not (is_named and field != "%t"):
            tail, is_named = shape.replace("%", field) + tail, is_named or field != "%t"
            rests = [match.string[: match.start()] for match in bracketed if _shape(match) == shape]
            if is_named:
                yield tail
            continue
        signs = Counter(match[0].decode("latin-1") for rest in rests if (match := _LAST_SIGN.search(rest)))
        ((common, count),) = signs.most_common(1) or (("", 0),)
        if not common or 2 * count < len(rests) or (is_named and not has_logger):
            return
        tail = common.replace("%", "%%") + tail
        rests = [rest[:-1] for rest in rests if rest.endswith(common.encode("latin-1"))]
        if all(rest.endswith(b" ") for rest in rests):
            tail, rests = f" {tail}", [rest.rstrip(b" ") for rest in rests]
        yield tail


def _field_of(texts: Sequence[bytes], enough: float) -> str | None:
    """Return the field in brackets: a logger, or one to skip. None if fewer than `enough` lines have one."""
    if len(texts) < enough:
        return None
    names = [text.decode(errors="replace") for text in texts]
    of_kafka = [name for name in names if is_kafka(re.sub(r":\d+$", "", name.strip()))]
    return _named(of_kafka or names) if len(of_kafka) >= enough else "%t"


def _shape(match: re.Match[bytes]) -> str:
    """Return a bracket with ``%`` in place of its content."""
    text = match[0].decode("latin-1")
    begun = text[: 1 + text.startswith(" ")]
    return f"{begun}%{text[-1]}"


def _fields(pattern: str, rests: list[bytes], left: int) -> Iterator[str]:
    has_level, has_logger = _has_level(pattern), _has_logger(pattern)
    first = {rest[:1] for rest in rests}
    if first <= {b" ", b"\t"}:
        yield from _walk(pattern + " ", [rest.lstrip(b" \t") for rest in rests], left)
        return
    if len(first) == 1 and (sign := next(iter(first))) in [_SIGNS[at : at + 1] for at in range(len(_SIGNS))]:
        yield from _walk(pattern + sign.decode(), [rest[1:] for rest in rests], left)
        return
    if not has_level and (matches := _all(_LEVEL_AT, rests)):
        rest = [text[match.end() :].lstrip(b" ") for text, match in zip(rests, matches, strict=True)]
        is_padded = any(text[match.end() :].startswith(b"  ") for text, match in zip(rests, matches, strict=True))
        spaced = all(text[match.end() : match.end() + 1] == b" " for text, match in zip(rests, matches, strict=True))
        level = "%-5p" if is_padded else "%p"
        yield from _walk(pattern + level + (" " if spaced else ""), rest, left - 1)
        return
    if len(first) == 1 and (sign := next(iter(first))) in _BRACKET_AT and (matches := _all(_BRACKET_AT[sign], rests)):
        yield from _bracket(pattern, sign.decode(), rests, matches, left)
        return
    if has_level and has_logger and (matches := _all(_METHOD_AT, rests)):
        after = [text[match.end() :] for text, match in zip(rests, matches, strict=True)]
        yield from _walk(pattern + "%X", after, left - 1)
    if b"[" in first or any(parse_bare_context(rest[:_TIME_WITHIN].decode(errors="replace"))[1] for rest in rests):
        return  # a message begins: no field has what some of Kafka's begin with
    if not has_logger and (matches := _all(_NAME_AT, rests)):
        field = _named([(match[1] + (match[2] or b"")).decode() for match in matches])
        if field is None and all(match[2] for match in matches):
            field = "%C:%L"
        if field is not None:
            after = [text[match.end() :] for text, match in zip(rests, matches, strict=True)]
            yield from _walk(pattern + field, after, left - 1)
    words = [rest[: _WORD_AT.match(rest).end()] for rest in rests]  # type: ignore[union-attr]
    after = [rest[len(word) :] for rest, word in zip(rests, words, strict=True)]
    if any(time is not None and not time.start for time in (spelled(rest, 40) for rest in rests)):
        return
    if all(word.isdigit() for word in words):
        yield from _walk(pattern + "%X", after, left - 1)
    elif "%X" not in pattern and not (has_level and has_logger):
        yield from _walk(pattern + ("%t" if has_level else "%X"), after, left - 1)
    for sign in (b" - ", b" | "):
        if pattern.count("%t") < 2 and all(sign in rest[:80] for rest in rests):
            after = [rest[rest.index(sign) :] for rest in rests]
            if any(spelled(rest, rest.index(sign)) for rest in rests):
                continue  # a thread has no time
            yield from _walk(pattern + "%t", after, min(left - 1, 3))


def _bracket(pattern: str, sign: str, rests: list[bytes], matches: list[re.Match[bytes]], left: int) -> Iterator[str]:
    has_level, has_logger = _has_level(pattern), _has_logger(pattern)
    close = {"[": "]", "(": ")", "<": ">", "{": "}"}[sign]
    texts = [match[1] for match in matches]
    after = [rest[match.end() :] for rest, match in zip(rests, matches, strict=True)]
    if not has_level and all(_LEVEL_AT.fullmatch(text.rstrip(b" ")) for text in texts):
        is_padded = any(b" " in text for text in texts)
        level = "%-5p" if is_padded else "%p"
        yield from _walk(f"{pattern}{sign}{level}{close}", after, left - 1)
        return
    field = None if has_logger else _named([text.decode(errors="replace") for text in texts])
    if field is not None:
        yield from _walk(f"{pattern}{sign}{field}{close}", after, left - 1)
    # Kafka's own messages begin with such a bracket; something else's field may look like one, all the same.
    is_own = any(is_context(text) or spelled(text, 40) for text in texts if sign == "[")
    if is_own:
        yield from _ended(pattern, rests)
    if not any(spelled(text, 40) for text in texts):
        yield from _walk(f"{pattern}{sign}%t{close}", after, left - 1 - 2 * is_own)


def _all(pattern: re.Pattern[bytes], rests: Iterable[bytes]) -> list[re.Match[bytes]]:
    """Return the match at the start of each text. Empty if one has none."""
    matches = [pattern.match(rest) for rest in rests]
    return [] if None in matches else [match for match in matches if match is not None]


def _spread(items: list[tuple[bytes, Spelled]]) -> list[tuple[bytes, Spelled]]:
    """Return at most `TRIED` items, evenly chosen."""
    return items[:: max(1, -(-len(items) // TRIED))]


def tried(pattern: str, lines: Sequence[bytes]) -> Inferred:
    """Return the layout of a pattern with its score on the lines."""
    try:
        layout = pattern_layout(pattern)
    except ValueError:
        return Inferred(None)
    return scored(layout, lines)


def scored(layout: Layout, lines: Sequence[bytes], most: int = TRIED) -> Inferred:
    """Return a layout with its score on the lines.

    Args:
        most: number of lines to try.
    """
    some = lines[:: max(1, -(-len(lines) // most))]
    parse = layout.parser(UTC)
    fitting = [head for line in some if (head := parse(line)) is not None]
    if not fitting or len(fitting) < FIT_SHARE * len(some):
        return Inferred(None)
    is_word = "%c{1}" in layout.name or "%c" not in layout.name
    counts = [_count(head, is_word) + _LEVEL * (head.level is not None) for head in fitting]
    score = round(sum(counts) * len(lines) / len(some), 3)
    proven = sum(count >= _LOGGER for count in counts)
    return Inferred(layout if score > 0 else None, score, proven, share=sum(counts) / (_TEMPLATE * len(some)))


def _count(head: RecordHead, is_word: bool) -> float:
    if head.logger is None or _STACK_FRAME.search(head.message):
        return 0.0
    if own_template(head.logger, head.message) is not None:
        return _TEMPLATE
    if kind_of_logger(head.logger) != OTHER:
        return _WORD if is_word else _LOGGER
    return _CLASS if _QUALIFIED.fullmatch(head.logger) else 0.0
