"""Help is complete at 80 columns: texts and defaults are not truncated."""

import pytest

testing = pytest.importorskip("typer.testing")
get_command = pytest.importorskip("typer.main").get_command
pytest.importorskip("pandas")

from benchmarks.__main__ import app as benchmarks  # noqa: E402 - skipped without
from ltr_objectives.workbench.cli.app import app as ours  # noqa: E402 - skipped without

APPS = {"ltr-objectives": ours, "benchmarks": benchmarks}


def squeezed(text):
    return "".join(text.split())


def printed(app, *arguments):
    done = testing.CliRunner(env={"COLUMNS": "80"}).invoke(app, [*arguments, "--help"])
    assert done.exit_code == 0
    assert max(map(len, done.output.splitlines())) <= 80
    return squeezed(done.output)


@pytest.mark.parametrize("name", APPS)
def test_help_is_whole(name):
    overview = printed(APPS[name])
    for command in get_command(APPS[name]).commands.values():
        assert squeezed(command.help.partition("\n\n")[0]) in overview
        text = printed(APPS[name], command.name)
        assert squeezed(command.help) in text
        for option in command.params:
            assert squeezed(option.help or "") in text
            if isinstance(option.default, str):
                assert f"[default:{squeezed(option.default)}" in text
