"""The request logs of the large corpora, where they are: every record is read, and coordinators' requests say whose."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from highwater.pipelines.grammars.coordinator_bodies import COLUMNS
from highwater.pipelines.grammars.record import KNOWN, TYPED, LogRecord
from highwater.pipelines.grammars.request_log import parse_request
from tests.reading import columns_of
from tests.unit.silver.printed import as_text
from tests.unit.silver.test_request_forms import rows
from tests.unit.silver.test_request_log import record
from tests.unit.silver.test_request_tokens import problems_of

#: Records of request logs: in text form, 0.9 to 2.7, then in JSON, to 4.2.
RECORDS = {
    "lib-0.9": 2_202,
    "m-0.10.0.1": 6_504,
    "kip101": 2_542,
    "zk011-faults": 39_780,
    "m-1.0.2": 5_898,
    "zk11-faults": 45_170,
    "m-2.1.1": 6_346,
    "zk23-faults": 49_395,
    "m-2.4.1": 11_282,
    "zk25-rolls": 74_116,
    "zk27-faults": 54_757,
    "m-3.0.2": 5_978,
    "m-3.3.2": 6_625,
    "m-3.6.2": 5_989,
    "m-4.0.2": 7_803,
    "m-4.2.1": 8_310,
}
#: Those with requests to coordinators of all kinds.
COORDINATORS = ("zk27-faults", "zk28-faults", "kraft39-faults", "kraft43-faults", "kraft43-ops")
#: What `make test` reads of them: the oldest, the newest, and one whose verdict is known; `make test-corpora` has all.
AT_ONCE = ("lib-0.9", "m-0.10.0.1", "kip101", "m-4.2.1", "kraft43-faults")
#: Tokens of a line that are changed: fewer than of those that are beside the tests.
TOKENS_MAX = 40
_API = re.compile(r'apiKey=(\w+)|api_key=(\d+)|"requestApiKeyName":"(\w+)|Name: ?(\w+)')
CORPORA = Path(__file__).parents[4] / "shared" / "corpora"

pytestmark = [
    pytest.mark.corpora,
    pytest.mark.skipif(not CORPORA.is_dir(), reason="the large corpora are not beside this checkout"),
]


def records(corpus: str, naming: str = "") -> Iterator[LogRecord]:
    """Records of a corpus; only those that have a pattern near their beginning, where one is given."""
    wanted = re.compile(naming)
    for path in sorted((CORPORA / corpus).glob("broker-*/logs/kafka-request.log*.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                if wanted.search(line, 0, 500):
                    yield record(line.rstrip("\n"))


def each(corpora: Iterable[str]) -> list[Any]:
    """Corpora as parameters."""
    return [pytest.param(name, marks=[] if name in AT_ONCE else pytest.mark.long) for name in corpora]


@pytest.mark.parametrize("corpus", each(RECORDS))
def test_every_record_is_read(corpus: str):
    outcomes = Counter(parse_request(read).outcome for read in records(corpus))
    assert outcomes.total() == RECORDS[corpus]
    assert outcomes.keys() <= {TYPED, KNOWN}


@pytest.mark.parametrize("corpus", each(corpus for corpus in RECORDS if corpus.startswith("m-")))
def test_a_line_of_each_api_says_what_it_has_or_nothing(corpus: str):
    lines: dict[str, LogRecord] = {}
    for read in records(corpus):
        found = _API.search(read.message)
        if found is not None:
            lines.setdefault(found[found.lastindex or 0], read)
    assert len(lines) > 10
    for read in lines.values():
        assert list(problems_of(read, TOKENS_MAX)) == []


@pytest.mark.long
def test_a_sample_of_28_says_the_same_in_either_form():
    sample = [read for number, read in enumerate(records("zk28-faults")) if number % 25 == 0]
    assert len(sample) > 2_000
    for read in sample:
        assert rows(read._replace(message=as_text(read.message))) == rows(read)


@pytest.mark.parametrize("corpus", each(COORDINATORS))
def test_requests_to_coordinators_say_whose_they_are(corpus: str):
    seen: Counter[str] = Counter()
    for read in records(corpus, rf'["=](?:{"|".join(COLUMNS)})["}},]'):
        (fact,) = parse_request(read).facts
        row = columns_of(fact)
        api = row["api"]
        seen[api] += 1
        assert row.get("group_id") or row.get("transactional_id")
        if api == "OFFSET_COMMIT":
            assert row["records"] > 0 if 0 in row["error_codes"] else row["records"] == 0
        elif api == "SYNC_GROUP":
            assert row["assignments"] == 1
        elif api == "ADD_PARTITIONS_TO_TXN":
            assert row["verify_only"] == (row["api_version"] >= 4)
            assert row["partitions"]
            assert all(part["error_code"] in row["error_codes"] for part in row["partitions"])
        elif api == "INIT_PRODUCER_ID":
            assert (row["producer_id"] is not None) == (row["error_codes"] == [0])
        elif api == "END_TXN":
            assert row["committed"] in (True, False)
    assert {"OFFSET_COMMIT", "SYNC_GROUP", "JOIN_GROUP", "HEARTBEAT"} <= seen.keys()
