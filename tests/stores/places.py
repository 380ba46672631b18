"""A folder in a store, seen without the product."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import pytest

#: What the fixture `remote` takes, each in the ring of its server.
S3 = pytest.param("s3://", marks=pytest.mark.s3)
#: Hadoop's configuration names the name node.
HDFS = pytest.param("hdfs://", marks=pytest.mark.hdfs)
AZURE = pytest.param("abfss://", marks=pytest.mark.azure)


class Remote(Protocol):
    """A folder of its own in a store. Names are those of files in it, at any depth, parted by ``/``."""

    options: dict[str, str]  #: what the package deltalake has to be told

    def uri(self, name: str) -> str:
        """The URI of a folder or a file in it."""

    def write(self, name: str, content: bytes) -> None:
        """Put a file into it."""

    def read(self, name: str) -> bytes:
        """A file of it."""

    def names(self, folder: str) -> set[str]:
        """Names of all files below a folder of it."""


def put(remote: Remote, folder: Path, name: str) -> None:
    """Copy a folder of this machine into it."""
    for path in folder.rglob("*"):
        if path.is_file():
            remote.write(f"{name}/{path.relative_to(folder).as_posix()}", path.read_bytes())


def get(remote: Remote, name: str, target: Path) -> Path:
    """Copy a folder of it to this machine."""
    for file in remote.names(name):
        path = target / file.removeprefix(f"{name}/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(remote.read(file))
    return target
