"""Random logs: records of a real cluster in a random layout, frame, container, order, encoding and file name. Pure.

Nothing here is a list of what people use: tokens are put together at random. A case is rebuilt from its seed.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from tests.renderings import Written, by_pattern, stamp

ASCENDING, DESCENDING, SHUFFLED = "ascending", "descending", "shuffled"
_TIME_FORMS = (
    "yyyy-MM-dd HH:mm:ss,SSS",
    "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
    "yyyy/MM/dd HH:mm:ss.SSS",
    "dd.MM.yyyy HH:mm:ss,SSS",
    "dd MMM yyyy HH:mm:ss.SSS",
    "UNIX_MILLIS",
)
_FRAME_TIMES = (*_TIME_FORMS, "MMM dd HH:mm:ss", "HH:mm:ss", "MMM dd, yyyy @ HH:mm:ss.SSS", "UNIX")
_WORDS = ("kafka", "prod", "eu-1", "node", "stdout", "app", "log", "x7f", "container", "shipper", "a1b2c3d4", "edge")
_KEYS = ("msg", "line", "value", "raw", "Body", "textPayload", "payload", "entry", "data", "content", "m", "_raw")
_FOREIGN = (
    '10.0.0.{n} - - [20/Nov/2026:15:33:{s}] "GET /health HTTP/1.1" 200 {n}',
    "I1120 15:33:{s}.000{n} 1 controller.go:{n}] sync done",
    "2026/11/20 15:33:{s} [notice] 1#1: signal {n} received",
    'time="2026-11-20T15:33:{s}Z" level=info msg="probe {n}"',
)
_NAMES = ("server.log", "Server ({n}).log", "broker-{n}.log", "out.log.{n}")
_ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le")


class Line(NamedTuple):
    """A line, or a record of several lines, with the source that wrote it."""

    source: str
    text: str
    time_us: int
    is_foreign: bool = False


@dataclass(frozen=True)
class Case:
    """One random log."""

    seed: int
    name: str  #: of the file
    content: bytes
    written: tuple[Written, ...]  #: records that are in it
    parts: tuple[str, ...]  #: how it was made, for a message


def make_case(seed: int, brokers: Sequence[Sequence[Written]]) -> Case:
    """Return the log of a seed.

    Args:
        brokers: records of each broker, in their order.
    """
    random = Random(seed)
    parts: list[str] = []
    containers = _containers(random)
    is_named = bool(containers) or random.random() < 0.5
    several = random.sample(range(len(brokers)), random.randint(1, len(brokers)) if is_named else 1)
    records = [(f"{_stem(seed)}-{number}", one) for number in several for one in _window(random, brokers[number])]
    records.sort(key=lambda item: item[1].time_us)
    write, layout = _layout(random)
    parts.append(layout)
    order = random.choices((ASCENDING, DESCENDING, SHUFFLED), (6, 2, 1))[0]
    is_whole = bool(containers) and (order == SHUFFLED or random.random() < 0.5)
    entries = [[Line(source, text, one.time_us) for text in _pieces(write(one), is_whole)] for source, one in records]
    entries = _with_foreign(random, entries, parts)
    entries = _in_order(random, entries, order, bool(containers) and not is_whole)
    lines = [line for entry in entries for line in entry]
    parts.append(order)
    frame, described = _frame(random, is_named and not containers and len(several) > 1)
    if frame is not None and not (containers and is_whole):
        lines = [line._replace(text=frame(line, number)) for number, line in enumerate(lines)]
        parts.insert(0, f"frame {described}")
    for container, described in containers:
        lines = [Line("", container(lines), 0)]
        parts.insert(0, described)
    text = "\n".join(line.text for line in lines) + "\n"
    if random.random() < 0.2:
        text = text.replace("\n", "\r\n")
        parts.append("CRLF")
    encoding = random.choices(_ENCODINGS, (8, 1, 1, 1))[0]
    parts.append(encoding)
    name = random.choice(_NAMES).format(n=random.randint(0, 99))
    return Case(seed, name, text.encode(encoding), tuple(one for _, one in records), tuple(parts))


def _stem(seed: int) -> str:
    return Random(seed ^ 0x5EED).choice(("kafka", "broker", "my-cluster-kafka", "ip-10-0-0", "kfk.example.org"))


def _window(random: Random, records: Sequence[Written]) -> Sequence[Written]:
    size = random.randint(40, 200)
    start = random.randint(0, max(0, len(records) - size)) if random.random() < 0.5 else 0
    return records[start : start + size]


def _pieces(text: str, is_whole: bool) -> list[str]:
    return [text] if is_whole else text.split("\n")


def _layout(random: Random) -> tuple[Callable[[Written], str], str]:
    """Return a random conversion pattern: fields in any order, in any signs."""
    form = random.choice(_TIME_FORMS)
    time = f"%d{{{form}}}"
    logger = random.choice(("%c", "%c", "%c{1}", "%c{1.}"))
    if random.random() < 0.3:
        logger += ":%L"
    fields = [f"{random.choice(('%p', '%-5p'))}"]
    if random.random() < 0.5:
        fields.append("[%t]")
    is_behind = random.random() < 0.5
    if not is_behind:
        fields.append(logger)
    random.shuffle(fields)
    place = random.choice((0, 0, 0, 1))
    fields.insert(place, random.choice(("{}", "[{}]")).format(time))
    sign = random.choice((" ", " ", " ", " | ", " - ", "|"))
    head = sign.join(fields) + random.choice((" ", " - ", ": ") if sign != "|" else ("|",))
    tail = (
        random.choice((" ({})", " [{}]", " - {}", " <{}>", " ({}) [%t]", " [%t] ({})")).format(logger)
        if is_behind
        else ""
    )
    end = random.choice(("", "", "", "|", ";")) if tail or sign == "|" else ""
    return by_pattern(f"{head}%m{tail}{end}"), f"{head}%m{tail}{end}"


def _frame(random: Random, is_named: bool) -> tuple[Callable[[Line, int], str] | None, str]:
    """Return a random frame: tokens before the line, and a sign that closes one that they open."""
    if not is_named and random.random() < 0.4:
        return None, ""
    tokens = [_token(random) for _ in range(random.randint(0, 4))]
    if is_named:
        tokens.insert(random.randint(0, len(tokens)), (lambda line, _: line.source, "SOURCE"))
    if not tokens:
        return None, ""
    opened, closed = random.choice((("", ""), ("", ""), ("", ""), ('"', '"'), ("<<", ">>")))
    colour = random.choice(("", "", "", "\x1b[36m"))
    last = random.choice((" ", " ", " | ", ": ", "\t"))

    def write(line: Line, number: int) -> str:
        head = " ".join(token(line, number) for token, _ in tokens)
        return f"{colour}{head}{last if not colour else last.rstrip() + chr(27) + '[0m '}{opened}{line.text}{closed}"

    return write, " ".join(name for _, name in tokens) + last + opened + colour[1:]


def _token(random: Random) -> tuple[Callable[[Line, int], str], str]:
    kind = random.choice(("time", "time", "word", "host", "counter", "bracket", "pipe", "angle"))
    if kind == "time":
        form = random.choice(_FRAME_TIMES)
        shift = random.randint(0, 3) * 3600_000_000 + random.randint(0, 900_000)
        return (lambda line, _: stamp(line.time_us + shift, form)), f"TIME({form})"
    if kind == "counter":
        start = random.randint(0, 10**6)
        return (lambda _, number: str(start + number)), "COUNTER"
    word = random.choice(_WORDS)
    shape = {"word": "{}", "host": "10.0.3.7:{}", "bracket": "[{}]", "pipe": "{} |", "angle": "<{}>"}[kind]
    return (lambda _, __: shape.format(word)), shape.format(word)


def _with_foreign(random: Random, entries: list[list[Line]], parts: list[str]) -> list[list[Line]]:
    if random.random() < 0.6:
        return entries
    share, form = random.choice((0.01, 0.05)), random.choice(_FOREIGN)
    made: list[list[Line]] = []
    for number, entry in enumerate(entries):
        made.append(entry)
        if random.random() < share and number + 1 < len(entries):
            text = form.format(n=random.randint(1, 99), s=f"{random.randint(0, 59):02}")
            made.append([Line(entry[0].source, text, entry[0].time_us, True)])
    parts.append(f"foreign {share}")
    return made


def _in_order(random: Random, entries: list[list[Line]], order: str, is_line_each: bool) -> list[list[Line]]:
    if order == DESCENDING:
        turned = entries[::-1]
        return [entry[::-1] for entry in turned] if is_line_each else turned
    if order == SHUFFLED:
        return random.sample(entries, len(entries))
    return entries


def _containers(random: Random) -> list[tuple[Callable[[Sequence[Line]], str], str]]:
    """Return up to three containers, the innermost first; the outer ones hold the text of the inner one."""
    depth = random.choices((0, 1, 2, 3), (4, 4, 2, 1))[0]
    made = []
    for level in range(depth):
        kinds = (_json_lines, _document, _nested, _table) if level == depth - 1 else (_json_lines,)
        made.append(random.choice(kinds)(random))
    return made


def _extras(random: Random) -> Callable[[Line], dict[str, object]]:
    number = random.randint(0, 3)
    keys = random.sample(("ts", "host", "level", "env", "id", "region", "offset", "cluster"), number)
    return lambda line: {key: f"{key}-{len(line.text) % 7}" for key in keys}


def _json_lines(random: Random) -> tuple[Callable[[Sequence[Line]], str], str]:
    key, label, extras = random.choice(_KEYS), random.choice(("pod", "Computer", "k8s_pod", "who")), _extras(random)
    is_deep = random.random() < 0.5

    def write(lines: Sequence[Line]) -> str:
        texts = _entries(lines)
        objects = ({label: {"name": one.source}} if is_deep else {label: one.source} for one in texts)
        return "\n".join(
            json.dumps(made | extras(one) | {key: one.text}) for made, one in zip(objects, texts, strict=True)
        )

    return write, f"json lines .{key}"


def _entries(lines: Sequence[Line]) -> list[Line]:
    """Return what is an entry each: lines, records of several lines, or lines of a container within."""
    return [
        entry
        for line in lines
        for entry in ([line] if line.source else [line._replace(text=text) for text in line.text.split("\n")])
    ]


def _document(random: Random) -> tuple[Callable[[Sequence[Line]], str], str]:
    key, extras, indent = random.choice(_KEYS), _extras(random), random.choice((None, 2, 4))
    path = [random.choice(("hits", "events", "result", "logs", "items")) for _ in range(random.randint(0, 2))]

    def write(lines: Sequence[Line]) -> str:
        lines = _entries(lines)
        made: object = [{"labels": {"instance": one.source}} | extras(one) | {key: one.text} for one in lines]
        for outer in path:
            made = {"took": 3, outer: made}
        return json.dumps(made, indent=indent)

    return write, f"document {'.'.join(path)}[].{key} indent {indent}"


def _nested(random: Random) -> tuple[Callable[[Sequence[Line]], str], str]:
    key, size = random.choice(_KEYS), random.randint(1, 12)

    def write(lines: Sequence[Line]) -> str:
        made: list[str] = []
        group: list[Line] = []
        for line in (*_entries(lines), None):
            if group and (line is None or line.source != group[0].source or len(group) == size):
                attributes = [{"key": "pod.name", "value": {"stringValue": group[0].source}}]
                records = [{"n": number, key: {"stringValue": one.text}} for number, one in enumerate(group)]
                made.append(json.dumps({"groups": [{"resource": {"attributes": attributes}, "records": records}]}))
                group = []
            if line is not None:
                group.append(line)
        return "\n".join(made)

    return write, f"arrays in lines .{key}"


def _table(random: Random) -> tuple[Callable[[Sequence[Line]], str], str]:
    delimiter = random.choice((",", ",", "\t", ";"))
    names = random.sample(("PodName", "Computer", "When", "Seq", "Region"), random.randint(1, 4))
    place = random.randint(0, len(names))

    def write(lines: Sequence[Line]) -> str:
        out = io.StringIO()
        rows = csv.writer(out, delimiter=delimiter, lineterminator="\n", quoting=random.choice((0, 1)))
        rows.writerow([*names[:place], "Entry", *names[place:]])
        for number, one in enumerate(_entries(lines)):
            cells = {"PodName": one.source, "Computer": one.source, "When": stamp(one.time_us, _TIME_FORMS[0])}
            cells |= {"Seq": str(number), "Region": "eu"}
            rows.writerow(
                [*(cells[name] for name in names[:place]), one.text, *(cells[name] for name in names[place:])]
            )
        return out.getvalue().removesuffix("\n")

    return write, f"table {delimiter!r} {names}"
