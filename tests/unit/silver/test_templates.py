"""What the releases can log is known: every text at a logging call of the audited classes, 0.9 to the newest."""

from __future__ import annotations

import pytest

from tests.bench.overlap import can_match
from tests.bench.templates import Logged, logged, reader_of
from tests.data.derive_templates import SOURCE, TABLE, rows

#: Parts of texts that are put together from several constants; the whole text is in the grammars.
FRAGMENTS = {
    "New replicas %s for partition %s being ": "goes on with 'reassigned not yet caught up with the leader'",
    "Waiting for new replicas %s for partition %s being ": "goes on with 'reassigned to catch up with the leader'",
    "Replica(s) %s still need to catch up": "end of '%d/%d replicas have caught up with the leader'",
    "{}Resuming partition reassignment": "end of '%d/%d replicas have caught up with the leader'",
    "is already in the new list of replicas %s and is alive": "end of 'Leader %s for partition %s being reassigned'",
    "is already in the new list of replicas %s but is dead": "end of 'Leader %s for partition %s being reassigned'",
    "is not in the new list of replicas %s. Re-electing leader": "end of 'Leader %s for partition %s being reassigned'",
    "Future Log": "begin of 'Future Log already exists.'",
    "Future UnifiedLog": "begin of 'Future UnifiedLog already exists.'",
    " Current leader %d's latest offset %d is less than replica %d's latest offset %d": "end of the next three",
    "Exiting because log truncation is not allowed for partition %s,": "goes on with 'Current leader'",
    "Exiting because log truncation is not allowed for topic %s,": "goes on with 'Current leader'",
    "Halting because log truncation is not allowed for topic %s,": "goes on with 'Current leader'",
    ", ignoring response/partition size limits": "end of 'Fetching log segment for partition'",
}


def test_every_text_of_every_release_is_known() -> None:
    unknown = [entry for entry in logged() if entry.text not in FRAGMENTS and reader_of(entry) is None]
    assert not unknown, "\n".join(map(str, unknown[:20]))


def test_fragments_are_texts_that_no_template_reads() -> None:
    entries = {entry.text: entry for entry in logged()}
    assert FRAGMENTS.keys() <= entries.keys()
    assert not [text for text in FRAGMENTS if reader_of(entries[text]) is not None]


@pytest.mark.parametrize(
    "text",
    [
        "Shrinking the ISR from {} to {}",
        "ISR changed to {} at version {}",
        "Truncating back to {}",
        "Expanding ISR to {}",
    ],
)
def test_a_new_wording_is_seen(text: str) -> None:
    assert reader_of(Logged("kafka.cluster.Partition", "5.0.0", "5.0.0", 1, "info", text)) is None


@pytest.mark.parametrize(
    ("pattern", "template", "expected"),
    [
        (r"Truncating to offset (-?\d+)", "Truncating to offset {}", True),
        (r"Truncating to offset (-?\d+)", "Truncating to offset %d.", False),
        (r"(?:a|bc)*x?[0-9]{2}", "{}7", True),
        (r"(?:a|bc)*x?[0-9]{2}", "{}q", False),
        (r"ISR (\[[\d, ]*\]|\d+)\.", "ISR {}.", True),
    ],
)
def test_a_text_with_holes_against_a_pattern(pattern: str, template: str, expected: bool) -> None:
    assert can_match(pattern, template) is expected


def test_the_table_is_what_the_releases_have() -> None:
    if not SOURCE.exists():
        pytest.skip("the releases' templates are not beside this checkout")
    import gzip

    assert gzip.decompress(TABLE.read_bytes()).decode().splitlines() == rows()
