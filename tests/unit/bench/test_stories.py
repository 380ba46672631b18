"""Excerpts of incidents, and the judgement of what they give."""

import gzip
from pathlib import Path

from tests.bench.stories import Claim, Excerpt, is_excluded, table, write_excerpt

START = 1_795_176_000.0


def claim(kind: str, start: float, end: float | None, brokers: set[int], sentence: str = "It was.") -> Claim:
    of_end = None if end is None else START + end
    return Claim(kind, frozenset(brokers), frozenset(), START + start, of_end, sentence)


def test_an_excerpt_has_the_records_that_show_an_incident(tmp_path: Path) -> None:
    """Lines without a time belong to the record before them."""
    logs = tmp_path / "logs" / "broker-1"
    logs.mkdir(parents=True)
    records = ["12:00:00,000] INFO a (kafka.A)\n", "12:00:04,000] ERROR b (kafka.A)\njava.io.IOException: b\n\tat c\n"]
    records += ["12:00:05,000] INFO d (kafka.A)\n", "12:00:09,000] INFO e (kafka.A)\n"]
    text = "".join(f"[2026-11-20 {record}" for record in records)
    (logs / "server.log.gz").write_bytes(gzip.compress(text.encode()))
    row = {"start_time": "2026-11-20T12:00:04Z", "evidence": [{"file": "broker-1/server.log.gz", "line_no": 3}]}
    for context_s, kept in ((0.0, records[1:2]), (1.0, records[1:3])):
        write_excerpt(tmp_path / "logs", row, tmp_path / str(context_s), context_s)
        written = (tmp_path / str(context_s) / "broker-1" / "server.log").read_text()
        assert written == "".join(f"[2026-11-20 {record}" for record in kept)
    write_excerpt(tmp_path / "logs", row | {"evidence": []}, tmp_path / "none", 0.0)
    assert (tmp_path / "none" / "broker-1" / "server.log").read_text().count("[2026") == 2


def test_what_the_whole_logs_do_not_know_is_false() -> None:
    whole = [claim("broker_died", 10, 40, {2})]
    assert not is_excluded(claim("broker_died", 12, None, {2}), whole)
    assert not is_excluded(claim("isr_shrunk", 12, None, {2}), whole), "it follows from a death"
    assert is_excluded(claim("broker_died", 12, 20, {3}), whole)
    assert is_excluded(claim("broker_died", 50, 60, {2}), whole)
    assert is_excluded(claim("clock_set_back", 12, 12, {2}), whole)


def test_the_table_ends_with_the_worst_sentences() -> None:
    died, other = claim("broker_died", 10, 40, {2}, "It died."), claim("broker_stopped", 10, 40, {2}, "It stopped.")
    judged = [Excerpt("a", died, [died], []), Excerpt("b", died, [], []), Excerpt("c", died, [other], [other])]
    assert [*table(judged)] == [
        "| kind | false | silent | other | same |",
        "|---|---|---|---|---|",
        "| broker_died | 1 | 1 | 0 | 1 |",
        "c, false: It died.",
        "    broker_stopped: It stopped.",
        "b, silent: It died.",
    ]
