"""Options of the command, each once, and their types."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click

from highwater.pipelines.base.errors import ConfigError
from highwater.pipelines.base.zones import Localizer
from highwater.pipelines.storage.place import Place, place_of


class TimeParam(click.ParamType[datetime]):
    """A time in ISO 8601, in UTC without a zone."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            self.fail(
                f"invalid time {value!r}; expected for example 2026-11-20T14:05 or 2026-11-20T14:05:00+01:00",
                param,
                ctx,
            )
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


class ZoneParam(click.ParamType[Localizer]):
    """A time zone: an IANA name, or ``local``."""

    name = "zone"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Localizer:
        try:
            return Localizer(None if value == "local" else ZoneInfo(value))
        except (ValueError, OSError, ZoneInfoNotFoundError):
            self.fail(f"invalid time zone {value!r}; expected local, or for example Europe/Berlin", param, ctx)


class PlaceType(click.ParamType[Place]):
    """A path of this machine, or the URI of a store."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Place:
        return place_of(value)


def _check_whole(context: click.Context, option: click.Parameter, span: str | None) -> None:
    if span is not None:
        raise click.UsageError("--from and --until are for audit, report and gate; this verb takes all there is")


def _check_order(context: click.Context, option: click.Parameter, moment: datetime | None) -> datetime | None:
    bounds = context.params | {option.name: moment}
    since, until = bounds.get("time_from"), bounds.get("time_until")
    if since is not None and until is not None and since >= until:
        raise click.UsageError("--from must be before --until")
    return moment


def _check_log_format(context: click.Context, option: click.Parameter, text: str | None) -> str | None:
    if not text:
        return text
    from highwater.pipelines.bronze.layouts.given import given_layout

    try:
        given_layout(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return text


def _check_schema(context: click.Context, option: click.Parameter, name: str | None) -> str | None:
    if name is not None and not _SCHEMA.fullmatch(name):
        raise click.BadParameter(f"invalid catalog.schema {name!r}; expected for example spark_catalog.highwater")
    return name


def _with_named_others(context: click.Context, option: click.Parameter, lake: Place) -> Place:
    """Print foreign entries of the lake's folder, once per command."""
    from highwater.pipelines.base.console import RichConsole
    from highwater.pipelines.lake.contents import list_contents, name_others

    if line := name_others(list_contents(lake)):
        RichConsole().note(f"{lake}: {line}")
    return lake


def _check_trusted(context: click.Context, option: click.Parameter, conf: Path | None) -> Path | None:
    """Return the configuration file. Warn if other users may change the file."""
    from highwater.pipelines.base.config import find_other_writer
    from highwater.pipelines.base.console import RichConsole

    if conf is None:
        return None
    lake = context.params.get("lake")
    if isinstance(lake, Path) and conf.resolve().is_relative_to(lake.resolve()):
        remedy = "keep it elsewhere: who may write the lake could have any code run"
        raise ConfigError(conf, "", f"is in the lake ({lake}), and a configuration is code; {remedy}")
    if who := find_other_writer(conf):
        RichConsole().warn(f"{conf} is code, and can be changed by {who}; see docs/operations.md, Security")
    return conf


_SCHEMA = re.compile(r"\w+\.\w+", re.ASCII)
PLACE = PlaceType()
#: Names in `pipelines.report.printed.SECTIONS`, which takes long to import.
SECTION_NAMES = ("brokers", "coverage", "findings", "rules", "accuracy", "latency", "shares", "throttled", "outages")
#: Formats of `jobs.alerts`, which takes long to import.
ALERT_FORMATS = ("json", "slack", "pagerduty", "alertmanager")
SEVERITIES = ("critical", "major", "minor", "info")
DAYS = re.compile(r"[1-9][0-9]{0,4}d", re.ASCII)
_OPTIONS: dict[str, Callable[[Any], Any]] = {
    "logs": click.argument("logs", nargs=-1, required=True, type=PLACE),
    "lake": click.option(
        "--lake",
        type=PLACE,
        default="./highwater-lake",
        show_default=True,
        callback=_with_named_others,
        is_eager=True,
        help="Folder of the Delta tables.",
    ),
    "out": click.option(
        "--out",
        type=PLACE,
        default="./highwater-report",
        show_default=True,
        help="Folder for report.json, report.md, report.html and report.sarif.",
    ),
    "format": click.option(
        "--format",
        "form",
        type=click.Choice(["text", "json", "markdown", "sarif", "pager"]),
        default="text",
        show_default=True,
        help="What is printed; the files are written all the same.",
    ),
    "verbose": click.option("--verbose", "is_verbose", is_flag=True, help="Print figures and tables below the text."),
    "section": click.option(
        "--section",
        "sections",
        type=click.Choice(SECTION_NAMES),
        metavar="NAME",
        multiple=True,
        help=f"Print only this part of what --verbose prints: {', '.join(SECTION_NAMES)}; several are possible.",
    ),
    "answer format": click.option(
        "--format",
        "form",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="Output format.",
    ),
    "open": click.option("--open", "opens", is_flag=True, help="Open the page in a browser."),
    "cluster": click.option("--cluster", help="Only this cluster, by its name or id, where the lake has several."),
    "cluster name": click.option(
        "--cluster",
        "cluster_name",
        metavar="NAME",
        help="Name for logs without a cluster id (Kafka before 0.10.1).",
    ),
    "log format": click.option(
        "--log-format",
        metavar="PATTERN",
        callback=_check_log_format,
        help="Layout of the lines, as log4j writes it, or a regular expression with the groups time and message.",
    ),
    "redact": click.option("--redact", is_flag=True, help="Replace topics, clients, hosts and other names of yours."),
    "redact key": click.option(
        "--redact-key-file",
        type=click.Path(path_type=Path, dir_okay=False),
        help="With --redact: the same key gives the same pseudonyms; without one it is random.",
    ),
    "from": click.option(
        "--from", "time_from", type=TimeParam(), callback=_check_order, help="From this time on (ISO 8601, UTC)."
    ),
    "until": click.option("--until", "time_until", type=TimeParam(), callback=_check_order, help="Before this time."),
    "no span": click.option(*("--from", "--until"), expose_value=False, hidden=True, callback=_check_whole),
    "tz": click.option(
        "--tz",
        "localizer",
        type=ZoneParam(),
        metavar="ZONE",
        help="Print times in this zone instead of UTC: local, or for example Europe/Berlin. Files, JSON and lines of "
        "logs keep theirs.",
    ),
    "master": click.option("--master", help="Spark master, for example local[4] or spark://host:7077."),
    "catalog": click.option(
        "--catalog",
        metavar="CATALOG.SCHEMA",
        callback=_check_schema,
        help="Schema of the session's catalog that gets the names of tables and views.",
    ),
    "conf": click.option(
        "--conf",
        envvar="HIGHWATER_CONF",
        type=click.Path(path_type=Path, readable=False),
        callback=_check_trusted,
        help="TOML file that changes the configuration. Default: the file named by HIGHWATER_CONF.",
    ),
}


def options(*names: str) -> Callable[[Any], Any]:
    """Add options to a verb by name, with equal texts for all verbs."""

    def decorate(verb: Any) -> Any:
        for name in reversed(names):
            verb = _OPTIONS[name](verb)
        return verb

    return decorate
