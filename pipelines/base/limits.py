"""System limits of this process, as ``ulimit`` sets them. Needs no Spark."""

from __future__ import annotations

import re
import resource
from typing import Final, NamedTuple


class Limit(NamedTuple):
    """A resource limit of the process."""

    option: str  #: of ``ulimit``
    number: int  #: of `resource`
    unit_bytes: int  #: bytes of the shell's unit; 1 for counts
    what: str  #: missing resource if the limit is reached
    words: re.Pattern[str]  #: messages of the kernel, Python, Arrow and the JVM


FILES: Final = Limit(
    "-n", resource.RLIMIT_NOFILE, 1, "no more open files", re.compile(r"Too many open files|\[Errno (?:23|24)\]")
)
FILE_SIZE: Final = Limit(
    "-f", resource.RLIMIT_FSIZE, 1024, "no longer file", re.compile(r"File too large|File size limit|\[Errno 27\]")
)
MEMORY: Final = Limit(
    *("-v", resource.RLIMIT_AS, 1024, "no more memory"),
    re.compile(
        r"Cannot allocate memory|MemoryError|std::bad_alloc|malloc of size|\[Errno 12\]|errno=12|insufficient memory"
        r"|Could not (?:reserve enough|allocate) [\w ]*(?:space|memory|heap|metaspace)"
    ),
)
PROCESSES: Final = Limit(
    *("-u", resource.RLIMIT_NPROC, 1, "no more processes and threads"),
    re.compile(r"can't start new thread|unable to create (?:new )?native thread|\[Errno 11\]|Resource temporarily"),
)
ALL: Final = (FILES, FILE_SIZE, PROCESSES, MEMORY)


def read_limit(limit: Limit) -> int | None:
    """Return the current limit in the unit that ``ulimit`` uses. None if unlimited."""
    soft, _ = resource.getrlimit(limit.number)
    return None if soft == resource.RLIM_INFINITY else soft // limit.unit_bytes


def find_reached(text: str, is_set: bool = False) -> tuple[str, str] | None:
    """Return (missing resource, remedy) for the limit that an error message names. None if it names no limit.

    Args:
        is_set: only consider limits that are set. Otherwise the machine itself may have run out.
    """
    limit = next((limit for limit in ALL if limit.words.search(text)), None)
    if limit is None:
        return None
    value = read_limit(limit)
    if value is None and is_set:
        return None
    if value is None:
        remedy = "give it more, or do less at a time: fewer cores with --master, a smaller session.driver_memory"
        return f"this machine gives {limit.what}", remedy
    return (
        f"the system gives this process {limit.what} (ulimit {limit.option}: {value})",
        f"raise {_format_remedy(limit)}",
    )


def find_tight() -> tuple[str, str] | None:
    """Return (missing resource, remedy) for limits that prevent a JVM from starting. None if there are none."""
    values = [(limit, read_limit(limit)) for limit in (MEMORY, FILE_SIZE, FILES)]
    small = [(limit, value) for limit, value in values if value is not None and (limit is not FILES or value < 512)]
    if not small:
        return None
    named = ", ".join(f"ulimit {limit.option}: {value}" for limit, value in small)
    return (
        f"the system limits this process ({named})",
        f"raise {' and '.join(_format_remedy(limit) for limit, _ in small)}",
    )


def _format_remedy(limit: Limit) -> str:
    return f"ulimit {limit.option}" if limit is FILES or limit is PROCESSES else f"ulimit {limit.option}, or lift it"
