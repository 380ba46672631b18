"""Grounds of each kind of incident: the least evidence, what more of it shows, and what never shows it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Ground(NamedTuple):
    """What proves a kind of incident."""

    least: str  #: Line, or row of a table, that is enough.
    more: str  #: What further lines add.
    never: str  #: What the kind is never concluded from.


_FINDING = "A finding of such a rule"
_PROOF = "The rule's own proof (docs/rules.md); the lines of a finding show it"
_TEXT = "One line of a text that begins this kind (docs/messages.md)"
_TEXTS = "Other texts of the kind within ten minutes: how often, at which nodes, the exception"
_OTHER_LEVEL = "A text without an entry, or one of another level"
_REQUEST_LOG = "Times without a request log"

GROUNDS: Mapping[str, Ground] = {
    "data_lost": Ground(
        _FINDING + " of loss.", _PROOF + ".", "A truncation of records that no line shows to be committed."
    ),
    "guarantee_broken": Ground(_FINDING + ".", _PROOF + ".", "Two lines on different clocks without bounds."),
    "unclean_election": Ground(
        "The controller's line about the election, or the state that shows a leader outside the ISR before.",
        "Whether records were lost: `data_lost`.",
        "A leader that KIP-966 elects from the eligible replicas.",
    ),
    "partitions_without_leader": Ground(
        "A controller's line or state with leader -1.",
        "The leader's death and the next election: how long no live broker led.",
        "A partition that no line names.",
    ),
    "leader_not_fenced": Ground(
        "The last line of a broker that writes steadily, and an election after its session and five seconds; or "
        "followers that cannot reach the leader of a partition to the end of the logs.",
        "The session timeout that the broker logged.",
        "A leader whose own end no line dates, or followers that are no replicas of the partition.",
    ),
    "partitions_under_min_isr": Ground(
        "One refused produce or append: NOT_ENOUGH_REPLICAS.",
        "Committed states of the partition, with min.insync.replicas: the window, and all its partitions.",
        "The default of min.insync.replicas where an override may exist.",
    ),
    "isr_shrunk": Ground(
        "One line of a committed change: the controller's, or a leader's with its answer.",
        "The next state: when the replica was back, or why its absence ended. Lines of the last leader: that it was "
        "not back.",
        "A proposal that was refused or not answered; a reassignment; two states with others between them.",
    ),
    "isr_flapping": Ground(
        "Four committed changes by leaders that remove one replica, ten minutes apart at most.",
        "How many partitions it concerns.",
        "Changes that a controller made as it fenced a broker.",
    ),
    "reassignment_unfinished": Ground(
        "One line that adds or removes replicas, a minute or more before the logs end.",
        "Which replicas are added and removed.",
        "A reassignment of which a later line shows the end.",
    ),
    "reassignment_ended": Ground(
        "One line with which a controller completes a reassignment.",
        "The begin: which replicas are added and removed, and how long it took.",
        "A state without replicas to move, if no line shows the begin.",
    ),
    "voters_changed": Ground(
        "Two different sets of voters in lines of one node.",
        "Lines of other nodes: which of them learnt of it. Directories: a voter that came back with an empty disk.",
        "The first set in the logs, or sets that a node reads as it starts.",
    ),
    "topics_created_again": Ground(
        "A line that shows the topic deleted, and a later state of a new topic with its name.",
        "States of other partitions: how many are new.",
        "A topic without a line of its deletion.",
    ),
    "zombie_leader": Ground(
        "One refused ISR change of a leader.",
        "The election of another leader: how long there were two.",
        "A change without an answer.",
    ),
    "high_watermark_below_start": Ground(
        "One error of a leader that reads below its own log start offset.",
        "How often, and the release: the known bug.",
        "A follower or consumer that asks for an offset out of range.",
    ),
    "broker_halted": Ground(
        "One line at FATAL or ERROR with which a broker ends itself.",
        "The stack trace: the exception and its remedy. The next start: the end.",
        "An error after which the same process logs on.",
    ),
    "broker_died": Ground(
        "The first line of a process after a line of another one, without a shutdown between them; an exit code; or a "
        "controller's line about a broker that starts later and finds no clean shutdown.",
        "Peers, controllers and the container: bounds of the instant. The exit code: the signal.",
        "Others' lines alone: a broker that does not answer may live.",
    ),
    "broker_stalled": Ground(
        "Two lines of a process with a gap: it wrote steadily before, or others show that it did not answer meanwhile.",
        "A session that expired, a controller that fenced it, or an election that it noticed late: that it was the "
        "broker and not the traffic.",
        "Silence at a level at which a broker writes in bursts, or below the resolution of times.",
    ),
    "broker_fenced": Ground(
        "One line of the active controller, and a later line of the same process.",
        "Peers and session timeouts: bounds of the begin.",
        "What a node replays as it starts, or a controller logs that is not active, even if it does not know yet.",
    ),
    "logs_end_early": Ground(
        "One line of the active controller about a broker without later lines; or the last line of a broker that "
        "writes in each second, ten seconds or more before those of others.",
        "Peers and session timeouts: bounds of the begin. The broker's own lines: whether it died.",
        "The end of an excerpt, or of the log of a broker that writes rarely.",
    ),
    "clock_set_back": Ground(
        "Many lines in a row with earlier times than the one before.",
        "How far.",
        "A single line out of order, or the repeated hour of a time zone.",
    ),
    "clock_skewed": Ground(
        "One window of `gold.clock_bounds` that excludes a difference of a second; or two registrations that the "
        "controller sees with the same offset; or two elections, ten seconds apart, that leaders start with it.",
        "Other brokers: whose clock it is. Registrations: the offset, by which the broker's times are corrected.",
        "Lines without a known order.",
    ),
    "broker_stopped": Ground(
        "One line of a shutdown: the signal, the broker's own, or the controller's that it granted one.",
        "The next start: how long it was away. The same of all brokers: the whole cluster.",
        "The end of a log.",
    ),
    "broker_out_of_memory": Ground(
        "One OutOfMemoryError in a line or stack trace.", "How many threads met it.", "An error of another class."
    ),
    "broker_out_of_files": Ground('One "Too many open files" in an exception.', "How often.", "Other I/O errors."),
    "log_directory_failed": Ground(
        "One line that a broker stops serving a directory.",
        "The exception: disk full, I/O error. The partitions that were served from it.",
        "An I/O error after which the directory is still served.",
    ),
    "indexes_rebuilt": Ground(
        "One line about a damaged index or segment end as logs are loaded.",
        "How many segments.",
        "A recovery without damage.",
    ),
    "controlled_shutdown_failed": Ground(
        "One line that the attempt failed, or that it was given up.",
        "Partitions that could not move, and how often it was tried.",
        "A shutdown that takes long.",
    ),
    "session_expired": Ground(
        "One line of the broker, or of its ZooKeeper client at WARN, that its session expired.",
        "The controller's line: when others noticed. Its registration: the end.",
        "A connection to ZooKeeper that was lost and restored.",
    ),
    "controller_changed": Ground(
        "Two elections of controllers, or an election and the end of the term before.",
        "What the controller before did last, and what voters and peers saw: bounds of the time without one.",
        "An election that only a node without the later state logs.",
    ),
    "quorum_lost": Ground(
        "A majority of the voters logs an epoch without a leader, or was down.",
        "The next election: how long. The state of each voter: which of them were down.",
        "One node without a leader: it may be cut off.",
    ),
    "controller_renounced": Ground(
        "Two lines of one controller within ten minutes.",
        "How long a write to the metadata log had waited.",
        "A single resignation: `controller_changed` has it.",
    ),
    "quorum_unreachable": Ground(
        "One failed connection to a node of the quorum, a minute or more after the logs begin.",
        "How long, and from which nodes.",
        "Nodes that start one after the other.",
    ),
    "elections_failed": Ground(
        "One error of a ZooKeeper controller.", "Which partitions, and how often.", "The shutdown of a whole cluster."
    ),
    "quorum_without_leader": Ground(
        "Three changes of state without a leader over ten seconds or more, in logs that show no controller.",
        "The epoch, and voters whose logs are missing.",
        "Silence of a node, or a cluster that is shut down.",
    ),
    "registration_refused": Ground(
        "One answer of the controller with an error.",
        "How often, and whether the broker started later.",
        "A killed broker whose former session has not expired, if it starts later.",
    ),
    "migration_waits": Ground(
        "One line that the controllers wait for brokers.",
        "Which brokers, and the line with which the migration begins.",
        "Silence of the migration driver.",
    ),
    "fetcher_died": Ground(
        'One "Error due to" of a fetcher thread.', "The exception, and the next start of the broker.", "A fetch error."
    ),
    "leader_unreachable": Ground(
        "Two lines over a second or more of one follower about one leader.",
        "Other followers, and how long.",
        "The ordinary end of a connection.",
    ),
    "fetch_errors": Ground(
        "One line with an error for a partition.",
        "How long, which errors, which partitions.",
        "A topic that is created or deleted.",
    ),
    "partitions_not_fetched": Ground(
        "One line that a partition is marked as failed, and a replica that left its ISR and did not return.",
        "The exception.",
        "A follower that learns of a new leader late.",
    ),
    "slow_replica": Ground(
        "Twenty produces that waited for one replica, two seconds beyond the limit together.",
        "The leaders and topics; whether the replica had just started.",
        _REQUEST_LOG + "; waits across a death of the replica.",
    ),
    "produces_refused": Ground(
        "One answer with an error.", "How many, of which clients.", "Errors of a leader that moves."
    ),
    "produces_timed_out": Ground("One answer with a timeout.", "How many, of which clients.", _REQUEST_LOG + "."),
    "producers_fenced": Ground(
        "One refused produce, or one line of a producer that gave up.", "How many.", "A transaction that timed out."
    ),
    "transactions_timed_out": Ground(
        "One line of a coordinator that aborted a transaction.", "How many, and their ids.", "An abort by the producer."
    ),
    "brokers_rejected": Ground(
        "One line of a broker's client about a failed login, or one denial of ClusterAction.",
        "How many, at which nodes, and an earlier line about expired credentials.",
        "Failed logins of other clients; denials of other operations.",
    ),
    "heartbeats_not_sent": Ground("One line of a broker.", "How many, and peers that were out of reach.", "Silence."),
    "isr_join_rejected": Ground("One line of a leader.", "How often, of which partitions.", "Changes that go through."),
    "topic_deletion_waits": Ground("The controller's line with the reason.", "Nothing.", "A deletion that takes long."),
    "controller_slow": Ground(
        "One line of EventPerformanceMonitor at WARN or ERROR.", "How many events, and the longest.", "Slow requests."
    ),
    "connections_refused": Ground("One line.", "How many, and their addresses.", "A connection that was closed."),
    "authentication_failed": Ground("One line.", "How many, and their addresses.", "A connection that was closed."),
    "authorization_denied": Ground("One line of the authorizer.", "How many, and which operations.", "Other errors."),
    "clients_throttled": Ground(
        "One request with a throttle time that the broker logged, or a longer measured one and a line of a quota.",
        "How long together.",
        "A measured time without a quota; rounding; fetches of replicas.",
    ),
    "share_locks_expired": Ground("One request that shows it.", "Records and members.", _REQUEST_LOG + "."),
    "group_rebalances": Ground(
        "Three rebalances for a failure, or ten for any reason; or one line at WARN or above.",
        "How often for which reason.",
        "Members that join or leave a few times.",
    ),
    "coordinator_slow": Ground(
        "One line of a load that took 10 s or longer.",
        "All loads within minutes, and the longest.",
        "A coordinator that logs no load.",
    ),
    "topics_deleted": Ground(
        "One line of the migration that deletes topics, or removed replicas of three topics.",
        "Which topics and brokers.",
        "A replica that moved away.",
    ),
    "also_logged": Ground(
        "One line at WARN or above.", "How often, at which nodes.", "Lines that another kind reports."
    ),
}
#: Ground of the kinds that texts of the atlas begin.
OF_TEXTS = Ground(_TEXT + ".", _TEXTS + ".", _OTHER_LEVEL + ".")
