"""Topics that were deleted, and by what."""

from __future__ import annotations

import re
from collections.abc import Iterable

from highwater.pipelines.incidents.advice import is_open
from highwater.pipelines.incidents.episodes import Episode, episodes, grouped
from highwater.pipelines.incidents.facts import Facts, Row, place
from highwater.pipelines.incidents.incident import CRITICAL, MINOR, LoggedIncident, Place, Remedy
from highwater.pipelines.incidents.kind import ABSENT, Signature, kind
from highwater.pipelines.incidents.kinds.controllers import MIGRATION_COPIED
from highwater.pipelines.incidents.words import brokers, clock, listed_some, number, sentence, shortened, span

_REMOVED = Signature(
    "log_deletion_scheduled",
    ("LogManager",),
    r"(?:\[[^\]]*\]:? )?Log for partition (?P<partition>\S+) is renamed to \S+-delete and is scheduled for deletion",
    "kafka.log.LogManager.asyncDelete: the topic was deleted, or the replica moved away",
    ("INFO",),
)
_ZK_WRITES = Signature(
    "migration_deleted_topics",
    ("KRaftMigrationDriver",),
    r"(?:\[[^\]]*\] )?Made the following ZK writes when reconciling with KRaft state: "
    r"\{.*\bDeleteTopic=(?P<key>\d+)\b.*",
    "org.apache.kafka.metadata.migration.KRaftMigrationDriver.SyncKRaftMetadataEvent, 3.5 to 3.9",
    ("INFO",),
    gap_s=1,
)
_HALTED = Signature(
    "topic_deletion_halted",
    ("TopicDeletionManager",),
    r"(?:\[[^\]]*\]:? ?)?(?:Halted deletion of topics (?P<key>.+) due to .*"
    r"|Not retrying deletion of topic \S+ at this time since it is marked ineligible for deletion)",
    "kafka.controller.TopicDeletionManager.markTopicIneligibleForDeletion, resumeDeletions",
    ("INFO",),
    gap_s=1800,
)
_DELETED = Signature(
    "topic_deletion_completed",
    ("TopicDeletionManager",),
    r"(?:\[[^\]]*\]:? ?)?Deletion of topic (?P<key>\S+) successfully completed",
    "kafka.controller.TopicDeletionManager.completeDeleteTopic",
    ("INFO",),
    gap_s=1,
)
_WHY = re.compile(r"(?m)^(?>.*?Halted deletion of topics ).+ due to (?P<why>.*)")
#: Fewer topics at once are an ordinary deletion.
_BULK_MIN = 3
#: Longest time from the deletion of a topic to the deletion of its replicas, microseconds.
_LATER_US = 60_000_000
#: Topics that are created within this of the one before are one incident, microseconds.
_TOGETHER_US = 10_000_000
_DELAY = "file.delete.delay.ms, one minute by default"


@kind(
    meaning="Topics were deleted in bulk: by the migration from ZooKeeper, whose full sync removes from ZooKeeper what "
    "KRaft does not know, or three or more at once.",
    source="kafka.log.LogManager.asyncDelete; KafkaController, ReplicationControlManager.deleteTopics; KIP-866",
    signatures=(_REMOVED, _ZK_WRITES),
    causes=("migration",),
)
def topics_deleted(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield topics deleted by the KRaft migration, then other deletions of at least three topics with short gaps."""
    removed = episodes(facts.remarked(_REMOVED))
    by_migration = facts.remarked(_ZK_WRITES)
    for row in by_migration:
        yield _of_migration(facts, row, [episode for episode in removed if _follows(row, episode)])
    for episode in removed:
        topics = {name.rpartition("-")[0] for name in episode.partitions}
        if len(topics) >= _BULK_MIN and not any(_follows(row, episode) for row in by_migration):
            yield _in_bulk(facts, episode, topics)


def _follows(row: Row, episode: Episode) -> bool:
    apart_us = abs(int(row["first_time"]) - episode.start_us)
    return bool(row["cluster_id"] == episode.cluster_id and apart_us <= _LATER_US)


def _of_migration(facts: Facts, row: Row, removed: list[Episode]) -> LoggedIncident:
    names = frozenset(name for episode in removed for name in episode.partitions)
    ids = {broker_id for episode in removed for broker_id in episode.broker_ids}
    last_us = max([row["last_time"], *(episode.end_us for episode in removed)])
    topics = sorted({name.rpartition("-")[0] for name in names})
    deleted = (
        f" {sentence(brokers(ids))} removed {number(sum(episode.lines for episode in removed), 'replica')} of "
        f"{listed_some(topics, 'topics')} {span(min(episode.start_us for episode in removed), last_us)}; the files "
        f"remain until file.delete.delay.ms has passed."
        if removed
        else ""
    )
    is_copied = any(
        other["cluster_id"] == row["cluster_id"] and other["first_time"] <= row["first_time"]
        for other in facts.remarked(MIGRATION_COPIED)
    )
    copied = (
        ""
        if is_copied
        else " No line before it shows that this migration copied metadata from ZooKeeper: a znode /migration of an "
        "earlier migration makes it skip the copy."
    )
    is_requested = any(
        other["cluster_id"] == row["cluster_id"] and other["time"] <= row["first_time"]
        for other in facts.controller_events
        if other["event"] == "topic_deleted"
    )
    requested = "" if is_requested else " No line shows a request to delete topics."
    return Episode([row]).incident(
        CRITICAL,
        f"The migration from ZooKeeper to KRaft deleted {number(int(row['key']), 'topic')} at "
        f"{clock(row['first_time'])}: its full sync removes from ZooKeeper what KRaft does not know."
        f"{requested}{deleted}{copied}",
        end_us=last_us,
        broker_ids=tuple(sorted({*Episode([row]).broker_ids, *ids})),
        partitions=names,
        places=(*Episode([row]).places, *(at for episode in removed for at in episode.places)),
        advice=f"Stop all brokers at once: files of deleted replicas are kept for {_DELAY}. Copy the folders that end "
        "in -delete before any start. Do not begin a migration again while /migration of an earlier one exists.",
        figures={"topics": int(row["key"]), "partitions": len(names)},
        weight=50_000.0,
    )


def _in_bulk(facts: Facts, episode: Episode, topics: set[str]) -> LoggedIncident:
    ordered = {
        row["topic"]
        for row in facts.controller_events
        if row["event"] == "topic_deleted"
        and row["cluster_id"] == episode.cluster_id
        and episode.start_us - _LATER_US <= row["time"] <= episode.end_us + _LATER_US
    }
    why = (
        "the controller deleted these topics"
        if topics <= ordered
        else f"the controller deleted {listed_some(sorted(topics & ordered), 'topics')}"
        if topics & ordered
        else "the topics were deleted, or these replicas moved away; no line of a controller shows which"
    )
    return episode.incident(
        MINOR,
        f"{sentence(brokers(episode.broker_ids))} removed {number(episode.lines, 'replica')} of "
        f"{listed_some(sorted(topics), 'topics')} {span(episode.start_us, episode.end_us)}: {why}.",
        partitions=episode.partitions,
        advice=f"If this was not intended, stop the brokers at once: the files are kept for {_DELAY}.",
        figures={"topics": len(topics), "partitions": len(episode.partitions)},
    )


@kind(
    meaning="A topic was deleted and created again under the same name: none of its records are left.",
    source="kafka.controller.TopicDeletionManager, org.apache.kafka.controller.ReplicationControlManager.createTopics",
    causes=("migration", "topics_deleted"),
)
def topics_created_again(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield topics that were deleted and created again. Those that are created together are one incident."""
    for group in grouped(facts.topics_again, _is_created_together):
        names = sorted({row["topic"] for row in group})
        start, end = min(row["deleted_time"] for row in group), max(row["created_time"] for row in group)
        count = sum(row["partitions"] for row in group)
        topics = f"topic{'s' if len(names) > 1 else ''} {listed_some(names, 'topics')}"
        was = "were" if len(names) > 1 else "was"
        places = [
            each for row in group for each in (place(row), Place(row["created_file_id"], row["created_byte_offset"]))
        ]
        yield LoggedIncident(
            severity=MINOR,
            cluster_id=group[0]["cluster_id"],
            start_us=start,
            end_us=end,
            sentence=sentence(
                f"{topics} {was} deleted at {clock(start)} and created again at {clock(end)}: "
                f"{number(count, 'new partition')}, without the records before."
            ),
            advice="Ask who deleted the topic: consumers with old offsets start where auto.offset.reset says.",
            figures={"partitions": count},
            places=tuple(places),
            weight=float(count),
            subject=" ".join(names),
        )


def _is_created_together(group: list[Row], row: Row) -> bool:
    last = group[-1]
    is_of_cluster = row["cluster_id"] == last["cluster_id"]
    return bool(is_of_cluster and row["created_time"] - last["created_time"] <= _TOGETHER_US)


@kind(
    meaning="The deletion of topics waits: a replica is off line, or a reassignment is under way.",
    source="kafka.controller.TopicDeletionManager, ZooKeeper",
    signatures=(_HALTED, _DELETED),
    causes=ABSENT,
)
def topic_deletion_waits(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield deletions of topics that wait: what a controller logged as the wait began, once per topic and reason."""
    completed = facts.remarked(_DELETED)
    for row in facts.remarked(_HALTED):
        why = _WHY.search(row["message"])
        if why is None:
            continue
        episode = Episode([row])
        names, start = row["key"].split(","), episode.start_us
        ends = [
            [
                other["first_time"]
                for other in completed
                if (other["cluster_id"], other["key"]) == (row["cluster_id"], name) and other["first_time"] >= start
            ]
            for name in names
        ]
        end = max(map(min, ends)) if all(ends) else None
        waits = f"waits since {clock(start)}" if end is None else f"waited {span(start, end)}"
        yield episode.incident(
            MINOR,
            f"The deletion of {', '.join(names)} {waits}: {shortened(why['why'].strip())}.",
            end_us=end,
            advice=Remedy(
                "Bring that replica back, or let the reassignment end: the controller continues by itself then.",
                is_open,
            ),
            figures={"lines": episode.lines},
        )
