"""Places: what a text names, and the way from a folder to what is in it."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.base.errors import InputError
from highwater.pipelines.storage.place import Uri, absolute, place_of, relative

NAMES = st.text(st.characters(blacklist_characters="/", blacklist_categories=("Cs", "Cc")), min_size=1).filter(
    lambda name: name not in (".", "..")
)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("s3://bucket/logs/a", Uri("s3a", "bucket", "logs/a")),
        ("S3A://bucket//logs/a/", Uri("s3a", "bucket", "logs/a")),
        ("s3a://bucket", Uri("s3a", "bucket")),
        ("gs://bucket/what?is#a key%20here", Uri("gs", "bucket", "what?is#a key%20here")),
        ("abfss://logs@account.dfs.core.windows.net/x", Uri("abfss", "logs@account.dfs.core.windows.net", "x")),
        ("hdfs://name:8020/logs//a/", Uri("hdfs", "name:8020", "logs/a")),
        ("hdfs:///logs/a%20b", Uri("hdfs", "", "logs/a%20b")),
        ("hdfs:/logs/a", Uri("hdfs", "", "logs/a")),
        ("hdfs:///", Uri("hdfs", "")),
        ("logs/a", Path("logs/a")),
        ("file:///data/a%20b", Path("/data/a b")),
        ("a:b", Path("a:b")),
    ],
)
def test_what_a_text_names(text: str, place: object) -> None:
    assert place_of(text) == place


@pytest.mark.parametrize(
    "text", ["webhdfs://name/x", "dbfs:/x", "s3://", "s3:///x", "s3://b/../x", "hdfs:///../x", "file://h/x"]
)
def test_what_is_refused_names_the_text_and_a_remedy(text: str) -> None:
    with pytest.raises(InputError) as caught:
        place_of(text)
    assert str(caught.value).startswith(f"{text}: ")
    assert "; " in str(caught.value)


@given(st.sampled_from([Uri("s3a", "bucket"), Uri("hdfs", "")]), st.lists(NAMES, min_size=1, max_size=4))
def test_a_key_is_neither_escaped_nor_cut(root: Uri, names: list[str]) -> None:
    assert place_of(str(root)) == root
    folder = root / "lake"
    place = folder
    for name in names:
        place = place / name
    assert place.name == names[-1]
    assert place.parent / names[-1] == place
    assert relative(place, folder) == "/".join(names)
    assert relative(place, root) == "/".join(["lake", *names])
    assert place_of(str(place)) == place == absolute(place) == pickle.loads(pickle.dumps(place))


def test_a_path_is_relative_as_a_key_is(tmp_path: Path) -> None:
    assert relative(tmp_path / "a" / "b", tmp_path) == "a/b"
