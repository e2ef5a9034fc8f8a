"""ir_metadata of runs (Breuer, Keller and Schaer, SIGIR 2022): a YAML file, or comments at the top of a run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rubric_measures.base.errors import FormatError, shortened
from rubric_measures.base.files import peek_head, read_text

__all__ = ["END", "START", "has_metadata", "read_metadata", "read_model", "write_metadata"]

START, END = "# ir_metadata.start", "# ir_metadata.end"


def has_metadata(path: str | os.PathLike[str]) -> bool:
    """Whether it is a YAML file, or a run that begins with such comments."""
    is_yaml = Path(path).suffix in (".yml", ".yaml")
    return is_yaml or peek_head(path).startswith(START.encode())


def read_metadata(path: str | os.PathLike[str]) -> Mapping[str, Any]:
    """What the file says of its run.

    Raises:
        FormatError: it is no YAML mapping.
    """
    import yaml

    name = os.fspath(path)
    text = read_text(path)
    if text.startswith(START):
        header, end, _ = text.removeprefix(START).partition(END)
        if not end:
            raise FormatError(f"the comments at the top have no end; expected a line {END!r}", path=name)
        text = "\n".join(line.removeprefix("#").removeprefix(" ") for line in header.split("\n"))
    try:
        content = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise FormatError(f"is no YAML: {shortened(str(error).partition(chr(10))[0])}", path=name) from None
    if not isinstance(content, Mapping):
        raise FormatError("is no ir_metadata; expected fields such as `tag` and `method`", path=name)
    return content


def read_model(path: str | os.PathLike[str]) -> tuple[str, str]:
    """Run and model: `tag`, and `method`, `generation`, `llm`, as LongEval-RAG 2026 asks for them.

    Raises:
        FormatError: one of them is missing or no text.
    """
    content = read_metadata(path)
    model: Any = content
    for field in ("method", "generation", "llm"):
        model = model.get(field) if isinstance(model, Mapping) else None
    for field, value in (("tag", content.get("tag")), ("method: generation: llm", model)):
        if not isinstance(value, str) or not value.strip():
            raise FormatError(
                f"lacks `{field}`, a text; expected the run and the model that made it", path=os.fspath(path)
            )
    return str(content["tag"]).strip(), str(model).strip()


def write_metadata(path: str | os.PathLike[str], content: Mapping[str, Any]) -> None:
    """Writes such a YAML file."""
    import yaml

    Path(path).write_text(yaml.safe_dump(dict(content), allow_unicode=True, sort_keys=False), encoding="utf-8")
