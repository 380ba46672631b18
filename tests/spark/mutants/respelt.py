"""Wordings that no release prints: what Kafka may log tomorrow. They cost coverage, never truth.

A respelling changes how a line says something, never what: words, brackets, separators and names, not the value of a
number and not which partition. So a line that is read all the same has to give the same facts, and any other none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa

from highwater.pipelines.grammars.facts import parse_record
from highwater.pipelines.grammars.record import LineFact, Parsed
from highwater.schemas import silver
from tests.reading import columns_of
from tests.spark.mutants.slices import SLICES, Record, Records

Respell = Callable[[str, Random], str]

#: Columns that quote the line.
_QUOTED = frozenset({"detail", "reason", "error", "connection", "client_id"})
#: A value that says that nothing more is known.
_LESS = (None, "other")
_NUMBER = re.compile(r"-?\d+")
#: How many of the lines of a template are respelt, and how many templates are left as they are.
SHARE, SPARED = 0.6, 0.3


def _somewhere(pattern: str, new: Callable[[re.Match[str]], str]) -> Respell:
    """Change one of the places where a pattern is found."""
    compiled = re.compile(pattern)

    def respell(message: str, random: Random) -> str:
        places = list(compiled.finditer(message, 0, 4_000))
        if not places:
            return message
        place = random.choice(places)
        return message[: place.start()] + new(place) + message[place.end() :]

    return respell


def _everywhere(pattern: str, new: str) -> Respell:
    compiled = re.compile(pattern)
    return lambda message, random: compiled.sub(new, message)


#: A word of the sentence: names of topics, of settings and of states stand elsewhere, or are spelt otherwise.
_WORD = r"(?:(?<=[a-z] )|(?<=\] )|^)(?<!topic )[a-z]{3,}(?= [a-z\[])"
RESPELLINGS: Mapping[str, Respell] = {
    "another word": _somewhere(_WORD, lambda word: word[0][::-1]),
    "a word less": _somewhere(_WORD + r" ", lambda word: ""),
    "a word twice": _somewhere(_WORD, lambda word: f"{word[0]} {word[0]}"),
    "other brackets": _everywhere(r"\[([^\[\]]*)\]", r"<\1>"),
    "no brackets": _everywhere(r"\[([\d, ]*)\]", r"\1"),
    "other separators": _everywhere(r", ", "; "),
    "no space behind commas": _everywhere(r", ", ","),
    "ids named": _everywhere(r"(?<=[\[,(])(\d+)(?=[\],)])", r"broker \1"),
    "names in another case": _somewhere(r"(?<![\w-])[a-z]+(?:[A-Z][a-z]+)+(?=[=:])", lambda name: name[0].lower()),
    "a colon for an equals sign": _somewhere(r"=", lambda sign: ": "),
    "units behind a number": _somewhere(r"(?<=[ =:])\d+(?=[ ,)}])", lambda number: f"{number[0]} pcs"),
    "more behind it": lambda message, random: f"{message} (reason: quota, 3 of 7)",
    "more before it": lambda message, random: f"Notice 12: {message}",
    "another field": _somewhere(r"(?<=[a-z\d]), ?(?=\w+[=:])", lambda comma: ", shardId=9, "),
    "JSON with another field": lambda message, random: message.replace('":{', '":{"shard":9,', 1),
}


@dataclass(frozen=True)
class Respelt:
    """A slice in which the lines of most templates are respelt, seeded."""

    part: str
    seed: int

    @property
    def name(self) -> str:
        """Name of the variant."""
        return f"respelt {self.part} {self.seed}"

    def apply(self) -> Records:
        """Each template's lines are respelt in one way, as a new release would."""
        random = Random(f"{self.part} {self.seed}")
        ways: dict[str, str | None] = {}
        records = []
        for record in SLICES[self.part].read():
            template = template_of(record)
            if template not in ways:
                ways[template] = None if random.random() < SPARED else random.choice(sorted(RESPELLINGS))
            way = ways[template]
            if way is not None and random.random() < SHARE:
                record = record._replace(message=RESPELLINGS[way](record.message, random))
            records.append(record)
        return tuple(records)


def variants(seeds: int) -> Iterator[Respelt]:
    """So many of each slice."""
    for part in SLICES:
        for seed in range(seeds):
            yield Respelt(part, seed)


def template_of(record: Record) -> str:
    """The template that a line is read by, or its masked text."""
    return _parsed(record).template


def facts_of(record: Record) -> list[tuple[str, dict[str, object]]]:
    """What a line says, without the text that facts quote; a row that does not fit its table is none."""
    return [
        (fact.table, {name: value for name, value in columns_of(fact).items() if name not in _QUOTED})
        for fact in _parsed(record).facts
        if fact.table != "unparsed_lines" and _fits(fact.table, columns_of(fact)) and _means_something(fact)
    ]


def _means_something(fact: LineFact) -> bool:
    """The value of a setting is free text: only as a number does a rule go by it."""
    return fact.table != "broker_configs" or bool(_NUMBER.fullmatch(str(columns_of(fact)["value"])))


def _fits(table: str, row: Mapping[str, Any]) -> bool:
    schema = silver.BY_NAME[table].arrow_schema
    try:
        for name, value in row.items():
            pa.array([value], schema.field(name).type)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return False
    return True


def told_otherwise(old: Record, new: Record) -> list[tuple[str, dict[str, object]]]:
    """Facts of a respelt line that are not facts of the line as it was: all of a fact is there, or what is, is so."""
    left = facts_of(old)
    found = []
    for table, row in facts_of(new):
        same = next((fact for fact in left if fact[0] == table and _within(row, fact[1])), None)
        if same is None:
            found.append((table, row))
        else:
            left.remove(same)
    return found


def _within(one: Any, whole: Any) -> bool:
    if isinstance(one, Mapping) and isinstance(whole, Mapping):
        return all(_within(value, whole.get(name)) for name, value in one.items())
    if isinstance(one, list) and isinstance(whole, list) and len(one) == len(whole):
        return all(map(_within, one, whole))
    return one in _LESS or one == whole


def _parsed(record: Record) -> Parsed:
    return parse_record(record.kind, record.time_us, record.level, record.logger, None, record.message)
