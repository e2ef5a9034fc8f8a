"""How far a newcomer walks: the functions that one call of `leaderboard`, or of `grade --model lexical`, enters.

The file is also the program that walks, as the first call of a process is the one that counts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import FrameType

import pytest

import rubric_measures

ROOT = Path(rubric_measures.__file__).parent
# Each with the most modules and functions.
COMMANDS = (
    ("leaderboard {0}/graded.jsonl.gz {0}/alpha.run -m RubricCover(rel=4)@20", 24, 180),
    ("grade {0}/graded.jsonl.gz --bank {0}/bank.jsonl --model lexical -o {0}/new.jsonl", 33, 250),
)
# Of code that is a function: the bodies of modules and classes have names instead of places.
_FAST_LOCALS = 2


@pytest.mark.parametrize(("command", "most_modules", "most"), COMMANDS)
def test_a_command_crosses_few_modules_and_functions(
    command: str, most_modules: int, most: int, tmp_path: Path
) -> None:
    # Imported here, so that the program below begins with nothing imported.
    from tests.example_records import write_all

    write_all(tmp_path)
    walked = [sys.executable, __file__, *command.format(tmp_path).split()]
    folders = os.pathsep.join(map(str, (ROOT.parent, Path(__file__).parents[2])))
    ended = subprocess.run(
        walked, capture_output=True, check=True, encoding="utf-8", env={**os.environ, "PYTHONPATH": folders}
    )
    functions = json.loads(ended.stdout.splitlines()[-1])
    modules = {module for module, _ in functions}
    assert 0 < len(modules) <= most_modules, sorted(modules)
    assert len(functions) <= most, functions


def walk(arguments: list[str]) -> list[tuple[str, str]]:
    """The module and the name of each function of the package that the command enters, without those in expressions."""
    from rubric_measures.cli import main

    found = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(ROOT)) and code.co_flags & _FAST_LOCALS:
            found.add((str(Path(code.co_filename).relative_to(ROOT)), code.co_qualname))

    sys.setprofile(note)
    try:
        assert main(arguments) == 0
    finally:
        sys.setprofile(None)
    # Comprehensions, and functions without a name, are read where they stand.
    return sorted(one for one in found if not one[1].endswith(">"))


if __name__ == "__main__":
    print(json.dumps(walk(sys.argv[1:])))
