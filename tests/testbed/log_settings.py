"""Kafka's own log settings of a release (config/log4j.properties, log4j2.yaml), with the request log on. Pure."""

from __future__ import annotations

from typing import NamedTuple

from tests.testbed.release import Release

PATTERN = "[%d] %p %m (%c)%n"
FILES = {
    "kafka": "server",
    "state": "state-change",
    "request": "kafka-request",
    "controller": "controller",
    "cleaner": "log-cleaner",
}
HOURLY = "yyyy-MM-dd-HH"
MINUTELY = "yyyy-MM-dd-HH-mm"
#: Loggers of the broker's own account (T3).
ACCOUNT = ("kafka.server.DelayedProduce", "kafka.cluster.Partition", "kafka.server.ReplicaManager")


class Logger(NamedTuple):
    """A logger with its level, and the file that it has for itself; without one, it writes to the root's."""

    name: str
    level: str
    file: str | None = None


def loggers(release: Release, tier: str) -> list[Logger]:
    """Loggers that Kafka's own settings of this release name, and those that the tier asks for."""
    wanted = [
        Logger("kafka.request.logger", release.request_level, "request"),
        Logger("kafka.network.RequestChannel$", "WARN", "request"),
        Logger("state.change.logger", "TRACE" if release < (2, 6) else "INFO", "state"),
    ]
    if release < (4,):
        wanted.append(Logger("kafka.controller", "TRACE", "controller"))
        wanted.append(Logger("kafka.log.LogCleaner", "INFO", "cleaner"))
    else:
        wanted.append(Logger("org.apache.kafka.storage.internals.log.LogCleaner", "INFO", "cleaner"))
    if release >= (3, 3):
        wanted.append(Logger("org.apache.kafka.controller", "INFO", "controller"))
    if tier == "T3":
        wanted += [Logger(name, "TRACE") for name in ACCOUNT]
    return wanted


def log_settings(release: Release, tier: str, rotation: str = HOURLY) -> str:
    """Text of the settings; files go to the folder in the system property ``kafka.logs.dir``.

    Args:
        release: decides on the syntax and the loggers.
        tier: T1 or T3.
        rotation: pattern of the time in a rotated file's name; its finest unit is how often files rotate.
    """
    make = _log4j1 if release < (4,) else _log4j2
    return "\n".join(make(release, loggers(release, tier), rotation)) + "\n"


def log_option(release: Release, path: str) -> str:
    """The option of Java that names the file with the settings."""
    return f"-Dlog4j.configuration=file:{path}" if release < (4,) else f"-Dlog4j2.configurationFile={path}"


def _log4j1(release: Release, wanted: list[Logger], rotation: str) -> list[str]:
    if release < (0, 11):  # only kafka.* went to server.log, org.apache.kafka.* to the console
        lines = ["log4j.rootLogger=OFF", "log4j.logger.kafka=INFO, kafka"]
    else:
        lines = ["log4j.rootLogger=INFO, kafka", "log4j.logger.kafka=INFO"]
    for appender, file in FILES.items():
        head = f"log4j.appender.{appender}"
        lines += [
            f"{head}=org.apache.log4j.DailyRollingFileAppender",
            f"{head}.DatePattern='.'{rotation}",
            f"{head}.File=${{kafka.logs.dir}}/{file}.log",
            f"{head}.layout=org.apache.log4j.PatternLayout",
            f"{head}.layout.ConversionPattern={PATTERN}",
        ]
    for logger in wanted:
        lines.append(f"log4j.logger.{logger.name}={logger.level}" + (f", {logger.file}" if logger.file else ""))
        if logger.file:
            lines.append(f"log4j.additivity.{logger.name}=false")
    return lines


def _log4j2(_: Release, wanted: list[Logger], rotation: str) -> list[str]:
    lines = [f"appenders={','.join(FILES)}", "rootLogger.level=INFO", "rootLogger.appenderRef.root.ref=kafka"]
    for appender, file in FILES.items():
        head = f"appender.{appender}"
        lines += [
            f"{head}.type=RollingFile",
            f"{head}.name={appender}",
            f"{head}.fileName=${{sys:kafka.logs.dir}}/{file}.log",
            f"{head}.filePattern=${{sys:kafka.logs.dir}}/{file}.log.%d{{{rotation}}}",
            f"{head}.layout.type=PatternLayout",
            f"{head}.layout.pattern={PATTERN}",
            f"{head}.policies.type=TimeBasedTriggeringPolicy",
        ]
    for number, logger in enumerate(wanted):
        head = f"logger.l{number}"
        lines += [f"{head}.name={logger.name}", f"{head}.level={logger.level}"]
        if logger.file:
            lines += [f"{head}.additivity=false", f"{head}.appenderRef.file.ref={logger.file}"]
    return lines
