"""Files with lines that contradict each other about who wrote them are read to rows of the tables."""

from __future__ import annotations

import gzip
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from highwater.pipelines.bronze.register import file_row
from highwater.schemas.bronze import LOG_FILES
from tests.reading import read_folder
from tests.unit.hostile_lines import hostile_lines

SERVER = Path(__file__).parents[2] / "data" / "slice" / "broker-2" / "logs" / "server.log.gz"
REAL = gzip.decompress(SERVER.read_bytes()).decode().splitlines()[:200]


@given(st.lists(st.tuples(st.integers(0, 200), hostile_lines()), min_size=1, max_size=8), st.sampled_from((0, 20, 200)))
# Shrinking texts of thousands of digits takes minutes.
@settings(max_examples=15, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
def test_hostile_lines_cost_no_file(hostile: list[tuple[int, str]], real: int) -> None:
    """Before, amid and after real lines; the register and the rows of the other broker are as without them."""
    lines = REAL[:real]
    for place, text in hostile:
        lines.insert(place, text)
    with TemporaryDirectory() as folder:
        for name, texts in (("a", lines), ("b", REAL)):
            (Path(folder) / name).mkdir()
            (Path(folder) / name / "server.log").write_text("\n".join(texts) + "\n", encoding="utf-8")
        read = read_folder(Path(folder))
    rows = [file_row(item, read.identities[path], "run") for path, item in read.files.items()]
    assert pa.Table.from_pylist(rows, schema=LOG_FILES.arrow_schema).num_rows == len(read.files)
    good = [record for record in read.records if record.path.endswith("b/server.log")]
    assert good
    assert {record.broker_id for record in good} == {2}
