"""What is mixed up on a command line is named as what it is, with what to do."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rubric_measures.cli import main
from rubric_measures.corpora.collections import example_folder

MIXED_UP = {
    "leaderboard graded.jsonl.gz --bank questions.jsonl -m bm25.run": "bm25.run is a file, and no measure; runs stand",
    "leaderboard graded.jsonl.gz --bank questions.jsonl -m RR,nDCG@10": "separate measures by blanks, not commas",
    "leaderboard graded.jsonl.gz --bank questions.jsonl -m ndcg_cut_10": "another program's name; here it is nDCG@10",
    "leaderboard graded.jsonl.gz --bank qrels.txt": "qrels.txt:1: is no test bank (its format is qrels)",
    "leaderboard bm25.run qrels.txt -m nDCG@10": "are qrels and run the wrong way round?",
    "leaderboard qrels.txt qrels.txt -m nDCG@10": "it looks like qrels: are qrels and run the wrong way round?",
    "evaluate bm25.run qrels.txt nDCG@10 --grader gpt": "it looks like a run: are qrels and run the wrong way round?",
    "leaderboard passages.jsonl": "no such ir_datasets id; did you mean passages.jsonl.gz?",
    "leaderboard qrels.txt bm25.run.gz -m nDCG@10": "(No such file or directory); did you mean bm25.run?",
    "leaderboard passages.jsonl.gz": "its passages are not graded yet; grade them first",
    "qrels passages.jsonl.gz": "its passages are not graded yet; grade them first",
    "verify all passages.jsonl.gz --bank questions.jsonl": "its passages are not graded yet; grade them first",
    "leaderboard items.csv bm25.run --bank questions.jsonl -m RubricCover": "items.csv: grades none of the items of "
    "the test bank; it grades 'tone'; name the bank of these grades, or none",
    "evaluate qrels.txt bm25.run ndcg@10": "unknown measure 'ndcg': did you mean nDCG, ",
    "correlate bm25.run bm25.run": "holds qrels or a run, and no scores of runs; score runs by qrels first",
    "leaderboard graded.jsonl.gz --bank questions.jsonl -o board.xlsx": "board.xlsx: Excel is not written here, but ",
    "pool bm25.run --collection queries.tsv -o p.jsonl": "20 of 20 pooled documents (such as d0101) are not in the "
    "collection; name that of the runs, or skip them (--collection, --missing)",
    "power board.tsv --smallest 5": "V: scores from 0 to 1 cannot differ by 5; write 0.05 for 5 % (--smallest)",
    "leaderboard qrels.txt said.jsonl -m nDCG@10": "said.jsonl:1: has 7 columns; expected 6: query_id Q0 doc_id rank "
    "score tag (it is JSON; grades there are called query_id, doc_id, grade; answers are pooled and graded first)",
    "evaluate said.jsonl bm25.run nDCG@10": "relevance (it is JSON; grades there are called query_id, doc_id, grade; ",
    "combine graded.jsonl.gz --grader kind=question --grader kind=nugget -o panel.jsonl": "panel:majority: no item has "
    "a grade of the panel (too few members have a grade); name graders of the same items (--grader)",
    "leaderboard graded.jsonl.gz --bank questions.jsonl --report page.pdf": "page.pdf: a report is written as .html",
    "grade passages.jsonl.gz --bank questions.jsonl --model lexical:2 -o g.jsonl": "'lexical:2': lexical takes no name",
    "cache size empty.sqlite": "empty.sqlite: there is no such cache",
    "compare graded.jsonl": "holds a JSON list, as graded records do; score these, and give the board",
    "convert bm25.run -o table.csv": "table.csv: runs cannot be written as csv",
    "grade queries.tsv --bank questions.jsonl --model lexical -o g.jsonl": 'queries.tsv:1: expected ["query id", '
    "[passage, …]], as `pool` writes it",
    "leaderboard graded.jsonl.gz runs --bank questions.jsonl": "runs: is a folder; name its files: runs/*.run",
    "evaluate graded.jsonl.gz bm25.run RubricCover @20": "@20: is no measure; one is written "
    "NAME(key=value)@k without blanks, as RubricCover(rel=4)@20 or RubricCover@20",
    "evaluate graded.jsonl.gz bm25.run RubricCover(4)@20": "RubricCover(4)@20: is no measure; one is written",
    "evaluate graded.jsonl.gz bm25.run nDCG@10@5": "nDCG@10@5: is no measure; one is written",
    "evaluate graded.jsonl.gz bm25.run RubricCover(rel=)@20": "RubricCover(rel=)@20: is no measure; one is written",
    "check bm25.run": "bm25.run: is checked as `check BOARD.json GRADED RUN…`, a run as `check RUN… --track TRACK` or "
    "`check GRADED RUN… --pool-depth K`",
    "grade passages.jsonl.gz --bank questions.jsonl --model lexical --explain -o g.jsonl": "explain needs a prompt "
    "that asks a model for one grade of one thing, and LexicalCoverage does not; leave explain out, or name another "
    "(--model, --prompt)",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("mixed")
    source = example_folder()
    (made / "runs").mkdir()
    for name in ("graded.jsonl.gz", "questions.jsonl", "queries.tsv", "qrels.txt", "runs/bm25.run"):
        shutil.copy(source / name, made)
    shutil.copy(source / "runs" / "bm25.run", made / "runs")
    assert (
        main(["pool", str(source / "runs" / "bm25.run"), "-c", str(source), "-o", str(made / "passages.jsonl.gz")]) == 0
    )
    assert main(["convert", str(made / "graded.jsonl.gz"), "-o", str(made / "graded.jsonl")]) == 0
    (made / "items.csv").write_text("query_id,doc_id,item_id,grade\nq01,d0101,tone,4\n", encoding="utf-8")
    scores = ("a\tq1\t0.5", "a\tq2\t1", "b\tq1\t0", "b\tq2\t0.25")
    (made / "board.tsv").write_text("\n".join(["run_id\tquery_id\tV", *scores, ""]), encoding="utf-8")
    (made / "said.jsonl").write_text('{"qid": "q01", "docid": "d0101", "grades": {"tone": 4}}\n', encoding="utf-8")
    (made / "empty.sqlite").touch()
    return made


@pytest.mark.parametrize("command", MIXED_UP)
def test_one_line_says_what_it_is(
    command: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    assert main(command.split()) == 2
    err = capsys.readouterr().err
    assert MIXED_UP[command] in err and err.count("\n") == 1


def test_what_may_be_left_out_is_not_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    for command, said in (("leaderboard", "GRADED"), ("review graded.jsonl", "--bank")):
        with pytest.raises(SystemExit):
            main(command.split())
        name = command.split()[0]
        assert capsys.readouterr().err == f"rubric_measures {name}: name {said}; --help lists the options\n"
