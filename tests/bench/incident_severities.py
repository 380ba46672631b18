"""How harmful each kind of incident is: the one table that documentation and tests read. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from highwater.pipelines.incidents.incident import CRITICAL, INFO, MAJOR, MINOR, Severity
from highwater.pipelines.incidents.kinds.logged import OF_MESSAGES

_ALWAYS = "always"
_OF_TEXT = "as the entry of the worst text says (docs/messages.md)"
#: Severities that entries of the atlas have.
_OF_ENTRY: Mapping[Severity, str] = dict.fromkeys((CRITICAL, MAJOR, MINOR, INFO), _OF_TEXT)
_WITH_CLUSTER = "as the whole cluster is shut down"

#: Severities that a kind gives, and when; the first one that fits.
SEVERITIES_OF: Mapping[str, Mapping[Severity, str]] = {
    "data_lost": {CRITICAL: _ALWAYS},
    "guarantee_broken": {MAJOR: _ALWAYS},
    "unclean_election": {MAJOR: "always: what it cost is `data_lost`"},
    "partitions_without_leader": {CRITICAL: _ALWAYS},
    "leader_not_fenced": {CRITICAL: _ALWAYS},
    "partitions_under_min_isr": {CRITICAL: "acks=all produces were refused", MAJOR: "none was, as far as logs show"},
    "isr_shrunk": {MAJOR: "it did not come back to the end of the logs", MINOR: "it came back"},
    "isr_flapping": {MAJOR: _ALWAYS},
    "reassignment_unfinished": {MINOR: _ALWAYS},
    "reassignment_ended": {INFO: _ALWAYS},
    "voters_changed": {INFO: _ALWAYS},
    "zombie_leader": {MAJOR: "there were two leaders for a second or more", MINOR: "ISR changes were refused, no more"},
    "high_watermark_below_start": {CRITICAL: _ALWAYS},
    "broker_halted": {CRITICAL: _ALWAYS},
    "broker_died": {MAJOR: _ALWAYS},
    "broker_stalled": {MAJOR: "for five seconds or more", MINOR: "for less"},
    "broker_fenced": {MAJOR: _ALWAYS},
    "logs_end_early": {MAJOR: _ALWAYS},
    "clock_set_back": {MINOR: _ALWAYS},
    "clock_skewed": {MINOR: _ALWAYS},
    "broker_stopped": {INFO: _ALWAYS},
    "broker_out_of_memory": {CRITICAL: _ALWAYS},
    "broker_out_of_files": {CRITICAL: _ALWAYS},
    "log_directory_failed": {CRITICAL: _ALWAYS},
    "indexes_rebuilt": {INFO: _ALWAYS},
    "controlled_shutdown_failed": {
        INFO: _WITH_CLUSTER,
        MAJOR: "the broker stopped without the controller",
        MINOR: "a later attempt went through",
    },
    "session_expired": {MAJOR: _ALWAYS},
    "controller_changed": {
        MAJOR: "no controller was active for five seconds or more, or it changed again and again",
        INFO: "the one before was shut down",
        MINOR: "it was not",
    },
    "quorum_lost": {MAJOR: _ALWAYS},
    "controller_renounced": {MAJOR: _ALWAYS},
    "quorum_unreachable": {MINOR: "for ten seconds or more", INFO: "for less"},
    "quorum_without_leader": {CRITICAL: _ALWAYS},
    "registration_refused": {CRITICAL: "the broker did not start", MINOR: "it started later"},
    "elections_failed": {MINOR: "always: partitions that stay so are `partitions_without_leader`"},
    "migration_waits": {MINOR: _ALWAYS},
    "fetcher_died": {CRITICAL: _ALWAYS},
    "leader_unreachable": {MINOR: "always: what follows of it is `isr_shrunk`"},
    "fetch_errors": {MINOR: "for ten seconds or more", INFO: "for less"},
    "partitions_not_fetched": {MAJOR: _ALWAYS},
    "slow_replica": {INFO: "as the broker or the cluster warms up", MAJOR: "otherwise"},
    "produces_refused": {MAJOR: "ten or more", MINOR: "fewer"},
    "produces_timed_out": {MAJOR: "ten or more", MINOR: "fewer"},
    "producers_fenced": {MAJOR: "ten or more produces", MINOR: "fewer"},
    "transactions_timed_out": {MINOR: _ALWAYS},
    "brokers_rejected": {MAJOR: _ALWAYS},
    "heartbeats_not_sent": {MAJOR: "for the session timeout or more", MINOR: "for less"},
    "isr_join_rejected": {MAJOR: "for thirty seconds or more", INFO: "for less"},
    "topic_deletion_waits": {MINOR: _ALWAYS},
    "controller_slow": {MAJOR: "an event of five seconds or more", MINOR: "shorter events"},
    "connections_refused": {MINOR: _ALWAYS},
    "authentication_failed": {MINOR: _ALWAYS},
    "authorization_denied": {MINOR: _ALWAYS},
    "share_locks_expired": {MINOR: _ALWAYS},
    "clients_throttled": {MINOR: "a request for a second or more", INFO: "for less"},
    "group_rebalances": _OF_ENTRY
    | {MAJOR: "three rebalances or more for a failure, or as the entry says", MINOR: "ten or more for other reasons"},
    "topics_created_again": {MINOR: _ALWAYS},
    "coordinator_slow": {MAJOR: "a load of a minute or longer", MINOR: "for less"},
    "topics_deleted": {CRITICAL: "by the migration from ZooKeeper", MINOR: "three topics or more at once"},
    **dict.fromkeys(OF_MESSAGES, _OF_ENTRY),
    "also_logged": _OF_ENTRY,
}
