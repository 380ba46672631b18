"""Tables of the bundled slice: of followers and of controllers."""

from __future__ import annotations

from pyspark.sql import functions as F

from highwater.pipelines.lake.lake import Lake
from highwater.schemas import controllers as c
from highwater.schemas import replicas as r
from highwater.schemas import silver
from highwater.schemas.audit import RULE_RESULTS


def test_followers_do_as_predicted(slice_lake: Lake):
    truncations, stays = slice_lake.read(r.REPLICA_TRUNCATIONS), slice_lake.read(r.FETCHER_TIMELINE)
    for spec, table in ((r.REPLICA_TRUNCATIONS, truncations), (r.FETCHER_TIMELINE, stays)):
        assert table.count() == table.select(*spec.keys).distinct().count() > 0
    lines = slice_lake.read(silver.TRUNCATIONS).where("source IN ('log', 'no_effect')")
    assert truncations.where("logged_time IS NOT NULL").count() == lines.count()
    assert truncations.where("class = 'differs'").count() == 0
    assert truncations.where("reply_source = 'logged'").count() > 0
    assert stays.where("fetcher_id = predicted_fetcher_id").count() > 0
    assert stays.where("fetcher_id <> predicted_fetcher_id").count() == 0


def test_controllers_break_no_rule(slice_lake: Lake):
    judged = slice_lake.read(RULE_RESULTS).where(
        F.col("rule_id").isin("illegal-state-transition", "failover-not-completed")
    )
    assert [(row["verdict"], row["cases"], row["checked"] > 0) for row in judged.collect()] == [("clean", 0, True)] * 2
    for spec in c.TABLES:
        table = slice_lake.read(spec)
        assert table.count() == table.select(*spec.keys).distinct().count() > 0
    completed = slice_lake.read(c.FAILOVERS).where("outcome = 'completed'")
    assert completed.where("taken_up_to_serving_ms >= 0").count() > 0
