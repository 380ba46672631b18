"""Random logs (`tests.generators.logs`): read wholly, as the plain log is, or refused by name; never by halves."""

from __future__ import annotations

import secrets
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from highwater.pipelines.base.errors import InputError
from highwater.pipelines.grammars.facts import parse_record
from highwater.pipelines.grammars.record import UNPARSED
from highwater.pipelines.kafka.raw_record import FOREIGN
from tests.generators.logs import Case, make_case
from tests.reading import read_folder
from tests.renderings import Written, logs_of, records_of

SLICE = Path(__file__).parents[2] / "data" / "slice"
CASES, CASES_LONG = 60, 2000
#: Share of the cases that are read; the others are refused.
READ_MIN = 0.99
#: What became of a log. *Counted*: it changes its layout, and what was not read are records that coverage counts.
READ, REFUSED, COUNTED, HALF = "read", "refused", "counted as unread", "read by halves"


@cache
def brokers() -> tuple[tuple[Written, ...], ...]:
    """Return records of each broker of the slice, in their order, of all logs but those of requests."""
    found: dict[str, list[Written]] = {}
    for path, content in logs_of(SLICE):
        if "request" not in path.name:
            found.setdefault(path.parts[0], []).extend(records_of(content))
    return tuple(tuple(sorted(records, key=lambda one: one.time_us)[:4000]) for _, records in sorted(found.items()))


def case_of(seed: int) -> Case:
    """Return the log of a seed."""
    return make_case(seed, brokers())


def facts_of(record: Written) -> list[tuple[int, str]]:
    """Return the facts of a record in Kafka's own layout."""
    about = (record.time_us, record.level, record.logger, None, record.message + record.trace)
    return [(record.time_us, repr(fact)) for fact in parse_record("server", *about).facts]


def outcome(case: Case, folder: Path) -> tuple[str, object]:
    """Return what became of a log, and a reason."""
    folder.mkdir(exist_ok=True)
    (folder / case.name).write_bytes(case.content)
    try:
        found = read_folder(folder)
    except InputError as error:
        is_named = str(folder) in str(error)
        return (REFUSED, str(error)) if is_named else (HALF, f"refused without the place: {error}")
    if not found.files or all(file.layout is None for file in found.files.values()):
        problems = [file.problem for file in found.files.values()]
        return (REFUSED, problems) if all(problems) else (HALF, "refused without a reason")
    layouts = {file.layout for file in found.files.values()}
    expected = Counter(fact for record in case.written for fact in facts_of(record))
    facts = Counter(
        (one.time_us, repr(fact)) for one in found.records for fact in one.parsed.facts if one.time_us is not None
    )
    unread = sum(one.problem is not None and not one.problem.startswith(FOREIGN) for one in found.records)
    lost = len(case.written) - sum(one.time_us is not None for one in found.records)
    if case.is_changed and facts <= expected and unread >= lost > 0:
        return COUNTED, layouts
    if facts != expected:
        missing, added = expected - facts, facts - expected
        example = f"missing {list(missing)[:1]}, added {list(added)[:1]}"
        return HALF, f"{layouts}: {missing.total()} of {expected.total()} missing, {added.total()} added: {example}"
    times = Counter(one.time_us for one in found.records if one.time_us is not None)
    if lost := Counter(record.time_us for record in case.written) - times:
        return HALF, f"{layouts}: {lost.total()} of {len(case.written)} records have another time, or none"
    texts = {(one.time_us, one.level, one.message.split("\n")[0].rstrip()) for one in found.records}
    other = [one for one in case.written if (one.time_us, one.level, one.message.split("\n")[0].rstrip()) not in texts]
    if other:
        return HALF, f"{layouts}: {len(other)} of {len(case.written)} records have another text: {other[0]}"
    by_path = {path: [one.time_us for one in found.records if one.path == path] for path in found.files}
    if any(_steps_back(times) for times in by_path.values()):
        return HALF, f"{layouts}: records are not in the order of their times"
    unread = sum(one.parsed.outcome == UNPARSED for one in found.records if one.time_us is not None)
    plain = sum(_is_unread(record) for record in case.written)
    # A shortened name may be that of several classes: then the text decides, or the record stays unread.
    plain += any("%c{1" in part for part in case.parts) * len(case.written) // 20
    return (READ, "") if unread <= plain else (HALF, f"{layouts}: {unread} unparsed, {plain} of them in Kafka's layout")


def _is_unread(record: Written) -> bool:
    about = (record.time_us, record.level, record.logger, None, record.message + record.trace)
    return parse_record("server", *about).outcome == UNPARSED


def _steps_back(times: list[int | None]) -> bool:
    known = [time for time in times if time is not None]
    return any(after < before - 1_000_000 for before, after in pairwise(known))


def run(seeds: range, folder: Path) -> None:
    print(f"seeds {seeds.start} to {seeds.stop - 1}")
    outcomes: Counter[str] = Counter()
    for seed in seeds:
        case = case_of(seed)
        said, why = outcome(case, folder / str(seed))
        outcomes[said] += 1
        assert said != HALF, f"seed {seed}: {case.parts}: {why}"
    assert outcomes[READ] >= READ_MIN * len(seeds) - 1, outcomes


def test_random_logs_are_read_wholly_or_refused(tmp_path: Path) -> None:
    run(range(CASES), tmp_path)


@pytest.mark.long
def test_many_random_logs_are_read_wholly_or_refused(tmp_path: Path) -> None:
    start = secrets.randbelow(1 << 32)
    run(range(start, start + CASES_LONG), tmp_path)
