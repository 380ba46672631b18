"""What a logged version is built on. The spellings are real ones; the sources stand in the table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.kafka.releases import BRANCHES, NUMBERINGS, evaluate_rule, format_version, release_of
from tests.bench import inputs

#: Apache's own numbers of three, of every branch.
RELEASES = sorted(".".join(map(str, (*branch, 1))) for branch in BRANCHES)


@pytest.mark.parametrize(
    ("text", "title", "vendor"),
    [(text, title, numbering.vendor) for numbering in NUMBERINGS for text, title in numbering.examples],
)
def test_each_distribution_is_read_as_the_release_that_it_is_built_on(text: str, title: str, vendor: str):
    release = release_of(text)
    assert release is not None
    assert (release.title, release.vendor) == (title, vendor)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("2.8.2", "2.8.2"),
        ("0.10.2.2", "0.10.2.2"),
        ("3.6.2-rc1", "3.6.2 (3.6.2-rc1)"),
        ("2.8.2-SNAPSHOT", "2.8.2 (2.8.2-SNAPSHOT)"),
        ("3.7.1-of-our-own", "3.7.1 (3.7.1-of-our-own)"),
        ("7.4.0-217-ce", "3.4 (7.4.0-217-ce)"),
        ("8.0.0-ccs", "4.0 (8.0.0-ccs)"),
        ("0.10.0.2.5.3.0-37", "0.10.0 (0.10.0.2.5.3.0-37)"),
        ("4.4.0", "4.4.0"),
    ],
)
def test_other_spellings(text: str, title: str):
    assert format_version(text) == title


@pytest.mark.parametrize(
    "text",
    [
        *("5.4.1", "6.2.0", "7.6.1", "8.0.0", "9.9", "4.99.0", "1.2.0", "3.10.0", "10.2.0", "22.8.1", "unknown"),
        *("2.2.1-ccs", "6.3.0-ccs", "2.8.2-ccs", "9.0.0-ce", "3.7.1x", "v3.7.1", "3", "3.7.1-" + "x" * 200),
    ],
)
def test_a_version_of_no_known_release_is_unknown(text: str):
    assert release_of(text) is None
    assert format_version(text) == f"unknown ({text})"
    assert evaluate_rule(text, lambda version: version > (0, 0, 0)) is None


@pytest.mark.parametrize("text", [None, ""])
def test_no_version_is_none(text: str | None):
    assert (release_of(text), format_version(text)) == (None, None)


@pytest.mark.parametrize("suffix", ["-ccs", "-ce", "-18-ce"])
def test_each_platform_of_confluent_is_of_one_branch(suffix: str):
    """The table "Confluent Platform and Apache Kafka Compatibility" of docs.confluent.io, 5.5.15 and 8.0."""
    minors = {3: 4, 4: 2, 5: 6, 6: 3, 7: 10, 8: 5}
    platforms = [f"{major}.{minor}" for major, count in minors.items() for minor in range(count)]
    apache = ["0.10.0", "0.10.1", "0.10.2", "0.11.0", "1.0", "1.1", *(f"2.{minor}" for minor in range(9))]
    apache += [*(f"3.{minor}" for minor in range(10)), *(f"4.{minor}" for minor in range(5))]
    for platform, branch in zip(platforms, apache, strict=True):
        assert format_version(f"{platform}.1{suffix}") == f"{branch} ({platform}.1{suffix})"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("3.4.0", True), ("3.4.1", False), ("7.4.1-ccs", None), ("7.3.1-ccs", True), ("7.5.0-ccs", False), ("5.4", None)],
)
def test_a_platforms_number_does_not_tell_what_patch_releases_changed(text: str, expected: bool | None):
    assert evaluate_rule(text, lambda version: (2, 8, 0) <= version < (3, 4, 1)) is expected


def test_a_distribution_may_have_taken_over_what_a_later_patch_release_fixed():
    assert evaluate_rule("2.0.0.3.1.4.0-315", lambda version: version >= (2, 0, 1)) is None
    assert evaluate_rule("2.7.2.redhat-00005", lambda version: version >= (2, 7, 2)) is True


def test_a_build_before_a_release_may_lack_what_is_new_in_it():
    assert evaluate_rule("2.8.0-SNAPSHOT", lambda version: version >= (2, 8, 0)) is None
    assert evaluate_rule("2.8.2-SNAPSHOT", lambda version: (2, 7, 0) <= version < (3, 1, 0)) is True


@given(number=st.sampled_from(RELEASES), suffix=st.from_regex(r"[-.+_][\w.-]{0,20}", fullmatch=True))
def test_no_suffix_makes_another_branch_of_a_release_by_apaches_number(number: str, suffix: str):
    release = release_of(number + suffix)
    if release is None or release.vendor == NUMBERINGS[0].vendor:
        return  # Confluent's suffixes say that the number is the platform's.
    depth = 3 if number.startswith("0.") else 2
    assert release.oldest <= release.likely <= release.newest
    assert release.newest[:depth] == tuple(map(int, number.split(".")[:depth]))
    if not suffix.endswith("-SNAPSHOT"):
        assert release.oldest[:depth] == release.newest[:depth]


@given(st.text(max_size=40))
def test_any_text_is_of_a_known_branch_or_of_none(text: str):
    release = release_of(text)
    if release is not None:
        assert any(release.newest[: len(branch)] == branch for branch in BRANCHES)


def test_the_document_has_the_table():
    text = inputs.DOCUMENT.read_text(encoding="utf-8")
    assert text == inputs.written(text), "python -m tests.bench.inputs writes docs/inputs.md anew"


def test_a_document_without_marks_is_not_written():
    with pytest.raises(ValueError, match="has no line"):
        inputs.written("# What is read")
