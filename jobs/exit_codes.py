"""The exit codes of the command, one place for all of them."""

from __future__ import annotations

from enum import IntEnum

from highwater.pipelines.base import errors


class ExitCode(IntEnum):
    """Exit codes of `highwater`. An interrupted run ends as the shell expects: 128 + signal."""

    CLEAN = 0
    VIOLATED = 1
    USAGE = errors.USAGE
    INCONCLUSIVE = 3
    INTERNAL = errors.INTERNAL
    INTERRUPTED = 130
    BROKEN_PIPE = 141


#: By the verdict of a report.
OF_VERDICT = {"clean": ExitCode.CLEAN, "violated": ExitCode.VIOLATED, "inconclusive": ExitCode.INCONCLUSIVE}

#: For ``--help``; the marker keeps click from joining the lines.
EXIT_CODES_HELP = """\b
Exit codes:
   0  clean: no guarantee was broken, or the step is done
   1  violated: a guarantee was broken
   2  usage, configuration, input or environment error
   3  inconclusive: the logs do not show enough
  70  internal error (HIGHWATER_DEBUG=1 shows where)
"""
