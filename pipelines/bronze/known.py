"""Words and forms of lines and files by which the reader knows what they are: the tables of ``known.toml``. Pure."""

from __future__ import annotations

from typing import Final

import msgspec

from highwater.schemas.package_data import read_toml


class Known(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The tables of ``known.toml``, which describes them."""

    months: tuple[str, ...]
    own_ids: tuple[str, ...]
    levels: dict[str, str]
    conversions: dict[str, str]
    logger_kinds: dict[str, str]
    types: dict[str, str]
    magic: dict[str, tuple[str, ...]]
    remarks: dict[str, tuple[str, ...]]


KNOWN: Final = msgspec.convert(read_toml(__package__, "known.toml"), Known)
