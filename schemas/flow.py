"""The steps of a run, as ``flow.toml`` declares them: tables read, key of the fold, worker and tables written.

A step reads tables of the lake (``silver.requests``) and files of earlier steps of the run
(``connections.fetches``), and nothing more. ``highwater explain --flow`` prints the steps. `tests/unit/test_flow.py`
fails if the code of a step reads, writes or folds otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, zip_longest
from textwrap import wrap

from highwater.schemas.catalog import BY_FULL_NAME
from highwater.schemas.package_data import read_toml
from highwater.schemas.silver import TABLES as PARSED
from highwater.schemas.table import TableSpec


@dataclass(frozen=True)
class FlowStep:
    """One step of a run, with the fields of ``flow.toml``."""

    verb: str
    name: str  #: also the layer of the files that the step leaves for later steps
    says: str
    stage: str
    worker: str
    reads: str = ""
    by: str = ""
    gives: str = ""

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """Return tables and files that it reads."""
        return tuple(self.reads.split())

    @cached_property
    def key(self) -> tuple[str, ...]:
        """Return columns of the key of its fold."""
        return tuple(self.by.split())

    @cached_property
    def results(self) -> tuple[str, ...]:
        """Return tables and files that it writes."""
        return tuple(self.gives.split())

    @cached_property
    def tables(self) -> tuple[TableSpec, ...]:
        """Return tables that it writes."""
        return tuple(BY_FULL_NAME[name] for name in self.results if name in BY_FULL_NAME)

    @cached_property
    def files(self) -> tuple[str, ...]:
        """Return names of the files that it writes, without its own."""
        return tuple(name.partition(".")[2] for name in self.results if name not in BY_FULL_NAME)


_SILVER = " ".join(spec.full_name for spec in PARSED)


def _read_steps() -> Iterator[FlowStep]:
    for name, given in read_toml(__package__ or "", "flow.toml").items():
        yield FlowStep(name=name, **{field: text.replace("silver.*", _SILVER) for field, text in given.items()})


#: In the order in which a run takes them.
STEPS = tuple(_read_steps())
_BY_NAME = {step.name: step for step in STEPS}
#: Tables that no step gives, and who keeps each: they are about the lake, and not about what is in the logs.
OF_THE_LAKE = {
    "gold.runs": "jobs/run_ledger.py",
    "state.digests": "pipelines/lake/digests.py",
    "state.expiries": "pipelines/upkeep/expiry.py",
    "state.upgrades": "pipelines/upkeep/upgrade.py",
}


def key(name: str) -> tuple[str, ...]:
    """Return the columns of the key of a step's fold."""
    return _BY_NAME[name].key


_HEADS = ("step", "takes of", "by", "tables")


def describe_steps() -> str:
    """Return the steps as text: what each reads, its key, its worker, what it writes."""
    lines = []
    for verb, of_verb in groupby(STEPS, key=lambda step: step.verb):
        lines += [f"highwater {verb}", ""]
        for step in of_verb:
            lines.append(f"  {step.name}: {step.says}")
            parts = {
                "reads": ", ".join(_shorten_names(step.sources)) or "files",
                "by": ", ".join(step.key),
                "stage": _place(step.stage),
                "worker": _place(step.worker),
                "gives": ", ".join(_shorten_names(step.results)) or "what the steps behind it are told",
            }
            lines += [f"    {label:8}{text}" for label, text in parts.items() if text]
            lines.append("")
    return "\n".join(lines).rstrip()


def format_figure() -> str:
    """Return the steps as a figure: the inputs of each, the key of its fold, and its tables."""
    widths = (13, 42, 25, 48)
    lines = ["".join(f"{head:{width}}" for head, width in zip(_HEADS, widths, strict=True)).rstrip()]
    for step in STEPS:
        takes = [other.name for other in STEPS if other is not step and set(other.results) & set(step.sources)]
        key = [name.removesuffix("_id") for name in step.key if name != "cluster_id"]
        tables = [spec.name for spec in step.tables] if step.name != "facts" else [f"silver, {len(PARSED)} tables"]
        cells = (step.name, ", ".join(takes) if step.sources else "files", ", ".join(key), ", ".join(tables))
        wrapped = [wrap(cell, width - 1) for cell, width in zip(cells, widths, strict=True)]
        for parts in zip_longest(*wrapped, fillvalue=""):
            lines.append("".join(f"{part:{width}}" for part, width in zip(parts, widths, strict=True)).rstrip())
    return "\n".join(lines)


def _shorten_names(names: tuple[str, ...]) -> list[str]:
    """Return names, with all tables of silver that parsing writes as one word."""
    others = [name for name in names if name not in _SILVER.split()]
    whole = set(_SILVER.split()) <= set(names)
    return [*others, f"silver.* ({len(PARSED)} tables)"] if whole else list(names)


def _place(dotted: str) -> str:
    module, _, name = dotted.rpartition(".")
    return f"pipelines/{module.replace('.', '/')}.py {name}"
