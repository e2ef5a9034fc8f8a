"""What completes commands, options, choices and file names in a shell; the library shtab writes it."""

from __future__ import annotations

import argparse

from rubric_measures.base.extras import require
from rubric_measures.cli import COMMANDS, _command_parser


def script(shell: str) -> str:
    """The script for a shell.

    Raises:
        MissingExtraError: shtab is not installed.
    """
    shtab = require("shtab", "completion")
    parser = argparse.ArgumentParser(prog="rubric_measures")
    commands = parser.add_subparsers()
    for name, (_, text) in COMMANDS.items():
        command = _command_parser(name)[0]
        for action in command._actions:
            if action.choices is None and action.nargs != 0 and action.type is None:
                # Most values name files; those that do not are typed anyway.
                action.complete = shtab.FILE  # type: ignore[attr-defined]
        # A parser takes another one's place only by name.
        commands.add_parser(name, help=text)
        commands.choices[name] = command
    return str(shtab.complete(parser, shell))
