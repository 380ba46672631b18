"""Log lines explained: each distinct text once, with its count, meaning, severity and what to do. Pure."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from highwater.pipelines.messages.atlas import HOUSEKEEPING, LOUD, Atlas, Message, atlas
from highwater.pipelines.messages.exceptions import Cause, Thrown, advice_of, cause_of, most_specific
from highwater.pipelines.messages.lines import find_record, is_frame, read_line

#: Bytes of a record that are looked at: the rest of a longer stack trace is frames.
RECORD_MAX = 1 << 16
#: Characters of a text that are shown.
_SHOWN = 300
#: Texts of one input; further ones are counted together.
TEXTS_MAX = 1_000
_MASK = re.compile(r"\[[^\[\]]*\]|'[^']*'|\"[^\"]*\"|0x[0-9a-f]+|(?<![\w.-])[\w.-]+-\d+\b|/[\w./-]+|\d+")
_RANK = {"critical": 0, "major": 1, "minor": 2, "info": 3}


@dataclass
class ExplainedText:
    """One distinct log text of the input, with its explanation."""

    text: str  #: its first record's first line
    message_id: str | None  #: None if the atlas has no entry
    message: Message | None  #: the entry
    thrown: Thrown | None  #: innermost exception of its first record that shows one
    cause: tuple[str, Cause] | None  #: entry of that exception
    count: int = 0  #: records with this text

    @property
    def action(self) -> str:
        """Return what to do, by the entries of the line and its exception."""
        own = "" if self.message is None else self.message.action
        return advice_of(own, None if self.cause is None else self.cause[1])

    def as_json(self) -> dict[str, Any]:
        """Return the object that ``--format json`` prints."""
        message = self.message
        return {
            "text": self.text,
            "count": self.count,
            "id": self.message_id,
            "meaning": None if message is None else message.meaning,
            "class": None if message is None else message.harm,
            "severity": None if message is None else message.severity,
            "action": self.action or None,
            "known_bug": (message.known_bug or None) if message is not None else None,
            "exception": None
            if self.thrown is None
            else {
                "name": self.thrown.name,
                "text": self.thrown.text,
                "meaning": None if self.cause is None else self.cause[1].meaning,
                "action": (self.cause[1].action or None) if self.cause is not None else None,
            },
        }


#: Returns the id and the entry of a record below WARN. None if it is unknown.
FindQuiet = Callable[[str], tuple[str, Message] | None]


def explain_lines(
    lines: Iterable[str], is_single: bool = False, messages: Atlas | None = None, find_quiet: FindQuiet | None = None
) -> list[ExplainedText]:
    """Explain the distinct texts of log records, the worst first, then in order of appearance.

    Args:
        lines: lines of a log in any layout, without line ends.
        is_single: True explains records of any level. False only those at WARN or above, or with a catalogue entry.
        messages: message catalogue. None for the installed one.
        find_quiet: explains records below WARN without an entry, if `is_single`. None leaves them unknown.
    """
    known = messages or atlas()
    found: dict[str, ExplainedText] = {}
    for record in _records(lines):
        first = record.partition("\n")[0]
        level = read_line(first).level
        key = _MASK.sub("#", first)
        explained = found.get(key)
        if explained is None:
            found_entry = find_record(known, record)
            entry = None if found_entry is None else found_entry[:2]
            if entry is None and level not in LOUD:
                if not is_single:
                    continue
                entry = None if find_quiet is None else find_quiet(record)
            message_id, message = entry or (None, None)
            key = message_id or key
            explained = found.get(key)
            if explained is None:
                if len(found) >= TEXTS_MAX:
                    continue
                explained = found[key] = ExplainedText(first.strip()[:_SHOWN], message_id, message, None, None)
        explained.count += 1
        if explained.thrown is None:
            explained.thrown = most_specific(record)
            explained.cause = None if explained.thrown is None else cause_of(explained.thrown)
    return sorted(found.values(), key=_rank)


def _rank(explained: ExplainedText) -> int:
    message = explained.message
    if message is None:
        return _RANK["minor"]
    return len(_RANK) if message.part == HOUSEKEEPING else _RANK[message.severity]


def _records(lines: Iterable[str]) -> Iterator[str]:
    """Yield records: a line with a level begins one, unless it belongs to a stack trace."""
    held: list[str] = []
    size = 0
    for line in lines:
        begins = not held or (read_line(line).level is not None and not is_frame(line))
        if begins:
            if held:
                yield "\n".join(held)
            held, size = [line[:RECORD_MAX]], len(line)
        elif size < RECORD_MAX:
            held.append(line[: RECORD_MAX - size])
            size += len(line)
    if held and any(line.strip() for line in held):
        yield "\n".join(held)


def format_texts(explained: Iterable[ExplainedText], width: int) -> str:
    """Return texts formatted for a terminal of `width` columns."""
    blocks = [_block(one, width) for one in explained]
    return "\n\n".join(blocks)


def _block(one: ExplainedText, width: int) -> str:
    head = one.text if one.count == 1 else f"{one.count:,} times: {one.text}"
    rows = []
    if one.message is None:
        rows.append(("meaning", "The atlas has no entry for this text."))
    else:
        rows.append(("meaning", one.message.meaning))
        rows.append(("severity", f"{one.message.severity} (at risk: {one.message.harm})"))
    if one.thrown is not None:
        rows.append(("exception", str(one.thrown)))
        if one.cause is not None:
            rows.append(("", one.cause[1].meaning))
    if one.action:
        rows.append(("do", one.action))
    if one.message is not None:
        if one.message.known_bug:
            rows.append(("known bug", one.message.known_bug))
        rows.append(("logged by", _source(one.message)))
        rows.append(("entry", one.message_id or ""))
    lines = [head]
    for name, text in rows:
        label = f"  {name + ':' if name else '':<11}"
        lines.append(textwrap.fill(text, width, initial_indent=label, subsequent_indent=" " * 13))
    return "\n".join(lines)


def _source(message: Message) -> str:
    if not message.texts:
        return message.source[0]
    firsts, lasts = zip(*(_bounds(releases) for releases, _ in message.texts), strict=True)
    first, last = min(firsts, key=_version), max(lasts, key=_version)
    return f"{', '.join(message.source[:3])}; {' and '.join(message.levels)}; Kafka {first} to {last}"


def _bounds(releases: str) -> tuple[str, str]:
    first, _, last = releases.partition("..")
    return first, last or first


def _version(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))
