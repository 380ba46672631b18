"""HDFS on loopback: a name node and a data node in one JVM, as Hadoop's own tests start them.

``python -m tests.stores.hdfs`` fetches what they need beside the jars that Spark brings.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

import hdfs_native
import orjson
import pyspark
import pytest

from tests.bench.resolve_jars import Jars, fetch, hadoop_version
from tests.crash.commands import ROOT
from tests.stores.servers import server

JARS = ROOT / ".hdfs" / "jars"
#: The mini cluster, and what of JUnit it calls.
PACKAGES = (
    f"org.apache.hadoop:hadoop-client-minicluster:{hadoop_version()}",
    "org.junit.jupiter:junit-jupiter-api:5.12.2",
)
DIGESTS = {
    "06772d24529e59939915979b3edba204d367750ef7dc5120411f35221dd4818c",  # hadoop-client-minicluster-3.5.0
    "0b9ca728e4bcd9adc57f29deb9556ff9ed5e08b4e8843b875aba4e4e3e04f092",  # junit-jupiter-api-5.12.2
    "e683a01e85dfabea520c056ac6015a6162756e602ec653c0da85e233f0afbc18",  # junit-platform-commons-1.12.2
    "48e2df636cab6563ced64dcdff8abb2355627cb236ef0bf37598682ddf742f1b",  # opentest4j-1.3.0
}
#: Of the jars that Spark brings.
_OF_SPARK = ("hadoop-client-", "jcl-over-slf4j", "log4j-", "slf4j-api")
_CORE_SITE = """<configuration>
  <property><name>fs.defaultFS</name><value>{name_node}</value></property>
</configuration>
"""


def jars() -> Jars:
    """What is fetched."""
    groups = ("org.apache.hadoop", "org.junit", "org.opentest4j")
    spark = ("org.apache.hadoop:hadoop-client-api", "org.apache.hadoop:hadoop-client-runtime", "org.xerial.snappy:*")
    return Jars(PACKAGES, groups, spark, JARS, are_there)


def are_there() -> bool:
    """Whether all of them are."""
    return {sha256(jar.read_bytes()).hexdigest() for jar in JARS.glob("*.jar")} >= DIGESTS


class Folder:
    """A folder, which is empty at first.

    Args:
        root: the URI of the file system, without a ``/`` at its end.
    """

    options: dict[str, str] = {}  # noqa: RUF012

    def __init__(self, root: str) -> None:
        self._root = root
        self._client = hdfs_native.Client(root)
        self._path = f"/folder-{uuid4()}"

    def uri(self, name: str) -> str:
        return f"{self._root}{self._path}/{name}"

    def write(self, name: str, content: bytes) -> None:
        options = hdfs_native.WriteOptions(overwrite=True)
        with self._client.create(f"{self._path}/{name}", options) as file:
            file.write(content)

    def read(self, name: str) -> bytes:
        return self._client.read(f"{self._path}/{name}").read()

    def names(self, folder: str) -> set[str]:
        try:
            entries = list(self._client.list_status(f"{self._path}/{folder}", recursive=True))
        except FileNotFoundError:
            return set()
        return {entry.path.removeprefix(f"{self._path}/") for entry in entries if not entry.isdir}


@pytest.fixture(scope="session")
def hdfs_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a client's configuration."""
    if not are_there():
        pytest.skip("`make test-hdfs` fetches what it needs")
    folder = tmp_path_factory.mktemp("hdfs")
    details = folder / "details.json"
    spark = Path(pyspark.__file__).parent / "jars"
    classes = [*JARS.glob("*.jar"), *(jar for name in _OF_SPARK for jar in spark.glob(f"{name}*.jar"))]
    command = [
        *("java", "-Xmx512m", f"-Dtest.build.data={folder}", "-cp", os.pathsep.join(map(str, classes))),
        *("org.apache.hadoop.test.MiniDFSClusterManager", "-format", "-writeDetails", str(details)),
    ]

    def port() -> int | None:
        try:
            return int(orjson.loads(details.read_bytes())["namenode_port"])
        except (FileNotFoundError, orjson.JSONDecodeError):
            return None  # it is being written

    with server(command, folder, port):
        name_node = f"hdfs://127.0.0.1:{port()}"
        (folder / "core-site.xml").write_text(_CORE_SITE.format(name_node=name_node))
        yield folder


if __name__ == "__main__":
    sys.stdout.write(f"{PACKAGES[0]} is in {fetch(jars())}\n")
