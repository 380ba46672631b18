"""Count the records of folders of logs by what is wrong with them: ``python -m tests.bench.doubts FOLDER...``.

Where nothing is forged, no record is doubtful. Records are cut as an audit cuts them, without Spark and grammars.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from pathlib import Path

from highwater.pipelines.base.config import load_config
from highwater.pipelines.bronze.discover import discover
from highwater.pipelines.bronze.passes import HowRead, batches, profiles
from highwater.pipelines.bronze.profile import Profile
from highwater.pipelines.bronze.rows import FileSpan
from highwater.pipelines.kafka.raw_record import DOUBTFUL


def problems_of_folder(folder: Path) -> Counter[str | None]:
    """Return how many records have which problem; None counts the good ones."""
    config = load_config().ingest
    how = HowRead(config.timezone, config.record_bytes_max, tuple(config.include), tuple(config.exclude))
    problems: Counter[str | None] = Counter()
    for path in discover([folder], config.include, config.exclude).files:
        spans_by_file: dict[str, list[FileSpan]] = defaultdict(list)
        for item in profiles(path, frozenset(), {}, how):
            if isinstance(item, Profile) and item.readable:
                span = FileSpan(item, "c", None)
                spans_by_file[span.file].append(span)
        for spans in spans_by_file.values():
            for batch in batches(spans, how):
                problems.update(batch.column("problem").to_pylist())
    return problems


def main() -> int:
    """Print the counts of each folder; return 1 if any record is doubtful."""
    doubtful = 0
    for name in sys.argv[1:]:
        problems = problems_of_folder(Path(name))
        doubtful += problems[DOUBTFUL]
        others = ", ".join(f"{count} {problem}" for problem, count in sorted(problems.items(), key=str) if problem)
        print(f"{name}: {problems.total()} records, {problems[DOUBTFUL]} doubtful{f' ({others})' if others else ''}")
    return int(doubtful > 0)


if __name__ == "__main__":
    sys.exit(main())
