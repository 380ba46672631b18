"""Random logs: records of a real cluster in a random layout, frame, container, order, encoding and file name. Pure.

Nothing here is a list of what people use: tokens are put together at random. A case is rebuilt from its seed.
"""

from __future__ import annotations

import csv
import html
import io
import json
import re
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
_STEMS = ("server", "Server ({n})", "broker-{n}", "out", "kafka_{n}", "paste", "all brokers", "export-2026-11-20", "x")
_SUFFIXES = (".log", ".log.{n}", ".txt", ".log.txt", ".json", ".csv", ".out", "", ".log.2026-11-20-15", ".LOG", ".bak")
_ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1")
_PROSE = ("Hi all, since this morning we see this:", "$ kubectl logs kafka-0", "```", "--- begin ---", "<pre>")
_COLOUR = re.compile(r"\x1b\[\d*m")
_BANNER = "Step {n}/40 : RUN apt-get install -y package-{n} (layer {n} of the image, from cache)"


#: A writer, what it writes, and True if it writes lines that others may follow.
_Container = tuple[Callable[[Sequence["Line"]], str], str, bool]


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
    is_changed: bool  #: its layout changes


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
    order = random.choices((ASCENDING, DESCENDING, SHUFFLED), (6, 2, 1))[0]
    # The layout changes where a broker starts with other settings of its logging.
    is_changed = random.random() < 0.1 and order == ASCENDING and all(is_by_line for _, _, is_by_line in containers)
    cut = random.randint(20, len(records) - 20) if is_changed else len(records)
    texts = [
        _rendered(random, some, order, containers, is_named and len(several) > 1, parts)
        for some in (records[:cut], records[cut:])
        if some
    ]
    text = "\n".join(texts) + "\n"
    if not containers:
        text = _surrounded(random, text, parts)
    end = random.choices(("\n", "\r\n", "\r"), (16, 3, 1))[0]
    text = text.replace("\n", end)
    encoding = random.choices(_ENCODINGS, (16, 2, 2, 2, 1, 1, 1))[0]
    if encoding == "latin-1" and not _is_encodable(text, encoding):
        encoding = "utf-8"
    name = (random.choice(_STEMS) + random.choice(_SUFFIXES)).format(n=random.randint(0, 99))
    parts += [repr(end), encoding, name]
    return Case(seed, name, text.encode(encoding), tuple(one for _, one in records), tuple(parts), is_changed)


def _is_encodable(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def _rendered(
    random: Random,
    records: Sequence[tuple[str, Written]],
    order: str,
    containers: Sequence[_Container],
    is_named: bool,
    parts: list[str],
) -> str:
    """Return records in a random layout and frame, and in containers."""
    is_parted = random.random() < 0.2
    write, layout = _parted(random) if is_parted else _layout(random)
    is_whole = is_parted or (bool(containers) and (order == SHUFFLED or random.random() < 0.5))
    entries = [[Line(source, text, one.time_us) for text in _pieces(write(one), is_whole)] for source, one in records]
    described = [layout]
    entries = _with_foreign(random, entries, described)
    entries = _in_order(random, entries, order, bool(containers) and not is_whole)
    lines = [line for entry in entries for line in entry]
    described.append(order)
    frame, of_frame = _frame(random, is_named and not containers)
    if frame is not None and not (containers and is_whole):
        lines = [line._replace(text=frame(line, number)) for number, line in enumerate(lines)]
        described.insert(0, f"frame {of_frame}")
    if not containers:
        lines = _dressed(random, lines, described)
    for container, of_container, _ in containers:
        lines = [Line("", container(lines), 0)]
        described.insert(0, of_container)
    parts += described
    return "\n".join(line.text for line in lines)


def _dressed(random: Random, lines: list[Line], parts: list[str]) -> list[Line]:
    """Return lines as a mail, a page, a search or a narrow terminal has them."""
    kind = random.choices(("", "quoted", "html", "numbered", "wrapped"), (20, 1, 1, 1, 1))[0]
    if kind == "quoted":
        lines = [line._replace(text=f"> {line.text}") for line in lines]
    elif kind == "html":
        lines = [line._replace(text=html.escape(line.text)) for line in lines]
    elif kind == "numbered":
        sign = random.choice((":", ": ", "\t", " | "))
        lines = [line._replace(text=f"{number}{sign}{line.text}") for number, line in enumerate(lines, 1)]
    elif kind == "wrapped":
        width = random.choice((80, 100, 120, 132))
        plain = [line._replace(text=_COLOUR.sub("", line.text)) for line in lines]
        lines = [
            line._replace(text=line.text[start : start + width])
            for line in plain
            for start in range(0, max(1, len(line.text)), width)
        ]
    parts += [kind] if kind else []
    return lines


def _surrounded(random: Random, text: str, parts: list[str]) -> str:
    """Return a text with what people write around a log, and with what a job printed before it."""
    if random.random() < 0.1:
        prose = random.choice(_PROSE)
        text = f"{prose}\n{text}{prose if prose == '```' else ''}\n"
        parts.append(prose)
    if random.random() < 0.03:
        text = "".join(_BANNER.format(n=number % 40) + "\n" for number in range(2200)) + text
        parts.append("banner")
    return text


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


def _parted(random: Random) -> tuple[Callable[[Written], str], str]:
    """Return a writer of records as named fields, in any order and under any names."""
    form = random.choice([form for form in _TIME_FORMS if form != "dd.MM.yyyy HH:mm:ss,SSS"])
    keys = {
        "time": random.choice(("ts", "time", "@timestamp", "t", "when")),
        "level": random.choice(("level", "lvl", "severity", "log.level")),
        "logger": random.choice(("logger", "logger_name", "c", "class")),
        "message": random.choice(("msg", "message", "m", "text", "body")),
        "thread": random.choice(("thread", "thread_name", "tid")),
    }
    names = random.sample(list(keys), len(keys))
    kind = random.choice(("json", "json", "logfmt"))

    def write(one: Written) -> str:
        values = {"time": stamp(one.time_us, form), "level": one.level, "logger": one.logger, "thread": one.thread}
        values["message"] = one.message + one.trace
        if kind == "json":
            return json.dumps({keys[name]: values[name] for name in names})
        return " ".join(f"{keys[name]}={_quoted(values[name])}" for name in names)

    return write, f"{kind} {[keys[name] for name in names]} {form}"


def _quoted(text: str) -> str:
    """Return a value of logfmt, in quotes if it needs them."""
    return text if text and not set(text) & set(' "=\\\n\t') else json.dumps(text, ensure_ascii=False)


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


def _containers(random: Random) -> list[_Container]:
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


def _json_lines(random: Random) -> _Container:
    key, label, extras = random.choice(_KEYS), random.choice(("pod", "Computer", "k8s_pod", "who")), _extras(random)
    is_deep = random.random() < 0.5

    def write(lines: Sequence[Line]) -> str:
        texts = _entries(lines)
        objects = ({label: {"name": one.source}} if is_deep else {label: one.source} for one in texts)
        return "\n".join(
            json.dumps(made | extras(one) | {key: one.text}) for made, one in zip(objects, texts, strict=True)
        )

    return write, f"json lines .{key}", True


def _entries(lines: Sequence[Line]) -> list[Line]:
    """Return what is an entry each: lines, records of several lines, or lines of a container within."""
    return [
        entry
        for line in lines
        for entry in ([line] if line.source else [line._replace(text=text) for text in line.text.split("\n")])
    ]


def _document(random: Random) -> _Container:
    key, extras, indent = random.choice(_KEYS), _extras(random), random.choice((None, 2, 4))
    path = [random.choice(("hits", "events", "result", "logs", "items")) for _ in range(random.randint(0, 2))]

    def write(lines: Sequence[Line]) -> str:
        lines = _entries(lines)
        made: object = [{"labels": {"instance": one.source}} | extras(one) | {key: one.text} for one in lines]
        for outer in path:
            made = {"took": 3, outer: made}
        return json.dumps(made, indent=indent)

    return write, f"document {'.'.join(path)}[].{key} indent {indent}", False


def _nested(random: Random) -> _Container:
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

    return write, f"arrays in lines .{key}", True


def _table(random: Random) -> _Container:
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

    return write, f"table {delimiter!r} {names}", False
