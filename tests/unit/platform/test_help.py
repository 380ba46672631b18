"""What the command says of itself: first steps, verbs in groups, examples, completion; and what a reader that leaves
does to its exit code."""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from highwater.jobs import cli
from highwater.jobs.exit_codes import ExitCode
from highwater.jobs.help import COMPLETE_VARIABLE, EXAMPLES, FIRST_STEPS, GROUPS

ROOT = Path(__file__).resolve().parents[3]
LAKE = ROOT / "tests" / "data" / "lake"


def _verbs(group: click.Group, prefix: str = "") -> Iterator[tuple[str, click.Command]]:
    for name, verb in group.commands.items():
        yield prefix + name, verb
        if isinstance(verb, click.Group):
            yield from _verbs(verb, f"{prefix}{name} ")


VERBS = dict(_verbs(cli.highwater))


def test_the_command_alone_says_in_eight_lines_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([]) == ExitCode.USAGE
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == f"{FIRST_STEPS}\n"
    lines = FIRST_STEPS.splitlines()
    assert len(lines) == 8
    assert max(map(len, lines)) <= 80
    named = {words[1] for line in lines if (words := line.split())[0] == "highwater" and line.startswith("  ")}
    assert {"audit", "incidents", "trace", "report"} <= named <= VERBS.keys()


def test_every_verb_is_in_one_group() -> None:
    grouped = [verb for verbs in GROUPS.values() for verb in verbs]
    assert sorted(grouped) == sorted(cli.highwater.commands)


@pytest.mark.parametrize("name", VERBS)
def test_help_says_all_in_80_columns_with_two_examples(name: str) -> None:
    result = CliRunner(env={"COLUMNS": "80"}).invoke(cli.highwater, [*name.split(), "--help"], prog_name="highwater")
    assert result.exit_code == 0
    options, _, examples = result.output.partition("\nExamples:\n")
    assert max(map(len, options.splitlines())) <= 80
    assert not [line for line in options.splitlines()[1:] if line.endswith("...")]
    assert examples.splitlines() == [f"  {example}" for example in EXAMPLES[name]]
    assert len(EXAMPLES[name]) == 2


@pytest.mark.parametrize("example", sorted({example for examples in EXAMPLES.values() for example in examples}))
def test_examples_are_what_the_verbs_take(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As far as options go; tests/spark/audits/test_examples.py runs them."""
    monkeypatch.chdir(tmp_path)
    words = shlex.split(example.removeprefix('eval "$(').removesuffix(')"').partition(" | ")[0])
    assert words.pop(0) == "highwater"
    command: click.Command = cli.highwater
    while isinstance(command, click.Group):
        command = command.commands[words.pop(0)]
    command.make_context(command.name, words)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_given_the_script_that_completes(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["completion", shell]) == 0
    assert f"{COMPLETE_VARIABLE}={shell}_complete" in capsys.readouterr().out


def _process(*arguments: str, **environment: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "highwater.jobs.cli", *arguments],
        cwd=ROOT,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_a_shell_is_answered_with_verbs_and_options() -> None:
    asked = {COMPLETE_VARIABLE: "bash_complete", "COMP_WORDS": "highwater survivors --a", "COMP_CWORD": "2"}
    assert _process(**asked).communicate()[0] == b"plain,--at\n"


@pytest.mark.parametrize(
    "arguments", [["survivors", "ledger-0"], ["trace", "partition", "ledger-0"], ["tables"], ["explain"], ["--help"]]
)
def test_a_reader_that_leaves_is_no_verdict(arguments: list[str]) -> None:
    lake = [] if arguments[0] in ("explain", "--help") else ["--lake", str(LAKE)]
    process = _process(*arguments, *lake)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == ExitCode.BROKEN_PIPE
