"""Faults of the machine in exceptions: a full disk, a limit of the system, a dead JVM.

Python, the JVM, Hadoop's file system, Delta and the Python workers each wrap such a fault in exceptions of their own,
some in several layers; what all of them keep is the kernel's wording. So the texts of the whole chain are searched, in
this one place. A fault of none of these kinds is a defect, and stays what it was.

Nothing has to be repaired after any of them: a table changes by one commit or not at all, and the next run continues
from what the tables hold.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from highwater.pipelines.base import limits
from highwater.pipelines.base.errors import EnvironmentProblem, HighwaterError, InputError
from highwater.pipelines.storage.place import Place, resolved

_FULL = re.compile(r"No space left on device|Disk quota exceeded|Not enough space|\[Errno (?:28|122)\]")
_FORBIDDEN = re.compile(
    r"Read-only file system|Permission denied|Operation not permitted|AccessDeniedException|Mkdirs failed to create"
    r"|ReadOnlyFileSystemException|\[Errno (?:1|13|30)\]"
)
_HEAP = re.compile(r"java\.lang\.OutOfMemoryError|GC overhead limit exceeded")
_JVM_GONE = re.compile(
    r"Py4JNetworkError|Answer from Java side is empty|Error while sending or receiving"
    r"|ConnectionRefusedError|ConnectionResetError|Py4J.*is closed"
)
#: The last line of a traceback that ends with an error of ours.
_RAISED = re.compile(rf"^{re.escape(HighwaterError.__module__)}\.(\w+): (.+)$", re.MULTILINE)
#: Spark's own words of a data file.
_UNREAD = re.compile(r"FAILED_READ_FILE\S* Encountered error while reading file (\S+?)\.?(?:\s|$)")
_EXECUTOR_LOST = re.compile(r"ExecutorLostFailure")
_AGAIN = "run again: the tables are as their last commits left them"
_CHAIN_MAX = 20
#: A disk with this much room is not full: inodes or a quota are used up.
_ROOM_BYTES = 1 << 30


@contextmanager
def translate_faults(lake: Place, scratch: Sequence[Path]) -> Iterator[None]:
    """Convert exceptions caused by the machine, and user errors that tasks raised.

    Args:
        lake: the folder that the block writes.
        scratch: Spark's local folders.

    Raises:
        EnvironmentProblem: names the folder or setting, and the remedy.
        HighwaterError: a task raised it.
    """
    try:
        yield
    except HighwaterError:
        raise
    except Exception as error:
        problem = find_task_error(error) or find_fault(error, lake, scratch)
        if problem is None:
            raise
        raise problem from error


def find_task_error(error: BaseException) -> HighwaterError | None:
    """Return the user error that a task raised, with its exit code. None if no task raised one.

    An unreadable table file counts as one. Spark passes a task's traceback as text; its last exception ended the task.
    """
    said = "\n".join(_list_texts(error))
    if unread := _UNREAD.search(said):
        place = unread[1].removeprefix("file://")
        return InputError(place, "cannot be read as a file of its table", "restore it, or audit into a new lake")
    raised = _RAISED.findall(said)
    kinds = {kind.__name__: kind for kind in _list_kinds(HighwaterError)}
    name, text = raised[-1] if raised else ("", "")
    if name not in kinds:
        return None
    problem = HighwaterError(text)
    problem.exit_code = kinds[name].exit_code
    return problem


def _list_kinds(kind: type[HighwaterError]) -> Iterator[type[HighwaterError]]:
    yield kind
    for narrower in kind.__subclasses__():
        yield from _list_kinds(narrower)


def find_fault(error: BaseException, lake: Place, scratch: Sequence[Path]) -> EnvironmentProblem | None:
    """Return the machine's fault behind an exception: full disk, limit, dead JVM. None if unknown."""
    text = "\n".join(_list_texts(error))
    if _FULL.search(text):
        folder = _find_full_folder(text, lake, scratch)
        free = _measure_free_bytes(folder)
        room = "" if free is None else f" ({free / (1 << 20):.0f} MB free)"
        if free is not None and free > _ROOM_BYTES:
            room = f"{room[:-1]}: it holds no more files, or a quota is used up)"
        elsewhere = "" if folder == lake else ", or put spark.local.dir elsewhere in [session.spark]"
        return EnvironmentProblem(f"{folder}: no space left on its disk{room}", f"make room{elsewhere}, then {_AGAIN}")
    if _FORBIDDEN.search(text) and (forbidden := _find_named_folder(text, lake, scratch)) is not None:
        why = "its file system is read-only" if "Read-only" in text else "permission denied"
        return EnvironmentProblem(f"{forbidden}: cannot be written ({why})", f"make it writable, then {_AGAIN}")
    if (limited := limit_fault(text)) is not None:
        return limited
    if _HEAP.search(text):
        remedy = "raise session.driver_memory, or spark.executor.memory where an executor's was full"
        return EnvironmentProblem("Spark ran out of heap", f"{remedy}, then {_AGAIN}")
    if _EXECUTOR_LOST.search(text):
        return EnvironmentProblem(
            "Spark lost executors amid the work: they were killed, perhaps for want of memory",
            f"raise spark.executor.memoryOverhead (Python workers live there) or spark.executor.memory, then {_AGAIN}",
        )
    if _JVM_GONE.search(text):
        return EnvironmentProblem(
            "Spark's JVM has ended amid the work: it was killed, perhaps for want of memory",
            f"see to it, then {_AGAIN}",
        )
    return None


def limit_fault(error: BaseException | str, is_set: bool = False) -> EnvironmentProblem | None:
    """Return the system limit that an exception or its text shows as reached. None if there is none.

    Args:
        is_set: the limit is one that the user set.
    """
    limit = limits.find_reached(error if isinstance(error, str) else "\n".join(_list_texts(error)), is_set)
    return None if limit is None else EnvironmentProblem(limit[0], f"{limit[1]}, then {_AGAIN}")


def _list_texts(error: BaseException | None) -> Iterator[str]:
    """Yield type and text of an exception and its causes. Errors of a dead JVM have no text."""
    seen: set[int] = set()
    waiting = [error]
    while waiting and len(seen) < _CHAIN_MAX:
        current = waiting.pop(0)
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        yield type(current).__name__
        try:
            yield str(current)
        except Exception as lost:
            yield type(lost).__name__
        yield str(getattr(current, "_stackTrace", None) or "")
        waiting += [current.__cause__, current.__context__, _find_java_cause(current)]


def _find_java_cause(error: BaseException) -> BaseException | None:
    """Return the cause that PySpark stores in a converted exception."""
    cause = getattr(error, "_cause", None)
    return cause if isinstance(cause, BaseException) else None


def _find_full_folder(text: str, lake: Place, scratch: Sequence[Path]) -> Place:
    """Return the full folder: the one in the text, else the one with the least free space."""
    return _find_named_folder(text, lake, scratch) or min(
        (lake, *scratch), key=lambda folder: (_measure_free_bytes(folder) is None, _measure_free_bytes(folder))
    )


def _find_named_folder(text: str, lake: Place, scratch: Sequence[Path]) -> Place | None:
    """Return the first folder that a line about the fault names. None if no line names one."""
    lines = [line for line in text.splitlines() if _FULL.search(line) or _FORBIDDEN.search(line)]
    for folder in (lake, *scratch):
        places = {os.fspath(folder), os.fspath(resolved(folder))}
        if any(re.search(rf"(?<![\w/]){re.escape(place)}(?:/|\b)", line) for place in places for line in lines):
            return folder
    return None


def _measure_free_bytes(folder: Place) -> int | None:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None
