"""The rooms of the house: CONTRIBUTING's table says what each may import and how big it may be; this holds the code."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import rubric_measures

ROOT = Path(rubric_measures.__file__).parent
CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"
# | `room/` | what it owns | what it imports | code lines | modules |
ROW = re.compile(
    r"^\| `(?P<room>\w+)/` \|[^|]+\| (?P<imports>[^|]*) \| (?P<lines>[\d,]+) \| (?P<modules>\d+) \|$", re.MULTILINE
)
TOP = re.compile(r"^\| the top \|[^|]+\|[^|]*\| (?P<lines>[\d,]+) \| (?P<modules>\d+) \|$", re.MULTILINE)
ALL = re.compile(r"^\| \*\*all\*\* \|[^|]*\|[^|]*\| (?P<lines>[\d,]+) \| (?P<modules>\d+) \|$", re.MULTILINE)
LATE = re.compile(r"rubric_measures(\.\w+)+(:\S+)?$")
# Names of groups of entry points and of folders with files, which import nothing.
GROUPS = {"formats", "measures", "models", "prompts", "review"}
MAKING = {"prompts", "models", "grading"}
USING = {"measures", "boards", "analysis", "pages", "games", "verification"}
ALL_LINES, ALL_MODULES = 27_458, 122
# A module has at least so many code lines, and at most so many.
LEAST, MOST = 100, 700
# Smaller for a reason: what every command imports before it knows its files, and doors of other programs.
SMALL = {
    "base.words",
    "corpora.overwriting",
    "integrations.pyterrier",
    "integrations.pytest_plugin",
    "types.scales",
}
# What is on a line and no code.
QUIET = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


class Room(NamedTuple):
    """A row of the table."""

    imports: set[str]
    lines: int
    modules: int


def table() -> dict[str, Room]:
    """room -> what it may import, and its budget."""
    rows: dict[str, Room] = {}
    for row in ROW.finditer(CONTRIBUTING.read_text(encoding="utf-8")):
        named = row["imports"]
        imported = set(rows) if named == "all above" else set(re.findall(r"\w+", named.replace("—", "")))
        rows[row["room"]] = Room(imported, int(row["lines"].replace(",", "")), int(row["modules"]))
    return rows


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def modules() -> dict[str, Path]:
    """Dotted name below the package -> its file; a folder stands for its `__init__`."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if "resources" not in parts:
            found[".".join(parts).removesuffix("__init__").removesuffix(".")] = path
    return found


@cache
def imports(path: Path) -> frozenset[str]:
    """The modules of the package that a file imports, wherever in the file."""
    known = modules()
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and node.level:
            raise AssertionError(f"{path}:{node.lineno}: name the module from rubric_measures on")
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rubric_measures"):
            module = (node.module or "").removeprefix("rubric_measures").removeprefix(".")
            for alias in node.names:
                inner = f"{module}.{alias.name}".removeprefix(".")
                found.add(inner if inner in known else module)
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.partition(".")[0] == "rubric_measures"]
            found |= {name.removeprefix("rubric_measures").removeprefix(".") for name in names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and LATE.match(node.value):
            # Imported by its name later, as tables of names do.
            module = node.value.removeprefix("rubric_measures.").partition(":")[0]
            found |= {module} & known.keys() - GROUPS
    return frozenset(found)


def docstring_lines(path: Path) -> Iterator[int]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if ast.get_docstring(node, clean=False) is not None and first is not None:
                yield from range(first.lineno, (first.end_lineno or first.lineno) + 1)


@cache
def code_lines(path: Path) -> int:
    """The lines with something on them besides blanks, comments and docstrings."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type not in QUIET:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - set(docstring_lines(path)))


def room_of(module: str) -> str:
    return module.partition(".")[0] if "." in module or (ROOT / module / "__init__.py").exists() else ""


def test_the_table_names_the_rooms_that_there_are() -> None:
    rooms = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()}
    assert set(table()) == rooms
    loose = {path.name for path in ROOT.iterdir() if path.is_file()}
    assert loose == {"__init__.py", "__main__.py", "py.typed"}
    # A room imports only rooms that stand above it.
    above: set[str] = set()
    for name, room in table().items():
        assert room.imports <= above, name
        above.add(name)


def test_no_room_is_over_its_budget() -> None:
    text = CONTRIBUTING.read_text(encoding="utf-8")
    top, whole = TOP.search(text), ALL.search(text)
    assert top and whole
    budgets = {name: (room.lines, room.modules) for name, room in table().items()}
    budgets[""] = (int(top["lines"].replace(",", "")), int(top["modules"]))
    sizes = dict.fromkeys(budgets, (0, 0))
    for module, path in modules().items():
        lines, files = sizes[room_of(module)]
        sizes[room_of(module)] = (lines + code_lines(path), files + 1)
    over = {
        name: f"{lines} code lines in {files} modules, of {budgets[name][0]} in {budgets[name][1]}"
        for name, (lines, files) in sizes.items()
        if lines > budgets[name][0] or files > budgets[name][1]
    }
    assert over == {}
    # The last row is the sum, so that a budget can move from room to room.
    sums = (sum(lines for lines, _ in budgets.values()), sum(files for _, files in budgets.values()))
    assert (int(whole["lines"].replace(",", "")), int(whole["modules"])) == sums
    # The sum only goes down: who takes lines away lowers it here as well.
    assert sums[0] <= ALL_LINES and sums[1] <= ALL_MODULES


def test_modules_are_neither_small_nor_large() -> None:
    sizes = {name: code_lines(path) for name, path in modules().items() if not path.name.startswith("__")}
    assert {name: lines for name, lines in sizes.items() if lines > MOST} == {}
    assert {name for name, lines in sizes.items() if lines < LEAST} == SMALL


def test_no_file_stands_in_a_circle_of_imports() -> None:
    """Imports in functions and for types count, too."""
    known = modules()
    left = {name: set(imports(path)) - {name} for name, path in known.items()}
    while free := [name for name, named in left.items() if not named & left.keys()]:
        for name in free:
            del left[name]
    assert {name: sorted(named & left.keys()) for name, named in left.items()} == {}


def test_every_room_imports_what_the_table_says() -> None:
    rooms = table()
    broken = [
        f"{module} imports {name}"
        for module, path in modules().items()
        for name in sorted(imports(path))
        if room_of(module) in rooms and room_of(name) not in {room_of(module), *rooms[room_of(module)].imports, ""}
    ]
    assert broken == []
    used = {name: set[str]() for name in rooms}
    for module, path in modules().items():
        if room_of(module) in rooms:
            used[room_of(module)] |= {room_of(name) for name in imports(path)} - {room_of(module), ""}
    # What the table allows is needed, so that it stays a picture of the code.
    idle = {name: sorted(rooms[name].imports - used[name]) for name in used if name != "cli"}
    assert {name: named for name, named in idle.items() if named} == {}


def test_using_grades_never_needs_making_them() -> None:
    rooms = table()
    # Records name the prompt of their grades, and the prompt says what scale they are on.
    said = {"measures": {"prompts"}}
    assert {name: rooms[name].imports & MAKING for name in USING} == {name: said.get(name, set()) for name in USING}


def test_the_tests_have_the_same_rooms() -> None:
    here = Path(__file__).parents[1]
    rooms = {path.name for path in here.iterdir() if any(path.glob("test_*.py"))}
    assert rooms - {"docs"} <= set(table())
    assert [path.name for path in here.glob("test_*.py")] == []


def test_ray_is_named_by_its_runner_alone() -> None:
    named = set()
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(tree(path)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            named |= {path.stem for name in names if name.partition(".")[0] == "ray"}
    assert named <= {"ray_runner"}


def test_no_two_things_have_one_class_name() -> None:
    found: dict[str, list[Path]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(path.relative_to(ROOT))
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def test_every_file_says_what_lives_in_it() -> None:
    silent = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py") if not ast.get_docstring(tree(path))]
    assert silent == []
