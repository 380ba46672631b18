"""A server that speaks S3, on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.request import Request, urlopen
from uuid import uuid4

import obstore
import pytest
from obstore.store import S3Store

from tests.crash.commands import ROOT
from tests.stores.servers import listening

PYTHON = ROOT / ".venv-s3" / "bin" / "python"


class Bucket:
    """A bucket, which is empty at first, and the environment that leads to it."""

    options = {"aws_allow_http": "true"}  # noqa: RUF012

    def __init__(self, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in (
            ("AWS_ENDPOINT_URL", server),
            ("AWS_ACCESS_KEY_ID", "any"),
            ("AWS_SECRET_ACCESS_KEY", "thing"),
            ("AWS_REGION", "us-east-1"),
        ):
            monkeypatch.setenv(name, value)
        self._name = f"bucket-{uuid4()}"
        with urlopen(Request(f"{server}/{self._name}", method="PUT")) as answer:
            assert answer.status == 200
        self._client = S3Store(self._name, client_options={"allow_http": True})

    def uri(self, name: str) -> str:
        return f"s3://{self._name}/{name}"

    def write(self, name: str, content: bytes) -> None:
        obstore.put(self._client, name, content)

    def read(self, name: str) -> bytes:
        return bytes(obstore.get(self._client, name).bytes())

    def names(self, folder: str) -> set[str]:
        return {entry["path"] for page in obstore.list(self._client, folder) for entry in page}


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its URL."""
    if not PYTHON.exists():
        pytest.skip("`make test-s3` installs the server")
    command = (PYTHON, "-m", "moto.server", "-H", "127.0.0.1", "-p")
    with listening(lambda port: [*command, port], tmp_path_factory.mktemp("s3")) as url:
        yield url
