"""Grammar of the KRaft controller: which node is active, and what its event queue says."""

from __future__ import annotations

import re

from pipelines.silver.grammar import Context, Template
from pipelines.silver.typed import controller_event as _event
from pipelines.silver.typed import node
from pipelines.silver.values import i32

_QUORUM = ("QuorumController",)


#: An epoch may begin without a leader.
_NONE = "(none)"


def _new_leader(match: re.Match[str], context: Context) -> str:
    return "other" if match["subject_broker_id"] == _NONE else "controller_elected"


def _leader(match: re.Match[str], context: Context) -> int | None:
    return None if match["subject_broker_id"] == _NONE else i32(match["subject_broker_id"])


TEMPLATES = (
    Template(
        "controller_kraft.elected",
        _QUORUM,
        r"Becoming (?:the active controller|active) at (?:controller )?epoch (?P<controller_epoch>\d+)[,.].*",
        "QuorumController.claim",
        _event("controller_elected", subject_broker_id=node),
    ),
    Template(
        "controller_kraft.new_leader",
        _QUORUM,
        r"In the new epoch (?P<controller_epoch>\d+), the leader is (?P<subject_broker_id>-?\d+|\(none\))\.",
        "QuorumController.handleLeaderChange, 3.3 and later",
        _event(_new_leader, subject_broker_id=_leader),
    ),
    Template(
        "controller_kraft.resigned",
        _QUORUM,
        r"Renouncing the leadership (?:at oldEpoch (?P<controller_epoch>\d+) )?due to a metadata log event\. .*",
        "QuorumController.handleLeaderChange",
        _event("controller_resigned", subject_broker_id=node),
    ),
    Template(
        "controller_kraft.still_leader",
        _QUORUM,
        r"We were the leader in epoch \d+, and are still the leader in the new epoch \d+\.",
        "QuorumController.handleLeaderChange, 3.3 and later",
        _event("other"),
    ),
    Template(
        "controller_kraft.event_failed",
        _QUORUM,
        r"\w+(?:[(\[]-?\d+[)\]])?: (?:event failed with|event unable to start processing because of|failed "
        r"with|unable to start processing because of) .*",
        "QuorumController.handleEventException",
        _event("other"),
    ),
    Template(
        "controller_kraft.event_failed",
        _QUORUM,
        r"unable to start processing \w+ because of .*",
        "QuorumController.handleEventException, 2.8 to 3.1",
        _event("other"),
    ),
    Template(
        "controller_kraft.balanced",
        _QUORUM,
        r"maybe(?:BalancePartitionLeaders|ElectUncleanLeaders): generated \d+ records in \d+ microseconds\..*",
        "QuorumController.maybeBalancePartitionLeaders, 3.9",
    ),
    Template(
        "controller_kraft.activation",
        _QUORUM,
        r"(?:Asked to load snap?shot .*|Asked to load snasphot .*|Begin ZK Migration Transaction|Should not have ZK "
        r"migrations enabled .*|Snapshot generator already exists\.|The bootstrap metadata\.version .* does not "
        r"support ZK migrations\. .*|Tried to claim controller epoch .*|Unable to apply .* record from snapshot "
        r".*|Performing controller activation\..*|The metadata log appears to be empty\. .*|No metadata\.version "
        r"feature level record was found .*|Loaded ZK migration state of .*|Setting the ZK migration state to "
        r".*|Putting the controller into pre-migration mode\. .*|Activating pre-migration controller .*|(?:Staying "
        r"in|Completing|Starting) (?:the )?ZK [mM]igration.*|(?:Starting|Completing) migration of ZooKeeper metadata "
        r".*|Ignoring 'zookeeper\.metadata\.migration\.enable' .*|maybeCompleteAuthorizerInitialLoad: .*|Cannot run "
        r"write operation .* in pre-migration mode\. .*)",
        "QuorumController.CompleteActivationEvent, ActivationRecordsGenerator",
    ),
    Template(
        "controller_kraft.created",
        _QUORUM,
        r"Creating new QuorumController with clusterId .*",
        "QuorumController constructor",
    ),
    Template(
        "controller_kraft.snapshot",
        _QUORUM,
        r"(?:Starting to replay snapshot .*|Finished replaying snapshot .*|Generating a snapshot that includes "
        r".*|Finished generating snapshot .*|Skipping generation of snapshot .*|Cancelling snapshot .*|No snapshot is "
        r"in progress\.|Error while generating snapshot .*)",
        "QuorumController, SnapshotGenerator, up to 3.5",
    ),
    Template(
        "controller_kraft.processing",
        _QUORUM,
        r"(?:Processed .* in \d+ us|Executing .*|Completing read-only operation .*|Read-(?:only|write) operation .* "
        r"will be completed .*|Replaying .*|Completing purgatory items .*|Ignoring .* raft event from an old "
        r"registration|Scheduling write event for .*|(?:Validate-only )?CreatePartitions result\(s\): .*|Atomically "
        r"appended .*|Appended \d+ record\(s\) .*|Skipping handling commit .*|Cancelling deferred write event "
        r".*|Error replaying record .*|Unexpected exception while executing deferred write event .*|Interrupted while "
        r"waiting for unpause\.)",
        "QuorumController; DEBUG and TRACE",
    ),
    Template(
        "controller_kraft.features",
        ("FeatureControlManager",),
        r"(?:Replayed a (?:FeatureLevelRecord|ZkMigrationStateRecord) .*|Setting (?:metadata[ .]version|feature .*) "
        r"to .*|Removing feature .*|(?:Downgrading|Upgrading) metadata\.version from .*|Transitioning ZK migration "
        r"state from .*|Verified that .* supported changing .*|.* feature .*)",
        "FeatureControlManager",
    ),
    Template(
        "controller_kraft.transactions",
        ("OffsetControlManager", "SnapshotGenerator"),
        r"(?:Replayed \w+\(.*\) at offset -?\d+\..*|Starting to load snapshot .*|Successfully loaded snapshot "
        r".*|Generat(?:ed|ing) .* section of snapshot .*)",
        "OffsetControlManager, 3.6 and later",
    ),
    Template(
        "controller_kraft.periodic_tasks",
        ("PeriodicTaskControlManager",),
        r"(?:Registering periodic task .*|Periodic task .*|(?:Activated|Deactivated) periodic tasks: .*|.*periodic "
        r"task.*)",
        "PeriodicTaskControlManager, 4.0 and later",
    ),
    Template(
        "controller_kraft.event_performance",
        ("EventPerformanceMonitor",),
        r"(?:In the last \d+ ms period, \d+ controller events were completed, .*|In the last \d+ ms period, there "
        r"were no controller events completed\.)",
        "EventPerformanceMonitor, 4.0 and later",
    ),
    Template(
        "controller_kraft.slow_event",
        ("EventPerformanceMonitor",),
        r"Exceptionally slow controller event .* took -?\d+ ms\.",
        "EventPerformanceMonitor.observeEvent, 4.0 and later: a stalled controller",
        _event("other"),
    ),
    Template(
        "controller_kraft.producer_ids",
        ("ProducerIdControlManager",),
        r"Replaying ProducerIdsRecord .*",
        "ProducerIdControlManager.replay, 3.6 and later",
    ),
    Template(
        "controller_kraft.security",
        ("ClientQuotaControlManager", "AclControlManager", "ScramControlManager", "DelegationTokenControlManager"),
        r"(?:Replayed|Removed|Created|Modified|Delegation token|Ignoring duplicate ACL|Not creating ACL) .*",
        "Quotas, ACLs, SCRAM credentials, delegation tokens",
    ),
)
