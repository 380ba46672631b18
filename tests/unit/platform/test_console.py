"""The console: progress and results on their own streams, plain where nobody watches."""

import io

import pytest

from highwater.pipelines.base.console import RichConsole
from tests.console import CaptureConsole


def test_streams_are_kept_apart_and_plain() -> None:
    out, err = io.StringIO(), io.StringIO()
    console = RichConsole(out, err)
    with console.stage("read files"):
        console.warn("[red]half a line[/red]")
    console.result("x" * 300 + " [bold]12[/bold] :warning:")
    assert out.getvalue() == "x" * 300 + " [bold]12[/bold] :warning:\n"
    assert err.getvalue().splitlines()[0] == "warning: [red]half a line[/red]"
    assert err.getvalue().splitlines()[1].startswith("read files")
    assert err.getvalue().endswith(" s\n")
    assert "\x1b" not in out.getvalue() + err.getvalue()


def test_a_stage_that_fails_says_so() -> None:
    err = io.StringIO()
    with pytest.raises(ValueError, match="odd"), RichConsole(io.StringIO(), err).stage("parse"):
        raise ValueError("odd")
    assert err.getvalue().endswith(" s  failed\n")


def test_tables_are_not_folded_in_a_file() -> None:
    out = io.StringIO()
    RichConsole(out, io.StringIO()).table(("name", "rows"), [("n" * 200, 1234567), ("[x]", 1)])
    assert "n" * 200 in out.getvalue()
    assert "1,234,567" in out.getvalue()
    assert "[x]" in out.getvalue()


def test_prose_in_a_table_is_folded_in_a_file() -> None:
    out = io.StringIO()
    RichConsole(out, io.StringIO()).table(("name", "comment"), [("broker_id", "what it is " * 40)])
    assert max(map(len, out.getvalue().splitlines())) <= 90
    assert out.getvalue().split().count("what") == 40


def test_capture_keeps_everything() -> None:
    console = CaptureConsole()
    with console.stage("a"):
        console.note("b")
    console.table(("c", "d"), [(1, None)])
    assert console.texts("stage") == ["a"]
    assert console.texts("note") == ["b"]
    assert console.texts("table") == ["c\td\n1\t"]


class Screen(io.StringIO):
    """A terminal, of 80 columns where it is a dumb one."""

    def isatty(self) -> bool:
        return True


def test_prose_is_broken_between_words_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    path = "x" * 50
    first, second = "Broker 2 was out of the ISR of partition orders-0 (leader: broker 1):", f"see:{path}"
    sentence = f"{first} {second}"
    command = f"  $ highwater trace finding committed-data-lost --lake {path}"
    out, file = Screen(), io.StringIO()
    RichConsole(out, io.StringIO()).prose(f"{sentence}\n  {sentence}\n{command}")
    RichConsole(out, io.StringIO()).prose(sentence, hang=9)
    RichConsole(out, io.StringIO()).prose(f"{'':14}{path * 2}:12 (byte 40)")
    RichConsole(out, io.StringIO()).result(sentence)
    RichConsole(file, io.StringIO()).prose(sentence)
    assert out.getvalue().splitlines() == [
        *(first, f"  {second}"),
        *(f"  {first}", f"    {second}"),
        command,
        *(first, f"{'':9}{second}"),
        *(f"{'':14}{path * 2}:12", f"{'':16}(byte 40)"),
        sentence,
    ]
    assert file.getvalue().splitlines() == [sentence]


#: What a terminal obeys, or shows in another order, each with its name.
UNSAFE = {
    "escape": "\x1b[2J",
    "one byte sequence": "\x9b31m",
    "bell": "\a",
    "return": "\r",
    "delete": "\x7f",
    "override": "\u202e",
    "isolate": "\u2066",
    "mark": "\u200f",
    "zero width": "\u200b",
    "line separator": "\u2028",
    "byte order mark": "\ufeff",
    "tag": "\U000e0041",
    "half a pair": "\udcff",
}


@pytest.mark.parametrize("kind", UNSAFE)
def test_what_a_terminal_obeys_is_escaped_in_every_stream(kind: str) -> None:
    out, err = io.StringIO(), io.StringIO()
    console, text = RichConsole(out, err), f"a{UNSAFE[kind]}b"
    console.note(text)
    console.warn(text)
    console.result(text)
    console.prose(text)
    console.table((text,), [(text,)])
    with console.stage(text):
        pass
    for stream in (out, err):
        written = stream.getvalue()
        assert UNSAFE[kind][0] not in written
        assert written.count("\\u") + written.count("\\U") >= 3
