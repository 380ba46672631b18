"""Upgrades: a lake of an older version of highwater becomes one of this version, before a command writes to it.

Nothing here needs Spark. All changes are planned first, so a lake that cannot be upgraded stays unchanged. The plan is
recorded in ``state.upgrades``, then carried out. Each step may be interrupted and repeated:

- nullable columns and properties are set in one commit of the table;
- a table of silver that differs otherwise loses its rows and gets a stamp that says so: the next parse fills silver
  from bronze again (`pipelines.silver.parse`);
- if a table of gold, or the resume state, differs otherwise, the run ledger records first that no run may resume; the
  next replay computes gold from silver again;
- a table without a source, such as the tables of bronze, is never changed: the lake is refused;
- a lake of 0.5 or older is refused, too.

Changed results of new grammars or rules are not handled here, but by `pipelines.base.fingerprint`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final, NamedTuple

import pyarrow as pa

from highwater.pipelines.base.errors import InputError, SchemaMismatch
from highwater.pipelines.base.fingerprint import TABLES as MADE_ANEW
from highwater.pipelines.base.fingerprint import code_version
from highwater.pipelines.lake.commits import read_stamps
from highwater.pipelines.lake.contents import find_tables, require_own, require_regular
from highwater.pipelines.lake.delta_commits import Fence, append
from highwater.pipelines.lake.delta_log import find_version
from highwater.pipelines.lake.program import note_program, read_declarations_hash, require_known_version
from highwater.pipelines.lake.stored_tables import StoredTables
from highwater.pipelines.lake.table_files import build_table, write_rows
from highwater.pipelines.lake.tables import bring_up, create_table, describe_upgrade, make_empty
from highwater.pipelines.replay.runs import runs_of
from highwater.pipelines.storage.place import Place, resolved
from highwater.schemas import gold, silver
from highwater.schemas.catalog import TABLES
from highwater.schemas.state import AUDITED, FOLDS, INVENTORY, RUNS, UPGRADES
from highwater.schemas.table import TableSpec

#: Stamp of a table of silver that lost its rows: no batch, and no grammar.
EMPTIED: Final = "emptied -"

_CREATED, _WIDENED, _FROM_BRONZE, _FROM_SILVER, _FROM_FILES = range(5)
_OF_GOLD: Final = (*(spec for spec in TABLES if spec.layer == "gold" and spec is not gold.RUNS), FOLDS, AUDITED)
_SOURCES: Final = {
    **{spec.full_name: (_FROM_BRONZE, "parsed again from bronze") for spec in silver.TABLES},
    **{spec.full_name: (_FROM_SILVER, "made anew from silver") for spec in _OF_GOLD},
    INVENTORY.full_name: (_FROM_FILES, "made anew by the next ingest"),
}


class UpgradeStep(NamedTuple):
    """The upgrade of one table."""

    spec: TableSpec
    kind: int
    what: str  #: in words


def upgrade(root: Place, fence: Fence) -> list[str]:
    """Upgrade a lake to this version. Return a line per changed table. A lake without tables is not changed.

    Args:
        fence: called before each commit.

    Raises:
        InputError: a newer version wrote the lake, or one of its files is a link.
        SchemaMismatch: a table differs from its declaration and cannot be rebuilt.
    """
    root = resolved(root)
    require_regular(root)
    require_known_version(root)
    there = _list_tables(root)
    if not there:
        return []
    steps = [*_plan_steps(root, there)]
    note_program(root, _compute_hash())
    if not steps:
        return []
    _note(root, steps, fence)
    if any(step.kind == _FROM_SILVER for step in steps):
        _forget_runs(root, fence)
    for spec, kind, what in steps:
        folder = _locate_table(root, spec)
        if kind == _CREATED:
            create_table(folder, spec, fence)
        elif kind == _WIDENED:
            bring_up(folder, spec, fence)
        else:
            make_empty(folder, spec, what, fence, EMPTIED if kind == _FROM_BRONZE else None)
    return [f"{spec.full_name}: {what}" for spec, _, what in steps]


def note_version(root: Place) -> None:
    """Write the version marker, if the lake has tables."""
    if _list_tables(resolved(root)):
        note_program(resolved(root), _compute_hash())


def plan_upgrade(root: Place) -> list[str]:
    """Return what `upgrade` would do, a line per table.

    Raises:
        InputError, SchemaMismatch: as `upgrade`.
    """
    root = resolved(root)
    require_regular(root)
    require_own(root)
    require_known_version(root)
    return [f"{step.spec.full_name}: {step.what}" for step in _plan_steps(root, _list_tables(root))]


#: Of tables that differ.
_NAMED_MAX = 3


def require_up_to_date(root: Place) -> None:
    """Raise an error if a lake's tables lack columns, which only a writing command can add.

    Raises:
        InputError: a newer version wrote the lake; an older one did, and its tables differ; or one of its files is a
            link.
    """
    require_regular(root)
    require_known_version(root)
    if read_declarations_hash(root) == _compute_hash() or not (there := _list_tables(root)):
        return
    older = [step.spec.full_name for step in _plan_steps(root, there) if step.kind != _CREATED]
    if older:
        more = f" and {len(older) - _NAMED_MAX} more tables" if len(older) > _NAMED_MAX else ""
        named = f"{', '.join(older[:_NAMED_MAX])}{more}"
        problem = f"was written by an older version of highwater, which had other columns in {named}"
        raise InputError(root, problem, "run `highwater replay` on it, which brings it up to this version")


def _list_tables(root: Place) -> list[TableSpec]:
    there = find_tables(root)
    return [spec for spec in TABLES if spec.full_name in there]


def _locate_table(root: Place, spec: TableSpec) -> Place:
    return root / spec.layer / spec.name


def _plan_steps(root: Place, there: Sequence[TableSpec]) -> list[UpgradeStep]:
    steps = []
    for spec in TABLES if there else ():
        if spec not in there:
            steps.append(UpgradeStep(spec, _CREATED, "new table"))
            continue
        try:
            what = describe_upgrade(_locate_table(root, spec), spec)
        except SchemaMismatch as mismatch:
            if spec.full_name not in _SOURCES:
                raise
            kind, source = _SOURCES[spec.full_name]
            steps.append(UpgradeStep(spec, kind, f"{source}, since it {mismatch.problem}"))
            continue
        if what is not None:
            steps.append(UpgradeStep(spec, _WIDENED, what))
    return steps


def _note(root: Place, steps: Sequence[UpgradeStep], fence: Fence) -> None:
    """Add the upgrade steps to ``state.upgrades``, unless an interrupted run has added them."""
    folder = _locate_table(root, UPGRADES)
    if find_version(folder) is None:
        create_table(folder, UPGRADES, fence)
    bring_up(folder, UPGRADES, fence)
    changes = [(step.spec.full_name, step.what) for step in steps]
    stamp = sha256(repr((code_version(), changes)).encode()).hexdigest()[:32]
    if next((last for _, last in read_stamps(folder)), None) != stamp:
        now = datetime.now(UTC)
        rows = build_table(UPGRADES, [(now, code_version(), *each) for each in changes])
        append(folder, write_rows(folder, UPGRADES, rows), stamp, fence)


def _forget_runs(root: Place, fence: Fence) -> None:
    """Add a run without logs to ``state.runs``, so that no later run resumes from earlier ones."""
    folder = _locate_table(root, RUNS)
    last = next(iter(runs_of(StoredTables(root))), None)
    if last is None or last.components == MADE_ANEW:
        return
    row = {"run_number": last.number + 1, "run_id": "", "replayed_time": datetime.now(UTC), "components": MADE_ANEW}
    rows = pa.Table.from_pylist([{**row, "file_ids": []}], RUNS.arrow_schema)
    append(folder, write_rows(folder, RUNS, rows), None, fence)


def _compute_hash() -> str:
    """Return the hash of columns and constraints of all tables: 16 hex digits."""
    declared = [
        (
            spec.full_name,
            [(c.name, c.dataType.simpleString(), c.nullable) for c in spec.columns],
            sorted(spec.checks.items()),
        )
        for spec in TABLES
    ]
    return sha256(repr(declared).encode()).hexdigest()[:16]
