"""What HDFS's library tells, in one line; its files are tried by `make test-hdfs`."""

from __future__ import annotations

import errno
import re
from pathlib import Path

import pytest

from highwater.pipelines.storage.connectors import find_connector_jars, locate_hadoop_conf
from highwater.pipelines.storage.hdfs import HDFS
from highwater.pipelines.storage.place import Uri
from highwater.pipelines.storage.store import store_of

LOG = Uri("hdfs", "name:8020", "logs/a")
DENIED = 'RPCError("org.apache.hadoop.security.AccessControlException", "'
STACK = r"\n\tat org.apache.hadoop.hdfs.server.namenode.FSDirectory.resolvePath(FSDirectory.java:733)"


@pytest.mark.parametrize(
    ("error", "number", "words"),
    [
        (FileNotFoundError("File does not exist: /a\n\tat java"), errno.ENOENT, "no such file or folder"),
        (FileExistsError("/a"), errno.EEXIST, "is there already"),
        (OSError("Connection refused (os error 111)"), errno.EIO, "Connection refused (os error 111)"),
        (
            RuntimeError(DENIED + r"Permission denied: inode=\"/a\"" + STACK + '")'),
            errno.EACCES,
            'Permission denied: inode="/a"',
        ),
        (
            RuntimeError(DENIED + "/a (is not a directory)" + STACK + '")'),
            errno.ENOTDIR,
            "/a (is not a directory)",
        ),
        (RuntimeError('InvalidArgument("No NameNode hosts found")'), errno.EIO, "give the port"),
        (RuntimeError("NoSASLMechanism"), errno.EIO, "NoSASLMechanism"),
    ],
)
def test_a_failure_is_told_in_one_line(error: Exception, number: int, words: str) -> None:
    with pytest.raises(OSError, match=re.escape(words)) as caught, HDFS.translate_errors(LOG):
        raise error
    assert (caught.value.errno, caught.value.filename) == (number, "hdfs://name:8020/logs/a")
    assert "\tat" not in str(caught.value)
    assert "\\tat" not in str(caught.value)


@pytest.mark.parametrize("place", [LOG, Uri("hdfs", "", "lake")])
def test_spark_needs_no_jars(place: Uri) -> None:
    assert store_of(place) is HDFS
    assert find_connector_jars(place, {}) == ()


def test_the_jvm_is_told_where_the_configuration_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HADOOP_CONF_DIR", "HADOOP_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert locate_hadoop_conf(LOG) is None
    monkeypatch.setenv("HADOOP_HOME", str(tmp_path))
    assert locate_hadoop_conf(LOG) == str(tmp_path / "etc" / "hadoop")
    assert locate_hadoop_conf(tmp_path) is None
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    assert locate_hadoop_conf(LOG) is None
