"""What the page shows beyond the figures of ``report.json``. Parts of `pipelines.report.model.Report`."""

from __future__ import annotations

from highwater.pipelines.base.values import Count, Instant, Part, Text
from highwater.pipelines.report.cluster.parts import Cluster
from highwater.pipelines.report.cubes.parts import Cubes


class RuleText(Part):
    """The texts of a rule."""

    rule_id: Text
    guarantee: Text
    source: Text
    tier: Text
    needs: Text


class Cost(Part):
    """Input size and duration of the run."""

    bytes: Count  #: of the input files as stored; ``lines`` in them
    lines: Count
    made: Instant | None  #: when this report was made; null if the time was not measured
    seconds: float | None  #: from the verb's start until then


class Detail(Part):
    """All details of the page. Null cubes: the logs contain no operations or requests."""

    cluster: Cluster
    cubes: Cubes | None
    rules: tuple[RuleText, ...]
    cost: Cost


#: Details of a report without a page.
NO_DETAIL = Detail(cluster=Cluster(), cubes=None, rules=(), cost=Cost(bytes=0, lines=0, made=None, seconds=None))
