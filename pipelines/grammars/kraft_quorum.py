"""Grammar of the KRaft controller: which node is active, and what its event queue says."""

from __future__ import annotations

import re
from functools import partial

from pipelines.grammars.grammar import Context, Template
from pipelines.grammars.typed import controller_event as _event
from pipelines.grammars.typed import node
from pipelines.grammars.values import i32

#: An epoch may begin without a leader.
_NONE = "(none)"


def _new_leader(match: re.Match[str], context: Context) -> str:
    return "other" if match["subject_broker_id"] == _NONE else "controller_elected"


def _leader(match: re.Match[str], context: Context) -> int | None:
    return None if match["subject_broker_id"] == _NONE else i32(match["subject_broker_id"])


_quorum = partial(Template, loggers=("QuorumController",))

TEMPLATES = (
    _quorum(
        "controller_kraft.elected",
        r"Becoming (?:the active controller|active) at (?:controller )?epoch (?P<controller_epoch>\d+)[,.].*",
        "QuorumController.claim",
        _event("controller_elected", subject_broker_id=node),
    ),
    _quorum(
        "controller_kraft.new_leader",
        r"In the new epoch (?P<controller_epoch>\d+), the leader is (?P<subject_broker_id>-?\d+|\(none\))\.",
        "QuorumController.handleLeaderChange, 3.3 and later",
        _event(_new_leader, subject_broker_id=_leader),
    ),
    _quorum(
        "controller_kraft.resigned",
        r"Renouncing the leadership (?:at oldEpoch (?P<controller_epoch>\d+) )?due to a metadata log event\. .*",
        "QuorumController.handleLeaderChange",
        _event("controller_resigned", subject_broker_id=node),
    ),
    _quorum(
        "controller_kraft.still_leader",
        r"We were the leader in epoch \d+, and are still the leader in the new epoch \d+\.",
        "QuorumController.handleLeaderChange, 3.3 and later",
        _event("other"),
    ),
    _quorum(
        "controller_kraft.event_failed",
        r"\w+(?:[(\[]-?\d+[)\]])?: (?:event failed with|event unable to start processing because of|failed "
        r"with|unable to start processing because of) .*",
        "QuorumController.handleEventException",
        _event("other"),
    ),
    _quorum(
        "controller_kraft.event_failed",
        r"unable to start processing \w+ because of .*",
        "QuorumController.handleEventException, 2.8 to 3.1",
        _event("other"),
    ),
    _quorum(
        "controller_kraft.balanced",
        r"maybe(?:BalancePartitionLeaders|ElectUncleanLeaders): generated \d+ records in \d+ microseconds\..*",
        "QuorumController.maybeBalancePartitionLeaders, 3.9",
    ),
    _quorum(
        "controller_kraft.activation",
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
    _quorum(
        "controller_kraft.created",
        r"Creating new QuorumController with clusterId .*",
        "QuorumController constructor",
    ),
    _quorum(
        "controller_kraft.snapshot",
        r"(?:Starting to replay snapshot .*|Finished replaying snapshot .*|Generating a snapshot that includes "
        r".*|Finished generating snapshot .*|Skipping generation of snapshot .*|Cancelling snapshot .*|No snapshot is "
        r"in progress\.|Error while generating snapshot .*)",
        "QuorumController, SnapshotGenerator, up to 3.5",
    ),
    _quorum(
        "controller_kraft.processing",
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
        r"(?:Replayed a (?:FeatureLevelRecord|ZkMigrationStateRecord) .*|Setting (?:metadata[ .]version|feature .*) "
        r"to .*|Removing feature .*|(?:Downgrading|Upgrading) metadata\.version from .*|Transitioning ZK migration "
        r"state from .*|Verified that .* supported changing .*|.* feature .*)",
        "FeatureControlManager",
        loggers=("FeatureControlManager",),
    ),
    Template(
        "controller_kraft.transactions",
        r"(?:Replayed \w+\(.*\) at offset -?\d+\..*|Starting to load snapshot .*|Successfully loaded snapshot "
        r".*|Generat(?:ed|ing) .* section of snapshot .*)",
        "OffsetControlManager, 3.6 and later",
        loggers=("OffsetControlManager", "SnapshotGenerator"),
    ),
    Template(
        "controller_kraft.periodic_tasks",
        r"(?:Registering periodic task .*|Periodic task .*|(?:Activated|Deactivated) periodic tasks: .*|.*periodic "
        r"task.*)",
        "PeriodicTaskControlManager, 4.0 and later",
        loggers=("PeriodicTaskControlManager",),
    ),
    Template(
        "controller_kraft.event_performance",
        r"(?:In the last \d+ ms period, \d+ controller events were completed, .*|In the last \d+ ms period, there "
        r"were no controller events completed\.)",
        "EventPerformanceMonitor, 4.0 and later",
        loggers=("EventPerformanceMonitor",),
    ),
    Template(
        "controller_kraft.slow_event",
        r"Exceptionally slow controller event .* took -?\d+ ms\.",
        "EventPerformanceMonitor.observeEvent, 4.0 and later: a stalled controller",
        _event("other"),
        loggers=("EventPerformanceMonitor",),
    ),
    Template(
        "controller_kraft.producer_ids",
        r"Replaying ProducerIdsRecord .*",
        "ProducerIdControlManager.replay, 3.6 and later",
        loggers=("ProducerIdControlManager",),
    ),
    Template(
        "controller_kraft.security",
        r"(?:Replayed|Removed|Created|Modified|Delegation token|Ignoring duplicate ACL|Not creating ACL) .*",
        "Quotas, ACLs, SCRAM credentials, delegation tokens",
        loggers=(
            "ClientQuotaControlManager",
            "AclControlManager",
            "ScramControlManager",
            "DelegationTokenControlManager",
        ),
    ),
)
