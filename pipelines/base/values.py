"""Types of values in a report."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Self, overload

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

#: ``broker_id`` and ``cluster_id`` where nothing shows which broker or cluster it was.
UNKNOWN_BROKER = -1
UNKNOWN_CLUSTER = "unknown"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instant(time_us: int) -> datetime:
    """Return microseconds since the epoch as a time, UTC."""
    return _EPOCH + timedelta(microseconds=time_us)


def iso_utc(time_us: int) -> str:
    """Return microseconds since the epoch as ISO 8601, cut to milliseconds: ``2026-11-20T15:29:00.397Z``."""
    return instant(time_us).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def iso_or_none(time_us: int | None) -> str | None:
    """Return a time (us since the epoch) as ISO 8601. None for None."""
    return None if time_us is None else iso_utc(time_us)


@overload
def micros(time: datetime) -> int: ...
@overload
def micros(time: datetime | None) -> int | None: ...
def micros(time: datetime | None) -> int | None:
    """Return a time as us since the epoch. Without a zone it is UTC. None for None."""
    if time is None:
        return None
    return ((time if time.tzinfo else time.replace(tzinfo=UTC)) - _EPOCH) // timedelta(microseconds=1)


def _replace_surrogates(value: object) -> object:
    """Return a text without lone surrogates: file names may carry bytes that are not text."""
    return value.encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_replace_surrogates)]
Instant = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]


class Part(BaseModel):
    """Base of the parts of the report: immutable pydantic models without undeclared fields."""

    # A field whose name is a word of Python has it as its alias, in files too.
    model_config = ConfigDict(extra="forbid", frozen=True, validate_by_name=True, serialize_by_alias=True)

    @classmethod
    def of(cls, row: Mapping[str, Any], **others: Any) -> Self:
        """Return a part whose fields have the values of equally named columns. `others` take precedence."""
        return cls(**{name: row[name] for name in cls.model_fields if name in row and name not in others}, **others)
