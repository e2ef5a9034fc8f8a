"""The files of docs/schemas are those of the types that the code prints, and docs/json.md names each."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_folder_has_the_schemas_of_the_code() -> None:
    made = runpy.run_path(str(DOCS / "schemas.py"))["files"]()
    assert {path: path.read_text(encoding="utf-8") for path in (DOCS / "schemas").iterdir()} == made, (
        "run python docs/schemas.py"
    )
    linked = re.findall(r"\]\(schemas/([\w-]+\.json)\)", (DOCS / "json.md").read_text(encoding="utf-8"))
    assert sorted(linked) == sorted(path.name for path in made)
