"""Formats of times: a pattern of Java's SimpleDateFormat is inferred from lines, and parsed again from its name.

``yyyy-MM-dd HH:mm:ss``, with any fraction and offset, is read by `pipelines.bronze.layout.Clock`. Other formats are
read by a regular expression, once per second. A time without a date or a year is invalid, and so is a time whose day
and month cannot be distinguished. The missing part is reported and never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from highwater.pipelines.bronze.known import KNOWN
from highwater.pipelines.bronze.layout import ISO_TIME, Clock

#: Names of months, as Java (CLDR) and the C library write them.
MONTHS = {name: number for number, names in enumerate(KNOWN.months, 1) for name in names.split()}

#: Of ``%d``.
DEFAULT_FORM = "yyyy-MM-dd HH:mm:ss,SSS"

_WORD = rb"[A-Za-z\x80-\xff]{3,12}\.?"
_CLOCK = (
    rb"(?P<hour>\d{1,2}):(?P<minute>\d\d):(?P<second>\d\d)(?P<fraction>[.,:]\d{1,9})?(?P<half> ?[AaPp][Mm]\b)?"
    rb"(?P<zone> ?(?:Z\b|[+-]\d\d:?\d\d\b|UTC\b|GMT\b))?(?P<year> \d{4}\b(?![-/.]))?"
)
_DATE = (
    rb"(?:(?P<a>\d{4}|\d{1,2})(?P<sign>[-/.])(?P<b>\d{1,2})(?P=sign)(?P<c>\d{4}|\d{1,2})"
    rb"|(?P<day>\d{1,2})(?P<named>[ /-])(?P<month>" + _WORD + rb")(?P=named)(?P<of>\d{4})"
    rb"|(?P<word>" + _WORD + rb") (?P<first>[ \d]?\d)(?:, (?P<then>\d{4}))?"
    rb"|(?P<digits>\d{8}))"
)
#: A moment anywhere in a line: a date, a separator, and a time of day.
MOMENT = re.compile(rb"(?<![\w.:/-])(?:" + _DATE + rb"(?P<between>T|_|:|,? {1,2}| at | - | @ ))?" + _CLOCK)
#: Matches a time in any form.
TIME = (
    rb"(?:"
    + re.sub(rb"\?P<\w+>", b"?:", MOMENT.pattern).replace(rb"(?P=sign)", rb"[-/.]").replace(rb"(?P=named)", rb"[ /-]")
    + rb"|\d{9,19}(?:\.\d{1,9})?)"
)
_EPOCH = re.compile(rb"(?P<seconds>1\d{9})(?:(?P<millis>\d{3})|(?P<part>\.\d{3,6}))?(?![\w.])")

NO_DATE = "its times have no date (such as 15:33:21): log with a date in the pattern, as %d{ISO8601} has it"
NO_YEAR = "its times have no year: log with one in the pattern, as %d{ISO8601} has it"
NO_MONTH = "its times have months in a language that is not known: log with numbers, as %d{ISO8601} has it"
NO_ORDER = "day and month of its dates are ambiguous: write the year first, as %d{ISO8601} has it"


class Spelled(NamedTuple):
    """A time in a line, with its position."""

    #: start, end: in bytes
    start: int
    end: int
    shape: str  #: shape shared by the times of a file; empty if the time is incomplete
    parts: tuple[int, ...] = ()  #: the values of its date, if their order matters
    missing: str | None = None  #: what it lacks, as a remedy


def spelled(line: bytes, end: int, start: int = 0, epoch_within: int = 40) -> Spelled | None:
    """Return the first time between two bytes of a line. None if there is none.

    Args:
        end: end of the range, exclusive.
        start: start of the range.
        epoch_within: number of first bytes in which a number may be a time.
    """
    moment = MOMENT.search(line, start, end)
    if moment is None:
        number = _EPOCH.search(line, start, min(end, start + epoch_within))
        if number is None or (number.start() and line[number.start() - 1 : number.start()].isalnum()):
            return None
        form = "UNIX_MILLIS" if number["millis"] else "UNIX"
        return Spelled(*number.span(), form)
    day = _day(moment)
    month = moment["month"] or moment["word"]
    if month and _lower(month) not in MONTHS:
        return Spelled(*moment.span(), "", missing=NO_MONTH)
    if moment["between"] is None:
        return Spelled(*moment.span(), "", missing=NO_DATE)
    if day is None:
        return Spelled(*moment.span(), "", missing=NO_YEAR)
    shape, parts = day
    between = moment["between"].decode()
    shape += f"'{between}'" if between.strip().isalpha() else re.sub(" +", " ", between)
    half = moment["half"]
    shape += ("hh" if half else "HH") + ":mm:ss"
    if moment["fraction"]:
        fraction = moment["fraction"].decode()
        shape += fraction[0] + "S" * (len(fraction) - 1)
    if half:
        shape += " a" if half.startswith(b" ") else "a"
    if moment["zone"]:
        zone = moment["zone"]
        shape += (" " if zone.startswith(b" ") else "") + ("z" if zone.strip() in (b"UTC", b"GMT") else "X" * 3)
    if moment["word"] and moment["year"] and not moment["then"]:
        return Spelled(*moment.span(), shape + " yyyy", parts)
    span = moment.span() if not moment["year"] else (moment.start(), moment.start("year"))
    return Spelled(*span, shape, parts)


def _day(moment: re.Match[bytes]) -> tuple[str, tuple[int, ...]] | None:
    """Return (form of a date, its numbers). ``?`` marks two numbers of unknown order. None without a year."""
    if moment["a"]:
        sign = moment["sign"].decode()
        if len(moment["a"]) == 4:
            return f"yyyy{sign}MM{sign}dd", ()
        if len(moment["c"]) == 4:
            return f"?{sign}?{sign}yyyy", (int(moment["a"]), int(moment["b"]))
        return f"?{sign}?{sign}?", (int(moment["a"]), int(moment["b"]), int(moment["c"]))
    if moment["day"]:
        return "dd{0}MMM{0}yyyy".format(moment["named"].decode()), ()
    if moment["word"]:
        if moment["then"]:
            return "MMM dd, yyyy", ()
        return ("MMM dd", ()) if moment["year"] else None
    digits = moment["digits"]
    return ("yyyyMMdd", ()) if digits is not None else None


_ORDERS: dict[int, list[tuple[str, ...]]] = {
    2: [("dd", "MM"), ("MM", "dd")],
    3: [("yy", "MM", "dd"), ("dd", "MM", "yy"), ("MM", "dd", "yy")],
}


def form_of(times: Sequence[Spelled]) -> tuple[str | None, str | None]:
    """Return (format, None) of times with the same form, or (None, what is ambiguous).

    The order of day and month is known if one of them is above 12, or if dots separate them: no locale writes the month
    first with dots.
    """
    shape = times[0].shape
    if not times[0].parts:
        return shape, None
    width = len(times[0].parts)
    orders = _ORDERS[width]
    if "?.?" in shape:
        orders = [order for order in orders if order[0] != "MM"]
    most = {"dd": 31, "MM": 12, "yy": 99}
    possible = [
        order
        for order in orders
        if all(1 <= part <= most[name] for time in times for part, name in zip(time.parts, order, strict=True))
    ]
    if len(possible) != 1:
        return None, NO_ORDER
    for name in possible[0]:
        shape = shape.replace("?", name, 1)
    return shape, None


_FIELD = re.compile(r"'([^']*)'|(yyyy|yy|MMM|MM|dd|EEE|HH|hh|mm|ss|S+|X{3}|z|a)|(.)")
_REGEX = {
    "yyyy": r"(?P<yyyy>\d{4})",
    "yy": r"(?P<yy>\d\d)",
    "MMM": r"(?P<MMM>[A-Za-z\x80-\xff]{3,12}\.?)",
    "MM": r"(?P<MM>\d{1,2})",
    "dd": r"(?P<dd> ?\d{1,2})",
    "HH": r"(?P<HH>\d{1,2})",
    "hh": r"(?P<HH>\d{1,2})",
    "mm": r"(?P<mm>\d\d)",
    "ss": r"(?P<ss>\d\d)",
    "X" * 3: r"(?P<zone>Z|[+-]\d\d:?\d\d)",
    "z": r"(?P<zone>UTC|GMT)",
    "a": r"(?P<half>[AaPp][Mm])",
}
_ISO_FORM = re.compile(r"yyyy-MM-dd(?: |'T')HH:mm:ss(?:[.,]S+)?(?:X{3})?")


def time_regex(form: str) -> bytes:
    """Return a regular expression for times of a format, without named groups."""
    if _ISO_FORM.fullmatch(form):
        return ISO_TIME
    if form.startswith("UNIX"):
        return rb"1\d{12}" if form == "UNIX_MILLIS" else rb"1\d{9}(?:\.\d{1,9})?"
    return re.sub(rb"\?P<\w+>", b"?:", _pattern(form))


def _pattern(form: str) -> bytes:
    def field(letters: re.Match[str]) -> str:
        if letters[2] is None:
            return re.escape(letters[1] if letters[1] is not None else letters[3]).replace(r"\ ", " {1,2}")
        if letters[2].startswith("S"):
            return r"(?P<fraction>\d{1,9})"
        return _REGEX[letters[2]]

    return _FIELD.sub(field, form).encode("latin-1")


def reader(form: str, clock: Clock) -> Callable[[bytes], int]:
    """Return a function that reads times of a form as microseconds since the epoch.

    The function raises ValueError if a text is not such a time.
    """
    if _ISO_FORM.fullmatch(form):
        return clock.read
    if form.startswith("UNIX"):
        return _epoch_us
    match = re.compile(_pattern(form)).fullmatch

    def read(text: bytes) -> int:
        time = match(text)
        if time is None:
            raise ValueError(f"not a time: {text!r}")
        fields = time.groupdict()
        fraction = fields.get("fraction") or b""
        second = text[: time.start("fraction")] + text[time.end("fraction") :] if fraction else text
        second_us = clock.seconds.get(second)
        if second_us is None:
            second_us = clock.remember(second, _moment(fields), _offset(fields.get("zone")))
        return second_us + int(fraction[:6].ljust(6, b"0") or 0)

    return read


def _moment(fields: dict[str, bytes]) -> tuple[int, int, int, int, int, int]:
    month = int(fields["MM"]) if "MM" in fields else MONTHS.get(_lower(fields["MMM"]), 0)
    year = int(fields["yyyy"]) if "yyyy" in fields else 2000 + int(fields["yy"])
    hour = int(fields["HH"])
    if half := fields.get("half"):
        hour = hour % 12 + 12 * (half.lower() == b"pm")
    return year, month, int(fields["dd"]), hour, int(fields["mm"]), int(fields["ss"])


def _lower(name: bytes) -> str:
    return name.decode(errors="replace").lower().removesuffix(".")


def _offset(zone: bytes | None) -> timedelta | None:
    """Return the UTC offset that a time states. None if it states none."""
    if zone is None:
        return None
    if zone in (b"Z", b"UTC", b"GMT"):
        return timedelta(0)
    return datetime.fromisoformat(f"2000-01-01T00:00:00{zone.decode()}").utcoffset()


def _epoch_us(text: bytes) -> int:
    whole, _, part = text.partition(b".")
    if len(whole) == 13:
        return int(whole) * 1000
    return int(whole) * 1_000_000 + int(part[:6].ljust(6, b"0"))
