"""The same questions to every kind of store."""

from __future__ import annotations

import errno
import io
from pathlib import Path

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from obstore.exceptions import GenericError, PermissionDeniedError

from highwater.pipelines.storage import objects, remote
from highwater.pipelines.storage.place import Place, Uri, relative
from highwater.pipelines.storage.store import open_file, store_of
from tests.unit.storage.stores import root  # noqa: F401


def test_what_is_put_is_there(root: Place) -> None:  # noqa: F811
    store, file = store_of(root), root / "a" / "b.log"
    assert not store.is_there(root / "a")
    store.make_folder(file.parent)
    store.replace(file, b"one")
    assert (store.read(file), store.size_bytes(file)) == (b"one", 3)
    store.replace(file, b"other")
    assert (store.read(file), store.is_file(file), store.is_folder(file)) == (b"other", True, False)
    assert (store.is_file(file.parent), store.is_folder(file.parent), store.is_there(file.parent)) == (
        False,
        True,
        True,
    )
    assert store.names(root) == ["a"]
    assert store.names(file.parent) == ["b.log"]
    assert store.names(root / "nothing") == []
    store.remove(file)
    store.remove(file)
    assert not store.is_file(file)
    store.remove_tree(root / "a")
    store.remove_tree(root / "a")
    assert not store.is_there(root / "a")


def test_the_first_to_create_a_file_keeps_it(root: Place) -> None:  # noqa: F811
    store = store_of(root)
    assert store.create(root / "1.json", b"mine")
    assert not store.create(root / "1.json", b"yours")
    assert store.read(root / "1.json") == b"mine"
    assert store.names(root) == ["1.json"]


def test_an_answer_that_was_lost_is_no_rival(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    memory = obstore.store.MemoryStore()
    monkeypatch.setattr(objects, "_open_client", lambda scheme, container: memory)
    file = Uri("s3a", "bucket", "1.json")
    assert objects.OBJECTS.create(file, b"mine")
    # The library sends the request again where it got no answer to the first one, which had arrived.
    assert objects.OBJECTS.create(file, b"mine")


def test_walk_gives_files_by_name(root: Place) -> None:  # noqa: F811
    store = store_of(root)
    for name in ("b", "a/2", "a/1", "a/deep/3"):
        store.make_folder((root / name).parent)
        store.replace(root / name, name.encode())
    assert sorted(relative(file, root) for file in store.walk(root)) == ["a/1", "a/2", "a/deep/3", "b"]
    assert {store.size_bytes(file) for file in store.walk(root)} == {1, 3, 8}
    assert list(store.walk(root / "nothing")) == []


def test_a_file_is_read_in_pieces_and_sought_in(root: Place, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setattr(remote, "_READ_AHEAD_BYTES", 7)
    content = bytes(range(100))
    store_of(root).replace(root / "x", content)
    with open_file(root / "x") as file:
        assert [file.read(30), file.read(5)] == [content[:30], content[30:35]]
        assert file.seek(-3, io.SEEK_END) == 97
        assert file.read() == content[97:]
        file.seek(50)
        assert file.read(1000) == content[50:]
        assert file.read(1) == b""


def test_an_object_that_is_replaced_while_it_is_read_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = obstore.store.MemoryStore()
    monkeypatch.setattr(objects, "_open_client", lambda scheme, container: memory)
    monkeypatch.setattr(remote, "_READ_AHEAD_BYTES", 4)
    uri = Uri("s3a", "bucket", "server.log")
    objects.OBJECTS.replace(uri, b"old lines")
    with open_file(uri) as file:
        assert file.read(4) == b"old "
        objects.OBJECTS.replace(uri, b"new lines")
        with pytest.raises(OSError, match="changed while it was read"):
            file.read(4)


def test_what_is_not_there_raises_as_a_file_system_does(root: Place) -> None:  # noqa: F811
    store = store_of(root)
    for ask in (store.read, store.size_bytes, open_file):
        with pytest.raises(FileNotFoundError) as caught:
            ask(root / "nothing")
        assert caught.value.filename == str(root / "nothing") or caught.value.filename == root / "nothing"


def test_there_is_nothing_below_a_file(root: Place) -> None:  # noqa: F811
    store, file = store_of(root), root / "x"
    store.replace(file, b"1")
    assert (store.names(file), list(store.walk(file))) == ([], [])
    below = file / "y"
    assert (store.names(below), list(store.walk(below))) == ([], [])
    assert (store.is_file(below), store.is_folder(below), store.is_there(below)) == (False, False, False)


@pytest.mark.parametrize(("error", "number"), [(PermissionDeniedError, errno.EACCES), (GenericError, errno.EIO)])
def test_a_store_that_fails_is_told_in_one_line(
    error: type[Exception], number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error("it is\nso\n\nDebug source:\nnobody reads this")

    monkeypatch.setattr(objects, "_open_client", lambda scheme, container: None)
    monkeypatch.setattr(obstore, "get", fail)
    with pytest.raises(OSError, match="it is so") as caught:
        objects.OBJECTS.read(Uri("gs", "bucket", "x"))
    assert (caught.value.errno, caught.value.filename) == (number, "gs://bucket/x")
    assert "\n" not in str(caught.value)
    assert "Debug" not in str(caught.value)


@pytest.mark.parametrize("whole_bytes_max", [0, 1 << 20])
def test_parquet_goes_to_a_store_and_back(
    root: Place,  # noqa: F811
    whole_bytes_max: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remote, "_WHOLE_BYTES_MAX", whole_bytes_max)
    rows = pa.table({"number": range(10_000)})
    store, file = store_of(root), root / "rows.parquet"
    sink = store.open_arrow_sink(file)
    with pq.ParquetWriter(sink, rows.schema) as writer:
        writer.write_table(rows, row_group_size=1_000)
    if not isinstance(sink, str):
        assert not store.is_file(file), "it is whole, or not there"
        sink.close()
    assert pq.read_table(store.open_arrow_source(file)).equals(rows)
    assert pq.ParquetFile(store.open_arrow_source(file)).read_row_group(3)["number"].to_pylist() == list(
        range(3_000, 4_000)
    )


def test_an_s3_compatible_server_is_found_by_the_usual_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    assert objects.build_client_settings("s3a") == {}
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9000")
    assert objects.build_client_settings("s3a") == {
        "aws_endpoint_url": "http://127.0.0.1:9000",
        "aws_allow_http": "true",
    }
    assert objects.build_client_settings("gs") == {}
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "https://minio.example")
    assert objects.build_client_settings("s3a") == {"aws_endpoint_url": "https://minio.example"}
