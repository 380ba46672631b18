"""The atlas: what each text that Kafka logs at WARN and above means, how bad it is and what to do.

The entries are data, ``messages/*.toml``, one file per component, with the fields of `Message`. The id of an entry is
the name of its file and its own name, such as ``log.stopping_directory``. Texts and releases were read off the source
of 29 releases from 0.9 to 4.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, cached_property
from importlib.resources import files
from typing import Literal, NamedTuple

import msgspec

from highwater.pipelines.messages.wording import Wording, match_wording, parse_wording

Harm = Literal["data", "availability", "latency", "capacity", "clients", "none"]
Severity = Literal["critical", "major", "minor", "info"]
LOUD = ("FATAL", "ERROR", "WARN")
#: Value of `Message.part` for lines of each start and each stop, which show no trouble.
HOUSEKEEPING = "housekeeping"
#: Constant characters that a wording needs to be recognised without the class that logs it.
_WEIGHT_MIN = 12


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"harm": "class"}):
    """One entry of the message catalogue: a log text of Kafka with each of its wordings."""

    source: tuple[str, ...]  #: class and method in apache/kafka, such as ``LogManager.loadLogs``
    levels: tuple[str, ...]  #: at which releases log it
    texts: tuple[tuple[str, str], ...]  #: releases (``first..last``) and the text, with ``{}`` or ``{name}`` for values
    meaning: str  #: what it means for an operator, one sentence
    harm: Harm  #: what is at risk
    severity: Severity  #: how bad it is if nothing else explains it
    action: str  #: what to do; empty: nothing
    loggers: tuple[str, ...] = ()  #: simple names of loggers in the line, where they are not the class of `source`
    known_bug: str = ""  #: JIRA of the bug with this signature; empty: none
    #: incident that it begins, continues, ends or explains, such as ``begins broker_died``; `HOUSEKEEPING`; empty: none
    part: str = ""

    @property
    def classes(self) -> frozenset[str]:
        """Return the simple names of the loggers that may log the message."""
        return frozenset(source.partition(".")[0] for source in self.source) | frozenset(self.loggers)

    def has_level(self, level: str | None) -> bool:
        """Return True if a release may log the message at `level`, or at an equally loud level. None matches any."""
        return level is None or level in self.levels or (level in LOUD and not self.is_quiet)

    @property
    def is_quiet(self) -> bool:
        """Return True if no release logs the message at WARN or above."""
        return not set(self.levels) & set(LOUD)

    @property
    def kinds(self) -> frozenset[str]:
        """Return the kinds of incident that the message belongs to."""
        return frozenset(part.split()[-1] for part in self.part.split(", ") if " " in part)


class Found(NamedTuple):
    """The catalogue entry that matches a log line."""

    message_id: str  #: such as ``log.stopping_directory``
    message: Message  #: the entry
    values: Mapping[str, str]  #: captured values by name


class _Known(NamedTuple):
    message_id: str
    message: Message
    wording: Wording


class Atlas:
    """The catalogue of Kafka's log messages, indexed by logger and by constant text."""

    def __init__(self, messages: Mapping[str, Message]) -> None:
        self.messages = messages
        known = [
            _Known(message_id, message, parse_wording(text))
            for message_id, message in messages.items()
            for _, text in message.texts
        ]
        #: The heavier wording first: it says more.
        self._known = sorted(known, key=lambda known: (-known.wording.weight, known.message_id))

    @cached_property
    def _by_logger(self) -> dict[str, list[_Known]]:
        by_logger: dict[str, list[_Known]] = {}
        for known in self._known:
            for logger in known.message.classes:
                by_logger.setdefault(logger, []).append(known)
        return by_logger

    def find(self, text: str, logger: str | None = None, level: str | None = None) -> Found | None:
        """Return the catalogue entry of a message. None if there is none.

        Args:
            text: the message without the ``[...]`` prefix. Its first line is matched.
            logger: simple name of the logger. None if unknown: then only long, unambiguous texts match.
            level: level of the line. None if unknown.
        """
        line = text.partition("\n")[0].strip()
        if logger is not None:
            found = _first(self._by_logger.get(logger, ()), line, True, level)
            if found is not None:
                return found
        return _first(self._certain, line, True, level)

    def find_within(self, line: str, level: str | None = None) -> Found | None:
        """Return the catalogue entry of a line in any layout, with any text around the message. None if unknown."""
        return _first(self._certain, line, False, level)

    def find_thrown(self, logger: str) -> Found | None:
        """Return the catalogue entry for a message that is only an exception's text. None if the logger has none."""
        for known in self._by_logger.get(logger, ()):
            if not known.wording.weight:
                return Found(known.message_id, known.message, {})
        return None

    @cached_property
    def _certain(self) -> list[_Known]:
        return [known for known in self._known if known.wording.weight >= _WEIGHT_MIN]


def _first(candidates: Iterable[_Known], line: str, is_whole: bool, level: str | None) -> Found | None:
    for known in candidates:
        if known.wording.weight and known.wording.longest in line and known.message.has_level(level):
            values = match_wording(known.wording, line, is_whole)
            if values is not None:
                return Found(known.message_id, known.message, values)
    return None


@cache
def atlas() -> Atlas:
    """Load the message catalogue from the installed data files."""
    messages: dict[str, Message] = {}
    for entry in sorted(files(__package__).iterdir(), key=lambda entry: entry.name):
        component, dot, ending = entry.name.partition(".")
        if dot and ending == "toml" and component != "exceptions":
            table = msgspec.toml.decode(entry.read_bytes(), type=dict[str, Message])
            messages |= {f"{component}.{name}": message for name, message in table.items()}
    return Atlas(messages)
