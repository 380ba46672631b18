"""Find regular expressions whose time grows faster than their input.

    python -m tests.bench.patterns [CHARS]

All modules are imported with a hook on the compiler, so that every pattern is collected, those made of data files
among them. Patterns that functions pass to `re` as literals are read from the source. Each is then fed what is worst
for it. Such a text is built from the parse tree: what comes before a repetition, then many of what it repeats or of
what follows it, then what no pattern expects. Runs of every class of characters come on top. What takes too long is
printed, a line each.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from re import _constants as c  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGES = ("pipelines", "jobs", "schemas")
#: Length of the large text; the small one is an eighth of it.
CHARS = 24_000
#: A longer text is tried only with what is slow for one of this length.
FIRST_CHARS = 200_000
#: CPU time, whose clock ticks every 4 ms. A linear pattern takes about a millisecond for so much.
SUSPECT_S, ENDLESS_S = 0.032, 1.0
#: Linear growth is 8, quadratic growth 64.
GROWTH_MAX = 24
#: Modules whose patterns see no input, but texts of exceptions, of the environment, or of this repository.
NOT_INPUT = (
    "highwater.pipelines.base.limits",
    "highwater.pipelines.bronze.layouts.loggers",
    "highwater.pipelines.lake.cluster_probe",
    "highwater.pipelines.storage.hdfs",
    "highwater.pipelines.storage.machine_faults",
)
#: Modules whose patterns see one line, without its end.
OF_LINES = (
    "highwater.pipelines.bronze.wrappers.lines",
    "highwater.pipelines.bronze.wrappers.remarks",
    "highwater.pipelines.grammars.client_values",
    "highwater.pipelines.grammars.grammar",
    "highwater.pipelines.incidents.kinds.clients",
)
#: Patterns that see a text with a bound, and which: by module and name.
BOUNDED = {
    ("highwater.pipelines.bronze.broker_names", "_NAME"): "the last 255 characters of a name",
    ("highwater.pipelines.bronze.discover", "_LOG_NAME"): "the last 255 characters of a name",
    ("highwater.pipelines.bronze.layouts.anchors", "_CONTEXT"): "the first 1,000 bytes of a text",
    ("highwater.pipelines.bronze.layouts.anchors", "_CLASS"): "the first 1,000 bytes of a text",
    ("highwater.pipelines.bronze.layouts.anchors", "_CONTINUED"): "the first 1,000 bytes of a text",
    ("highwater.pipelines.bronze.layouts.infer", "_CLASS_AT"): "the first 400 bytes of a line",
    ("highwater.pipelines.bronze.layouts.infer", "_LAST_NAME"): "the last 211 bytes of a line",
    ("highwater.pipelines.bronze.layouts.infer", "_PREFIX"): "up to 120 bytes before the time of a line",
}
#: Patterns of collections, and those that are passed to a function: how it uses them, by module and name.
PASSED = {
    ("highwater.pipelines.bronze.layouts.anchors", "CONTINUATION"): "match",
    ("highwater.pipelines.bronze.layouts.infer", "_NAME_AT"): "match",
    ("highwater.pipelines.bronze.layouts.infer", "_BRACKET_AT"): "match",
    ("highwater.pipelines.bronze.layouts.infer", "_METHOD_AT"): "match",
    ("highwater.pipelines.grammars.client_values", None): "match",
    ("highwater.pipelines.grammars.grammar", "matcher"): "fullmatch",
    ("highwater.pipelines.bronze.wrappers.remarks", "_REMARKS"): "fullmatch",
}
#: Functions that take a pattern first, and how they use it.
FUNCTIONS = {"match_whole": "fullmatch", "match_items": "match"}
SEARCHING = frozenset({"search", "finditer", "findall", "sub", "subn"})
MATCHING = frozenset({"match", "fullmatch"})
RUNS = "a0 \n\t.,-:=()[]{}\"'\\/_A#$+;<>@^|\x1b!\0\xe9"
PAIRED = '\n a0."\\[('
#: What no pattern ends with.
END = "\0\n\0"


class Compiled(NamedTuple):
    """A pattern, where it is compiled, and how it is used."""

    pattern: re.Pattern[Any]
    module: str
    line: int
    ways: frozenset[str]


def collect() -> Iterator[Compiled]:
    """Yield every pattern that the modules of the product compile. The process must not have imported them."""
    found: dict[tuple[object, int], tuple[re.Pattern[Any], str, int]] = {}
    own = re._compile  # type: ignore[attr-defined]

    def compile_noted(pattern: Any, flags: int) -> Any:
        made = own(pattern, flags)
        frame = sys._getframe(1)
        while frame.f_globals["__name__"] == "re" and frame.f_back is not None:
            frame = frame.f_back
        if _is_of_product(frame.f_globals["__name__"]):
            found.setdefault((made.pattern, made.flags), (made, frame.f_globals["__name__"], frame.f_lineno))
        return made

    re._compile = compile_noted  # type: ignore[attr-defined]
    for package in PACKAGES:
        for info in pkgutil.walk_packages([str(ROOT / package)], f"highwater.{package}."):
            importlib.import_module(info.name)
    from highwater.pipelines.bronze.layouts.patterns import pattern_layout
    from highwater.pipelines.grammars.client_values import compile_heads
    from highwater.pipelines.grammars.grammar import Grammar
    from highwater.pipelines.grammars.templates import SHARED, TEMPLATES
    from highwater.pipelines.redact.pseudonyms import Pseudonyms
    from highwater.pipelines.redact.text import Redactor

    Grammar((*TEMPLATES, *SHARED))
    compile_heads()
    for pattern in ("[%d] %p %m (%c)", "%d %-5p [%t] %c{1}: %m", "%d{ISO8601} [%X{a}] %p %C:%L - %m (%c) [%t]"):
        pattern_layout(pattern)
    Redactor(Pseudonyms(b"key", {"group": ["a (b)"]}))
    re._compile = own  # type: ignore[attr-defined]
    for made, module, line in found.values():
        if module not in NOT_INPUT:
            yield Compiled(made, module, line, _ways(module, line))
    for module in sorted({module for module in sys.modules if _is_of_product(module)} - {*NOT_INPUT}):
        yield from _literals(module)


def _is_of_product(module: str) -> bool:
    return module.removeprefix("highwater.").split(".")[0] in PACKAGES


def _literals(module: str) -> Iterator[Compiled]:
    """Yield the patterns that functions of a module pass to `re` as literals."""
    tree = ast.parse(Path(sys.modules[module].__file__ or "").read_text(encoding="utf-8"))
    for function in ast.walk(tree):
        for node in ast.walk(function) if isinstance(function, ast.FunctionDef | ast.Lambda) else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re.") and node.args:
                pattern, way = node.args[0], node.func.attr  # type: ignore[attr-defined]
                if isinstance(pattern, ast.Constant) and way in SEARCHING | MATCHING:
                    yield Compiled(re.compile(pattern.value), module, node.lineno, frozenset({way}))


def _ways(module: str, line: int) -> frozenset[str]:
    """Return how a pattern is used: MATCHING, SEARCHING, or methods of both; empty for one with a bound."""
    tree = ast.parse(Path(sys.modules[module].__file__ or "").read_text(encoding="utf-8"))
    names: dict[int, str] = {}
    uses: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name):
                names |= {call.lineno: target.id for call in ast.walk(node.value) if isinstance(call, ast.Call)}
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in SEARCHING | MATCHING:
            uses.setdefault(node.value.id, set()).add(node.attr)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS and node.args:
            uses.setdefault(ast.unparse(node.args[0]), set()).add(FUNCTIONS[node.func.id])
    name = names.get(line)
    if (module, name) in BOUNDED:
        return frozenset()
    if name in uses:
        return frozenset(uses[name])
    return frozenset({PASSED[module, name]} if (module, name) in PASSED else MATCHING | SEARCHING)


def attacks(pattern: re.Pattern[Any]) -> set[tuple[str, str]]:
    """Return beginnings, each with what is repeated after it."""
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    tree = parser.parse(text, pattern.flags & ~re.UNICODE)
    whole = _example(tree)
    found = {("", char) for char in RUNS} | {("", a + b) for a in PAIRED for b in PAIRED if a != b}
    for before, chars in _repetitions(tree, ""):
        following = whole[len(before) : len(before) + 12]
        units = {following, following[:3], before[-8:], before, whole, *chars[:5]}
        units |= {chars[0] + unit for unit in units} if chars else set()
        found |= {(before, unit) for unit in units if unit}
    return found


def _repetitions(items: Any, before: str) -> Iterator[tuple[str, list[str]]]:
    """Yield what comes before each repetition without a bound, and what it repeats."""
    for kind, value in items:
        inner = _inner(kind, value)
        if kind in _REPEATS and value[1] > 100:
            ((first_kind, first),) = list(value[2]) if len(value[2]) == 1 else [(None, None)]
            is_char = first_kind in (c.IN, c.ANY, c.LITERAL, c.NOT_LITERAL)
            yield before, _chars(first_kind, first) if is_char else [_example(value[2])]
        for part in inner:
            yield from _repetitions(part, before)
        before += _example([(kind, value)])


_REPEATS = (c.MAX_REPEAT, c.MIN_REPEAT, c.POSSESSIVE_REPEAT)


def _inner(kind: Any, value: Any) -> list[Any]:
    if kind in _REPEATS:
        return [value[2]]
    if kind is c.BRANCH:
        return list(value[1])
    if kind is c.SUBPATTERN:
        return [value[3]]
    if kind in (c.ASSERT, c.ASSERT_NOT):
        return [value[1]]
    return [value] if kind is c.ATOMIC_GROUP else []


def _example(items: Any) -> str:
    """Return a short text that the items match, but for what lookarounds ask."""
    text = ""
    for kind, value in items:
        if kind in (c.IN, c.ANY, c.LITERAL, c.NOT_LITERAL):
            text += (_chars(kind, value) or ["a"])[0]
        elif kind in _REPEATS:
            text += _example(value[2]) * value[0]
        elif kind not in (c.ASSERT, c.ASSERT_NOT):
            text += "".join(map(_example, _inner(kind, value)[:1]))
    return text


def _chars(kind: Any, value: Any) -> list[str]:
    """Return some characters that an item matches."""
    if kind is c.LITERAL:
        return [chr(value)]
    if kind in (c.ANY, c.NOT_LITERAL):
        excluded = "\n" if kind is c.ANY else chr(value)
        return [char for char in RUNS if char != excluded]
    named = {char for item, at in value if item is c.LITERAL for char in chr(at)}
    named |= {chr(at[0]) for item, at in value if item is c.RANGE}
    candidates = [*RUNS, *sorted(named - {*RUNS})]
    one = re.compile(_class_of(value), re.ASCII)
    return [char for char in candidates if one.fullmatch(char)]


def _class_of(items: Any) -> str:
    text, negated = "", ""
    for kind, value in items:
        if kind is c.NEGATE:
            negated = "^"
        elif kind is c.LITERAL:
            text += re.escape(chr(value))
        elif kind is c.RANGE:
            text += f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
        else:
            text += _CATEGORIES[value]
    return f"[{negated}{text}]"


_CATEGORIES = {
    c.CATEGORY_DIGIT: r"\d",
    c.CATEGORY_NOT_DIGIT: r"\D",
    c.CATEGORY_SPACE: r"\s",
    c.CATEGORY_NOT_SPACE: r"\S",
    c.CATEGORY_WORD: r"\w",
    c.CATEGORY_NOT_WORD: r"\W",
}


class _EndlessError(Exception):
    """A pattern has taken more than `ENDLESS_S`."""


def seconds(compiled: Compiled, before: str, unit: str, chars: int) -> float:
    """Return the CPU time that a pattern takes for a text."""
    text: Any = before + unit * (chars // len(unit)) + END
    if compiled.module in OF_LINES:
        text = text.replace("\n", " ")
    if isinstance(compiled.pattern.pattern, bytes):
        text = text.encode("latin-1", "replace")
    signal.setitimer(signal.ITIMER_VIRTUAL, ENDLESS_S)
    begun = time.process_time()
    try:
        if compiled.ways & MATCHING:
            compiled.pattern.match(text)
            compiled.pattern.fullmatch(text)
        if compiled.ways & SEARCHING:
            for _ in compiled.pattern.finditer(text):
                pass
    except _EndlessError:
        return float("inf")
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return time.process_time() - begun


def worst(compiled: Compiled, chars: int = CHARS) -> tuple[str, str] | None:
    """Return an attack under which a pattern grows faster than its input. None if there is none that is known."""
    for before, unit in sorted(attacks(compiled.pattern)):
        # What is fast at this length is not quadratic at five times as much.
        if chars > FIRST_CHARS and seconds(compiled, before, unit, FIRST_CHARS) < SUSPECT_S:
            continue
        large = seconds(compiled, before, unit, chars)
        if large < SUSPECT_S * chars / CHARS:
            continue
        # Whoever else uses the machine makes one measure long, and hardly the least of three.
        large = min(large, *(seconds(compiled, before, unit, chars) for _ in range(2)))
        small = min(seconds(compiled, before, unit, chars // 8) for _ in range(3))
        if large >= SUSPECT_S * chars / CHARS and (small == float("inf") or large > GROWTH_MAX * small):
            return before, unit
    return None


def _end(*_: object) -> None:
    raise _EndlessError


if __name__ == "__main__":
    signal.signal(signal.SIGVTALRM, _end)
    length = int(sys.argv[1]) if len(sys.argv) > 1 else CHARS
    for each in collect():
        if each.ways and (attack := worst(each, length)) is not None:
            shown = f"{each.pattern.pattern!r:.160}"
            print(f"{each.module}:{each.line} {shown}: {attack[0][-60:]!r}, then {attack[1][:40]!r}", flush=True)
