"""A server of Azure's Blob Storage, on loopback. What Spark's file system for `abfss` asks it does not know."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterator
from email.utils import formatdate
from urllib.request import Request, urlopen
from uuid import uuid4

import obstore
import pytest
from obstore.store import AzureStore

from tests.crash.commands import ROOT
from tests.stores.servers import listening

COMMAND = ROOT / ".azurite" / "node_modules" / ".bin" / "azurite-blob"
#: Every such server has this account, with this key, which its documentation states.
ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_VERSION = "2021-08-06"


class Container:
    """A container, which is empty at first, and the environment that leads to it."""

    options = {"azure_storage_use_emulator": "true"}  # noqa: RUF012

    def __init__(self, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AZURE_STORAGE_USE_EMULATOR", "true")
        monkeypatch.setenv("AZURITE_BLOB_STORAGE_URL", server)
        self._name = f"logs-{uuid4()}"
        _make(server, self._name)
        self._client = AzureStore(self._name)

    def uri(self, name: str) -> str:
        return f"abfss://{self._name}@{ACCOUNT}.dfs.core.windows.net/{name}"

    def write(self, name: str, content: bytes) -> None:
        obstore.put(self._client, name, content)

    def read(self, name: str) -> bytes:
        return bytes(obstore.get(self._client, name).bytes())

    def names(self, folder: str) -> set[str]:
        return {entry["path"] for page in obstore.list(self._client, folder) for entry in page}


def _make(server: str, container: str) -> None:
    """A container, by a request signed as the account ("Authorize with Shared Key" of Azure's REST reference)."""
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": _VERSION}
    named = "".join(f"{name}:{value}\n" for name, value in headers.items())
    signed = "PUT" + "\n" * 12 + f"{named}/{ACCOUNT}/{ACCOUNT}/{container}\nrestype:container"
    signature = base64.b64encode(hmac.digest(base64.b64decode(_KEY), signed.encode(), hashlib.sha256)).decode()
    headers |= {"Authorization": f"SharedKey {ACCOUNT}:{signature}", "Content-Length": "0"}
    url = f"{server}/{ACCOUNT}/{container}?restype=container"
    with urlopen(Request(url, method="PUT", headers=headers)) as answer:
        assert answer.status == 201


@pytest.fixture(scope="session")
def azure_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its URL."""
    if not COMMAND.exists():
        pytest.skip("`make test-azure` installs the server")
    options = ("--inMemoryPersistence", "--skipApiVersionCheck", "--blobHost", "127.0.0.1", "--blobPort")
    with listening(lambda port: [COMMAND, *options, port], tmp_path_factory.mktemp("azure")) as url:
        yield url
