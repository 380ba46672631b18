"""Count lines at WARN and above that are part of no incident: ``python -m tests.bench.silence LAKE...``

Incidents are found again in each lake by this checkout, without Spark. A line is part of an incident if the incident
covers its time and has a kind that the atlas or a signature names for the line, or if it is an incident of this text.
Lines of each start, stop and failover are *housekeeping*. Prints a row per lake, with the number of incidents on the
first screen, then each silent text. Ends with 1 if a line is silent.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from highwater.pipelines.base.config import load_config
from highwater.pipelines.incidents import stage
from highwater.pipelines.incidents.candidates import SLACK_US
from highwater.pipelines.incidents.incident import LoggedIncident
from highwater.pipelines.incidents.kind import SHOWN_BY
from highwater.pipelines.incidents.loud_text import RARER, LoudText, loud_texts
from highwater.pipelines.incidents.questions import MASKED, WITHOUT_FRAMES
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.lake_reads import open_reader
from highwater.pipelines.messages.atlas import HOUSEKEEPING
from highwater.pipelines.report.happened import CHAINS_MAX

#: Records at WARN and above, equal ones of one instant together.
_RECORDS = f"""
    SELECT cluster_id, level, logger, NULL AS signature, epoch_us(time) AS first_time, first_time AS last_time,
        {MASKED} AS template, broker_id, left({WITHOUT_FRAMES}, 2000) AS message, count(*) AS line_count
    FROM bronze_log_lines WHERE level IN ('WARN', 'ERROR', 'FATAL') AND time IS NOT NULL GROUP BY ALL
"""


class Counted(NamedTuple):
    """Lines at WARN and above of a lake."""

    lines: int
    housekeeping: int
    silent: Counter[str]  #: lines by text
    incidents: int  #: incidents that are no effect of another one


def count_lake(path: Path) -> Counted:
    """Return the lines of a lake, and how many of them no incident has."""
    lake = Lake(None, path)
    reader = open_reader(lake, [(spec, None) for spec in stage._ASKED])
    incidents = stage.incidents_of(stage.collect_facts(lake, reader, load_config()), stage.KINDS)
    by_kind: dict[tuple[str, str], list[LoggedIncident]] = defaultdict(list)
    for incident in incidents:
        by_kind[incident.cluster_id, incident.kind].append(incident)
    lines = housekeeping = 0
    silent: Counter[str] = Counter()
    for (text,) in (loud_texts([row]) for row in reader.rows(_RECORDS)):
        lines += text.lines
        if text.found is not None and text.found.message.part == HOUSEKEEPING:
            housekeeping += text.lines
            continue
        names = {*text.kinds, *_kinds_of_signatures(text)}
        names |= {shown for name in names for shown in SHOWN_BY.get(name, ())}
        keys = {text.key, f"{text.level} {RARER}"}
        own = (one for one in by_kind[text.cluster_id, "also_logged"] if one.subject in keys)
        of_kinds = (one for name in names for one in by_kind[text.cluster_id, name])
        if not any(_covers(one, text) for one in (*own, *of_kinds)):
            silent[f"{text.level} {text.row['logger']} {text.line[:160]}"] += text.lines
    ids = {incident.incident_id for incident in incidents}
    return Counted(lines, housekeeping, silent, sum(incident.caused_by not in ids for incident in incidents))


def _kinds_of_signatures(text: LoudText) -> Iterator[str]:
    logger = str(text.row["logger"] or "")
    for kind in stage.KINDS:
        for signature in kind.signatures:
            names = {logger, logger.rpartition(".")[2]}
            if text.level in signature.levels and (not signature.loggers or names & set(signature.loggers)):
                whole = signature.is_whole and re.search(signature.pattern, str(text.row["message"]), re.MULTILINE)
                if whole or (not signature.is_whole and re.fullmatch(signature.pattern, text.line)):
                    yield kind.name


def _covers(incident: LoggedIncident, text: LoudText) -> bool:
    begun = incident.start_us - SLACK_US <= text.first_us
    return begun and (incident.end_us is None or text.first_us <= incident.end_us + SLACK_US)


def main(arguments: Iterable[str]) -> int:
    """Print the table."""
    texts: Counter[str] = Counter()
    print(f"{'lake':60} {'lines':>8} {'housekeeping':>12} {'silent':>6} {'incidents':>9} {'shown':>5}")
    for path in arguments:
        found = count_lake(Path(path))
        texts += found.silent
        shown = min(found.incidents, CHAINS_MAX)
        counts = f"{found.lines:8,} {found.housekeeping:12,} {found.silent.total():6,} {found.incidents:9,} {shown:5}"
        print(f"{path[-60:]:60} {counts}", flush=True)
    for text, count in texts.most_common():
        print(f"silent, {count}: {text}")
    return int(bool(texts))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
