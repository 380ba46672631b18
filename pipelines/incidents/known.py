"""Known bugs in incidents: the one table of `pipelines.rules.known_bugs`, asked for a release. Pure."""

from __future__ import annotations

from functools import partial

from pipelines.incidents.incident import Bug
from pipelines.kafka.releases import value_of
from pipelines.rules.known_bugs import KNOWN_BUGS, applies

_BY_JIRA = {bug.jira: bug for bug in KNOWN_BUGS}


def bug_of(jira: str, version: str | None) -> Bug | None:
    """A bug by its number, with the releases that first have its fix; None if this release has not the bug.

    Args:
        version: as logged; None where no line tells it: the signature alone speaks.

    Raises:
        KeyError: the table has no such bug.
    """
    bug = _BY_JIRA[jira]
    if version is not None and value_of(version, partial(applies, bug)) is False:
        return None
    return Bug(jira, releases_of(jira))


def releases_of(jira: str) -> str:
    """The releases that first have a bug's fix, such as ``2.0.1 and 2.1.0``; empty for a bug that the table has not."""
    bug = _BY_JIRA.get(jira)
    return "" if bug is None else " and ".join(".".join(map(str, fixed)) for fixed in bug.fixed_in)
