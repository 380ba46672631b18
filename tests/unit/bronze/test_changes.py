"""Files that change their layout: every part is read by its own, or counted as unread."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import pytest

from highwater.pipelines.bronze.layouts.patterns import KAFKA
from tests.reading import ReadFolder, read_folder
from tests.renderings import by_pattern
from tests.unit.bronze.test_random_logs import brokers

OTHER = "%d{yyyy/MM/dd HH:mm:ss.SSS} %-5p [%t] %c - %m"
RECORDS = brokers()[0][:400]
BANNER = "".join(f"Step {number}/40 : RUN apt-get install -y package-{number}\n" for number in range(4000))


def written(pattern: str, start: int, end: int) -> str:
    return "".join(by_pattern(pattern)(one) + "\n" for one in RECORDS[start:end])


def times(found: ReadFolder) -> list[int | None]:
    return [one.time_us for one in found.records if one.time_us is not None]


CONTENTS = {
    "once": written(KAFKA, 0, 200) + written(OTHER, 200, 400),
    "and back": written(KAFKA, 0, 150) + written(OTHER, 150, 250) + written(KAFKA, 250, 400),
    "behind a long beginning": BANNER + written(OTHER, 0, 400),
    "behind the sample": written(KAFKA, 0, 200) * 5 + written(OTHER, 200, 400),
}


@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.parametrize("form", ["plain", "gzip", "tar"])
def test_all_parts_are_read(name: str, form: str, tmp_path: Path) -> None:
    content = CONTENTS[name].encode()
    if form == "tar":
        with tarfile.open(tmp_path / "logs.tar", "w") as bundle:
            member = tarfile.TarInfo("server.log")
            member.size = len(content)
            bundle.addfile(member, io.BytesIO(content))
    else:
        (tmp_path / "server.log").write_bytes(gzip.compress(content) if form == "gzip" else content)
    expected = [one.time_us for one in RECORDS]
    if name == "behind the sample":
        expected = expected[:200] * 5 + expected[200:]
    assert times(read_folder(tmp_path)) == expected


def test_lines_of_two_layouts_among_each_other_are_read(tmp_path: Path) -> None:
    pairs = zip(RECORDS[:300], RECORDS[100:400], strict=True)
    content = "".join(by_pattern(KAFKA)(one) + "\n" + by_pattern(OTHER)(other) + "\n" for one, other in pairs)
    (tmp_path / "server.log").write_text(content)
    found = read_folder(tmp_path)
    assert not [one for one in found.records if one.problem is not None]
    assert len(times(found)) == 600


def test_a_client_cannot_change_the_layout(tmp_path: Path) -> None:
    """A value with line ends, which a request prints, looks like records of another layout."""
    value = written(OTHER, 0, 50)
    head = "[2026-11-20 15:33:21,101] INFO [GroupCoordinator 1]: Dynamic member with unknown member id joins group "
    forged = f"{head}{value} (kafka.coordinator.group.GroupCoordinator)\n"
    (tmp_path / "server.log").write_text(written(KAFKA, 0, 200) + forged + written(KAFKA, 200, 400))
    found = read_folder(tmp_path)
    assert len(times(found)) <= len(RECORDS) + 1
    assert all(OTHER not in (file.layout or "") for file in found.files.values())


@pytest.mark.parametrize("share", [0.5, 0.75])
def test_parts_in_frames_of_their_own_are_read(share: float, tmp_path: Path) -> None:
    """Lines that continue a record are in the frame of the second part only."""
    some = [one for one in RECORDS if not one.trace][:200]
    cut = round(share * len(some))
    first = by_pattern("%-5p | [%d{yyyy-MM-dd'T'HH:mm:ss.SSSXXX}] | %c{1} %m")
    second = by_pattern("%c %d{yyyy/MM/dd HH:mm:ss.SSS} %p - %m")
    lines = [f'host-2 17951924{number:05}\t"{first(one)}"' for number, one in enumerate(some[:cut])]
    thrown = "org.apache.kafka.common.errors.NotEnoughReplicasException: The size of the ISR is 1"
    for one in some[cut:]:
        lines += [f'host-2: "{second(one)}"', f'host-2: "{thrown}"']
    (tmp_path / "server.log").write_text("\n".join(lines) + "\n")
    found = read_folder(tmp_path)
    assert times(found) == [one.time_us for one in some]
    assert sum(thrown in one.message for one in found.records) == len(some) - cut


@pytest.mark.parametrize("beyond", range(-2, 3))
def test_pairs_that_fill_a_terminals_width_end_before_another_programs_line(beyond: int, tmp_path: Path) -> None:
    def pairs(number: int, text: str) -> str:
        return (
            f'kafka-1 <container> log.level=INFO class=kafka.server.KafkaServer body="{text}" '
            f'ts="2026-11-20 15:33:{number:02},101"'
        )

    width, texts = 100, [f"[KafkaServer id={number}] started" for number in range(40)]
    size = 2 * width + beyond - len(pairs(0, ""))
    texts[20] = texts[20].ljust(size, ".")
    whole = [pairs(number, text) for number, text in enumerate(texts)]
    whole.insert(21, "kafka-1 <container> 2026/11/20 15:33:20 [notice] 1#1: signal 92 received")
    lines = [line[start : start + width] for line in whole for start in range(0, len(line), width)]
    (tmp_path / "server.log").write_text("\n".join(lines) + "\n")
    assert [one.message for one in read_folder(tmp_path).records if one.time_us is not None] == texts
