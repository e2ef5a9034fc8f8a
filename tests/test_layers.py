"""The import rule of the architecture: a module imports only what stands before it on the way from files to reports."""

from __future__ import annotations

import ast
from pathlib import Path

import rubric_measures

ROOT = Path(rubric_measures.__file__).parent

BASE = ["startup", "errors", "records", "files", "extras", "sorting", "drawing", "signature", "score_notes"]
BASE += ["collector", "forked", "failures"]
# What may be imported by each part, besides itself and BASE. Left of the waist grades are made, right of it used.
MAKING = ["formats", "collection", "answers", "pooling", "prompts", "backends", "runners", "test_bank", "grading"]
USING = [
    "formats",
    "graded",
    "assignments",
    "grade_rows",
    "people",
    "grade_set_keys",
    "grade_sets",
    "selection",
    "measures",
    "leaderboard",
    "leaderboard_cells",
    "leaderboard_output",
    "leaderboard_summary",
    "evaluation",
    "qrels",
    "run_spool",
]
# How grades are chosen in records, each from the ones before it.
WAIST = ["grade_set_keys", "grade_sets", "selection"]
ALLOWED: dict[str, list[str]] = {
    **{name: [] for name in BASE},
    "formats": [],
    "graded": ["formats"],
    "grade_rows": ["formats", "graded"],
    "assignments": ["formats", "graded"],
    "collection": ["formats", "graded", "grade_sets", "selection", "collection_files", "collection_sources"],
    "collection_sources": ["formats", "graded", "grade_sets", "selection"],
    "collection_files": ["formats"],
    "pooling": ["formats", "answers", "collection"],
    "answers": ["formats"],
    "convert": ["formats", "graded", "grade_rows", *WAIST, "qrels", *MAKING[1:4]],
    "prompts": ["formats", "backends"],
    "backends": ["formats", "prompts"],
    "runners": ["formats", "prompts", "backends"],
    "test_bank": ["formats", "collection", "answers", "prompts", "backends", "runners", "graded", "grade_sets"],
    "grading": ["formats", "collection", "answers", "prompts", "backends", "runners", "graded", *WAIST[:2]],
    "measures": ["formats", "graded", "grade_rows", "selection"],
    "people": ["formats"],
    "grade_set_keys": ["formats"],
    "grade_sets": ["formats", "graded", "people", "grade_set_keys"],
    "selection": ["formats", "graded", *WAIST[:2]],
    "run_spool": ["formats"],
    "leaderboard_cells": ["measures"],
    "leaderboard": ["formats", "graded", "selection", "measures", "run_spool", "leaderboard_cells"],
    "leaderboard_summary": ["formats", "leaderboard", "leaderboard_cells"],
    "leaderboard_output": ["formats", "leaderboard"],
    "qrels": ["graded"],
    "evaluation": ["formats", "graded", "measures"],
    "workbench": USING,
    "nuggetizer_scores": ["formats", "leaderboard"],
    "tournament": USING,
    "meta_evaluation": [*USING, "workbench", "tournament"],
    "plots": [*USING, "meta_evaluation", "tournament"],
    "verification": [*USING, "meta_evaluation", "collection"],
    "review": [*USING, "meta_evaluation", "collection", "verification", "convert"],
    "example": [*MAKING, *USING, "convert"],
    "cli": [],
}
# Scores made by people and machines alike: what stands right of the measures.
ANALYSIS = [
    "workbench",
    "nuggetizer_scores",
    "tournament",
    "meta_evaluation",
    "plots",
    "verification",
    "review",
    "example",
]
ALLOWED["cli"] = [*MAKING, *USING, *ANALYSIS, "convert"]
# A judge for another program does what the command line does.
ALLOWED["autojudge"] = [*MAKING, *USING, "cli"]
# Left to right: the first names of the rows above are not allowed to import the later ones.
USERS_OF_GRADES = [*USING[1:], "tournament", "meta_evaluation", "verification", "plots"]


def part_of(path: Path) -> str:
    first = path.relative_to(ROOT).parts[0]
    return first.removesuffix(".py")


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names = [f"{module}.{alias.name}" for alias in node.names] if module == "rubric_measures" else [module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("rubric_measures.")}
    return found


def test_every_module_imports_only_what_stands_before_it() -> None:
    broken = []
    for path in sorted(ROOT.rglob("*.py")):
        part = part_of(path)
        if part in ("__init__", "__main__") or "resources" in path.parts:
            continue
        if part not in ALLOWED:
            broken.append(f"{path.relative_to(ROOT)}: part {part!r} has no place in the picture")
            continue
        allowed = {part, *BASE, *ALLOWED[part], "__version__"}
        broken += [f"{path.relative_to(ROOT)} imports {name}" for name in sorted(imports(path) - allowed)]
    assert broken == []


def test_using_grades_never_needs_making_them() -> None:
    making = {"prompts", "backends", "runners", "test_bank", "grading"}
    assert {name: making & set(ALLOWED[name]) for name in USERS_OF_GRADES} == {name: set() for name in USERS_OF_GRADES}


def test_ray_is_named_by_its_runner_alone() -> None:
    named = set()
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            named |= {path.stem for name in names if name.partition(".")[0] == "ray"}
    assert named == {"ray_connection", "ray_desk", "ray_worker"}


def test_every_file_says_what_lives_in_it() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in ROOT.rglob("*.py")
        if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert silent == []
