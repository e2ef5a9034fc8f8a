"""Tests of the commands `correlate`, `agreement` and `compare`: tables, notes, exit codes, documented JSON."""

import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pytest

from rubric_measures.analysis.coefficients import correlate
from rubric_measures.cli import main

SCHEMAS = {
    path.stem: path.read_text(encoding="utf-8") for path in (Path(__file__).parents[2] / "docs" / "schemas").iterdir()
}


def test_every_json_has_its_schema(capsys) -> None:
    from rubric_measures.cli import COMMANDS, _command_parser

    page = (Path(__file__).parents[2] / "docs" / "json.md").read_text(encoding="utf-8")
    for name in COMMANDS:
        actions = {action.dest: action for action in _command_parser(name)[0]._actions}
        if "json" in (getattr(actions.get("output_format"), "choices", None) or ()):
            assert name in SCHEMAS or f"`{name}`" in page
    jsonschema = pytest.importorskip("jsonschema")
    example = Path(__file__).parents[2] / "resources" / "example"
    asked = (example / "graded.jsonl.gz", "--bank", example / "questions.jsonl")
    status, out, _ = call(capsys, "verify", "item-statistics", *asked, "--format", "json")
    assert status == 0
    jsonschema.validate(json.loads(out), json.loads(SCHEMAS["verify"]))


def call(capsys, *arguments: object) -> tuple[int, str, str]:
    status = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def checked(name: str, text: str):
    """The JSON, held to the documented schema where jsonschema is installed."""
    content = json.loads(text)
    assert re.fullmatch(rf"rubric_measures {name} \d", content["format"])
    try:
        import jsonschema
    except ImportError:
        return content
    jsonschema.Draft202012Validator(json.loads(SCHEMAS[name])).validate(content)
    return content


@pytest.fixture
def boards(tmp_path):
    official = tmp_path / "official.json"
    official.write_text(json.dumps({"a": 1, "b": 2, "c": 3, "d": 4, "lost": 5}))
    generator = np.random.default_rng(0)
    lines = []
    for run, quality in zip("abcd", (0.7, 0.6, 0.5, 0.4), strict=True):
        for measure in ("cover", "nugget"):
            values = np.round(np.clip(quality + generator.normal(0, 0.1, 8), 0, 1), 4)
            lines += [f"{run} q{i} {measure} {value}" for i, value in enumerate(values)]
            lines.append(f"{run} all {measure} {values.mean():.4f}")
    scores = tmp_path / "scores.txt"
    scores.write_text("\n".join(lines) + "\n")
    wide = tmp_path / "wide.tsv"
    wide.write_text("run_id\tm\nextra\t0.9\na\t0.8\nb\t0.85\nc\t0.4\nd\t0.4\nlost\t0.1\n")
    return official, scores, wide


def test_correlate_text_and_missing_runs(boards, capsys) -> None:
    official, scores, wide = boards
    status, out, err = call(
        capsys, "correlate", official, scores, "--coefficients", "kendall", "spearman", "--rounds", 100
    )
    assert status == 1
    assert "1 run of the official leaderboard missing and left out (lost) (in 2 leaderboards)" in err
    rows = [line.split() for line in out.splitlines()]
    assert rows[0] == ["measure", "runs", "kendall", "spearman"]
    assert [row[:2] for row in rows[1:3]] == [["cover", "4"], ["nugget", "4"]]
    # The side that has no scores by query is not drawn again, and it is said.
    out = call(capsys, "correlate", wide, scores, "-m", "cover", "--coefficients", "kendall", "--rounds", 100)[1]
    assert "the leaderboard's queries are drawn again, and official scores are taken as given" in out
    # Of two leaderboards one has other queries than the official one: what is taken as given is said then, too.
    other = scores.with_name("other.txt")
    other.write_text(re.sub(r" q(\d)", r" z\1", scores.read_text()))
    more = ("-m", "cover", "--coefficients", "kendall", "--rounds", 100)
    out = call(capsys, "correlate", scores, scores, other, *more)[1]
    assert "the leaderboard's queries are drawn again, and official scores are taken as given" in out
    status, out, err = call(capsys, "correlate", official, wide, "--coefficients", "kendall", "--rounds", 0)
    assert status == 0
    assert "1 run not in the official leaderboard and left out (extra)" in err
    expected = correlate([-1, -2, -3, -4, -5], [0.8, 0.85, 0.4, 0.4, 0.1], "kendall").value
    assert out.splitlines()[1].split() == ["m", "5", f"{expected:.4f}"]


def test_correlate_formats(boards, capsys) -> None:
    official, scores, wide = boards
    _, out, _ = call(
        capsys, "correlate", official, scores, wide, "--format", "tsv", "--rounds", 20, "--coefficients", "kendall@3"
    )
    header, *rows = [line.split("\t") for line in out.splitlines()]
    assert header == ["leaderboard", "measure", "runs", "kendall@3", "low:kendall@3", "high:kendall@3", "p:kendall@3"]
    assert {len(row) for row in rows} == {7}
    _, out, _ = call(capsys, "correlate", official, scores, "--format", "latex", "--rounds", 0)
    assert out.startswith("\\begin{tabular}") and "tau\\_ap\\_b" in out
    _, out, _ = call(capsys, "correlate", official, scores, "-m", "cover", "--format", "json", "--rounds", 50)
    content = checked("correlate", out)
    (board,) = content["leaderboards"]
    assert (board["measure"], board["missing"], content["official"]["ranks"]) == ("cover", ["lost"], True)
    assert {one["resampled"] for one in board["coefficients"]} == {"query"}
    status, out, _ = call(
        capsys,
        "correlate",
        scores,
        scores,
        "--official-measure",
        "cover",
        "-m",
        "nugget",
        "--format",
        "json",
        "--rounds",
        50,
    )
    (board,) = checked("correlate", out)["leaderboards"]
    assert (status, board["query_kendall"]["units"], board["pooled_kendall"]["units"]) == (0, 8, 8)
    both = (
        "correlate",
        scores,
        scores,
        "--official-measure",
        "cover",
        "-m",
        "cover",
        "--coefficients",
        "kendall",
        "--rounds",
        50,
    )
    header, row = (line.split("\t") for line in call(capsys, *both, "--format", "tsv")[1].splitlines())
    found = dict(zip(header, row, strict=True))
    # What is the same in every draw has no interval, rather than one of no width.
    assert (found["query_kendall"], found["low:query_kendall"], found["high:pooled_kendall"]) == ("1.0000", "-", "-")


def test_correlate_refuses(boards, capsys) -> None:
    official, scores, wide = boards
    assert call(capsys, "correlate", scores, wide)[2].count("choose one: cover|nugget (--official-measure)") == 1
    for arguments in (
        ("correlate", official, wide, "--coefficients", "kendal"),
        ("correlate", official, wide, "-m", "nothing"),
        ("correlate", official, wide, "--rounds", -1),
        ("correlate", official, scores, "--compat", "workbench"),
        ("correlate", official, wide, "--coefficients", "kendall@0"),
        ("compare", scores, "-m", "cover", "--level", 5),
        # What is of grids alone, and what is of leaderboards of runs alone.
        ("correlate", official, wide, "--on-failed", "zero"),
        ("correlate", official, wide, "--bank", official),
    ):
        status, out, err = call(capsys, *arguments)
        assert (status, out) == (2, "")
        assert len(err.splitlines()) == 1


def test_ranks_or_scores_is_said(tmp_path, capsys) -> None:
    """A dict of the numbers 1 to n could be either: what it was taken for is said, and can be said otherwise."""
    numbers, wide = tmp_path / "official.json", tmp_path / "wide.tsv"
    numbers.write_text('{"a": 3, "b": 2, "c": 1}')
    wide.write_text("run_id\tm\na\t0.9\nb\t0.5\nc\t0.1\n")
    arguments = ("correlate", numbers, wide, "--coefficients", "kendall", "--rounds", 0)
    _, out, err = call(capsys, *arguments)
    assert out.split()[-1] == "-1.0000" and "read as ranks, 1 best (--no-official-ranks)" in err
    for option, value in (("--no-official-ranks", "1.0000"), ("--official-ranks", "-1.0000")):
        _, out, err = call(capsys, *arguments, option)
        assert out.split()[-1] == value and "read as ranks" not in err
    numbers.write_text('{"a": 3, "b": 2, "c": 9}')
    assert "read as ranks" not in call(capsys, *arguments)[2]
    # As people write tables; what is called a score may be ranks all the same.
    numbers.write_text("System,Position\na,1\nb,2\nc,3\n")
    _, out, err = call(capsys, *arguments)
    assert out.split()[-1] == "1.0000" and "Position: read as ranks, 1 best" in err
    runs = "abcde"
    wide.write_text("run_id\tm\n" + "".join(f"{run}\t{0.9 - place / 10}\n" for place, run in enumerate(runs)))
    numbers.write_text("Run,Outcome\n" + "".join(f"{run},{place}\n" for place, run in enumerate(runs, 1)))
    _, out, err = call(capsys, *arguments)
    assert "Outcome has the numbers 1 to 5, of which 1 counts as the worst: are these ranks?" in err


def write_records(path, judged: bool = True) -> None:
    """Two queries with four passages each, graded by two prompts; three systems."""
    lines = []
    for number, query in enumerate(("q1", "q2")):
        passages = []
        for index in range(4):
            ratings = {"A": [index + 1, 0], "B": [min(5, index + 2 - number), 1]}
            passages.append(
                {
                    "paragraph_id": f"{query}-p{index}",
                    "text": "text",
                    "paragraph_data": {
                        "judgments": [
                            {"paragraphId": f"{query}-p{index}", "query": query, "relevance": index, "titleQuery": ""}
                        ]
                        if judged
                        else [],
                        "rankings": [
                            {
                                "method": method,
                                "paragraphId": f"{query}-p{index}",
                                "queryId": query,
                                "rank": 1 + (index + shift) % 4,
                                "score": 4.0 - (index + shift) % 4,
                            }
                            for shift, method in enumerate(("s1", "s2", "s3"))
                        ],
                    },
                    "exam_grades": [
                        {
                            "correctAnswered": [],
                            "wrongAnswered": [],
                            "answers": [],
                            "llm": "toy",
                            "llm_options": {},
                            "prompt_info": {
                                "prompt_class": prompt, "prompt_style": "", "context_first": False,
                                "check_unanswerable": True, "check_answer_key": False, "is_self_rated": True,
                            },
                            "exam_ratio": 0.5,
                            "self_ratings": [
                                {"question_id": f"{query}/{item}", "self_rating": rating}
                                for item, rating in enumerate(values)
                            ],
                        }
                        for prompt, values in ratings.items()
                    ],
                }
            )  # fmt: skip
        lines.append(json.dumps([query, passages]))
    path.write_text("\n".join(lines) + "\n")


def test_grid_over_grade_sets(tmp_path, capsys) -> None:
    records, official = tmp_path / "graded.jsonl", tmp_path / "official.json"
    write_records(records)
    official.write_text(json.dumps({"s1": 0.3, "s2": 0.9, "s3": 0.5}))
    status, out, _ = call(
        capsys, "correlate", official, records, "-m", "RubricCover(rel=1)@1", "RubricCover(rel=3)@1",
        "NuggetV(rel=1)", "NuggetV(rel=3)", "--coefficients", "kendall", "--format", "json", "--rounds", 20,
    )  # fmt: skip
    grid = checked("correlate", out)["grid"]
    assert [(cell["prompt_class"], cell["measure"]) for cell in grid] == [
        (prompt, measure)
        for prompt in "AB"
        for measure in ("RubricCover(rel=1)@1", "RubricCover(rel=3)@1", *(cell["measure"] for cell in grid[2:4]))
    ]
    assert any(cell["best"] for cell in grid)
    if importlib.util.find_spec("matplotlib") is not None:
        plot = ("correlate", official, records, "-m", "RubricCover(rel=1)@1", "--rounds", 0, "--plot")
        assert ".pdf alone holds them" in call(capsys, *plot, tmp_path / "grid.svg")[2]
        assert call(capsys, *plot, tmp_path / "grid.pdf")[0] < 2 and (tmp_path / "grid.pdf").exists()
    levels = ("correlate", official, records, "-m", "RubricCover@1", "--coefficients", "kendall", "--rounds", 0)
    status, out, _ = call(capsys, *levels, "--grader", "scale=0-5:4")
    assert out.count("*") >= 1 and "RubricCover(rel=5)@1" in out
    status, out, err = call(capsys, *levels)
    assert "-" in out and "is not known; name it, or a level in each measure (--grader scale=…)" in err
    known = ("correlate", official, records, "-m", "RubricCover(rel=4)@1", "--coefficients", "kendall", "--rounds", 0)
    assert [call(capsys, *known, *more)[0] for more in ((), ("-m", "RubricCover@1", known[4]))] == [0, 1]
    one = call(
        capsys,
        "correlate",
        official,
        records,
        "--grader",
        "prompt=A,scale=0-5:4",
        "-m",
        "RubricCover@1",
        "--coefficients",
        "kendall",
    )[1]
    assert {line.split()[2] for line in one.splitlines() if line.startswith("RubricCover")} == {"A"}
    assert "the best of many flatters: it was picked on the queries that it is shown on" in one
    status, _, err = call(capsys, "correlate", official, records, "--grader", "prompt=Z")
    assert status == 2
    assert "no grade set passes" in err


def test_agreement_of_qrels(tmp_path, capsys) -> None:
    first, second = tmp_path / "assessors.qrels", tmp_path / "model.qrels"
    first.write_text("".join(f"q{i // 4} 0 d{i} {label}\n" for i, label in enumerate([0, 1, 2, 3, 0, 1, 2, 3, 1])))
    second.write_text("".join(f"q{i // 4} 0 d{i} {label}\n" for i, label in enumerate([0, 1, 2, 2, 0, 0, 2, 2])))
    status, out, err = call(capsys, "agreement", first, second, "--cutoff", 2, 2, "--rounds", 50)
    assert status == 0
    assert "left out of the pairs: 1 document labelled by assessors.qrels only" in err
    assert "model.qrels never uses the label 3" in err
    assert re.search(r"exact match +0\.6250", out)
    assert re.search(r"\nmodel\.qrels +>= 2 / >= 2 +4 +0 +0 +4 +1\.0000 ", out)
    assert "\nkappa of model.qrels, tpr of model.qrels, tnr of model.qrels and f1 of model.qrels without an" in out
    alike = tmp_path / "copy.qrels"
    alike.write_text(first.read_text())
    same = call(capsys, "agreement", first, alike, "--rounds", 50)[1]
    assert "\nexact match, kappa, quadratic kappa and 3 more without an interval: it is the same" in same
    status, out, _ = call(capsys, "agreement", first, second, "--cutoff", 2, 2, "--format", "json", "--rounds", 50)
    content = checked("agreement", out)
    assert content["graders"][0]["documents"] == 8
    assert content["only_in"] == [1, 0]
    third = tmp_path / "third.qrels"
    third.write_text("q0 0 d0 0\nq0 0 d3 3\n")
    status, out, _ = call(capsys, "agreement", first, second, third, "--format", "text", "--rounds", 0)
    assert "alpha of all 3 sources" in out
    for style in ("tsv", "latex"):
        assert call(capsys, "agreement", first, second, "--format", style, "--rounds", 0)[0] == 0


def test_a_leaderboard_of_graders(tmp_path, capsys) -> None:
    """Labels of a truth and two judges, one of which leaves the scale."""
    labels = {"truth": [0, 1, 2, 3, 0, 3], "good": [0, 1, 2, 3, 1, 3], "wide": [0, 0, 5, 5, 2, 0]}
    for name, of_query in labels.items():
        rows = (f"q{q} 0 d{i} {label}\n" for q in range(6) for i, label in enumerate(of_query[q:] + of_query[:q]))
        (tmp_path / f"{name}.qrels").write_text("".join(rows))
    labels = [tmp_path / f"{name}.qrels" for name in labels]
    status, out, err = call(capsys, "agreement", *labels, "--rounds", 200)
    assert status == 0
    head, good, wide = out.splitlines()[:3]
    assert (
        head.split()[:3] == ["grader", "documents", "kappa"]
        and "held to truth.qrels; bias: mean of grader − truth" in out
    )
    assert "group: only 6 queries: what is equal may be told apart too often (by κ, " in out
    assert good.startswith("good.qrels") and wide.startswith("wide.qrels")
    # κ of `good`: 30 of 36 agree; the truth has 12 6 6 12 of 0 1 2 3, the judge 6 12 6 12: p_e = 324 / 1296 = .25.
    assert re.search(r"good\.qrels +36 +0\.7778 ", good)
    assert "wide.qrels: 12 labels are outside the truth's scale (0 to 3)" in err and "count as they are" in err
    lines = call(capsys, "agreement", *labels, "--rounds", 50, "--format", "tsv")[1].splitlines()
    assert len(lines) == 3
    row = dict(zip(*(line.split("\t") for line in lines[:2]), strict=True))
    assert (row["grader"], row["documents"], row["kappa"], row["outside"]) == ("good.qrels", "36", "0.7778", "0")
    # From 1 on the truth has 24 positives, and the judge these and 6 of the 12 others.
    assert (row["tpr>=1/1"], row["tnr>=1/1"], row["f1>=1/1"]) == ("1.0000", "0.5000", f"{48 / 54:.4f}")
    assert (row["low:kappa"], row["high:kappa"]) == ("-", "-")
    assert r"\begin{tabular}" in call(capsys, "agreement", *labels, "--rounds", 50, "--format", "latex")[1]
    content = checked("agreement", call(capsys, "agreement", *labels, "--rounds", 50, "--format", "json")[1])
    assert [row["grader"] for row in content["graders"]] == ["good.qrels", "wide.qrels"]


def test_agreement_of_records(tmp_path, capsys) -> None:
    records = tmp_path / "graded.jsonl"
    write_records(records)
    status, out, _ = call(capsys, "agreement", records, "--grader", "prompt=A", "--cutoff", 4, 2, "--format", "json")
    content = checked("agreement", out)
    assert status == 0
    # Labels are 1 2 3 4 against judgments 0 1 2 3 on both queries.
    [grader] = content["graders"]
    assert grader["statistics"]["bias"]["estimate"] == 1.0
    assert (grader["cutoffs"][0]["truth"], grader["cutoffs"][0]["both"]) == (2, 2)
    arguments = (
        "agreement",
        records,
        records,
        "--grader",
        "prompt=A",
        "--grader-b",
        "prompt=B",
        "--items",
        "--format",
        "json",
    )
    content = checked("agreement", call(capsys, *arguments)[1])
    assert content["graders"][0]["documents"] == 16
    some = tmp_path / "some.csv"
    some.write_text("query_id,doc_id,item_id,grade\nq1,q1-p1,q1/1,1\n", encoding="utf-8")
    said = "1 label of more or fewer items than the truth's: compare grades of items? (--items)"
    arguments = "agreement", records, some, "--grader", "prompt=A"
    assert [said in call(capsys, *arguments, *more)[2] for more in ([], ["--items"])] == [True, False]
    status, out, _ = call(capsys, "agreement", records, "--grader", "prompt=A", "--tables", 1, "--format", "json")
    tables = checked("agreement-tables", out)["tables"]
    assert (len(tables), tables[0]["totals"]) == (12, [0, 2, 2, 2, 2, 0])
    columns = []
    for least in (1, 2):
        out = call(capsys, "agreement", records, "--grader", "prompt=A", "--tables", least)[1]
        columns.append({line.split()[1] for line in out.splitlines() if "STRICT" in line})
    assert columns == [{"1+2+3"}, {"2+3"}]
    for style in ("text", "tsv", "latex"):
        assert call(capsys, "agreement", records, "--grader", "prompt=A", "--tables", 1, "--format", style)[0] == 0
    bare = tmp_path / "bare.jsonl"
    write_records(bare, judged=False)
    status, _, err = call(capsys, "agreement", bare, "--grader", "prompt=A")
    assert status == 2
    assert "holds no judgments" in err


def test_agreement_refuses(tmp_path, capsys) -> None:
    first, second = tmp_path / "a.qrels", tmp_path / "b.qrels"
    first.write_text("q1 0 d1 1\n")
    second.write_text("q1 0 d2 1\n")
    assert "label no common document" in call(capsys, "agreement", first, second)[2]
    assert "two sources" in call(capsys, "agreement", first)[2]
    assert "one graded-records file (--tables)" in call(capsys, "agreement", first, "--tables", 1)[2]
    assert "--tables takes one" in call(capsys, "agreement", first, second, "--tables", 1)[2]
    for scale in ("3", "3-0"):
        assert f"'{scale}' is no scale" in call(capsys, "agreement", first, second, "--grader", f"scale={scale}")[2]
    second.write_text("q1 0 d1 1\n")
    assert "no grades of items; leave items out" in call(capsys, "agreement", first, second, "--items")[2]
    status, out, err = call(capsys, "agreement", first, second)
    assert status == 1
    assert ["kappa", "-", "-", "-"] in map(str.split, out.splitlines()) and "one and the same label" in err


def test_compare(boards, tmp_path, capsys) -> None:
    _, scores, _ = boards
    status, out, _ = call(capsys, "compare", scores, "-m", "cover")
    assert status == 0
    # a and b, b and c, and c and d do not differ.
    assert out.startswith("a has the highest mean; not told apart from it: b\n")
    groups = [(line.split()[0], line.split("] ")[1].split()[0]) for line in out.splitlines()[2:6]]
    assert groups == [("a", "a"), ("b", "ab"), ("c", "bc"), ("d", "c")]
    assert "intervals hold all differences of 6 pairs at once with 95 % (sign flips of the largest t)\n" in out
    out = call(capsys, "compare", scores, "-m", "cover", "--correction", "none", "--level", 0.9)[1]
    assert "intervals hold each difference by itself with 90 %, not those of 6 pairs at once" in out
    status, out, _ = call(capsys, "compare", scores, "-m", "cover", "--baseline", "d", "--format", "json")
    comparison = checked("compare", out)["comparisons"]["cover"]
    assert [(pair["first"], pair["second"]) for pair in comparison["pairs"]] == [("a", "d"), ("b", "d"), ("c", "d")]
    status, out, _ = call(capsys, "compare", scores, "-m", "cover", "--runs", "a", "b", "--format", "tsv")
    header, row = [line.split("\t") for line in out.splitlines()]
    assert len(header) == len(row) == 25
    # A run alone has a mean with its interval.
    out = call(capsys, "compare", scores, "-m", "cover", "--runs", "a", "--format", "tsv")[1]
    header, row = [line.split("\t") for line in out.splitlines()]
    assert header == ["run", "cover", "low:cover", "high:cover"]
    assert float(row[2]) < float(row[1]) < float(row[3])
    still = tmp_path / "still.tsv"
    still.write_text("run_id\tquery_id\tcover\n" + "".join(f"a\tq{n}\t0.5\n" for n in range(8)))
    assert "\na by cover without an interval: it is the same however one draws" in call(capsys, "compare", still)[1]
    still.write_text(still.read_text() + "".join(f"b\tq{n}\t0.{n}\n" for n in range(8)))
    assert "\na without an interval: it is the same however one draws" in call(capsys, "compare", still)[1]
    for procedure in ("bh", "none"):
        assert call(capsys, "compare", scores, "-m", "nugget", "--correction", procedure, "--rounds", 99)[0] == 0
    less = tmp_path / "less.txt"
    less.write_text("".join(line + "\n" for line in scores.read_text().splitlines() if "a q3" not in line))
    status, _, err = call(capsys, "compare", less, "-m", "cover")
    assert status == 1
    assert "cover: 1 query that some run lacks left out (such as q3): everything is over the other 7; a has" in err


def test_compare_refuses(boards, capsys) -> None:
    _, scores, wide = boards
    assert "no per-query scores" in call(capsys, "compare", wide)[2]
    assert "unknown run" in call(capsys, "compare", scores, "-m", "cover", "--baseline", "zz")[2]
    assert "in another file" in call(capsys, "compare", scores, scores, "-m", "cover")[2]
    assert f"did you mean cover? (columns of {scores})" in call(capsys, "compare", scores, "-m", "covr")[2]
    # Columns are measures: their quotes and the order of their parameters do not matter.
    scores.write_text("a q1 RubricCover(rel=4,judged_only=True)@5 1\na all RubricCover(rel=4,judged_only=True)@5 1\n")
    for name in ("RubricCover(judged_only=True, rel=4)@5", "RubricCover(rel=4,judged_only=True)@5"):
        assert call(capsys, "compare", scores, "-m", name)[1].startswith(
            "a stands alone, and is compared with nothing\n"
        )
    assert "1 or more (--rounds)" in call(capsys, "compare", scores, "-m", "cover", "--rounds", 0)[2]


def test_what_is_no_mean_of_queries_is_not_compared(tmp_path, capsys) -> None:
    """Counts are summed."""
    lines = [f"{run} q{q} {name} {q + (run == 'a')}" for run in "ab" for q in range(3) for name in ("NumRet", "x")]
    (tmp_path / "s.txt").write_text("\n".join([*lines, "a all x 2", "b all x 1", "a all NumRet 6", "b all NumRet 3"]))
    status, out, err = call(capsys, "compare", tmp_path / "s.txt")
    assert (status, "NumRet" in out) == (0, False) and "not compared by NumRet: a sum over queries is no mean" in err
    assert "NumRet is a sum" in call(capsys, "compare", tmp_path / "s.txt", "-m", "NumRet")[2]


def test_a_board_that_is_the_official_one_is_told(tmp_path, capsys) -> None:
    lines = "".join(f"{run} q{q} x {q + (run == 'a')}\n" for run in "ab" for q in range(3))
    (tmp_path / "s.txt").write_text(lines)
    assert "write the columns' names above, run_id first" in call(capsys, "compare", tmp_path / "s.txt")[2]
    (tmp_path / "s.txt").write_text(f"run topic measure value\n{lines}")
    for other, said in ((tmp_path / "s.txt", True), (tmp_path / "t.txt", False)):
        (tmp_path / "t.txt").write_text((tmp_path / "s.txt").read_text().replace("a q0 x 1", "a q0 x 2"))
        status, _, err = call(capsys, "correlate", tmp_path / "s.txt", other, "--rounds", 0)
        assert (status, "all scores are the official ones" in err) == (0, said)


@pytest.fixture
def scored(tmp_path):
    """Item qrels and three runs; `tied` has one score for everything, in an order that file and id disagree on."""
    qrels = tmp_path / "items.qrels"
    grades = {("d1", "i1"): 5, ("d1", "i2"): 0, ("d2", "i1"): 0, ("d2", "i2"): 4, ("d3", "i1"): 0, ("d3", "i2"): 0}
    qrels.write_text("".join(f"q{q} {item} {doc} {grade}\n" for q in range(4) for (doc, item), grade in grades.items()))
    orders = {"good": ["d1", "d2", "d3"], "mixed": ["d3", "d1", "d2"]}
    for name, docs in orders.items():
        (tmp_path / f"{name}.run").write_text(
            "".join(f"q{q} Q0 {doc} {i + 1} {9 - i} {name}\n" for q in range(4) for i, doc in enumerate(docs))
        )
    (tmp_path / "tied.run").write_text(
        "".join(f"q{q} Q0 {doc} {i + 1} 1 tied\n" for q in range(3) for i, doc in enumerate(["d1", "d2", "d3", "d9"]))
    )
    return qrels, [tmp_path / f"{name}.run" for name in ("good", "mixed", "tied")]


def test_an_order_that_ties_decide_is_said_by_checks(scored, tmp_path, capsys) -> None:
    qrels, runs = scored
    measure, said = ("-m", "RubricCover(rel=4)@1"), "1 run with an order inside the cutoff that ties decide: tied"
    assert said not in call(capsys, "leaderboard", qrels, *runs, *measure)[2]
    assert said in call(capsys, "leaderboard", qrels, *runs, *measure, "--checks")[2]
