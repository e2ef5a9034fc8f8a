"""Tests of tables: every form by hand, names that hold borders, markup and controls, values that do not exist."""

from __future__ import annotations

import json

from rubric_measures.base.errors import escaped
from rubric_measures.base.tables import (
    Cell,
    Column,
    Marked,
    Ranged,
    Report,
    Table,
    Undefined,
    columns,
    number,
    plain,
    render,
)

# A tab and an escape sequence, a border of Markdown, what LaTeX reads, markup, and a bracket at the start of a row.
NAMES = ("a\tb\x1b[1m", "x|y", "100%_a&b", "_i_ <b>*`~ &amp;", "[z]\n")
ROWS: list[list[Cell]] = [[name, place / 8, None] for place, name in enumerate(NAMES)]
NASTY = Report([Table(columns(["run", "P@1", "d\tz"]), ROWS)])


def shown(report: Report, form: str) -> str:
    return "".join(render(report, form))


def table(rows: list[list[Cell]], **more: str) -> Report:
    return Report([Table(columns(["run", "score"], places=2), rows, **more)])


def test_text() -> None:
    assert shown(NASTY, "text") == (
        "run                  P@1  d\\tz\n"
        "a\\tb\\x1b[1m       0.0000     -\n"
        "x|y               0.1250     -\n"
        "100%_a&b          0.2500     -\n"
        "_i_ <b>*`~ &amp;  0.3750     -\n"
        "[z]\\n             0.5000     -\n"
    )


def test_tsv() -> None:
    assert shown(NASTY, "tsv") == (
        "run\tP@1\td\\tz\n"
        "a\\tb\\x1b[1m\t0.0000\t-\n"
        "x|y\t0.1250\t-\n"
        "100%_a&b\t0.2500\t-\n"
        "_i_ <b>*`~ &amp;\t0.3750\t-\n"
        "[z]\\n\t0.5000\t-\n"
    )


def test_markdown() -> None:
    assert shown(NASTY, "markdown") == (
        "| run                      |    P@1 | d\\\\tz |\n"
        "| ------------------------ | -----: | ----: |\n"
        "| a\\\\tb\\\\x1b\\[1m           | 0.0000 |     - |\n"
        "| x\\|y                     | 0.1250 |     - |\n"
        "| 100%\\_a&b                | 0.2500 |     - |\n"
        "| \\_i\\_ \\<b\\>\\*\\`\\~ \\&amp; | 0.3750 |     - |\n"
        "| \\[z\\]\\\\n                 | 0.5000 |     - |\n"
    )


def test_latex() -> None:
    assert shown(NASTY, "latex") == (
        "\\begin{tabular}{lrr}\n"
        "\\toprule\n"
        "run & P@1 & d\\textbackslash{}tz \\\\\n"
        "\\midrule\n"
        "a\\textbackslash{}tb\\textbackslash{}x1b[1m & 0.0000 & - \\\\\n"
        "x\\textbar{}y & 0.1250 & - \\\\\n"
        "100\\%\\_a\\&b & 0.2500 & - \\\\\n"
        "\\_i\\_ \\textless{}b\\textgreater{}*`\\textasciitilde{} \\&amp; & 0.3750 & - \\\\\n"
        # Without the braces [z] would be the optional argument of the line end before it.
        "{}[z]\\textbackslash{}n & 0.5000 & - \\\\\n"
        "\\bottomrule\n"
        "\\end{tabular}\n"
    )


def test_json_and_json_lines_have_all_digits_and_the_names_themselves() -> None:
    lines = shown(table([["a\tb\x1b\x9b\u2028", 1 / 3], ["c", None]]), "jsonl")
    # What a terminal obeys is escaped in the JSON, too.
    first = '{"run": "a\\tb\\u001b\\u009b\\u2028", "score": 0.3333333333333333}\n'
    assert lines == first + '{"run": "c", "score": null}\n'
    whole = json.loads(shown(table([["a\tb", 1 / 3], ["c", float("nan")]]), "json"))
    assert whole == {"rows": [{"run": "a\tb", "score": 1 / 3}, {"run": "c", "score": None}]}
    content = Report([], content=lambda: plain({"format": "f 1", "pair": (1, None), "of": {2: Marked(0.5)}}))
    assert json.loads(shown(content, "json")) == {"format": "f 1", "pair": [1, None], "of": {"2": 0.5}}


def test_what_is_undefined_is_a_dash_in_text_and_null_in_json() -> None:
    report = table([["a", None], ["b", Undefined("no topics")], ["c", Undefined("no topics")]])
    for form, cells in (("tsv", "a\t-\nb\t-\nc\t-\n"), ("latex", "a & - \\\\\nb & - \\\\\nc & - \\\\\n")):
        assert cells in shown(report, form)
    # The reason stands below, once.
    assert shown(report, "text") == "run  score\na        -\nb        -\nc        -\n\nscore -: no topics\n"
    assert shown(report, "markdown").endswith("| c   |     - |\n\nscore -: no topics\n")
    rows = [json.loads(line) for line in shown(report, "jsonl").splitlines()]
    assert rows[0] == {"run": "a", "score": None}
    assert rows[2] == {"run": "c", "score": None, "reasons": {"score": "no topics"}}


def test_a_value_that_stands_out() -> None:
    report = table([["a*", Marked(0.5)], ["b", Marked(2, "", boxed=True)], ["c", Marked(None)]])
    assert shown(report, "text") == "run  score\na*   0.50*\nb        2\nc       -*\n"
    assert shown(report, "markdown").splitlines()[2:] == [
        "| a\\* | **0.50** |",
        "| b   |    **2** |",
        "| c   |    **-** |",
    ]
    # A minus in print, but no hyphen of a name or a dash.
    signed = table([["a-1", Ranged(-0.5, -0.75, 0.25)], ["b", Marked(-0.5)], ["c", None]])
    rows = "a-1 & $-$0.50 [$-$0.75, 0.25] \\\\\nb & \\textbf{$-$0.50} \\\\\nc & - \\\\\n"
    assert rows in shown(signed, "latex")
    assert "a* & \\textbf{0.50} \\\\\nb & \\fbox{\\textbf{2}} \\\\\n" in shown(report, "latex")


def test_titles_notes_and_empty_tables() -> None:
    empty = Table(columns(["run"]), [], "A title: 5 % of a\nb", ["a note"])
    report = [empty, Table(columns(["run"]), [["a"]])]
    assert shown(Report(report), "text") == ("A title: 5 % of a\\nb\n  run\n  (none)\n\na note\n\nrun\na\n")
    assert shown(Report(report), "markdown").startswith(
        "### A title: 5 % of a\\\\nb\n\n| run |\n| --- |\n\na note\n\n| run"
    )
    assert shown(Report(report), "latex").startswith("% A title: 5 % of a\\nb\n\\begin{tabular}{l}\n")
    # The two tables have the same columns, and so one header.
    assert shown(Report(report), "tsv") == "run\na\n"


def test_long_cells_are_shortened_in_the_text_only_and_padded_nowhere() -> None:
    report = [Table([Column("text", is_left=True, width=6), Column("n")], [["a long text", 1], ["short", 2]])]
    assert shown(Report(report), "text") == "text    n\na lon…  1\nshort   2\n"
    assert shown(Report(report), "markdown").splitlines()[2:] == ["| a long text |   1 |", "| short |   2 |"]
    assert shown(Report(report), "tsv") == "text\tn\na long text\t1\nshort\t2\n"


def test_numbers() -> None:
    assert [number(value, places) for value, places in ((0.125, 2), (0.1, -1), (2, 1), (None, 3))] == [
        "0.12", "0.1", "2.0", "-",
    ]  # fmt: skip
    # Counts have no decimal places.
    assert shown(table([["a", 3]]), "tsv").splitlines()[1] == "a\t3"
    assert plain({"x": float("inf"), "y": (1, Undefined("why"))}) == {"x": None, "y": [1, None]}


def test_escaped_leaves_no_way_to_break_or_turn_a_line() -> None:
    text = "".join(map(chr, [*range(32), *range(127, 160), 0x2028, 0x2029, 0x202E, 0x2066]))
    assert escaped(text).isprintable() and len(escaped(text).splitlines()) == 1
    # Letters that merely join, and spaces of any width, are no controls.
    assert escaped("می\u200cخواهم\u00a0é") == "می\u200cخواهم\u00a0é"
