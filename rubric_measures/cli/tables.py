"""Tables of the analysing commands as aligned text, TSV and LaTeX (booktabs), and their JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["as_json", "as_latex", "as_text", "as_tsv", "number", "plain", "render_table"]

_TEX = {char: f"\\{char}" for char in "&%$#_{}"}
_TEX |= {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}", "±": r"$\pm$"}
_TEX |= {"κ": r"$\kappa$", "α": r"$\alpha$", "τ": r"$\tau$", "ρ": r"$\rho$", "−": "$-$"}


def number(value: float | None, places: int = 4) -> str:
    """A number with so many decimal places (all digits for -1); `undefined` for None."""
    if value is None:
        return "undefined"
    return repr(float(value)) if places < 0 else f"{value:.{places}f}"


def as_text(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns aligned with blanks: the first to the left, the others to the right."""
    table = [list(header), *(list(row) for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    return "".join(
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        + "\n"
        for row in table
    )


def as_tsv(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Tab-separated values with a header."""
    return "".join("\t".join(row) + "\n" for row in [header, *rows])


def as_latex(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A booktabs table; a cell that ends in `*` (the best) is bold."""
    lines = [f"\\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}", "\\toprule", _tex_row(header), "\\midrule"]
    return "\n".join([*lines, *(_tex_row(row) for row in rows), "\\bottomrule", "\\end{tabular}", ""])


def _tex_row(row: Sequence[str]) -> str:
    return " & ".join(_tex(cell) for cell in row) + r" \\"


def _tex(cell: str) -> str:
    best = cell.endswith("*")
    text = "".join(_TEX.get(char, char) for char in cell.removesuffix("*"))
    return f"\\textbf{{{text}}}" if best else text


def render_table(header: Sequence[str], rows: Sequence[Sequence[str]], output_format: str) -> str:
    """One table as `text`, `tsv` or `latex`."""
    return {"text": as_text, "tsv": as_tsv, "latex": as_latex}[output_format](header, rows)


def plain(value: Any) -> Any:
    """Results as JSON can say them: dataclasses as objects, tuples as lists, keys as text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(content) for key, content in value.items()}
    if isinstance(value, list | tuple):
        return [plain(content) for content in value]
    return value


def as_json(command: str, content: Mapping[str, Any]) -> str:
    """The JSON of a command: `format` names the command and the version of its schema (docs/json.md)."""
    return json.dumps({"format": f"rubric_measures {command} 1", **plain(content)}, ensure_ascii=False, indent=1) + "\n"
