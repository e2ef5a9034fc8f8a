"""The rooms of the house: README's table says what each may import, and this holds the code and the tests to it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import rubric_measures

ROOT = Path(rubric_measures.__file__).parent
README = Path(__file__).parents[2] / "README.md"
# | `room/` | what lives there | what it imports |
ROW = re.compile(r"^\| `(?P<room>\w+)/` \|[^|]+\| (?P<imports>[^|]*) \|$", re.MULTILINE)
MAKING = {"prompts", "backends", "runners", "test_bank", "grading"}
USING = {"grades", "measures", "leaderboards", "meta_evaluation", "verification"}


def table() -> dict[str, set[str]]:
    """room -> the rooms that it imports, by README's table."""
    rows = {}
    for row in ROW.finditer(README.read_text(encoding="utf-8")):
        named = row["imports"]
        rows[row["room"]] = set(rows) if named == "all above" else set(re.findall(r"\w+", named.replace("—", "")))
    return rows


def modules() -> dict[str, Path]:
    """Dotted name below the package -> its file; a folder stands for its `__init__`."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if "resources" not in parts:
            found[".".join(parts).removesuffix("__init__").removesuffix(".")] = path
    return found


def imports(path: Path, known: dict[str, Path]) -> set[str]:
    """The modules of the package that a file imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rubric_measures"):
            module = (node.module or "").removeprefix("rubric_measures").removeprefix(".")
            for alias in node.names:
                inner = f"{module}.{alias.name}".removeprefix(".")
                found.add(inner if inner in known else module)
        elif isinstance(node, ast.Import):
            found |= {alias.name[16:] for alias in node.names if alias.name.startswith("rubric_measures.")}
    return found


def room_of(module: str) -> str:
    return module.partition(".")[0]


def test_the_table_names_the_rooms_that_there_are() -> None:
    rooms = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()}
    assert set(table()) == rooms
    loose = {path.name for path in ROOT.iterdir() if path.is_file()}
    assert loose == {"__init__.py", "__main__.py", "py.typed"}
    # A room imports only rooms that stand above it.
    above: set[str] = set()
    for room, named in table().items():
        assert named <= above, room
        above.add(room)


def test_every_room_imports_what_the_table_says() -> None:
    known = modules()
    allowed = table()
    broken = [
        f"{module} imports {name}"
        for module, path in known.items()
        for name in sorted(imports(path, known))
        if room_of(module) in allowed and room_of(name) not in {room_of(module), *allowed[room_of(module)], ""}
    ]
    assert broken == []
    used = {room: set[str]() for room in allowed}
    for module, path in known.items():
        if room_of(module) in allowed:
            used[room_of(module)] |= {room_of(name) for name in imports(path, known)} - {room_of(module), ""}
    # What the table allows is needed, so that it stays a picture of the code.
    assert {room: sorted(allowed[room] - used[room]) for room in used if room != "cli"} == {
        room: [] for room in used if room != "cli"
    }


def test_using_grades_never_needs_making_them() -> None:
    allowed = table()
    # Records name the prompt of their grades, and the prompt says what scale they are on.
    said = {"grades": {"prompts"}}
    assert {room: allowed[room] & MAKING for room in USING} == {room: said.get(room, set()) for room in USING}


def test_an_underscore_says_that_only_its_own_room_uses_a_module() -> None:
    known = modules()
    strangers: list[str] = []
    for module, path in known.items():
        for name in imports(path, known):
            package, _, last = name.rpartition(".")
            if last.startswith("_") and name in known and not f"{module}.".startswith(f"{package}."):
                strangers.append(f"{module} imports {name}")
    assert strangers == []


def test_the_tests_have_the_same_rooms() -> None:
    here = Path(__file__).parents[1]
    rooms = {path.name for path in here.iterdir() if any(path.glob("test_*.py"))}
    assert rooms - {"docs"} <= set(table())
    assert [path.name for path in here.glob("test_*.py")] == []


def test_ray_is_named_by_its_runner_alone() -> None:
    named = set()
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            named |= {path.stem for name in names if name.partition(".")[0] == "ray"}
    assert named == {"_ray_connection", "_ray_desk", "_ray_worker"}


def test_no_two_things_have_one_class_name() -> None:
    found: dict[str, list[Path]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(path.relative_to(ROOT))
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def test_every_file_says_what_lives_in_it() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in ROOT.rglob("*.py")
        if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert silent == []
