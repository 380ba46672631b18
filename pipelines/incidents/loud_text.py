"""Texts at WARN or above, with what the atlas says of them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from highwater.pipelines.bronze.layouts.loggers import is_kafka
from highwater.pipelines.grammars.grammar import shorten_logger
from highwater.pipelines.messages.atlas import Found, atlas
from highwater.pipelines.messages.exceptions import Thrown, advice_of, cause_of, most_specific
from highwater.pipelines.messages.lines import find_message

_PARTITION = re.compile(r"[\w.-]+-\d+")
#: Nouns of placeholders of texts that name what a client uses.
_CLIENTS = {"group": "group", "transaction": "transactional id", "topic": "topic"}


#: Last word of the key of texts that have no rows of their own.
RARER = "rarer"
#: Columns that lines of one text have in common.
_OF_TEXT = ("cluster_id", "level", "logger", "signature", "template")
#: Lines of one text further apart are of two episodes, microseconds.
_GAP_US = 600_000_000


class LoudText(NamedTuple):
    """Log lines at WARN or above with equal text but for numbers and names, and their catalogue entry."""

    moments: Sequence[Mapping[str, Any]]  #: of `pipelines.incidents.facts.Facts.loud`, in order of time
    found: Found | None  #: None if the atlas has no entry
    thrown: Thrown | None  #: innermost exception of the first line

    @property
    def row(self) -> Mapping[str, Any]:
        """Return the first row of these lines."""
        return self.moments[0]

    @property
    def signature(self) -> str | None:
        """Return the name of the `Signature` (pattern of an incident) that matches the lines. None if there is none."""
        name: str | None = self.row["signature"]
        return name

    @property
    def cluster_id(self) -> str:
        """Return the cluster of the lines."""
        return str(self.row["cluster_id"])

    @property
    def rarer(self) -> int:
        """Return the number of rare texts that these lines stand for. 0 for lines of one text."""
        return int(self.row["text_count"]) if self.row["template"] is None else 0

    @property
    def key(self) -> str:
        """Return the id of the entry, or the level, logger and masked text. Rare texts of one level have one key."""
        if self.found is not None:
            return self.found.message_id
        if self.rarer:
            return f"{self.level} {RARER}"
        return f"{self.level} {self.row['logger']} {self.row['template']}"

    @property
    def is_of_node(self) -> bool:
        """Return True if the node itself may have logged the lines: their logger is Kafka's, unknown or a class."""
        logger = str(self.row["logger"] or "")
        return not logger or is_kafka(logger) or shorten_logger(logger)[:1].isupper()

    @property
    def level(self) -> str:
        """Return the level of the lines."""
        return str(self.row["level"])

    @property
    def line(self) -> str:
        """Return the first line of the first record."""
        return str(self.row["message"]).partition("\n")[0]

    @property
    def lines(self) -> int:
        """Return the number of records."""
        return sum(int(moment["line_count"]) for moment in self.moments)

    @property
    def first_us(self) -> int:
        """Return the time of the first record, us since the epoch."""
        return int(self.row["first_time"])

    @property
    def last_us(self) -> int:
        """Return the time of the last record, us since the epoch."""
        return max(int(moment["last_time"]) for moment in self.moments)

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """Return the ids of nodes that logged the records. Unknown nodes are left out."""
        return tuple(sorted({moment["broker_id"] for moment in self.moments} - {None}))

    @property
    def kinds(self) -> frozenset[str]:
        """Return the kinds of incident that the message catalogue counts these lines to."""
        return frozenset() if self.found is None else self.found.message.kinds

    def begins(self, name: str) -> bool:
        """Return True if the lines alone prove an incident of the kind `name`."""
        return self.found is not None and f"begins {name}" in self.found.message.part.split(", ")

    @property
    def partitions(self) -> frozenset[str]:
        """Return the partitions that the records name, such as ``orders-4``."""
        named = (
            values.get(name, "").rpartition(":")[2] for values in self._values() for name in ("partition", "topic_id")
        )
        return frozenset(name for name in named if _PARTITION.fullmatch(name))

    @property
    def clients(self) -> frozenset[str]:
        """Return groups, transactional ids or topics that the records name, each with its noun: ``group payments``."""
        named = (
            next((f"{noun} {values[name]}" for name, noun in _CLIENTS.items() if values.get(name)), "")
            for values in self._values()
        )
        return frozenset(named) - {""}

    def _values(self) -> Iterator[Mapping[str, str]]:
        """Yield the values in each message by name, as the catalogue entry's wording captures them."""
        if self.found is None:
            return
        for message in dict.fromkeys(str(moment["message"]) for moment in self.moments):
            found = _find(message, self.row["logger"])
            if found is not None and found.message_id == self.found.message_id:
                yield found.values

    @property
    def action(self) -> str:
        """Return what to do, by the catalogue entries of the line and of its exception."""
        cause = None if self.thrown is None else cause_of(self.thrown)
        return advice_of("" if self.found is None else self.found.message.action, None if cause is None else cause[1])


def loud_texts(rows: Iterable[Mapping[str, Any]]) -> list[LoudText]:
    """Return lines grouped by equal text and short gaps, with their catalogue entries, in order of time.

    Args:
        rows: rows of `pipelines.incidents.facts.Facts.loud`.
    """
    episodes: list[list[Mapping[str, Any]]] = []
    last_by_text: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: int(row["first_time"])):
        text = tuple(row[name] for name in _OF_TEXT)
        episode = last_by_text.get(text)
        if episode is None or row["first_time"] - episode[-1]["last_time"] > _GAP_US:
            episode = last_by_text[text] = []
            episodes.append(episode)
        episode.append(row)
    texts = []
    for moments in episodes:
        message, logger = str(moments[0]["message"]), moments[0]["logger"]
        if moments[0]["template"] is None:
            texts.append(LoudText(moments, None, None))
        else:
            texts.append(LoudText(moments, _find(message, logger), most_specific(message)))
    return texts


def _find(message: str, logger: str | None) -> Found | None:
    """Return the catalogue entry of a message, or of its logger if it is only an exception. None if there is none."""
    known = atlas()
    name = shorten_logger(str(logger)) if logger else None
    found = find_message(known, message, name)
    if found is None and name is not None and most_specific(message) is not None:
        return known.find_thrown(name)
    return found
