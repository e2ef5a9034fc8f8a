"""Cases that a reviewer found wrong once: mixed measures over item rows, foreign errors, odd names and cutoffs."""

from __future__ import annotations

import shutil
from pathlib import Path

import ir_measures
import pytest
from ir_measures import Qrel, ScoredDoc, nDCG

from rubric_measures import RubricCover, RubricItem, RubricQrels
from rubric_measures.base.errors import InputError
from rubric_measures.cli import main
from rubric_measures.corpora.collections import example_folder
from rubric_measures.formats.banks import load_bank
from rubric_measures.measures.grade_sets import Grader
from rubric_measures.measures.loading import load_records
from rubric_measures.measures.qrels import build_grades
from rubric_measures.models.replies import ReplyCache
from tests.example_records import BANK, bank_from_items, grade_set, passage, write_all, write_lines
from tests.matrices import lost

ROWS = [Qrel("q", "d1", 5, "a"), Qrel("q", "d1", 0, "b"), Qrel("q", "d2", 0, "a"), Qrel("q", "d2", 1, "b")]
RUN = [ScoredDoc("q", "d2", 2.0), ScoredDoc("q", "d1", 1.0)]
MEASURES = [nDCG @ 10, RubricQrels(measure="nDCG@10"), RubricCover(rel=4)]


def test_standard_measures_beside_rubric_measures_read_labels_of_item_rows() -> None:
    # Labels d1 = 5, d2 = 1; the last rows would say d1 = 0, d2 = 1.
    for qrels in (ROWS, iter(ROWS)):
        values = ir_measures.calc_aggregate(MEASURES, qrels, RUN)
        assert values[MEASURES[0]] == pytest.approx(values[MEASURES[1]])
        assert values[MEASURES[0]] < 0.9
        assert values[MEASURES[2]] == 0.5
    assert ir_measures.evaluator(MEASURES, ROWS).calc_aggregate(RUN)[MEASURES[0]] < 0.9
    # By themselves they are ir_measures' business.
    assert ir_measures.calc_aggregate([nDCG @ 10], ROWS, RUN)[nDCG @ 10] == 1.0


def test_a_frame_of_grades_is_read_as_labels_by_standard_measures() -> None:
    pandas = pytest.importorskip("pandas")
    bank = bank_from_items([RubricItem(item, "q", "") for item in "abc"])
    frame = build_grades(ROWS, bank).to_dataframe()
    expected = ir_measures.calc_aggregate(MEASURES, build_grades(ROWS, bank), RUN)
    assert ir_measures.calc_aggregate(MEASURES, frame, RUN) == pytest.approx(expected)
    assert ir_measures.calc_aggregate([nDCG @ 10], frame, RUN)[nDCG @ 10] == pytest.approx(expected[nDCG @ 10])
    plain = pandas.DataFrame([Qrel("q", "d1", 1), Qrel("q", "d2", 0)])
    assert ir_measures.calc_aggregate([nDCG @ 10], plain, RUN)[nDCG @ 10] == pytest.approx(0.6309297535714575)


def test_errors_of_calls_in_foreign_records_are_failures(tmp_path: Path) -> None:
    rated = {**grade_set({"q/a": 5}), "llm_response_errors": {"q/b": "timeout"}}
    listed = {**rated, "self_ratings": None, "correctAnswered": ["q/a"], "wrongAnswered": ["q/b"]}
    for entry in (rated, listed):
        path = write_lines(tmp_path / "g.jsonl", [["q", [passage("q", "d", [entry], {"s": 1})]]])
        query = load_records(path).queries["q"]
        assert [item.item_id for item in query.items] == ["q/a", "q/b"]
        assert lost(query) == {"d": {"q/b"}}
        # The workbench's program takes no notice of them.
        assert load_records(path, wanted=Grader(first=True)).queries["q"].failed is None
    # Nor does an entry that stands beside another of the same grader make a 0 of them.
    second = {**listed, "correctAnswered": ["q/c"], "wrongAnswered": [], "llm_response_errors": {}}
    bank = bank_from_items([RubricItem(f"q/{item}", "q", "") for item in "abc"])
    write_lines(path, [["q", [passage("q", "d", [listed, second], {"s": 1})]]])
    assert lost(load_records(path, bank).queries["q"]) == {"d": {"q/b"}}


def test_a_run_may_not_be_called_as_the_best_possible_score(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_all(tmp_path)
    (folder / "x.run").write_text("q1 Q0 d1 1 1.0 _overall_\n")
    assert main(["leaderboard", str(folder / "graded.jsonl.gz"), str(folder / "x.run"), "-m", "RubricCover"]) == 2
    assert "a run is called _overall_" in capsys.readouterr().err
    write_lines(folder / "inside.jsonl", [["q1", [passage("q1", "d1", [grade_set({"q1/a": 5})], {"_overall_": 1})]]])
    for more in ([], ["--compat", "workbench"], ["--no-overall"]):
        assert main(["leaderboard", str(folder / "inside.jsonl"), "-m", "RubricCover@20", *more]) == 2
        assert "a run is called _overall_" in capsys.readouterr().err


@pytest.mark.parametrize("measure", ["P@0", "nDCG@0", "alpha_nDCG@0", "RubricQrels(measure='nDCG@0')", ""])
def test_cutoff_zero_and_no_measure_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], measure: str
) -> None:
    folder = write_all(tmp_path)
    assert main(["evaluate", str(folder / "graded.jsonl.gz"), str(folder / "alpha.run"), measure]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_run_without_any_query_of_the_grades_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_all(tmp_path)
    for query, near in (("q9", "q1"), ("Q02", "q2")):
        (folder / "x.run").write_text(f"{query} Q0 d1 1 1.0 x\n")
        inputs = [str(folder / name) for name in ("graded.jsonl.gz", "x.run")]
        said = f"has no query of the grades: it has '{query}', they have '{near}'; give grades and run the same"
        commands = ["evaluate", *inputs, "RubricCover"], ["leaderboard", *inputs, str(folder / "alpha.run")]
        for arguments, named in zip(commands, (f"{inputs[0]}: run x", f"run {inputs[1]}"), strict=True):
            assert main(arguments) == 2
            out, err = capsys.readouterr()
            assert f"{named} {said}" in err and err.count("\n") == 1 and not out
    # Of judgments of documents, too, which another program scores.
    (folder / "labels.qrels").write_text("q1 0 d1 1\n")
    assert main(["evaluate", str(folder / "labels.qrels"), str(folder / "x.run"), "nDCG@10"]) == 2
    assert "labels.qrels: run x has no query of the grades: it has 'Q02', they have 'q1'" in capsys.readouterr().err


def test_leaderboard_says_which_queries_of_runs_the_bank_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_all(tmp_path)
    (folder / "x.run").write_text("q1 Q0 d1 1 1.0 x\nq9 Q0 d1 1 1.0 x\n")
    (folder / "y.run").write_text("q8 Q0 d1 1 1.0 y\nq2 Q0 d1 1 1.0 y\n")
    paths = [str(folder / name) for name in ("graded.jsonl.gz", "alpha.run", "x.run", "y.run")]
    assert main(["leaderboard", *paths, "-m", "RubricCover"]) == 0
    err = capsys.readouterr().err
    assert "2 queries of 2 runs are not graded and were left out (such as q8 of run y)" in err
    assert "run x does not rank 1 query (such as q2), and scores 0 there" in err
    assert main(["leaderboard", *paths[:3], "-m", "RubricCover", "--bank", str(folder / "bank.jsonl")]) == 0
    assert "1 query of run x is not graded and was left out (such as q9)" in capsys.readouterr().err
    assert main(["leaderboard", *paths[:2], "-m", "RubricCover"]) == 0
    assert "not graded" not in capsys.readouterr().err


def test_a_passage_twice_in_a_ranking_of_records_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entry = passage("q", "d", [grade_set({"q/a": 5})], {"s": 1})
    entry["paragraph_data"]["rankings"] *= 2
    path = write_lines(tmp_path / "g.jsonl", [["q", [entry]]])
    assert main(["leaderboard", str(path), "-m", "RubricQrels(measure='nDCG@10')"]) == 2
    assert "passage 'd' occurs twice in the ranking of 's'" in capsys.readouterr().err


def test_commands_do_not_write_over_what_they_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_all(tmp_path)
    graded, bank, run = (str(folder / name) for name in ("graded.jsonl.gz", "bank.jsonl", "alpha.run"))
    cache, prompt = str(folder / "paid.sqlite"), str(folder / "own.toml")
    with ReplyCache(cache):
        pass
    Path(prompt).write_text("name = 'mine'\n")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for arguments in (
        ["pool", run, "-c", graded, "-o", run],
        ["pool", run, "-c", graded, "-o", graded],
        ["grade", graded, "--bank", bank, "--model", "lexical", "-o", bank],
        ["grade", graded, "--bank", bank, "--model", "lexical", "--queries", "q1", "-o", graded],
        ["qrels", graded, "-o", graded],
        ["convert", graded, "-o", graded],
        ["grade", graded, "--bank", bank, "--model", f"scripted:{run}", "-o", run],
        ["grade", graded, "--bank", bank, "--model", "lexical", "--query-texts", run, "-o", run],
        ["grade", graded, "--bank", bank, "--model", "lexical", "--prompt", prompt, "-o", prompt],
        ["generate", run, "--model", "hf:none", "-o", run],
        ["agreement", run, graded, "--output", graded],
        ["verify", "bad-questions", graded, "--bank", bank, "--output", bank],
        ["compare", run, "--output", run],
        ["correlate", run, bank, "--output", bank],
        ["tournament", run, "--output", run],
    ):
        assert main(arguments) == 2, arguments
        assert "is read here, and would be replaced" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_cache_is_no_other_file_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_all(tmp_path)
    graded, bank, run, cache = (str(folder / name) for name in ("graded.jsonl.gz", "bank.jsonl", "alpha.run", "c"))
    assert main(["grade", graded, "--bank", bank, "--model", "lexical", "-o", str(folder / "o"), "--cache", cache]) == 0
    out = str(folder / "new")
    (folder / "link").symlink_to(cache)
    shutil.copy(graded, folder / "new.cache.sqlite")
    capsys.readouterr()
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    grade = ["grade", graded, "--bank", bank, "--model", "lexical"]
    play = ["tournament", "--model", "lexical", "--answers", graded, "--query-file", bank, "--save", out]
    for arguments in (
        [*grade, "-o", cache, "--cache", cache],
        [*grade, "-o", str(folder / "link"), "--cache", cache],
        [*grade, "-o", f"{cache}-wal", "--cache", cache],
        [*grade, "-o", f"{cache}-shm", "--cache", cache],
        [*grade, "-o", out, "--cache", f"{out}.manifest.json"],
        [*grade, "-o", out, "--cache", graded],
        [*grade, "-o", out, "--cache", bank],
        [*grade, "-o", out, "--cache", run, "--query-texts", run],
        [*grade, "-o", out, "--dry-run", "--cache", bank],
        ["grade", str(folder / "new.cache.sqlite"), "--bank", bank, "--model", "lexical", "-o", out],
        ["generate", run, "--model", "hf:none", "-o", out, "--cache", run],
        ["generate", run, "--model", "hf:none", "-o", f"{cache}-wal", "--cache", cache],
        [*play, "--cache", out],
        [*play, "-o", f"{out}.cache.sqlite"],
        [*play, "-o", f"{out}.cache.sqlite-wal"],
        [*play, "--cache", graded],
    ):
        assert main(arguments) == 2, arguments
        assert "is a file of the reply cache, too" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_collection_is_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "coll"
    shutil.copytree(example_folder(), folder)
    qrels, run = str(folder / "qrels.txt"), str(folder / "runs" / "bm25.run")
    (tmp_path / "link.jsonl").symlink_to(folder / "docs.jsonl")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for arguments in (
        ["pool", "-c", str(folder), "-o", str(folder / "docs.jsonl")],
        ["pool", "-c", str(folder), "-o", run],
        ["pool", "-c", str(folder), "-o", str(tmp_path / "link.jsonl")],
        ["pool", "-c", str(folder), "-o", qrels],
        ["pool", "--judgments", qrels, "--judged", "-c", str(folder), "-o", str(folder / "docs.jsonl")],
        ["convert", run, "--to", "run", "-o", str(folder / "runs")],
    ):
        assert main(arguments) == 2, arguments
        assert "is read here, and would be replaced" in capsys.readouterr().err
    # What is no part of the collection may lie in its folder, and be written again.
    for _ in range(2):
        assert main(["pool", "-c", str(folder), "-o", str(folder / "passages.jsonl.gz")]) == 0
    assert main(["example", "--folder", str(example_folder())]) == 2
    assert "is the example collection itself" in capsys.readouterr().err
    (folder / "passages.jsonl.gz").unlink()
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_a_plot_does_not_replace_what_it_is_drawn_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graded = tmp_path / "graded.png"
    shutil.copy(write_all(tmp_path) / "graded.jsonl.gz", graded)
    before, name = graded.read_bytes(), str(graded)
    for arguments in (
        ["leaderboard", name, "-m", "RubricCover"],
        ["correlate", name, name],
        ["compare", name],
    ):
        assert main([*arguments, "--plot", name]) == 2, arguments
        assert "is read here, and would be replaced" in capsys.readouterr().err
        both = str(tmp_path / "both.png")
        assert main([*arguments, "--plot", both, "--output", both]) == 2, arguments
        assert "is the name of the output and of the plot" in capsys.readouterr().err
    assert graded.read_bytes() == before


@pytest.mark.parametrize(
    ("command", "where"),
    [
        (["leaderboard", "graded.jsonl.gz", "-m", "RubricCover", "--bank", "small.jsonl"], "graded.jsonl.gz:2"),
        (["evaluate", "graded.jsonl.gz", "alpha.run", "RubricCover", "--bank", "small.jsonl"], "graded.jsonl.gz:2"),
        (["qrels", "graded.jsonl.gz", "--bank", "small.jsonl"], "graded.jsonl.gz:2"),
        (["verify", "all", "graded.jsonl.gz", "--bank", "small.jsonl"], "graded.jsonl.gz:2"),
        (
            ["grade", "graded.jsonl.gz", "--bank", "small.jsonl", "--model", "lexical", "-o", "new.gz"],
            "graded.jsonl.gz:2",
        ),
        (
            ["convert", "graded.jsonl.gz", "--bank", "small.jsonl", "--to", "assignments", "-o", "new.gz"],
            "graded.jsonl.gz:2",
        ),
        (["leaderboard", "items.qrels", "alpha.run", "-m", "RubricCover", "--bank", "small.jsonl"], "items.qrels"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_query_that_the_bank_lacks_is_named_with_its_file(
    command: list[str], where: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_all(tmp_path)
    write_lines(folder / "small.jsonl", [line for line in BANK if line["query_id"] == "q1"])
    (folder / "items.qrels").write_text("q1 q1/a d1 4\nq1 q1/b d1 1\n q2 q2/a d3 5\n")
    names = [str(folder / name) if "." in name and "/" not in name else name for name in command]
    assert main(names) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{where}: unknown query 'q2': known: q1" in line
    assert not (folder / "new.gz").exists()


def test_an_importance_that_does_not_exist_is_no_importance_that_is_missing(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    rows = [("q1", "d1", 2, "q1/a", "vital"), ("q1", "d1", 2, "q1/b", "bogus")]
    frame = pandas.DataFrame(rows, columns=["query_id", "doc_id", "relevance", "iteration", "importance"])
    with pytest.raises(InputError, match="query 'q1', item 'q1/b': importance 'bogus' is neither vital nor okay"):
        build_grades(frame)
    for nothing in (None, float("nan"), pandas.NA, ""):
        frame["importance"] = ["vital", nothing]
        items = build_grades(frame).queries["q1"].items
        assert [item.importance for item in items] == ["vital", None]
    with pytest.raises(InputError, match="importance 'bogus' is neither vital nor okay"):
        bank_from_items([RubricItem("q1/a", "q1", "a?", importance="bogus")])  # type: ignore[arg-type]
    entry = {"query_id": "q", "items": [{"question_text": "a", "importance": "bogus"}]}
    expected = r"b\.jsonl:1: items\[0\]\.importance: expected vital or okay; found 'bogus'"
    with pytest.raises(InputError, match=expected):
        load_bank(write_lines(tmp_path / "b.jsonl", [entry]))


@pytest.mark.parametrize("command", ["evaluate", "leaderboard"])
def test_an_error_comes_without_the_note_on_labels(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_all(tmp_path)
    (folder / "bad.run").write_text("q1 Q0 d1 1 high x\n")
    words = [command, str(folder / "graded.jsonl.gz"), str(folder / "bad.run")]
    measures = ["nDCG@10"] if command == "evaluate" else ["-m", "nDCG@10"]
    assert main([*words, *measures]) == 2
    assert capsys.readouterr().err.endswith("bad.run:1: score: 'high' is not a finite number\n")
    assert main([*words, *measures]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert main([*words[:2], str(folder / "alpha.run"), *measures]) == 0
    assert capsys.readouterr().err.count("1 standard measure reads the labels that the grades imply") == 1
