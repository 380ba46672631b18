"""Times of texts for people in another zone than UTC. Pure."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final

_TEXTS: Final = re.compile(
    r"(?P<same>^ *\| .*$|(?:--[a-z]+ |\.\.)\d{4}-\S+|\d{4}-\d\d-\d\dT\S{1,32}?\.\.\S*|\"[^\"\n]*\")"
    r"|^(?P<head>\d{4}-\d\d-\d\d) \(UTC\)\n"
    r"|(?<![\w.:/-])(?:(?P<date>\d{4}-\d\d-\d\d)(?P<gap>\s+))?(?P<clock>\d\d:\d\d:\d\d(?:\.\d{1,6})?)(?![\w/-]|[:,]\d)"
    r"|(?<![\w.:/-])(?P<iso>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?)Z\b"
    r"|(?P<label>\bUTC\b)",
    re.MULTILINE,
)
_BEFORE: Final = re.compile(r"\s+to\s+")


class Localizer:
    """Converts UTC times in printed texts to another zone. Texts must be given in the order of printing.

    A time without a date belongs to the last date before it. The date is added if it differs in this zone. Log lines,
    command options and quotes are not changed.

    Args:
        zone: target zone. None for the zone of this machine.
    """

    def __init__(self, zone: tzinfo | None) -> None:
        self._zone = zone
        self._last: datetime | None = None  # last instant, UTC
        self._shown: date | None = None  # last date printed, in this zone
        self._day = ""  # of the steps below its head, UTC
        self._end = -1
        self._is_headed = False  # a day's head was in this text

    def localize(self, text: str) -> str:
        """Return the text with its times in this zone."""
        self._end = -1
        self._is_headed = False
        return _TEXTS.sub(self._replace, text)

    def _replace(self, match: re.Match[str]) -> str:
        text = match[0]
        if match["same"]:
            return text
        if match["head"]:
            self._shown = self._shown if self._is_headed else None
            self._day, self._is_headed = match["head"], True
            return ""
        if match["label"]:
            return self._convert_label(match)
        shown = self._convert_iso(match["iso"]) if match["iso"] else self._convert_time(match)
        self._end = match.end()
        return shown

    def _convert_iso(self, text: str) -> str:
        self._last = _parse_utc(*text.split("T"))
        local = self._last.astimezone(self._zone)
        self._shown = local.date()
        return local.isoformat(timespec=_find_precision(text))

    def _convert_time(self, match: re.Match[str]) -> str:
        clock, day = match["clock"], match["date"]
        is_step = bool(self._day) and match.string[match.start() - 1 : match.start()] in ("", "\n")
        if day or is_step:
            moment = _parse_utc(day or self._day, clock)
        elif self._last is None:
            return match[0]
        elif self._end >= 0 and _BEFORE.fullmatch(match.string, self._end, match.start()):
            moment = _parse_utc(f"{self._last:%Y-%m-%d}", clock)
        else:
            moment = _find_nearest(self._last, clock)
        local = moment.astimezone(self._zone)
        is_new, self._last, self._shown = local.date() != self._shown, moment, local.date()
        shown = local.time().isoformat(timespec=_find_precision(clock))
        if day:
            return f"{local:%Y-%m-%d}{match['gap']}{shown}"
        if is_step:
            return f"{local:%Y-%m-%d} ({self.name})\n{shown}" if is_new else shown
        return f"{local:%Y-%m-%d} {shown}" if is_new else shown

    def _convert_label(self, match: re.Match[str]) -> str:
        between = match.string[self._end : match.start()] if self._end >= 0 else "-"
        if self._last is not None and not between.strip():
            return f"{self._last.astimezone(self._zone):%Z}"
        before, after = match.string[: match.start()], match.string[match.end() :]
        is_note = before.endswith(("(", "times in ")) and after.startswith((")", ";"))
        return self.name if is_note else match[0]

    @property
    def name(self) -> str:
        """Return the name of the zone."""
        return "local time" if self._zone is None else str(self._zone)


def _parse_utc(day: str, clock: str) -> datetime:
    return datetime.fromisoformat(f"{day}T{clock}").replace(tzinfo=UTC)


def _find_precision(clock: str) -> str:
    digits = len(clock.partition(".")[2])
    return "seconds" if not digits else "milliseconds" if digits <= 3 else "microseconds"


def _find_nearest(last: datetime, clock: str) -> datetime:
    """Return the time with this time of day that is closest to `last`."""
    same = _parse_utc(f"{last:%Y-%m-%d}", clock)
    return min((same + timedelta(days=days) for days in (0, -1, 1)), key=lambda moment: abs(moment - last))
