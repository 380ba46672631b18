"""What `highwater survivors` predicts of each election, beside what was lost.

    python -m tests.bench.survivors LAKES... --corpora DIR [--markdown docs/answers.md]

For every election of every partition in the lakes (as `tests.bench.releases --lakes` leaves them) the prediction is
made from the lines before the first one that tells of its epoch, for the replica that was then elected. It is
compared with the offset at which that leader's epoch then started, and with the records that clients had been told
were written and that are gone: lost.json, or else the clients' own histories. Ends with 1 where a record is predicted
to be lost and is not, or was lost and is not within the prediction.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from highwater.pipelines.inquiry.partition import read_partition_facts
from highwater.pipelines.inquiry.replica_logs import Interval
from highwater.pipelines.inquiry.survivors import ALL, ONE, Candidate, PartitionFacts, find_survivors
from highwater.pipelines.lake.contents import find_tables
from highwater.pipelines.lake.reader import LakeReader
from tests.bench.figures import insert, markdown
from tests.bench.truth import LOSS, Place, truth_of

HEADS = (
    *("corpus", "elections", "log end exact", "within bounds", "outside", "lost acks=all", "sure", "perhaps", "missed"),
    *(
        "lost acks=1",
        "sure",
        "perhaps",
        "acked by a deposed leader",
        "said: cannot be shown",
        "missed",
        "predicted and not lost",
    ),
)
#: A client has the answer so long after the broker logged it, at most.
_ANSWERED_US = 2_000_000
_CORPUS = re.compile(r"corpora/([^/]+)/")


class ClusterReader(LakeReader):
    """Holds the rows of one cluster in memory: a thousand elections ask the same tables."""

    def __init__(self, root: Path, cluster_id: str) -> None:
        super().__init__(root, find_tables(root))
        self._cluster_id = cluster_id

    def _make_view(self, full_name: str) -> None:
        is_new = full_name not in self._views
        super()._make_view(full_name)
        if is_new:
            view = full_name.replace(".", "_")
            self.connection.execute(f"ALTER VIEW {view} RENAME TO all_{view}")
            rows = f"SELECT * FROM all_{view} WHERE cluster_id = $cluster"
            self.connection.execute(f"CREATE TABLE {view} AS {rows}", {"cluster": self._cluster_id})


class Record(NamedTuple):
    """A record that a client was told was written."""

    topic: str
    partition: int
    offset: int
    acks: str
    acked_us: int


class Election(NamedTuple):
    """An epoch's leader, when the first line or record tells of the epoch, and its start as its leader logs it."""

    epoch: int
    leader: int
    at_us: int
    start_offset: int | None


@dataclass
class Comparison:
    """Of one corpus."""

    corpus: str
    #: elections by how the predicted log end compares with the start of the epoch
    ends: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)  #: records that are gone, by acks
    #: of these by acks, how they were predicted; of those that are not gone, the ones predicted to be
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    complaints: list[str] = field(default_factory=list)  #: what does not agree

    @property
    def cells(self) -> tuple[str, ...]:
        """A row of the table."""
        ends = (self.ends["exact"], self.ends["within"], self.ends["outside"])
        of_all = (self.lost[ALL], *(self.counts[ALL, how] for how in ("sure", "perhaps", "missed")))
        of_one = (
            self.lost[ONE],
            *(self.counts[ONE, how] for how in ("sure", "perhaps", "deposed", "not shown", "missed")),
        )
        wrong = self.counts[ALL, "not lost"] + self.counts[ONE, "not lost"]
        return (self.corpus, *map(str, (sum(self.ends.values()), *ends, *of_all, *of_one, wrong)))


def main(arguments: list[str]) -> int:
    """Compare, print, and give the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lakes", nargs="+", type=Path)
    parser.add_argument("--corpora", type=Path, required=True, help="folder of the corpora")
    parser.add_argument("--only", help="these corpora, with commas between them")
    parser.add_argument("--markdown", type=Path, help="a document that holds the table")
    given = parser.parse_args(arguments)
    results = []
    for lake in given.lakes:
        for corpus, cluster_id in _corpora(LakeReader(lake, find_tables(lake))):
            if given.only is None or corpus in given.only.split(","):
                results.append(compared(ClusterReader(lake, cluster_id), cluster_id, given.corpora / corpus))
                print(results[-1].cells, file=sys.stderr, flush=True)
    results.sort(key=lambda result: result.corpus)
    lines = markdown(HEADS, [result.cells for result in results])
    complaints = [f"{result.corpus}: {text}" for result in results for text in result.complaints]
    print("\n".join([*lines, "", *complaints]))
    if given.markdown:
        insert(given.markdown, lines, "survivors")
    return 1 if complaints else 0


def _corpora(reader: LakeReader) -> list[tuple[str, str]]:
    files = reader.rows("SELECT DISTINCT path, cluster_id FROM bronze_log_files")
    known = {(match[1], row["cluster_id"]) for row in files if (match := _CORPUS.search(row["path"]))}
    return sorted(known)


def compared(reader: LakeReader, cluster_id: str, corpus: Path) -> Comparison:
    """All elections of a cluster beside what is true of it."""
    result = Comparison(corpus.name)
    acked = list(_acked(corpus))
    lost = _lost(corpus, acked)
    result.lost.update(record.acks for record in lost)
    written = {(record.topic, record.partition) for record in acked}
    predicted: dict[Record, str] = {}
    deleted = {
        row["topic"]
        for row in reader.rows(
            """SELECT DISTINCT topic FROM silver_controller_events
               WHERE event = 'topic_deleted' AND cluster_id = $cluster""",
            cluster=cluster_id,
        )
    }
    for topic, partition in sorted(written):
        if topic in deleted:
            continue
        of_it = [record for record in acked if (record.topic, record.partition) == (topic, partition)]
        elections = list(_elections(reader, cluster_id, topic, partition))
        after = read_partition_facts(reader, cluster_id, topic, partition, None) if elections else None
        for election in elections:
            before = find_survivors(read_partition_facts(reader, cluster_id, topic, partition, election.at_us))
            chosen = next(
                (candidate for candidate in before.candidates if candidate.log.replica_id == election.leader), None
            )
            if chosen is None:
                continue
            result.ends[_end(result, chosen, election, f"{topic}-{partition}")] += 1
            for record in of_it:
                if record.acked_us < election.at_us and (how := _prediction(chosen, record)) is not None:
                    predicted.setdefault(record, how)
        for record in of_it:
            if record in lost:
                how = predicted.get(record) or _otherwise(record, after, elections)
                result.counts[record.acks, how] += 1
                if how == "missed":
                    result.complaints.append(
                        f"{topic}-{partition} {record.offset} (acks={record.acks}) is lost, and missed"
                    )
            elif predicted.get(record) == "sure":
                result.counts[record.acks, "not lost"] += 1
                result.complaints.append(f"{topic}-{partition} {record.offset} (acks={record.acks}) is not lost")
    return result


def _end(result: Comparison, chosen: Candidate, election: Election, place: str) -> str:
    log, start_offset = chosen.log, election.start_offset
    if start_offset is None or log.end_min is None:
        return "not told"
    if log.end_min == log.end_max == start_offset:
        return "exact"
    if log.end_min <= start_offset and (log.end_max is None or start_offset <= log.end_max):
        return "within"
    difference = f"epoch {election.epoch} starts at {start_offset}, predicted {log.end_min} to {log.end_max}"
    result.complaints.append(f"{place} {difference}")
    return "outside"


def _prediction(chosen: Candidate, record: Record) -> str | None:
    fate = chosen.of_all if record.acks == ALL else chosen.of_one
    for how, intervals in (("sure", fate.surely), ("perhaps", fate.perhaps)):
        if _within(record.offset, intervals):
            return how
    if fate.beyond is not None and record.offset >= fate.beyond:
        return "perhaps"
    if chosen.committed_lost is not None and _within(record.offset, (chosen.committed_lost,)):
        return "sure"
    return None


def _within(offset: int, intervals: Iterable[Interval]) -> bool:
    return any(start <= offset < end for start, end in intervals)


def _otherwise(record: Record, after: PartitionFacts | None, elections: Sequence[Election]) -> str:
    if _is_of_deposed(record, after, elections):
        return "deposed"
    return "not shown" if record.acks == ONE and after is not None and after.unplaced else "missed"


def _is_of_deposed(record: Record, after: PartitionFacts | None, elections: Sequence[Election]) -> bool:
    """Its leader answered when a line had told of a later epoch: no prediction from before that could know of it."""
    for batch in () if after is None else after.acked:
        is_it = batch.start <= record.offset < batch.end and abs(batch.row["time"] - record.acked_us) < _ANSWERED_US
        if is_it and any(later.epoch > batch.epoch and later.at_us <= record.acked_us for later in elections):
            return True
    return False


def _elections(reader: LakeReader, cluster_id: str, topic: str, partition: int) -> Iterator[Election]:
    """All but the first."""
    rows = reader.rows(
        """SELECT leader_epoch AS epoch, max(leader) FILTER (leader >= 0) AS leader, min(epoch_us(time)) AS at_us,
                  min(start_offset) FILTER (role = 'leader_start') AS start_offset
           FROM (SELECT leader_epoch, CASE WHEN role = 'leader_start' THEN broker_id ELSE leader END AS leader, time,
                        start_offset, role
                 FROM silver_leader_and_isr WHERE cluster_id = $cluster AND topic = $topic AND partition = $partition
                 UNION ALL
                 SELECT leader_epoch, leader, time, NULL, NULL FROM silver_metadata_records
                 WHERE cluster_id = $cluster AND topic = $topic AND partition = $partition)
           WHERE leader_epoch IS NOT NULL GROUP BY leader_epoch ORDER BY leader_epoch""",
        cluster=cluster_id,
        topic=topic,
        partition=partition,
    )
    for row in [row for row in rows if row["leader"] is not None][1:]:
        yield Election(row["epoch"], row["leader"], row["at_us"], row["start_offset"])


# -------------------------------------------------------------------------- truth


def _acked(corpus: Path) -> Iterator[Record]:
    """What clients were told was written."""
    for line in _history(corpus):
        if (
            line["kind"] == "produce"
            and line["error"] is None
            and line.get("offset") is not None
            and line["offset"] >= 0
        ):
            yield Record(
                line["topic"], line["partition"], line["offset"], str(line.get("acks", ALL)), _micros(line["t1"])
            )


def _lost(corpus: Path, acked: list[Record]) -> set[Record]:
    """Of these, what is gone."""
    listed = corpus / "lost.json"
    if listed.is_file():
        gone = {
            (lost["topic"], lost["partition"], lost["offset"], _micros(lost["acked_at"]))
            for lost in json.loads(listed.read_text(encoding="utf-8"))
        }
        return {record for record in acked if (*record[:3], record.acked_us) in gone}
    # Of two that were told of one offset the later one stands; so does what consumers read there.
    of_offset: dict[tuple[str, int, int], list[tuple[int, str, Record]]] = defaultdict(list)
    read: dict[tuple[str, int, int], set[str]] = defaultdict(set)
    for line in _history(corpus):
        if line["kind"] not in ("produce", "consume"):
            continue
        place = line["topic"], line["partition"], -1 if line.get("offset") is None else line["offset"]
        if line["kind"] == "consume":
            read[place].add(line["key"])
        elif line["error"] is None and place[2] >= 0:
            record = Record(*place, str(line.get("acks", ALL)), _micros(line["t1"]))
            of_offset[place].append((record.acked_us, line["key"], record))
    lost = set()
    places = [place for place in truth_of(corpus).broken if LOSS[0] in place.rules]
    for place, answers in of_offset.items():
        answers.sort(key=lambda item: item[0])
        if len(answers) == 1 and any(_holds(broken, place) for broken in places):
            lost.add(answers[0][2])
        lost |= {record for _, _, record in answers[:-1]}
        if read[place] and answers[-1][1] not in read[place]:
            lost.add(answers[-1][2])
    return lost


def _holds(broken: Place, place: tuple[str, int, int]) -> bool:
    return (broken.topic, broken.partition) == place[:2] and broken.offset_start <= place[2] < broken.offset_end


def _history(corpus: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(corpus / "client-history.jsonl.gz", "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _micros(seconds: float) -> int:
    return round(seconds * 1_000_000)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
