"""What tests of pages share: the commands and blocks of a page, run as they stand there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from _pytest.capture import CaptureResult

from rubric_measures.cli import main

ROOT = Path(__file__).resolve().parents[2]


def text_of(page: str) -> str:
    return (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text_of(page), re.MULTILINE | re.DOTALL)


def commands(page: str, blocks_of: str = "") -> list[list[str]]:
    """The commands of a page without the program's name; of blocks in this language alone."""
    text = "\n".join(blocks(page, blocks_of)) if blocks_of else text_of(page)
    return [shlex.split(line) for line in re.findall(r"^rubric_measures (.*)$", text, re.MULTILINE)]


def run(
    given: Iterable[Sequence[str]], capsys: pytest.CaptureFixture[str], ends: Sequence[int] = (0,)
) -> list[CaptureResult[str]]:
    """Runs commands, with file patterns as a shell hands them over; what each prints."""
    printed = []
    for command in given:
        files = [found for part in command for found in (sorted(map(str, Path().glob(part))) or [part])]
        assert main(files) in ends, (command, capsys.readouterr().err)
        printed.append(capsys.readouterr())
    return printed
