"""The schemas of docs/json.md are those of the types that the code prints."""

from __future__ import annotations

import runpy
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_page_has_the_schemas_of_the_code() -> None:
    made = runpy.run_path(str(DOCS / "schemas.py"))
    assert made["page"]() == (DOCS / "json.md").read_text(encoding="utf-8"), "run python docs/schemas.py"
