"""The configuration: its keys, sources and problems.

Three layers, later ones win: ``conf/default.toml`` (the only place where a default is written), the file given with
``--conf``, and options of the command line. Unknown keys are errors.
"""

from __future__ import annotations

import grp
import json
import os
import pwd
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from highwater.pipelines.base.errors import ConfigError
from highwater.pipelines.base.resources import find_conf_file

COMMAND_LINE = "command line"
#: Characters of a configuration file. The cost of parsing grows with their square.
_CHARS_MAX = 1 << 16
_TIME_ZONE = "spark.sql.session.timeZone"
LogKind = Literal["server", "state-change", "controller", "kafka-request", "log-cleaner", "other"]


def _flatten_settings(value: object) -> object:
    """Return Spark settings as flat text: TOML parses an unquoted ``spark.sql.x = 4`` as nested tables."""
    if not isinstance(value, Mapping):
        return value
    leaves = {key: item for key, item in _walk_nodes(value) if not isinstance(item, Mapping)}
    flat = {key: str(item).lower() if isinstance(item, bool) else str(item) for key, item in leaves.items()}
    if flat.get(_TIME_ZONE, "UTC") != "UTC":
        raise ValueError(f"{_TIME_ZONE} is always UTC, since rows depend on it; the zone of logs is ingest.timezone")
    return flat


def _require(pattern: str, problem: str) -> BeforeValidator:
    """Return a pydantic validator of texts.

    Args:
        pattern: regular expression for a whole valid text.
        problem: message for an invalid text, which replaces ``{!r}``.
    """

    def check(value: object) -> object:
        if isinstance(value, str) and not re.fullmatch(pattern, value):
            raise ValueError(problem.format(value))
        return value

    return BeforeValidator(check)


#: A name becomes a folder name, and a key in other tools.
Name = Annotated[str, _require(r"(?!\.+$)[\w.-]*", "{!r} is not a name; expected letters, digits, _, . and -")]
#: A size as Java's -Xmx takes it.
Memory = Annotated[str, _require(r"[1-9][0-9]*[mg]", "invalid size of memory {!r}; expected for example 512m or 4g")]
Days = Annotated[str, _require(r"[1-9][0-9]{0,4}d", "invalid number of days {!r}; expected for example 90d")]


def _validate_zone(value: object) -> object:
    """Return the value if it is an IANA zone name. Raise a ValueError otherwise."""
    try:
        ZoneInfo(str(value))
    except (KeyError, ValueError, OSError):
        raise ValueError(f"invalid time zone {value!r}; expected an IANA name such as UTC or Europe/Berlin") from None
    return value


def _wrap_name(value: object) -> object:
    """Return the settings of a folder as a table. A bare name sets the cluster."""
    return {"cluster": value} if isinstance(value, str) else value


Zone = Annotated[str, BeforeValidator(_validate_zone)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class SessionConfig(_Section):
    """How Spark is started."""

    master: str = Field(min_length=1)
    driver_memory: Memory | None = None
    shuffle_partitions: int | None = Field(default=None, ge=1)
    lock_wait_s: int = Field(ge=0)
    lease_s: int = Field(ge=4)
    spark: Annotated[dict[str, str], BeforeValidator(_flatten_settings)]


class FolderConfig(_Section):
    """Settings of a folder of logs. A bare name sets its cluster."""

    cluster: Name = ""
    timezone: Zone | None = None


class IngestConfig(_Section):
    """Which files are read, and how."""

    timezone: Zone
    cluster: Name
    clusters: dict[str, Annotated[FolderConfig, BeforeValidator(_wrap_name)]]
    record_bytes_max: int = Field(ge=4096)
    batch_mb: int = Field(ge=0)
    log_format: str
    include: list[str] = Field(min_length=1)
    exclude: list[str]

    @property
    def batch_bytes(self) -> int:
        """Return the text size of one batch in bytes; 0 for a single batch."""
        return self.batch_mb * 1_000_000


class ReplayConfig(_Section):
    """How predictions are judged."""

    tolerance_ms: int = Field(ge=0)
    late_ms: int = Field(ge=1)
    evidence_tier_max: Literal["T0", "T1", "T2", "T3"]
    settle_ms: int = Field(ge=0)
    seal_lag_ms: int = Field(ge=10_000)


class LatencyConfig(_Section):
    """How latency is aggregated."""

    slow_ms: int = Field(ge=0)
    interval_s: int = Field(ge=1)


class QualityConfig(_Section):
    """Settings of the data quality checks."""

    enabled: bool
    time_slack_ms: int = Field(ge=0)
    parsed_share_min: dict[LogKind, Annotated[float, Field(ge=0, le=1)]]
    severity: dict[str, Literal["critical", "warning", "off"]]


class AuditConfig(_Section):
    """Settings of the correctness rules."""

    clock_skew_max_ms: int = Field(ge=0)
    severity: dict[str, Literal["violation", "observation", "off"]]


class RetentionConfig(_Section):
    """How many days each layer is kept (``90d``). None: `expire --keep` decides."""

    bronze_keep: Days | None = None
    silver_keep: Days | None = None
    gold_keep: Days | None = None


class ReportConfig(_Section):
    """How the report is drawn."""

    timeline_interval_s: int = Field(ge=1)


class Config(_Section):
    """The whole configuration, checked and read-only."""

    session: SessionConfig
    ingest: IngestConfig
    quality: QualityConfig
    replay: ReplayConfig
    latency: LatencyConfig
    audit: AuditConfig
    retention: RetentionConfig
    report: ReportConfig

    @cached_property
    def config_hash(self) -> str:
        """Return the SHA-256 (hex) of all keys that can change a result: not Spark settings, names or retention."""
        return self._hash(Config.model_fields.keys() - {"session", "retention"})

    @cached_property
    def replay_hash(self) -> str:
        """Return the SHA-256 (hex) of the keys that resume state depends on.

        Keys about reading files do not count: files are read once.
        """
        return self._hash({"replay", "latency"})

    @cached_property
    def rules_hash(self) -> str:
        """Return the SHA-256 (hex) of the keys that rules depend on."""
        return self._hash({"audit"})

    def _hash(self, sections: set[str]) -> str:
        # Rows hold the cluster of their file: another cluster in the configuration does not change the rows of the
        # rest.
        unasked = {"ingest": {"cluster", "clusters"}}
        values = self.model_dump(mode="json", include=sections, exclude=unasked)
        text = json.dumps(values, sort_keys=True, separators=(",", ":"))
        return sha256(text.encode()).hexdigest()


def load_config(path: Path | None = None, overrides: Mapping[str, Any] | None = None) -> Config:
    """Read and check the configuration.

    Args:
        path: TOML file that changes some of the defaults.
        overrides: values by dotted key (``session.master``), from the command line; None is ignored.

    Raises:
        ConfigError: names the file, the key and the allowed values.
    """
    layers: list[tuple[str, dict[str, Any]]] = [("default.toml", _read(find_conf_file("default.toml")))]
    if path is not None:
        layers.append((str(path), _read(path)))
    given = {key: value for key, value in (overrides or {}).items() if value is not None}
    layers.append((COMMAND_LINE, _build_tree(given)))

    merged: dict[str, Any] = {}
    origin: dict[str, str] = {}
    for file, layer in layers:
        merged = _merge(merged, layer)
        origin.update({key: file for key, _ in _walk_nodes(layer)})
    try:
        return Config.model_validate(merged)
    except ValidationError as error:
        raise _explain(error.errors()[0], origin, str(path or "default.toml")) from None


def find_other_writer(path: Path) -> str | None:
    """Return who else may change a configuration file, in words. None if only its owner may.

    The file can run code: Spark options name classes that its JVM loads.
    """
    for place, what in ((path.resolve(), "it"), (path.resolve().parent, "its folder")):
        try:
            status = place.stat()
        except OSError:
            continue  # `load_config` says so
        if status.st_uid not in (0, os.getuid()):
            return f"another user, who owns {what}"
        # In a folder with this bit, only the owner of a file may replace it.
        if status.st_mode & stat.S_ISVTX:
            continue
        if status.st_mode & stat.S_IWOTH:
            return f"everyone: {what} is writable by all"
        if status.st_mode & stat.S_IWGRP and not _is_private_group(status.st_gid, status.st_uid):
            return f"its group, which may write {what}"
    return None


def _is_private_group(group_id: int, user_id: int) -> bool:
    """Return True if a group is the private group of a user."""
    try:
        group, user = grp.getgrgid(group_id), pwd.getpwuid(user_id).pw_name
    except KeyError:
        return False
    return group.gr_name == user and not {*group.gr_mem} - {user}


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_CHARS_MAX + 1)
        if len(text) > _CHARS_MAX:
            raise ConfigError(path, "", f"has more than {_CHARS_MAX} characters; keep what differs from the defaults")
        tree = tomllib.loads(text)
        sum(1 for _ in _walk_nodes(tree))  # raises RecursionError here if dotted keys nest too deeply
        return tree
    except FileNotFoundError:
        raise ConfigError(path, "", "no such file; check its name") from None
    except OSError as error:
        raise ConfigError(path, "", f"cannot be read ({error.strerror}); name a file of TOML") from None
    except UnicodeDecodeError as error:
        raise ConfigError(path, "", f"is not UTF-8 at byte {error.start}; save it as UTF-8") from None
    except RecursionError:
        raise ConfigError(path, "", "is not TOML; arrays or tables are nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(path, "", f"is not TOML; correct this: {error}") from None
    except ValueError:
        raise ConfigError(path, "", "has a number that is too long; shorten it") from None


def _build_tree(flat: Mapping[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in flat.items():
        *parents, leaf = key.split(".")
        node = tree
        for parent in parents:
            node = node.setdefault(parent, {})
        node[leaf] = value
    return tree


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = _merge(merged[key], value) if both else value
    return merged


def _walk_nodes(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        yield prefix + key, value
        if isinstance(value, Mapping):
            yield from _walk_nodes(value, f"{prefix}{key}.")


def _explain(error: ErrorDetails, origin: Mapping[str, str], fallback: str) -> ConfigError:
    """Return a pydantic error as a `ConfigError`: the file that set the key, and valid values."""
    parts = [str(part) for part in error["loc"]]
    key = ".".join(parts)
    known = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
    file = next((origin[name] for name in known if name in origin), fallback)
    if error["type"] == "extra_forbidden":
        return ConfigError(file, key, "unknown key", _list_keys(parts[:-1]))
    if error["type"] == "literal_error":
        choices = str(error["ctx"]["expected"]).replace("'", "").replace(" or ", ", ").split(", ")
        return ConfigError(file, key, f"{error['input']!r} is not allowed", choices)
    message = error["msg"].removeprefix("Value error, ")
    if message.startswith("Input should "):
        return ConfigError(file, key, f"is {error['input']!r}; it {message.removeprefix('Input ')}")
    return ConfigError(file, key, message[:1].lower() + message[1:] + _format_input(error["input"], message))


def _format_input(value: object, message: str) -> str:
    if isinstance(value, Mapping) or repr(value) in message:
        return ""
    return f", but it is {value!r}"


def _list_keys(parents: list[str]) -> list[str]:
    model: type[BaseModel] = Config
    for parent in parents:
        annotation = model.model_fields[parent].annotation
        if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
            return []
        model = annotation
    return list(model.model_fields)
