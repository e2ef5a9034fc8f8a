"""Leaderboards as text: aligned, TSV, JSON, LaTeX, Markdown, and trec_eval-style lines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

from rubric_measures.formats.trec_ids import IdCleaner
from rubric_measures.leaderboards.scoring import Cell, Leaderboard

__all__ = ["FORMATS", "escaped_markdown", "render", "render_rows"]

# What stands behind a run's mean and standard error by a measure: run, measure -> text.
More = Callable[[str, str], str]


def _nothing(run_id: str, name: str) -> str:
    return ""


def _number(value: float | None, places: int) -> str:
    if value is None:
        return "-"
    return repr(value) if places < 0 else f"{value:.{places}f}"


def _share(cell: Cell) -> str:
    return "-" if cell.coverage is None else f"{cell.coverage:.4f}"


def _tsv(board: Leaderboard, places: int) -> str:
    columns = ["run_id"]
    for name in board.measures:
        columns += [name, f"stderr:{name}", f"coverage:{name}"]
    lines = ["\t".join(columns)]
    for run_id in board.ranking():
        fields = [run_id]
        for name in board.measures:
            cell = board.cells[run_id][name]
            fields += [_number(cell.mean, places), _number(cell.standard_error, places), _share(cell)]
        lines.append("\t".join(fields))
    return "\n".join(lines) + "\n"


def _rows(board: Leaderboard, places: int, plus_minus: str, more: More = _nothing) -> list[list[str]]:
    rows = [["run", *board.measures, "grades"]]
    for run_id in board.ranking():
        cells = [board.cells[run_id][name] for name in board.measures]
        scores = []
        for name, cell in zip(board.measures, cells, strict=True):
            error = "" if cell.standard_error is None else f" {plus_minus} {_number(cell.standard_error, places)}"
            scores.append(_number(cell.mean, places) + error + more(run_id, name))
        shares = [cell.coverage for cell in cells if cell.coverage is not None]
        rows.append([run_id, *scores, f"{min(shares):.1%}" if shares else "-"])
    return rows


def _aligned(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        [row[0].ljust(widths[0]), *(field.rjust(width) for field, width in zip(row[1:], widths[1:], strict=True))]
        for row in rows
    ]


def _text(board: Leaderboard, places: int, more: More = _nothing) -> str:
    return "\n".join("  ".join(row).rstrip() for row in _aligned(_rows(board, places, "±", more))) + "\n"


# An underscore inside a word is no markup; one at its edge is.
_MARKUP = re.compile(r"[\\`*\[\]<>|#]|(?<![^\W_])_|_(?![^\W_])")


def escaped_markdown(text: str) -> str:
    """The text as a cell of a Markdown table: nothing in it is a border or markup."""
    return _MARKUP.sub(r"\\\g<0>", text)


def _markdown(board: Leaderboard, places: int, more: More = _nothing) -> str:
    head, *rows = _aligned([list(map(escaped_markdown, row)) for row in _rows(board, places, "±", more)])
    rule = ["-" * len(head[0]), *("-" * (len(field) - 1) + ":" for field in head[1:])]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, rule, *rows]) + "\n"


_TEX = {char: f"\\{char}" for char in "&%$#_{}"}
_TEX |= {"†": r"$\dagger$"}
_TEX |= {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}


def _latex(board: Leaderboard, places: int, more: More = _nothing) -> str:
    def clean(text: str) -> str:
        return "".join(_TEX.get(char, char) for char in text)

    head, *rows = _rows(board, places, "PLUSMINUS", more)
    lines = [r"\begin{tabular}{l" + "r" * (len(head) - 1) + "}", r"\toprule"]
    lines.append(" & ".join(clean(field) for field in head) + r" \\")
    lines.append(r"\midrule")
    lines += [" & ".join(clean(field).replace("PLUSMINUS", r"$\pm$") for field in row) + r" \\" for row in rows]
    lines += [r"\bottomrule", r"\end{tabular}"]
    return "\n".join(lines) + "\n"


def _json(board: Leaderboard, places: int) -> str:
    def rounded(value: float | None) -> float | None:
        return value if value is None or places < 0 else round(value, places)

    runs = []
    for run_id in board.ranking():
        measures = {}
        for name in board.measures:
            cell = board.cells[run_id][name]
            measures[name] = {
                "mean": rounded(cell.mean),
                "standard_error": rounded(cell.standard_error),
                "queries": cell.queries,
                "coverage": cell.coverage,
                "failed": cell.failed,
                "per_query": {query_id: rounded(value) for query_id, value in board.values[run_id][name].items()},
            }
        runs.append({"run_id": run_id, "missing_queries": list(board.missing.get(run_id, ())), "measures": measures})
    content = {
        "format": "rubric_measures leaderboard 1",
        "measures": list(board.measures),
        "runs": runs,
        "signature": str(board.signature),
        "signature_hash": board.signature.short,
    }
    return json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _trec_eval(board: Leaderboard, places: int) -> str:
    lines = []
    clean = IdCleaner()
    for run_id in board.ranking():
        for name in board.measures:
            start = f"{clean(run_id)}\t{clean(name)}"
            for query_id, value in board.values[run_id][name].items():
                if value is not None:
                    lines.append(f"{start}\t{clean(query_id)}\t{_number(value, places)}")
            mean = board.cells[run_id][name].mean
            if mean is not None:
                lines.append(f"{start}\tall\t{_number(mean, places)}")
    clean.say("trec_eval lines")
    return "\n".join(lines) + "\n"


FORMATS: dict[str, Callable[[Leaderboard, int], str]] = {
    "text": _text,
    "tsv": _tsv,
    "json": _json,
    "latex": _latex,
    "markdown": _markdown,
    "trec_eval": _trec_eval,
}


def render(board: Leaderboard, output_format: str = "tsv", places: int = 4) -> str:
    """The leaderboard as text, best run first.

    Args:
        board: the leaderboard.
        output_format: `text` (aligned), `tsv` (one column each for mean, standard error and coverage of a measure),
            `json` (with per-query values and the signature), `latex` (booktabs), `markdown`, `trec_eval` (lines
            `run measure query value`, the query `all` being the mean; values that do not exist have no line; spaces of
            names are percent-encoded, which is said once).
        places: decimal places; -1 prints all digits.
    """
    return FORMATS[output_format](board, places)


def render_rows(board: Leaderboard, output_format: str, places: int, more: More) -> str:
    """The leaderboard as `text`, `latex` or `markdown`, with more behind each score.

    Args:
        board: the leaderboard.
        output_format: one of the three.
        places: decimal places; -1 prints all digits.
        more: run, measure -> what stands behind mean and standard error.
    """
    tables = {"text": _text, "latex": _latex, "markdown": _markdown}
    return tables[output_format](board, places, more)
