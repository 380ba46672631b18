"""The kernel's result for one partition of one produce request, and causes of whole requests.

Pure: plain records, no Spark.
"""

from __future__ import annotations

from dataclasses import dataclass

from highwater.pipelines.replay.required import Marker
from highwater.schemas.events import Event

# Causes: why an operation was, or should have been, answered.
HIGH_WATERMARK = "high_watermark"
ISR_CHANGE = "isr_change"
LEADER_ONLY = "leader_only"
AT_ONCE = "at_once"
TIMER = "timer"
LEADERSHIP_LOST = "leadership_lost"
ERROR = "error"
UNKNOWN = "unknown"
# Of fetches alone.
BYTES = "bytes"
NO_PARTITIONS = "no_partitions"
NO_WAIT = "no_wait"
SESSION_ERROR = "session_error"
DIVERGING_EPOCH = "diverging_epoch"
FENCED_EPOCH = "fenced_epoch"
PREFERRED_REPLICA = "preferred_replica"
THROTTLED = "throttled"
BEYOND_END = "beyond_end"
OLDER_SEGMENT = "older_segment"
# Of fetches that are read from the remote tier.
REMOTE_READ = "remote_read"
REMOTE_ERROR = "remote_error"
REMOTE_TIMER = "remote_timer"

# Missing evidence of an operation that cannot be judged.
END_OF_LOG = "end_of_log"
FETCH_NOT_LOGGED = "fetch_not_logged"
ISR_NOT_LOGGED = "isr_not_logged"
NO_LEADERSHIP = "no_leadership"
LATE_LOG_LINE = "late_log_line"
NO_BASE_OFFSET = "no_base_offset"
APPEND_NOT_LOGGED = "append_not_logged"
SESSION_NOT_LOGGED = "session_not_logged"
#: Times are whole seconds (`pipelines.replay.coarse`).
COARSE_TIMES = "coarse_times"


@dataclass
class PartitionOutcome:
    """Result of one partition of an acks=all produce request.

    Attributes:
        dequeued_us, handled_us: between them the records were appended and the operation began to wait.
        lowest_us, highest_us: predicted completion; None if unpredictable.
        cause: one of the causes above.
        closing: the follower's fetch that completed it, None if no fetch did.
        closing_replica: the replica whose fetch, or removal from the ISR, completed it.
        without_closing_us: when the other replicas alone would have completed it.
        predicted_error_code: error code that the rules give.
        required_offset: last offset + 1; `required_offset_logged` and `required_offset_derived` are its two sources.
        isr: ISR at completion; `isr_inferred` if no line showed it.
        missing: missing evidence, None if complete.
        proven_early: offsets prove that it was acknowledged although its record was never committed here.
        awaiting_logged: replicas that the broker last logged as awaited (T3); no prediction uses it.
        marker: the transaction marker; the offsets around it give its base offset.
    """

    request_id: str
    base_offset: int | None
    error_code: int | None
    dequeued_us: int
    handled_us: int
    completed_us: int
    partitions: int
    timeout_ms: int | None = None
    leader_epoch: int | None = None
    lowest_us: int | None = None
    highest_us: int | None = None
    cause: str = UNKNOWN
    closing: Event | None = None
    closing_replica: int | None = None
    without_closing_us: int | None = None
    predicted_error_code: int | None = None
    required_offset_logged: int | None = None
    required_offset_derived: int | None = None
    isr: tuple[int, ...] = ()
    isr_inferred: bool = False
    missing: str | None = None
    proven_early: bool = False
    awaiting_logged: tuple[int, ...] | None = None
    marker: Marker | None = None

    @property
    def required_offset(self) -> int | None:
        return self.required_offset_logged if self.required_offset_logged is not None else self.required_offset_derived
