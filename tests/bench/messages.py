"""Compare the atlas with the catalogue of texts that Kafka logs: ``python -m tests.bench.messages``

``--markdown`` writes docs/messages.md from the atlas instead. ``--sample REPOSITORY`` prints 50 entries, always the
same ones, each with the place in a clone of apache/kafka that logs its newest text: to be read and compared.

Prints, per release, the texts at WARN and above and how many of them have an entry; texts without an entry; entries
with a text that no release of the catalogue has; entries with another class, method or release than the catalogue's.
The catalogue (``loud.jsonl.gz``) is looked for beside the checkout. Ends with 1 if there is a difference.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from highwater.pipelines.messages.atlas import HOUSEKEEPING, LOUD, atlas

SHARED = Path(__file__).resolve().parents[3] / "shared"
CATALOGUE = SHARED / "reference" / "log-templates" / "loud.jsonl.gz"
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "messages.md"
#: Value for a placeholder: no constant part of a text holds it.
_VALUE = "§7§"
_PLACEHOLDER = re.compile(r"\{\w*\}")


def catalogue() -> list[dict[str, Any]]:
    """Return the texts of all releases."""
    with gzip.open(CATALOGUE, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _values(field: Any) -> list[str]:
    return [field] if isinstance(field, str) else list(field or ())


def is_loud(row: dict[str, Any]) -> bool:
    """Return True if a release logs the text at WARN or above."""
    return bool((set(_values(row["level"])) | set(_values(row.get("levels", ())))) & set(LOUD))


def without_entry(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield texts that the atlas does not find for their class."""
    known = atlas()
    for row in rows:
        line = row["template"].replace("{}", _VALUE).strip()
        found = known.find(line, row["class"]) or (
            known.find_thrown(row["class"]) if not line.replace(_VALUE, "") else None
        )
        if found is None or row["class"] not in found.message.classes:
            yield row


def without_text(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Return entries that no text of the catalogue leads to, but those of ZooKeeper's client, which it leaves out."""
    known = atlas()
    reached = set()
    for row in rows:
        for logger in (row["class"], None):
            found = known.find(row["template"].replace("{}", _VALUE), logger)
            reached |= {found.message_id} if found is not None else set()
    texts = {(row["class"], row["template"].strip()) for row in rows}
    for message_id, message in known.messages.items():
        wordings = {_PLACEHOLDER.sub("{}", text).strip() for _, text in message.texts}
        if any((name, wording) in texts for name in message.classes for wording in wordings):
            reached.add(message_id)
    return [name for name in known.messages if name not in reached and not name.startswith("zookeeper_client.")]


#: A text with no more constant characters may be logged by many calls.
_OWN = 12


def misplaced(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield entries whose class, method or releases differ from those of the catalogue, with both.

    ZooKeeper's client is not in the catalogue. A text of few words is logged by many calls.
    """
    calls: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for row in rows:
        method = row["method"]
        for name in [method] if isinstance(method, str) else method:
            calls[row["template"].strip()][f"{row['class']}.{name}"] |= {*row["releases"]}
    for message_id, message in atlas().messages.items():
        texts: dict[str, list[str]] = defaultdict(list)
        for releases, text in message.texts:
            first, _, last = releases.partition("..")
            texts[_PLACEHOLDER.sub("{}", text).strip()] += [first, last or first]
        sources: set[str] = set()
        for text, given in texts.items():
            if len(text.replace("{}", "")) <= _OWN or message_id.startswith("zookeeper_client."):
                continue
            of_entry = {call: found for call, found in calls[text].items() if call.partition(".")[0] in message.classes}
            sources |= of_entry.keys()
            found = {release for releases in of_entry.values() for release in releases}
            bounds = min(given, key=_version), max(given, key=_version)
            logged = (min(found, key=_version), max(found, key=_version)) if found else ()
            if bounds != logged:
                yield f"{message_id}: {bounds}, in the catalogue {logged}: {text}"
        if sources and not sources >= {*message.source}:
            yield f"{message_id}: {sorted({*message.source} - sources)}, in the catalogue {sorted(sources)}"


def _version(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


_TABLE = "| text | releases | meaning | at risk | do |\n|---|---|---|---|---|"
_HEAD = """# What Kafka logs at WARN and above

Made by `python -m tests.bench.messages --markdown` from `pipelines/messages/*.toml`; a test compares. The texts are
those of 29 releases from 0.9 to 4.3. `highwater explain 'LOG LINE'` looks a line up, `highwater explain -` those of a
file on stdin. {} is a value. *housekeeping* marks lines of each orderly start, stop or failover.
"""


def document() -> str:
    """Return docs/messages.md."""
    lines = [_HEAD]
    component = ""
    for message_id, message in atlas().messages.items():
        name = message_id.partition(".")[0]
        if name != component:
            component = name
            lines += [f"\n## {name.replace('_', ' ')}", "", _TABLE]
        texts = "<br>".join(f"`{_cell(text)}`" for _, text in message.texts[-2:])
        first, last = message.texts[0][0].partition("..")[0], message.texts[-1][0].rpartition("..")[2]
        note = " *housekeeping*" if message.part == HOUSEKEEPING else ""
        risk = message.severity if message.harm == "none" else f"{message.harm}, {message.severity}"
        cells = (f"{texts}<br>{message.source[0]}", f"{first} to {last}", message.meaning + note, risk, message.action)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return re.sub(r"\{\w+\}", "{}", text).replace("|", "\\|").replace("`", "'").strip() or "{}"


#: Entries of a sample, and the seed that picks them.
_SAMPLED, _SEED = 50, 46
#: Characters of source before and after a text.
_SHOWN = 300


def sample(repository: Path) -> Iterator[str]:
    """Yield entries picked by a fixed seed, with the source that logs them.

    Args:
        repository: clone of apache/kafka with its release branches.
    """
    messages = atlas().messages
    for message_id in random.Random(_SEED).sample(sorted(messages), _SAMPLED):
        message = messages[message_id]
        releases, text = message.texts[-1]
        yield f"== {message_id} {'/'.join(message.levels)} {message.harm} {message.severity} {message.part}".rstrip()
        yield f"   {', '.join(message.source)} {releases}: {text}"
        yield f"   {message.meaning} {message.action}".rstrip()
        constant = max(_PLACEHOLDER.split(text), key=len).strip()[:40]
        yield _source(repository, releases.rpartition("..")[2], message.source, constant) or "   (not found there)"


def _source(repository: Path, release: str, methods: Iterable[str], constant: str) -> str:
    """Return the lines around a text in the release branch that has it, else in trunk. Empty if none has it."""
    names = {f"{method.partition('.')[0]}.{suffix}" for method in methods for suffix in ("scala", "java")}
    for branch in (".".join(release.split(".")[: 3 if release.startswith("0.") else 2]), "refs/heads/trunk"):
        for path in _git(repository, "ls-tree", "-r", "--name-only", branch).splitlines():
            if constant and path.rpartition("/")[2] in names and "/test/" not in path:
                source = re.sub(r'"\s*\+\s*[sf]?"', "", _git(repository, "show", f"{branch}:{path}"))
                place = source.find(constant)
                if place >= 0:
                    return f"   {branch}:{path}\n{source[max(0, place - _SHOWN) : place + _SHOWN]}"
    return ""


def _git(repository: Path, *arguments: str) -> str:
    """Return what git prints. Empty if it has no such branch or file."""
    return subprocess.run(["git", "-C", repository, *arguments], capture_output=True, text=True, check=False).stdout


def main(arguments: list[str]) -> int:
    """Print the comparison, or write the document."""
    if arguments == ["--markdown"]:
        DOCUMENT.write_text(document(), encoding="utf-8")
        return 0
    if arguments[:1] == ["--sample"]:
        print("\n".join(sample(Path(arguments[1]))))
        return 0
    if not CATALOGUE.is_file():
        print(f"{CATALOGUE.name}: not found beside the checkout", file=sys.stderr)
        return 2
    every = catalogue()
    rows = [row for row in every if is_loud(row)]
    missing = list(without_entry(rows))
    lost = {(row["class"], row["template"]) for row in missing}
    releases = Counter(release for row in rows for release in row["releases"])
    found = Counter(
        release for row in rows if (row["class"], row["template"]) not in lost for release in row["releases"]
    )
    print(f"{len(rows):,} texts at WARN and above, {len(atlas().messages):,} entries")
    for release in sorted(releases, key=_version):
        print(f"{release:>9}  {releases[release]:4} texts  {found[release]:4} with an entry")
    for row in missing:
        print(f"no entry: {row['class']}: {row['template']}")
    orphans = without_text(every)
    for message_id in orphans:
        print(f"no text: {message_id}")
    wrong = list(misplaced(every))
    for difference in wrong:
        print(f"misplaced: {difference}")
    return int(bool(missing or orphans or wrong))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
