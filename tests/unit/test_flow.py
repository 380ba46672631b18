"""The way of the data (`schemas.flow`) is what the code does, and what ARCHITECTURE.md draws.

What a step's function refers to, and what those of its room refer to that it calls, is read off their syntax trees:
tables, files of other steps, keys of folds.
"""

import ast
import inspect
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from highwater.jobs.cli import highwater
from highwater.pipelines.base.chunks import Keyed
from highwater.pipelines.replay.late import OPERATION_SHAPES
from highwater.schemas import flow
from highwater.schemas.catalog import BY_FULL_NAME, TABLES
from highwater.schemas.flow import OF_THE_LAKE, STEPS, FlowStep
from highwater.schemas.state import FOLDS
from highwater.schemas.table import TableSpec
from tests.unit.test_dependencies import MODULES, PREFIX

ROOT = Path(__file__).resolve().parents[2]
#: Operations of three kinds come from three folds.
GIVEN_BY_SEVERAL = {"gold.delayed_operations": 3}
#: What was checked of rows that are parsed anew is forgotten.
FORGOTTEN = {"facts": {"quality.results"}}
#: It commits what the folds of the replay give.
RUNNER = "pipelines.gold.gold"
WRITES = {
    "append_once",
    "append_files",
    "append_made",
    "append_blobs",
    "replace",
    "replace_files",
    "replace_part",
}
WRITES |= {"merge", "merge_files", "empty", "write_rows", "write_blobs"}


class Named(NamedTuple):
    """What code refers to."""

    tables: set[str]  #: by full name
    files: set[str]  #: names under which files of a run are asked for
    keys: set[tuple[str, ...]]  #: of folds
    others: set[Any]  #: functions and classes of our own


def _place(dotted: str) -> Any:
    module, _, name = dotted.rpartition(".")
    return getattr(import_module(f"highwater.pipelines.{module}"), name)


STAGES = {step.name: _place(step.stage) for step in STEPS}


def _room(function: Any) -> str:
    return ".".join(function.__module__.split(".")[:3])


def _is_ours(value: Any) -> bool:
    return (inspect.isfunction(value) or inspect.isclass(value)) and value.__module__.startswith("highwater.pipelines.")


def _value(node: ast.AST, module: Any) -> Any:
    """What an expression is where it is read off names of the module alone; None else."""
    try:
        return eval(compile(ast.Expression(node), "", "eval"), vars(module))  # type: ignore[arg-type]
    except Exception:
        return None


def _expressions(code: Any) -> Iterator[ast.AST]:
    """Of a function or class, without what is said of types."""
    todo: list[ast.AST] = [ast.parse(textwrap.dedent(inspect.getsource(code)))]
    while todo:
        node = todo.pop()
        yield node
        typed = {id(getattr(node, name, None)) for name in ("annotation", "returns")}
        todo += [child for child in ast.iter_child_nodes(node) if id(child) not in typed]


def _specs(value: Any) -> list[TableSpec]:
    """Tables, alone or in what collects them."""
    if isinstance(value, TableSpec):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, tuple | list) else ()
    return [spec for part in parts for spec in _specs(part)]


def _named(code: Any) -> Named:
    named = Named(set(), set(), set(), set())
    module = sys.modules[code.__module__]
    for node in _expressions(code):
        if isinstance(node, ast.Name | ast.Attribute):
            value = _value(node, module)
            named.tables.update(spec.full_name for spec in _specs(value))
            if isinstance(value, Keyed):
                named.keys.add(value.key)
            if _is_ours(value):
                named.others.add(value)
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name == "Keyed":
                named.keys.add(_value(node.args[1], module))
            elif name == "carried_of":
                named.tables.add(FOLDS.full_name)
            elif name in ("reading", "few_rows", "least") and isinstance(_value(node.args[0], module), str):
                named.files.add(_value(node.args[0], module))
    return named


@cache
def _reached(step: FlowStep) -> Named:
    """What a step's function refers to, and what of its room it calls; not what is another step's."""
    stage = STAGES[step.name]
    others, rooms = set(STAGES.values()) - {stage}, {_room(stage), _room(_place(step.worker))}
    reached, todo, seen = Named(set(), set(), set(), set()), [stage], {stage}
    while todo:
        named = _named(todo.pop())
        for all_of, some in zip(reached, named, strict=True):
            all_of.update(some)
        new = {code for code in named.others if _room(code) in rooms} - seen - others
        seen |= new
        todo += new
    return reached


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_a_step_reads_and_gives_the_tables_that_it_says(step: FlowStep) -> None:
    given = {spec.full_name for spec in step.tables}
    read = {name for name in step.sources if name in BY_FULL_NAME}
    assert _reached(step).tables - FORGOTTEN.get(step.name, set()) == read | given


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_it_takes_the_files_that_it_says(step: FlowStep) -> None:
    reached = _reached(step)
    sources = [name for name in step.sources if name not in BY_FULL_NAME]
    assert set(sources) <= {name for other in STEPS for name in other.results}
    # Few rows are given to who calls the fold, and never lie in a file.
    called = {name for name in sources if STAGES[name.partition(".")[0]] in reached.others}
    asked_for = {name.partition(".")[2] for name in set(sources) - called}
    assert reached.files - set(step.files) == asked_for


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_it_folds_by_the_key_that_it_says(step: FlowStep) -> None:
    assert _reached(step).keys == ({step.key} if step.key else set())
    if step.key:
        worker = import_module(_place(step.worker).__module__)
        assert tuple(getattr(worker, "KEY_TYPES", getattr(worker, "KEY", step.key))) == step.key


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_its_worker_is_who_does_it(step: FlowStep) -> None:
    assert _place(step.worker) in _reached(step).others


@pytest.mark.parametrize("step", [step for step in STEPS if step.key], ids=lambda step: step.name)
def test_a_fold_gives_the_tables_and_files_of_its_worker(step: FlowStep) -> None:
    module = import_module(_place(step.worker).__module__)
    shapes = {**getattr(module, "SHAPES", {}), **getattr(module, "SMALL", {})}
    if step.files:
        assert set(step.files) <= {*shapes, *OPERATION_SHAPES}
        assert set(shapes) <= {*step.files, *(spec.name for spec in step.tables)}


def test_each_table_is_given_by_one_step() -> None:
    given = Counter(spec.full_name for step in STEPS for spec in step.tables)
    assert {name: count for name, count in given.items() if count > 1} == GIVEN_BY_SEVERAL
    assert given.keys() | OF_THE_LAKE.keys() == {spec.full_name for spec in TABLES}
    assert not given.keys() & OF_THE_LAKE.keys()


def _written_in(text: str, module: ModuleType) -> set[str]:
    """Tables that a module writes by name."""
    written = set()
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in WRITES
            and node.args
        ):
            written |= {spec.full_name for spec in _specs(_value(node.args[0], module))}
    return written


def test_a_table_is_written_where_its_step_is() -> None:
    texts = {name: path.read_text(encoding="utf-8") for name, path in MODULES.items()}
    for name in [name for name, text in texts.items() if "lake." in text and "schemas" in text]:
        for table in _written_in(texts[name], import_module(PREFIX + name)):
            steps = [step for step in STEPS if table in step.results]
            places = {
                code.__module__.removeprefix(PREFIX)
                for step in steps
                for code in (STAGES[step.name], *_reached(step).others)
            }
            is_keeper = OF_THE_LAKE.get(table) == MODULES[name].relative_to(ROOT).as_posix()
            assert is_keeper or name in places | {RUNNER}, f"{name} writes {table}"


def test_the_map_draws_it() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert f"```\n{flow.format_figure()}\n```" in text, "put there what `highwater explain --flow` begins with"


def test_explain_prints_it() -> None:
    printed = CliRunner().invoke(highwater, ["explain", "--flow"])
    assert printed.output.startswith(flow.format_figure())
    for step in STEPS:
        assert f"  {step.name}: {step.says}" in printed.output
