"""Hours of a quiet cluster, of any size: ``python -m tests.bench.hours LOGS TARGET --megabytes 851``.

The hours are copies of one log folder: the first with all its logs, the others with its request logs, whose times,
offsets and connections are moved on, so that the cluster goes on producing and fetching. It reads the JSON form of the
request log, so the cluster is one of 2.6 or later. With ``--settled`` the copies begin where its last leader epoch
does: else each of them has the epochs of all of the hour, of which all but the last are over, and rules say so.
"""

from __future__ import annotations

import argparse
import gzip
import re
import sys
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path

#: Offsets of an hour's copy lie this far beyond those of the hour before.
OFFSETS = 1_000_000

_TIME = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),")
_OFFSET = re.compile(r'("(?:baseOffset|fetchOffset|highWatermark|lastStableOffset)":)(\d+)')
_CONNECTION = re.compile(r'("connection":"[^"]*)"')
_EPOCH = re.compile(r'"topic(?:Id)?":"([^"]*)"|"partition":(\d+),"currentLeaderEpoch":(\d+)')


def main(arguments: list[str]) -> None:
    """Write hours until there is as much text as asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("logs", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--megabytes", type=int, required=True, help="of text; at least so much is written")
    parser.add_argument("--settled", action="store_true", help="copy what comes after the last change of a leader")
    given = parser.parse_args(arguments)
    size, since = 0, settled(given.logs) if given.settled else ""
    for hour in count():
        size += write_hour(given.logs, given.target, hour, since)
        if not size:
            parser.error(f"{given.logs}: no *.log.gz below it")
        if size >= given.megabytes * 1_000_000:
            print(f"{hour + 1} hours, {size / 1e6:.0f} MB of text")
            return


def settled(logs: Path) -> str:
    """When requests first named the last leader epoch, of the partition where that was last; as logs write times."""
    first: dict[tuple[str, int, int], str] = {}
    for path in sorted(logs.rglob("kafka-request*.log.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                topic, time = "", line[1:20]
                for name, partition, epoch in _EPOCH.findall(line):
                    topic = name or topic
                    if partition:
                        key = topic, int(partition), int(epoch)
                        first[key] = min(first.get(key, time), time)
    last = {(topic, partition): epoch for topic, partition, epoch in sorted(first)}
    return max((first[topic, partition, epoch] for (topic, partition), epoch in last.items()), default="")


def write_hour(logs: Path, target: Path, hour: int, since: str = "") -> int:
    """Write the copy of a log folder for an hour below ``target``; the characters in it.

    Args:
        since: all but the first hour have only what was logged after this second.
    """
    size = 0
    for path in sorted(logs.rglob("*.log.gz")):
        if "data" in path.relative_to(logs).parts or (hour and not path.name.startswith("kafka-request")):
            continue
        copy = target / path.relative_to(logs).with_name(f"{path.name.removesuffix('.gz')}.{hour}.gz")
        copy.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(path, "rt", encoding="utf-8") as read, gzip.open(copy, "wt", 1, encoding="utf-8") as written:
            for line in read:
                if not hour or line[1:20] > since:
                    size += written.write(moved(line, hour))
    return size


def moved(line: str, hour: int) -> str:
    if not hour:
        return line
    line = _TIME.sub(lambda match: f"[{datetime.fromisoformat(match[1]) + timedelta(hours=hour)},", line)
    line = _OFFSET.sub(lambda match: f"{match[1]}{int(match[2]) + hour * OFFSETS}", line)
    return _CONNECTION.sub(lambda match: f'{match[1]}{hour:03}"', line)


if __name__ == "__main__":
    main(sys.argv[1:])
