"""Packs a run as a corpus: logs, small files of data directories, the ground truth; without paths of the machine."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

from tests.testbed.history import CLIENTS, FAULTS, FINAL, JMX, REPLICAS, Place
from tests.testbed.replicas import Log, differing, read_logs

#: Where packed lines say that Kafka and its data are.
INSTALLED = b"/opt/kafka"
DATA = b"/var/lib/kafka"
_TEXT_FILE = re.compile(r".*checkpoint|meta\.properties|partition\.metadata")
_METADATA = "__cluster_metadata-0"
_SEGMENT_OF_METADATA = re.compile(r"\d{20}\.log|\d{20}-\d{10}\.checkpoint")


def pack(run: Path, jars: Path, corpus: Path) -> None:
    """Make the corpus of a run that is over; it appears when it is complete.

    Args:
        run: the run's folder.
        jars: the folder of all releases' jars: paths in it are rewritten, too.
        corpus: folder to make.
    """
    partial = corpus.with_name(corpus.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    replicas = compare_replicas(run)
    disputed = {row["topic"] for row in replicas if row["differing"]}
    for home in sorted(run.glob("node-*")):
        node = home.name.removeprefix("node-")
        target = partial / f"broker-{node}"
        rewritten = {str(home / "data").encode(): DATA, str(home).encode(): INSTALLED, str(run).encode(): INSTALLED}
        rewritten[str(jars).encode()] = INSTALLED + b"/libs"
        for log in sorted((home / "logs").iterdir()):
            if log.stat().st_size:
                _store(rewrite(log.read_bytes(), rewritten), target / "logs" / f"{log.name}.gz")
        _pack_data(home / "data", target / "data", disputed)
    shutil.copy(run / FAULTS, partial / FAULTS)
    for name in (CLIENTS, FINAL):
        _store((run / name).read_bytes(), partial / f"{name}.gz")
    if (run / JMX).is_file():
        _store((run / JMX).read_bytes(), partial / "jmx" / f"{JMX}.gz")
    (partial / REPLICAS).write_text(json.dumps(replicas, indent=0) + "\n", encoding="utf-8")
    shutil.rmtree(corpus, ignore_errors=True)
    partial.rename(corpus)


def rewrite(text: bytes, replacements: Mapping[bytes, bytes]) -> bytes:
    """Replace each path by what stands for it, the longest first."""
    for path in sorted(replacements, key=len, reverse=True):
        text = text.replace(path, replacements[path])
    return text


def compare_replicas(run: Path) -> list[dict[str, object]]:
    """A row per partition of users: who holds it, up to which base offset, and where replicas differ."""
    by_place: dict[Place, dict[int, Log]] = {}
    for home in sorted(run.glob("node-*")):
        for place, log in read_logs(home / "data").items():
            by_place.setdefault(place, {})[int(home.name.removeprefix("node-"))] = log
    return [
        {
            "topic": topic,
            "partition": partition,
            "last": {str(node): max(log, default=-1) for node, log in logs.items()},
            "differing": differing(logs),
        }
        for (topic, partition), logs in sorted(by_place.items())
    ]


def _pack_data(data: Path, target: Path, disputed: Collection[object]) -> None:
    """Segments only of the metadata, and of topics whose replicas differ."""
    for file in sorted(data.rglob("*")):
        if not file.is_file():
            continue
        place = target / file.relative_to(data)
        is_metadata = file.parent.name == _METADATA and _SEGMENT_OF_METADATA.fullmatch(file.name)
        if is_metadata or (file.suffix == ".log" and file.parent.name.rpartition("-")[0] in disputed):
            _store(file.read_bytes(), place.with_name(f"{file.name}.gz"))
        elif _TEXT_FILE.fullmatch(file.name):
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, place)


def _store(content: bytes, path: Path) -> None:
    """Gzip, the same bytes each time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as file:
        file.write(content)
