"""Errors that end a run, each with the exit code the command answers with.

Every message is one line that a user can act on: what is wrong, where, and what to do. Anything that is not a
`HighwaterError` is a defect of the program itself and ends with `INTERNAL`.

    HighwaterError       70  the base; raised as such only for defects found by the program itself
      ConfigError         2  a configuration file or an option: file, key, allowed values
      InputError          2  a file or folder given to the command: file, remedy
        SchemaMismatch    2  a table of the lake was written by another version of the declarations
        ForeignTable      2  a table of the lake has what no declaration has: it is not opened
        LakeBusy          2  another run writes the lake
        LeaseLost         2  this run may not write the lake any more
      QualityError        2  no file is left, since all were read wrongly: path, problem
      EnvironmentProblem  2  Java, jars, Python, disk: problem, remedy
      LakeError          70  a stage hands the lake rows that do not fit the table's declaration
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike

USAGE = 2
INTERNAL = 70


class HighwaterError(Exception):
    """Base of all errors that are shown to the user in one line."""

    exit_code: int = INTERNAL


class ConfigError(HighwaterError):
    """A configuration value is invalid.

    Attributes:
        file: the file, or ``command line``.
        key: dotted key. Empty if the whole file cannot be read.
        allowed: valid values. Empty if they cannot be listed.
    """

    exit_code = USAGE

    def __init__(self, file: str | PathLike[str], key: str, problem: str, allowed: Iterable[str] = ()) -> None:
        self.file = str(file)
        self.key = key
        self.problem = problem
        self.allowed = tuple(allowed)
        where = f"{self.file}: {key}" if key else self.file
        choices = f" (allowed: {', '.join(self.allowed)})" if self.allowed else ""
        super().__init__(f"{where}: {problem}{choices}")


class InputError(HighwaterError):
    """A file or folder given to the command cannot be used.

    Attributes:
        file: the file or folder.
        remedy: what to do.
    """

    exit_code = USAGE

    def __init__(self, file: str | PathLike[str], problem: str, remedy: str) -> None:
        self.file = str(file)
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{self.file}: {problem}; {remedy}")


class SchemaMismatch(InputError):
    """A table of the lake differs from its declaration."""


class ForeignTable(InputError):
    """A table of the lake names files elsewhere, or has undeclared constraints, generated columns or properties."""


class LakeBusy(InputError):
    """Another run writes the lake.

    Attributes:
        holder: description of that run.
    """

    def __init__(self, lake: str | PathLike[str], holder: str, waited_s: float) -> None:
        self.holder = holder
        waited = f", still after {waited_s:g} s" if waited_s else ""
        remedy = "wait until it has ended, use another --lake, or raise session.lock_wait_s"
        super().__init__(lake, f"is being written by {holder}{waited}", remedy)


class LeaseLost(InputError):
    """The lease of this run was lost; nothing was written since."""

    def __init__(self, lake: str | PathLike[str], why: str) -> None:
        super().__init__(lake, f"is not written any more: {why}", "run again: it resumes from the last commit")


class QualityError(HighwaterError):
    """No file is left to audit: all were read wrongly and are in quarantine.

    Attributes:
        files: (path, problem) of each.
    """

    exit_code = USAGE

    def __init__(self, files: Sequence[tuple[str, str]]) -> None:
        self.files = files
        path, problem = files[0]
        others = f" (so are {len(files) - 1} more)" if len(files) > 1 else ""
        super().__init__(f"{path}: {problem}{others}; no other log is left to audit")


class EnvironmentProblem(HighwaterError):
    """The machine lacks something that is required.

    Attributes:
        remedy: what to do.
    """

    exit_code = USAGE

    def __init__(self, problem: str, remedy: str) -> None:
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{problem}; {remedy}")


class LakeError(HighwaterError):
    """Rows do not fit the table that they are written to."""
