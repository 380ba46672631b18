"""Resolves who wrote each file: first by its own lines, then by its neighbours. Pure.

Evidence for a broker, in this order:

- the file's own records;
- lines of its start script or environment;
- a listener: the file's connections have the address of a broker of the cluster. The file's folder is searched first,
  then the folders above;
- the folder: all files there whose lines show a broker show the same one. Otherwise the folder above;
- names of its stream, host, file and folders (`pipelines.bronze.broker_names`), if other files confirm them.

Evidence for a cluster, in this order: the configured name of its folder; its own content; the nearest folder above
whose files have exactly one known cluster. Nothing is guessed. An ambiguous file stays unknown, with a remedy.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from highwater.pipelines.base.values import UNKNOWN_CLUSTER
from highwater.pipelines.bronze.broker_names import BrokerName, broker_name, broker_names, brokers_of_names
from highwater.pipelines.bronze.identity import AGREEMENT, OTHER, Hints, decide, kind_of_name
from highwater.pipelines.bronze.lives import FileLife

CONTENT = "content"
ENVIRONMENT = "environment"
LISTENER = "listener"
FOLDER = "folder"
NAME = "name"
#: Evidence from the file itself. Evidence from a folder or a name does not count for other files.
BY_LINES = (CONTENT, ENVIRONMENT, LISTENER)
#: Logs that follow each other may overlap by this time: lines are out of order by a pause.
OVERLAP_MAX_US = 10_000_000
_CLUSTER_UNTOLD = (
    "no line shows which cluster it belongs to: keep the logs of each cluster in a folder of their own, or name its "
    "folder in ingest.clusters"
)


@dataclass(frozen=True)
class FileEvidence:
    """What one file's own lines show about its writer."""

    path: str  #: where it is
    kind: str  #: kind of file
    broker: int | None = None  #: broker that wrote it, from content (or stored in an earlier run)
    source: str | None = None  #: kind of evidence that shows the broker; None if none
    cluster: str | None = None  #: cluster id from content, or the name that the configuration gives its folder
    version: str | None = None  #: Kafka version from content
    mode: str | None = None  #: zookeeper or kraft, from content
    listeners: frozenset[str] = frozenset()  #: addresses that its broker listens on
    locals: Counter[str] = field(default_factory=Counter)  #: addresses of its broker's side of connections, with votes
    first_us: int | None = None  #: time of its first record
    last_us: int | None = None  #: time of its last record
    hosts: tuple[str, ...] = ()  #: names of its host that its lines show
    problem: str | None = None  #: why its own lines do not show the broker, if they should
    new: bool = True  #: read in this run; False for one that only gives evidence
    brokers: tuple[int, ...] = ()  #: those whose lines it holds, if of several
    is_named: bool = False  #: its cluster is configured for this folder, and for no other

    def in_cluster(self, name: str) -> FileEvidence:
        """Return the evidence with the configured cluster name of its folder. An empty name changes nothing."""
        return replace(self, cluster=name, is_named=True) if name else self

    def is_beside(self, other: FileEvidence) -> bool:
        """Return True if both files are of one kind and overlap in time, so that two brokers wrote them."""
        if None in (self.first_us, self.last_us, other.first_us, other.last_us) or self.kind != other.kind:
            return False
        ends_us, begins_us = (self.last_us or 0, other.last_us or 0), (self.first_us or 0, other.first_us or 0)
        return min(ends_us) - max(begins_us) > OVERLAP_MAX_US


@dataclass(frozen=True)
class Identity:
    """Who wrote a file. See `schemas.bronze.LOG_FILES` for the values."""

    cluster_id: str
    broker_id: int | None
    broker_id_source: str | None
    kafka_version: str | None
    mode: str | None
    problem: str | None
    logged_cluster_id: str | None = None
    broker_ids: tuple[int, ...] = ()


def evidence(
    path: str,
    kind: str,
    hints: Hints,
    first_us: int | None,
    lives: Sequence[FileLife] = (),
    last_us: int | None = None,
) -> FileEvidence:
    """Return what a file's own lines show. Lines of a client show nothing about a broker.

    Args:
        lives: brokers that wrote the file in turn. Empty if only one did.
    """
    if hints.is_clients:
        return FileEvidence(path, kind)
    broker, problem = (None, None) if lives else decide(hints.brokers)
    source = None if broker is None else CONTENT
    if broker is None and not hints.brokers:
        # Scripts that print several ids say nothing of one file.
        broker, source = decide(hints.environment)[0], ENVIRONMENT
    cluster = hints.clusters.most_common(1)[0] if hints.clusters else None
    agreed = cluster is not None and cluster[1] >= AGREEMENT * sum(hints.clusters.values())
    if cluster is not None and not agreed:
        names = " and ".join(sorted(hints.clusters))
        problem = problem or f"lines of clusters {names} are mixed: give each cluster its own file"
    return FileEvidence(
        path=path,
        kind=kind,
        broker=broker,
        source=None if broker is None else source,
        cluster=cluster[0] if cluster and agreed else None,
        version=hints.version,
        mode=hints.modes.most_common(1)[0][0] if hints.modes else None,
        listeners=frozenset(hints.listeners),
        locals=hints.locals,
        first_us=first_us,
        last_us=last_us,
        hosts=tuple(sorted(hints.hosts)),
        problem=problem,
        # Two clusters may have brokers of one id.
        brokers=tuple(sorted(hints.brokers)) if broker is None and (agreed or not hints.clusters) else (),
    )


def resolve(files: Sequence[FileEvidence]) -> dict[str, Identity]:
    """Return the writer of each new file by path. The other files only give evidence."""
    known = _with_clusters(files)
    known = _with_listeners(known)
    known = _with_names(_with_folders(known))
    known = _with_clusters(known)  # a listener may have shown the cluster too
    several = len({file.cluster for file in known if file.cluster}) > 1
    starts = _Starts(known)
    return {file.path: _identity(file, starts, several) for file in known if file.new}


def named(identity: Identity, cluster: str) -> Identity:
    """Return the identity with the cluster that a user names, if the identity has no cluster."""
    if identity.cluster_id != UNKNOWN_CLUSTER:
        return identity
    problem = None if identity.problem == _CLUSTER_UNTOLD else identity.problem
    return replace(identity, cluster_id=cluster, problem=problem)


def folders(path: str) -> Iterator[str]:
    """Yield the folders that contain a file, innermost first."""
    return (str(parent) for parent in PurePath(path).parents)


def _with_clusters(files: Sequence[FileEvidence]) -> list[FileEvidence]:
    below: dict[str, set[str]] = defaultdict(set)
    for file in files:
        for folder in folders(file.path) if file.cluster and not file.is_named else ():
            below[folder].add(file.cluster or "")
    with_clusters = []
    for file in files:
        if file.cluster is None:
            near = next((below[folder] for folder in folders(file.path) if folder in below), set())
            file = replace(file, cluster=next(iter(near)) if len(near) == 1 else None)
        with_clusters.append(file)
    return with_clusters


def _with_listeners(files: Sequence[FileEvidence]) -> list[FileEvidence]:
    below: dict[tuple[str, str], set[tuple[str | None, int]]] = defaultdict(set)
    for file in files:
        if file.broker is not None:
            for address in file.listeners:
                for folder in folders(file.path):
                    below[folder, address].add((file.cluster, file.broker))
    return [_by_listener(file, below) if file.broker is None and file.locals else file for file in files]


def _by_listener(file: FileEvidence, below: dict[tuple[str, str], set[tuple[str | None, int]]]) -> FileEvidence:
    for folder in folders(file.path):
        hits = {
            (cluster, broker)
            for address in file.locals
            for cluster, broker in below.get((folder, address), ())
            if file.cluster is None or cluster is None or cluster == file.cluster
        }
        if len(hits) == 1:
            cluster, broker = hits.pop()
            return replace(file, broker=broker, source=LISTENER, cluster=file.cluster or cluster)
        if hits:
            return file
    return file


def _with_folders(files: Sequence[FileEvidence]) -> list[FileEvidence]:
    brokers: dict[str, set[tuple[frozenset[BrokerName], int]]] = defaultdict(set)
    prefixed: dict[tuple[str, str], set[int]] = defaultdict(set)
    prefixes: dict[str, set[str]] = defaultdict(set)
    for file in files:
        folder, prefix = str(PurePath(file.path).parent), kind_of_name(file.path)[1]
        prefixes[folder].add(prefix)
        if file.broker is not None:
            brokers[folder].add((_own_names(file.path), file.broker))
            prefixed[folder, prefix].add(file.broker)

    def of_name(folder: str, names: frozenset[BrokerName]) -> set[int]:
        # One folder may hold objects of several brokers, each with its broker's name.
        return {broker for others, broker in brokers.get(folder, ()) if not _are_different(names, others)}

    def broker_of(file: FileEvidence) -> int | None:
        folder, prefix = PurePath(file.path).parent, kind_of_name(file.path)[1]
        near = prefixed.get((str(folder), prefix), set()) if prefix else set()
        # Names such as broker1-server.log distinguish brokers within a folder: then no other prefix can answer.
        if not near and (not prefix or len(prefixes[str(folder)]) == 1):
            names = _own_names(file.path)
            near = of_name(str(folder), names) or of_name(str(folder.parent), names)
        return next(iter(near)) if len(near) == 1 else None

    return _with_brokers(files, broker_of, FOLDER)


def _own_names(path: str) -> frozenset[BrokerName]:
    """Return the broker name in a path, and words with numbers in the file name that are not kinds of logs."""
    name = broker_name(path)
    words = {word for word in broker_names(PurePath(path).name) if kind_of_name(word.shape)[0] is None}
    return frozenset(words if name is None else words | {name})


def _are_different(names: frozenset[BrokerName], others: frozenset[BrokerName]) -> bool:
    """Return True if names belong to two brokers: different numbers in one shape, or different names for a broker."""
    numbers = dict(names)
    if any(numbers.get(shape, number) != number for shape, number in others):
        return True
    brokers = {name for name in names if name.is_of_broker}
    other_brokers = {name for name in others if name.is_of_broker}
    return bool(brokers and other_brokers) and brokers.isdisjoint(other_brokers)


def _with_names(files: Sequence[FileEvidence]) -> list[FileEvidence]:
    below: dict[str, set[tuple[BrokerName, int]]] = defaultdict(set)
    shapes: dict[str, set[str]] = defaultdict(set)
    of_broker: dict[int, list[FileEvidence]] = defaultdict(list)
    for file in files:
        if file.broker is not None:
            of_broker[file.broker].append(file)
            names = {(name, file.broker) for name in broker_names(file.path, file.hosts)}
            for folder in folders(file.path) if names else ():
                below[folder] |= names
                shapes[folder] |= {name.shape for name, _ in names}

    def named(file: FileEvidence) -> int | None:
        for name in broker_names(file.path, file.hosts):
            alike = (below[folder] for folder in folders(file.path) if name.shape in shapes[folder])
            broker = brokers_of_names(next(alike, ()), [name]).get(name)
            if broker is not None:
                is_taken = any(_are_two(file, other) for other in of_broker[broker])
                return None if is_taken else broker
        return None

    return _with_brokers(files, named, NAME)


def _are_two(file: FileEvidence, other: FileEvidence) -> bool:
    """Return True if two brokers wrote the files."""
    is_other_cluster = file.cluster and other.cluster and file.cluster != other.cluster
    return other.source in BY_LINES and not is_other_cluster and file.is_beside(other)


def _with_brokers(
    files: Sequence[FileEvidence], broker_of: Callable[[FileEvidence], int | None], source: str
) -> list[FileEvidence]:
    """Return the files. Those without a known writer get the broker from `broker_of`, with `source` as its source."""
    known = []
    for file in files:
        is_asked = file.broker is None and not file.brokers and file.problem is None and file.kind != OTHER
        broker = broker_of(file) if is_asked else None
        known.append(file if broker is None else replace(file, broker=broker, source=source))
    return known


class _Starts:
    """Versions and modes from other files of the brokers. A broker logs them at start, maybe several files earlier."""

    def __init__(self, files: Iterable[FileEvidence]) -> None:
        self._versions: dict[tuple[str | None, int], list[tuple[int, str]]] = defaultdict(list)
        self._modes: dict[tuple[str | None, int], set[str]] = defaultdict(set)
        for file in files:
            if file.broker is None:
                continue
            if file.version:
                self._versions[file.cluster, file.broker].append((file.first_us or 0, file.version))
            if file.mode:
                self._modes[file.cluster, file.broker].add(file.mode)

    def version(self, file: FileEvidence) -> str | None:
        """Return the version named last before the file begins, else the first one named after it."""
        if file.version or file.broker is None:
            return file.version
        versions = sorted(self._versions[file.cluster, file.broker])
        before = [version for time_us, version in versions if time_us <= (file.first_us or 0)]
        return before[-1] if before else versions[0][1] if versions else None

    def mode(self, file: FileEvidence) -> str | None:
        if file.mode or file.broker is None:
            return file.mode
        modes = self._modes[file.cluster, file.broker]
        return next(iter(modes)) if len(modes) == 1 else None


def _identity(file: FileEvidence, starts: _Starts, several: bool) -> Identity:
    problem = file.problem
    if problem is None and file.broker is None and not file.brokers and file.kind != OTHER:
        problem = "no line shows which broker wrote it: put that broker's server.log into the same folder"
    elif problem is None and file.cluster is None and several:
        problem = _CLUSTER_UNTOLD
    return Identity(
        cluster_id=file.cluster or UNKNOWN_CLUSTER,
        broker_id=file.broker,
        broker_id_source=file.source,
        kafka_version=starts.version(file),
        mode=starts.mode(file),
        problem=problem,
        broker_ids=file.brokers,
    )
