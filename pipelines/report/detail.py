"""What the page shows beyond the figures of ``report.json``. Parts of `pipelines.report.model.Report`."""

from __future__ import annotations

from highwater.pipelines.base.values import Count, Instant, Part, Text
from highwater.pipelines.report.cluster.parts import Cluster
from highwater.pipelines.report.cubes.parts import Cubes


class RuleText(Part):
    """What a rule says."""

    rule_id: Text
    guarantee: Text
    source: Text
    tier: Text
    needs: Text


class Cost(Part):
    """What the run took."""

    bytes: Count  #: of the input files as stored; ``lines`` in them
    lines: Count
    made: Instant | None  #: when this report was made; null where nobody took the time
    seconds: float | None  #: from the verb's start until then


class Detail(Part):
    """All of it; null cubes: there are no operations or requests."""

    cluster: Cluster
    cubes: Cubes | None
    rules: tuple[RuleText, ...]
    cost: Cost


#: Of a report that is no page.
NO_DETAIL = Detail(cluster=Cluster(), cubes=None, rules=(), cost=Cost(bytes=0, lines=0, made=None, seconds=None))
