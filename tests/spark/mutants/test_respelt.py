"""Lines in words that no release prints say the same, or nothing: never anything else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest

from tests.spark.mutants.judged import RESPELT, UNDAMAGED, unknown
from tests.spark.mutants.respelt import RESPELLINGS, facts_of, template_of, told_otherwise
from tests.spark.mutants.slices import SLICES, available
from tests.spark.mutants.variants import Audited

pytestmark = [
    pytest.mark.corpora,
    pytest.mark.skipif(not available(), reason="the large corpora are not beside this checkout"),
]
#: Lines of each template that are respelt in every way.
LINES = 3


@pytest.mark.parametrize("part", SLICES)
def test_a_respelt_line_says_nothing_that_the_line_did_not(part: str, tell: Callable[[str], None]) -> None:
    seen: Counter[str] = Counter()
    told: Counter[str] = Counter()
    otherwise = []
    for record in SLICES[part].read():
        template = template_of(record)
        seen[template] += 1
        if seen[template] > LINES:
            continue
        random = Random(f"{part} {record.file} {record.byte_offset}")
        for way, respell in RESPELLINGS.items():
            new = record._replace(message=respell(record.message, random))
            if new.message == record.message:
                continue
            told["the same" if facts_of(new) == facts_of(record) else "less" if facts_of(new) else "nothing"] += 1
            otherwise += [(template, way, new.message[:200], fact) for fact in told_otherwise(record, new)]
    tell(f"  {part}: {told.total()} respelt lines of {len(seen)} templates: {dict(told)}")
    assert otherwise == []
    assert told["nothing"] > told.total() / 2
    assert told.total() > 500


def test_a_cluster_of_wordings_that_nobody_knows_has_no_violation_of_its_own(
    judged: Audited, tell: Callable[[str], None]
) -> None:
    undamaged = {one: judged.violations(UNDAMAGED + one.part) for one in RESPELT}
    assert {one.name: found for one in RESPELT if (found := unknown(judged.violations(one.name), undamaged[one]))} == {}
    hidden = sum(bool(undamaged[one]) and not judged.violations(one.name) for one in RESPELT)
    tell(f"  {len(RESPELT)} respelt slices, violations hidden in {hidden}")
