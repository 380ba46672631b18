"""Types of the command's options: times, and places."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from pipelines.storage.place import Place, place_of


class Moment(click.ParamType[datetime]):
    """A time in ISO 8601; one without a zone is UTC, as everything else."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is no time; write it like 2026-11-20T14:05 or 2026-11-20T14:05:00+01:00", param, ctx)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


class PlaceType(click.ParamType[Place]):
    """A path of this machine, or the URI of a store."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Place:
        return place_of(value)
