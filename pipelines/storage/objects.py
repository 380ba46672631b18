"""Objects of S3, Google Cloud Storage and Azure, and of servers that speak S3.

The library (`obstore`) is the one that Delta's own readers without Spark are built on: credentials come from the
environment, as the clouds set it, and an object is put in place whole, with a condition if one is wanted.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import ObjectStore as Client
from obstore.store import from_url

from highwater.pipelines.storage.place import Place, Uri
from highwater.pipelines.storage.remote import WORDS_MAX, Opened, RemoteStore, require_uri

_DENIED = (PermissionDeniedError, UnauthenticatedError)
#: What a store itself says.
_ANSWER = re.compile(r"<Code>([^<]+)</Code>\s*<Message>([^<]+)</Message>")


def find_endpoint() -> str | None:
    """Return the S3-compatible server of the environment; None for AWS itself."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")


def build_client_settings(scheme: str) -> dict[str, str]:
    """Return deltalake's settings that follow from environment variables."""
    url = find_endpoint() if scheme == "s3a" else None
    if url is None:
        return {}
    return {"aws_endpoint_url": url} | ({"aws_allow_http": "true"} if url.startswith("http:") else {})


@cache
def _open_client(scheme: str, container: str) -> Client:
    settings = build_client_settings(scheme)
    return from_url(
        f"{scheme}://{container}",
        config={"endpoint": settings["aws_endpoint_url"]} if settings else None,
        client_options={"allow_http": "aws_allow_http" in settings},
        retry_config={"max_retries": 5, "retry_timeout": timedelta(seconds=60)},
    )


def _shorten_error(error: Exception) -> str:
    text = str(error).partition("Debug source:")[0]
    if answer := _ANSWER.search(text):
        return f"{answer[1]}: {answer[2]}"
    return " ".join(text.split())[:WORDS_MAX]


class ObjectStore(RemoteStore):
    """`pipelines.storage.store.Store` for URIs of object stores."""

    @contextmanager
    def translate_errors(self, uri: Uri) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise FileNotFoundError(errno.ENOENT, "no such object, or no such bucket", str(uri)) from error
        except _DENIED as error:
            raise PermissionError(
                errno.EACCES, f"permission denied by the store: {_shorten_error(error)}", str(uri)
            ) from error
        except PreconditionError as error:
            raise OSError(errno.ESTALE, "changed while it was read", str(uri)) from error
        except BaseError as error:
            raise OSError(errno.EIO, _shorten_error(error), str(uri)) from error

    def names(self, folder: Place) -> list[str]:
        with self.translate_errors(uri := require_uri(folder)):
            there = obstore.list_with_delimiter(_find_client(uri), prefix=uri.key or None)
        paths = [*there["common_prefixes"], *(entry["path"] for entry in there["objects"])]
        return sorted(path.rstrip("/").rpartition("/")[2] for path in paths)

    def walk(self, folder: Place, failed: Callable[[OSError], None] | None = None) -> Iterator[Place]:
        uri = require_uri(folder)
        entries: list[Any] = []
        try:
            with self.translate_errors(uri):
                for page in obstore.list(_find_client(uri), prefix=uri.key or None):
                    entries += page
        except OSError as error:
            if failed is None:
                raise
            failed(error)
        for entry in sorted(entries, key=lambda entry: entry["path"]):
            file = Uri(uri.scheme, uri.container, entry["path"])
            self._listed[file] = (entry["size"], entry["last_modified"].timestamp() * 1000)
            yield file

    def is_folder(self, place: Place) -> bool:
        with self.translate_errors(uri := require_uri(place)):
            return any(len(page) > 0 for page in obstore.list(_find_client(uri), prefix=uri.key or None, chunk_size=1))

    def _look(self, uri: Uri) -> tuple[int, float]:
        with self.translate_errors(uri):
            entry = obstore.head(_find_client(uri), uri.key)
        return entry["size"], entry["last_modified"].timestamp() * 1000

    def _open_uri(self, uri: Uri) -> Opened:
        client, entry = _find_client(uri), obstore.head(_find_client(uri), uri.key)

        def read(begin: int, end: int) -> bytes:
            options: Any = {"range": (begin, end)} | ({"if_match": entry["e_tag"]} if entry["e_tag"] else {})
            return bytes(obstore.get(client, uri.key, options=options).bytes())

        return Opened(entry["size"], read)

    def _open_writer(self, uri: Uri) -> Any:
        return obstore.open_writer(_find_client(uri), uri.key)

    def read(self, file: Place) -> bytes:
        with self.translate_errors(uri := require_uri(file)):
            return bytes(obstore.get(_find_client(uri), uri.key).bytes())

    def create(self, file: Place, content: bytes) -> bool:
        uri = require_uri(file)
        try:
            with self.translate_errors(uri):
                obstore.put(_find_client(uri), uri.key, content, mode="create", use_multipart=False)
        except OSError as error:
            if not isinstance(error.__cause__, (AlreadyExistsError, PreconditionError)):
                raise
            # The library repeats a request whose answer was lost: what is there may be what it has just put there.
            return self.read(uri) == content
        return True

    def replace(self, file: Place, content: bytes) -> None:
        with self.translate_errors(uri := require_uri(file)):
            obstore.put(_find_client(uri), uri.key, content)

    def take(self, source: Path, file: Place) -> None:
        with self.translate_errors(uri := require_uri(file)):
            obstore.put(_find_client(uri), uri.key, source)
        source.unlink()

    def remove(self, file: Place) -> None:
        with suppress(FileNotFoundError), self.translate_errors(uri := require_uri(file)):
            obstore.delete(_find_client(uri), uri.key)

    def remove_tree(self, folder: Place) -> None:
        uri = require_uri(folder)
        with suppress(OSError), self.translate_errors(uri):
            for page in obstore.list(_find_client(uri), prefix=uri.key or None):
                obstore.delete(_find_client(uri), [entry["path"] for entry in page])

    def make_folder(self, folder: Place) -> None:
        pass


OBJECTS = ObjectStore()


def _find_client(uri: Uri) -> Client:
    return _open_client(uri.scheme, uri.container)
