"""Why each rule is silent about the legal ways that make what it looks at; a way not listed does not touch it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pipelines.rules.legal import ways as w

_NO_START = "it looks at where a later epoch starts, which the start of the log does not move"
_ONE_LIFE = "epochs are compared only if the topic's id, or every partition epoch between, shows one life"
_LIVES = "positions are compared only if topic ids or a run of fetches without a gap show one life; else it is open"
_OWN_RELEASE = "each broker is judged by the rules of the version that it logged"
_REPEATED = "the same state twice is one state"
_CLOCKS = "times order nothing: epochs, versions and the order of one connection do"
_COMPACTED = "compacted topics are left out, by their cleanup.policy; where no line tells it the case is open"
_LOST_TOO = "it follows from committed-data-lost and is shown under it"

SILENT: Final[Mapping[str, Mapping[w.LegalWay, str]]] = {
    "committed-data-lost": {
        w.COMPACTION: "what an epoch wrote keeps its offset: its first record is never below the epoch's start",
        w.LOG_START: _NO_START,
        w.OUT_OF_RANGE: _NO_START,
        w.REASSIGNMENT_ZK: "a new leader comes from the ISR and has what is committed; its start is compared as any",
        w.REASSIGNMENT_KRAFT: "as in ZooKeeper",
        w.PREFERRED: "only what was answered with acks=all, or lies below a high watermark, counts as committed",
        w.UNCLEAN: "not silent: the data is gone, and the case says that the election was unclean and who asked for it",
        w.CREATED_ANEW: _ONE_LIFE,
        w.LOG_DIRS: "a replica that begins anew follows; one that leads with an empty log has lost data indeed",
        w.TIERED: "an epoch's start is where its leader's log ended, remote or local",
        w.ELR: "a leader from the ELR has all below the high watermark; acks=1 above it is not committed",
        w.MIXED_RELEASES: "no rule of a version goes into the comparison",
        w.RESENT: "the lowest start of an epoch's own lines counts, and a repeated one is not lower",
        w.ZOMBIES: "an answer counts only in an epoch that its broker surely led in, by its lines before and after",
        w.RETRIES: "where an answer is a duplicate, its offset is that of the first attempt, which was committed",
        w.UNCLEAN_SHUTDOWN: "a checkpointed high watermark counts if its replica cuts its log at the epoch's start",
        w.LATE_LINES: _CLOCKS,
    },
    "tier-segment-lost": {
        w.LOG_START: "what lies below a log start that a line tells of was deleted by Kafka",
        w.CREATED_ANEW: "a segment is known by its id, which no other topic's has",
        w.TIERED: "that a local log begins later is what it looks at; alone it is no case: the segment is in the tier",
        w.LATE_LINES: "failures and answers are of one broker's clock; a read on another one excuses within the skew",
    },
    "acked-by-leader-only-lost": {
        w.OUT_OF_RANGE: "the later epoch has to start at or below the offset",
        w.UNCLEAN: "an observation all the same: acks=1 promises nothing",
        w.CREATED_ANEW: _ONE_LIFE,
        w.ZOMBIES: "not silent: what a zombie acknowledged is lost, and that is legal",
        w.UNCLEAN_SHUTDOWN: "a truncation to the high watermark alone is no loss: the next leader has to lack it, too",
        w.LATE_LINES: "the answer and the truncation are on one broker's clock",
    },
    "ack-before-commit": {
        w.REASSIGNMENT_ZK: "the ISR is known by versions without a gap while the produce waited, else it is open",
        w.REASSIGNMENT_KRAFT: "the same",
        w.MIXED_RELEASES: _OWN_RELEASE,
        w.ZOMBIES: "an answer of another epoch than the positions is not compared with them",
        w.LATE_LINES: "time alone contradicts nothing: positions in one connection's order do",
    },
    "acked-as-duplicate-of-another-batch": {
        w.COMPACTION: "answers are compared, not logs",
        w.UNCLEAN: "every epoch from one answer to the other has to start beyond the offset",
        w.CREATED_ANEW: "the later answer has to carry the append time of the earlier one",
        w.RETRIES: "an honest retry is as large as its first attempt; any answer of the same size excuses it",
        w.MIXED_RELEASES: "a producer that is not idempotent gets a new offset, and no append time",
    },
    "ack-under-min-isr": {
        w.ELR: "since 3.7 the high watermark itself waits for min.insync.replicas, so nothing is judged there",
        w.MIXED_RELEASES: _OWN_RELEASE,
        w.LATE_LINES: "the ISR has to be too small from a second before the request was read to when it was handled",
    },
    "late-completion": {
        w.REASSIGNMENT_ZK: "the ISR is known by versions without a gap while the produce waited, else it is open",
        w.REASSIGNMENT_KRAFT: "the same",
        w.ELR: "with the high watermark waiting for min.insync.replicas it is open unless all replicas were in sync, "
        "and nothing where no line tells min.insync.replicas",
        w.LOG_DIRS: "a replica that the controller took out may be waited for as long as it counts as caught up",
        w.MIXED_RELEASES: _OWN_RELEASE,
        w.LATE_LINES: "a leader that answered nothing meanwhile stood still, which is no case",
    },
    "hw-regression": {
        w.UNCLEAN: "a new leader is a new epoch; a follower's step back is an observation",
        w.PREFERRED: "at a failover a high watermark may lag one fetch behind (KIP-207): an observation",
        w.CREATED_ANEW: _LIVES,
        w.ELR: "a high watermark that stands still does not go back",
        w.UNCLEAN_SHUTDOWN: "a leader that restarts in its epoch begins at its checkpoint, on other connections",
        w.FOLLOWER_FETCHING: "only followers' fetches of leaders are compared",
        w.LATE_LINES: "answers come in the order of their correlation ids; lines of two threads prove nothing by order",
    },
    "hw-above-isr": {
        w.OUT_OF_RANGE: "an answer with an error ends the stretch",
        w.REASSIGNMENT_ZK: "the replica has to be in each ISR of versions without a gap around the answer",
        w.REASSIGNMENT_KRAFT: "the same",
        w.CREATED_ANEW: _LIVES,
        w.LOG_DIRS: "a replica that begins anew is another connection or a position of 0, which ends the stretch",
        w.ELR: "the ELR is not the ISR",
        w.UNCLEAN_SHUTDOWN: "a broker that restarted fetches on another connection",
        w.LATE_LINES: _CLOCKS,
    },
    "follower-hw-above-leader": {
        w.OUT_OF_RANGE: "a log that begins above the leader's high watermark is excused until a lower line follows",
        w.CREATED_ANEW: _LIVES,
        w.TIERED: "the same: the log may begin where the remote part ends",
        w.MIXED_RELEASES: "the line of each release is read as that release prints it",
        w.LATE_LINES: "the leader's answer has to be surely later by more than the clocks' skew",
    },
    "read-above-isolation": {
        w.COMPACTION: "an answer with bytes at the limit is a case, a hole below it none",
        w.CREATED_ANEW: _LIVES,
        w.FOLLOWER_FETCHING: "the limit is that of the broker which answered, in the epoch that the fetch names",
        w.ZOMBIES: "both answers name one leader epoch",
        w.LATE_LINES: "both answers are of one connection, in its order",
    },
    "stale-epoch-accepted": {
        w.RESENT: "an epoch that is told again is not entered again",
        w.CREATED_ANEW: _LIVES,
        w.MIXED_RELEASES: "a fetch's epoch counts only where its broker surely compares it, from 2.5 on",
        w.ZOMBIES: "the broker has to have entered the other epoch by its own line, before the fetch was read",
        w.LATE_LINES: "a fetch was read after the line of the one before it on its connection",
    },
    "two-leaders-one-epoch": {
        w.CREATED_ANEW: "without one topic id in both lines it is open",
        w.RESENT: "a broker that says twice that it leads is one leader",
        w.ZOMBIES: "a zombie leads in an older epoch",
    },
    "leader-outside-isr": {
        w.REASSIGNMENT_ZK: "the leader moves into the new replicas before the ISR loses the old ones",
        w.UNCLEAN: "an unclean leader is the one member of its ISR",
        w.CREATED_ANEW: "a deleted partition's leader is -2, and is left aside",
        w.ELR: "an empty ISR is left aside",
        w.RESENT: _REPEATED,
    },
    "isr-outside-replicas": {
        w.REASSIGNMENT_ZK: "a broker that any line names as a replica may stay in the ISR after it left the assignment",
        w.REASSIGNMENT_KRAFT: "the same",
        w.CREATED_ANEW: "states are compared within one life of the topic",
        w.RESENT: _REPEATED,
    },
    "unclean-election": {
        w.REASSIGNMENT_ZK: "a change of the assignment between the two states is left aside",
        w.REASSIGNMENT_KRAFT: "the same: the replica may have joined the ISR in that very record",
        w.PREFERRED: "the preferred replica is in the ISR",
        w.ELR: "a leader from the ELR is no unclean one: an empty ISR counts only with the controller's own mark",
        w.RESENT: "the ISR before is that of the directly preceding partition epoch",
    },
    "failover-not-completed": {
        w.CREATED_ANEW: "a deleted topic shows its leader no more",
        w.ELR: "a partition that is reported without a leader is handled",
        w.RESENT: "only lines in one order, one controller's or the metadata log's, are compared",
    },
    "illegal-state-transition": {
        w.REASSIGNMENT_ZK: "the transitions of a reassignment are those of the state machines' tables",
        w.CREATED_ANEW: "states of two topic ids are not compared",
        w.LOG_DIRS: "replicas of a failed directory go offline and come back, as the tables allow",
        w.RESENT: "a jump between two lines is a gap, and a repeated state none",
        w.ZOMBIES: "a controller's lines are compared with its own, by controller epoch",
    },
    "isr-join-behind-hw": {
        w.REASSIGNMENT_ZK: "it joins by the leader's own lines of consecutive versions",
        w.REASSIGNMENT_KRAFT: "the same",
        w.CREATED_ANEW: _LIVES,
        w.MIXED_RELEASES: "the epoch's start counts only for leaders since 2.0.1",
        w.LATE_LINES: "the high watermark is bounded by answers before the ISR before, the position by a later fetch",
    },
    "isr-shrink-late": {
        w.RESENT: "never more than an observation: the replay of the ISR is derived",
        w.LATE_LINES: "a leader that was paused could not look, which excuses it",
    },
    "truncation-below-hw": {
        w.UNCLEAN: _LOST_TOO,
        w.PREFERRED: "what the former leader cuts off lies above its high watermark",
        w.CREATED_ANEW: "a new log is no truncation",
        w.MIXED_RELEASES: "since 2.7 a follower may raise its high watermark too early (KAFKA-14704): an observation",
    },
    "epoch-history-diverged": {
        w.COMPACTION: _COMPACTED,
        w.LOG_START: "the first entry of each file is left out",
        w.OUT_OF_RANGE: "a log that began anew begins with its first entry, which is left out",
        w.CREATED_ANEW: "files are of the topic as it is now",
        w.LOG_DIRS: "a log that was copied again has its epochs from the leader",
        w.TIERED: "the first entry of each file is left out, and the others come with the remote log's epochs",
        w.UNCLEAN_SHUTDOWN: "entries read from the segments again are those of the same batches",
    },
    "checkpoint-ahead-of-log": {
        w.LOG_START: "a start beyond the high watermark is an observation: the two files are not written at once",
        w.LOG_DIRS: "entries in two directories of one broker are left aside",
        w.UNCLEAN_SHUTDOWN: "open: after a crash of the machine the log may end before the checkpoint",
    },
    "replica-bytes-diverged": {
        w.COMPACTION: _COMPACTED,
        w.LOG_START: "only batches that both replicas hold are compared",
        w.OUT_OF_RANGE: "the same",
        w.PREFERRED: "a tail above a replica's own high watermark is left aside",
        w.UNCLEAN: "the same, until the replica has heard its leader",
        w.LOG_DIRS: "folders of deleted, moved and stray replicas are left out",
        w.TIERED: "only local batches that both hold are compared",
        w.UNCLEAN_SHUTDOWN: "a torn tail lies above the high watermark; below it another replica has to hold the batch",
    },
    "error-yet-committed": {
        w.UNCLEAN: "no later epoch may start at or below the record",
        w.RETRIES: "never more than an observation",
        w.ZOMBIES: "the answer's epoch is that of its broker's lines",
    },
}
