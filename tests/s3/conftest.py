"""A server that speaks S3, on loopback."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.request import Request, urlopen
from uuid import uuid4

import obstore
import pytest
from obstore.store import S3Store

from tests.crash.commands import ROOT
from tests.crash.conftest import corpus, undisturbed

__all__ = ["bucket", "corpus", "server", "undisturbed"]
PYTHON = ROOT / ".venv-s3" / "bin" / "python"
START_S = 60


class Bucket(NamedTuple):
    """A bucket of its own, seen without the product."""

    name: str

    def uri(self, folder: str) -> str:
        return f"s3://{self.name}/{folder}"

    @property
    def client(self) -> S3Store:
        return S3Store(self.name, client_options={"allow_http": True})

    def put(self, folder: Path, prefix: str) -> None:
        """Copy a folder into it."""
        for path in folder.rglob("*"):
            if path.is_file():
                obstore.put(self.client, f"{prefix}/{path.relative_to(folder).as_posix()}", path.read_bytes())

    def names(self, prefix: str) -> set[str]:
        return {entry["path"] for page in obstore.list(self.client, prefix) for entry in page}

    def get(self, prefix: str, target: Path) -> Path:
        """Copy a folder of it to this machine."""
        for name in self.names(prefix):
            path = target / name.removeprefix(f"{prefix}/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(obstore.get(self.client, name).bytes())
        return target


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its URL."""
    if not PYTHON.exists():
        pytest.skip("`make test-s3` installs the server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with open(tmp_path_factory.mktemp("server") / "log", "wb") as log:
        process = subprocess.Popen(
            [PYTHON, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], stdout=log, stderr=log
        )
    try:
        deadline = time.monotonic() + START_S
        while True:
            with socket.socket() as asked:
                if asked.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def bucket(server: str, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """An empty bucket, and the environment that leads to it."""
    for name, value in (
        ("AWS_ENDPOINT_URL", server),
        ("AWS_ACCESS_KEY_ID", "any"),
        ("AWS_SECRET_ACCESS_KEY", "thing"),
        ("AWS_REGION", "us-east-1"),
    ):
        monkeypatch.setenv(name, value)
    name = f"bucket-{uuid4()}"
    with urlopen(Request(f"{server}/{name}", method="PUT")) as answer:
        assert answer.status == 200
    return Bucket(name)
