"""Members of share groups: what they were given and gave back. Pure."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

from pipelines.report.figures import Collected, Rows
from pipelines.report.measures import ShareMember

#: Members that a report has.
MEMBERS_MAX: Final = 100
_SUMS: Final = (
    *("fetches", "waited", "unexplained", "delivered", "redelivered", "accepted", "released", "rejected", "renewed"),
    "refused",
)

_Member = tuple[str, str | None, str | None]


def share_members(rows: Collected) -> tuple[ShareMember, ...]:
    """All of them, by group, those who were given most first."""
    by_member: dict[_Member, Rows] = defaultdict(list)
    for row in rows.share_members:
        by_member[_member(row)].append(row)
    expired = {_member(row): row["records"] for row in rows.locks_expired}
    members = [_of_rows(of_member, expired.get(member, 0)) for member, of_member in by_member.items()]
    return tuple(
        sorted(members, key=lambda row: (row.cluster_id, row.group_id or "", -row.delivered, row.member_id or ""))
    )


def _member(row: dict[str, Any]) -> _Member:
    return row["cluster_id"], row["group_id"], row["member_id"]


def _of_rows(rows: Rows, expired: int) -> ShareMember:
    first = min(rows, key=lambda row: (row["client_id"] is None, row["client_id"] or ""))
    causes = sorted(((row["cause"], row["requests"]) for row in rows), key=lambda item: (-item[1], item[0]))
    return ShareMember.of(
        first,
        **{name: sum(row[name] for row in rows) for name in _SUMS},
        locks_expired=expired,
        by_cause=dict(causes),
    )
