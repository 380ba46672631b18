"""Facts of brokers whose times are whole seconds, cut to these: all that rules compare is as coarse as the coarsest.

An instant that is computed from a line's time is up to a second later than that. Cut to seconds it is one of two, and
``earliest_us`` is the first of them, ``latest_us`` the second. So one instant surely comes before another if the latest
second of the one is below the earliest of the other, which is what rules ask anyway: of one instant nothing is first.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.base.arrow_rows import both, when
from pipelines.kafka.context import Spans
from pipelines.kafka.resolution import SECOND_US
from schemas import audit_facts as a

#: Their times are not those of a log.
_OF_FILES: Final = pa.array([a.FROZEN, a.METADATA, a.CHECKPOINT, a.EPOCH_ENTRY, a.BATCH])


def in_seconds(facts: pa.RecordBatch, spans: Spans) -> pa.RecordBatch:
    """Facts in seconds where they are all that their brokers' lines tell.

    Args:
        facts: in the columns of `pipelines.rules.facts.columns.TYPES`.
        spans: when the times of each (cluster, broker) are whole seconds.
    """
    is_coarse = pa.array([False] * len(facts), pa.bool_())
    # What ends after the last line of whole seconds may have begun before it.
    begun_us = pc.min_element_wise(facts["earliest_us"], facts["time_us"])
    for (cluster_id, broker_id), of_broker in spans.items():
        of_it = both(pc.equal(facts["cluster_id"], cluster_id), pc.equal(facts["broker_id"], broker_id))
        for since_us, until_us in of_broker:
            within = both(pc.greater_equal(facts["time_us"], since_us), pc.less(begun_us, until_us))
            is_coarse = pc.or_(is_coarse, pc.fill_null(both(of_it, within), False))
    is_coarse = both(is_coarse, pc.invert(pc.is_in(facts["kind"], value_set=_OF_FILES)))
    is_operation = pc.equal(facts["kind"], a.OPERATION)
    no_instant = pa.nulls(len(facts), pa.int64())
    latest = {name: _seconds(pc.add(facts[name], SECOND_US - 1)) for name in ("latest_us", "log_append_time_us")}
    cut = {
        # A request of gold is found again by the time of its line.
        "time_us": when(is_operation, facts["time_us"], _seconds(facts["time_us"])),
        "earliest_us": _seconds(facts["earliest_us"]),
        "latest_us": latest["latest_us"],
        # What an answer tells is no instant of a line; but no request is as exact, so nothing can be compared with it.
        "log_append_time_us": when(pc.equal(facts["kind"], a.ANSWER), no_instant, latest["log_append_time_us"]),
    }
    for name, values in cut.items():
        at = facts.schema.get_field_index(name)
        facts = facts.set_column(at, facts.schema.field(at), when(is_coarse, values, facts[name]))
    return facts


def _seconds(instants: pa.Array) -> pa.Array:
    """The last whole second before each instant, or itself."""
    return pc.multiply(pc.divide(instants, SECOND_US), SECOND_US)
