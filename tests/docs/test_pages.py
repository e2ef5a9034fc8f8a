"""Commands of pages of docs/, run as they stand there, on the example or on small files; numbers by hand."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from rubric_measures.cli import main
from rubric_measures.corpora.collections import example_folder
from rubric_measures.formats.banks import load_bank
from rubric_measures.formats.leaderboards import read_leaderboard
from rubric_measures.grading.generation import BankQuery, read_bank_queries
from tests.boards.test_argue import BANKS, REPORTS
from tests.docs.pages import ROOT, blocks, commands, run, text_of
from tests.formats.test_dragun import COMPARED, QUESTIONS, rubric
from tests.formats.test_ragdoll import FULL, NOT, PART, battle, graded
from tests.formats.test_ragdoll import write as write_lines
from tests.support_data import line as labelled
from tests.support_data import write


def test_analysis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("scipy")
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "resources" / "example", "example")
    shown = commands("analysis", "sh")
    names = ["leaderboard"] * 2 + ["compare"] * 2 + ["correlate"] * 2 + ["leaderboard", "correlate", "qrels"]
    names += ["agreement"] * 3 + ["qrels", "agreement", "power", "check", "check", "check", "leaderboard"]
    assert [command[0] for command in shown] == names
    # The example has nine queries, and ten tell how many are needed.
    outputs = [run([command], capsys, (command[0] == "power",))[0] for command in shown]
    grid = outputs[5]
    # Four measures at five levels for the one grade set of questions; the nuggets are not of this bank.
    assert len(grid.out.splitlines()) == 1 + 20 + 2
    assert "the best of many flatters" in grid.out
    assert "1 grade set has no grade of an item in the bank and was left out" in grid.err
    assert "kind=nugget" in grid.err
    for name in ("ranking.pdf", "scores.pdf"):
        assert Path(name).read_bytes().startswith(b"%PDF")


PAGE_COST = text_of("cost")


def _table(path: str, *rows: list[str]) -> None:
    with Path(path).open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows(rows)


def test_cost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("openai")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    lines = (example_folder() / "docs.jsonl").read_text(encoding="utf-8").splitlines()
    words = " ".join(json.loads(line)["text"] for line in lines).split() * 2
    questions = [f"{number}: what is known of {' '.join(words[number : number + 5])}?" for number in range(100)]
    answers = [[question, " ".join(words[number : number + 260])] for number, question in enumerate(questions)]
    _table("results.csv", ["question", "answer"], *answers)
    facts = [[str(n), " ".join(words[n + i : n + i + 12]), one] for n, one in enumerate(questions) for i in range(10)]
    _table("bank.csv", ["query_id", "text", "query_text"], *facts)
    [prices] = re.findall(r"^```json\n(.*?)^```", PAGE_COST, re.MULTILINE | re.DOTALL)
    Path("prices.json").write_text(prices, encoding="utf-8")
    [command] = re.findall(r"^    rubric_measures (.*)$", PAGE_COST, re.MULTILINE)
    arguments = shlex.split(command)
    bank = arguments.index("--bank")
    shown = re.findall(r"^\| .* \| ([\d,]+) \| ([\d.]+) million \| (\d+) \| ([\d.]+) \|$", PAGE_COST, re.MULTILINE)
    calls = arguments, [*arguments, "--items-per-call", "1"], arguments[:bank] + arguments[bank + 2 :]
    for row, given in zip(shown, calls, strict=True):
        assert main(given) == 0, capsys.readouterr().err
        [said] = csv.DictReader(capsys.readouterr().out.splitlines(), delimiter="\t")
        assert 10 * int(said["calls"]) == int(row[0].replace(",", ""))
        tokens = int(said["prompt_tokens"]), int(said["completion_tokens_at_most"])
        assert tokens[0] / 1e5 == pytest.approx(float(row[1]), rel=0.15, abs=0.05)
        for price, cost in zip(json.loads(prices).values(), row[2:], strict=True):
            found = (tokens[0] * price["input"] + tokens[1] * price["output"]) / 1e5
            assert found == pytest.approx(float(cost), rel=0.1)
        assert 10 * float(said["cost_of_calls"]) == pytest.approx(float(row[2]), rel=0.1)


QUERIES = "q1\thow is tea made\nq2\twhat is frost\n"
DOCUMENTS = {
    "d1": "Boil water and pour it over the leaves.",
    "d2": "Ice crystals form on cold nights.",
    "d3": "Ships sail.",
}
RUNS = {
    "bm25": "q1 Q0 d1 1 2 bm25\nq1 Q0 d3 2 1 bm25\nq2 Q0 d2 1 2 bm25\n",
    "dense": "q1 Q0 d3 1 2 dense\nq1 Q0 d1 2 1 dense\nq2 Q0 d3 1 2 dense\n",
}
RULES: list[tuple[list[str], str]] = [
    (["You judge search results", "Query: how is tea made", "Boil"], "It explains it in 2 steps.\nGrade: 3"),
    (["You judge search results", "Query: what is frost", "Ice"], "Partly.\n**Grade: 2**"),
    (["You judge search results"], "Off topic.\nGrade: 0"),
    (["NuggetizeLLM", "Context:\n[1] Boil"], '["boil water", "pour over leaves"]'),
    (["NuggetizeLLM", "Context:\n[1] Ice"], "['ice crystals']"),
    (["NuggetizeScoreLLM", "boil water"], '["vital", "okay"]'),
    (["NuggetizeScoreLLM", "ice"], '["vital"]'),
    (["NuggetizeAssignerLLM", "Passage: Boil", "boil water"], '["support", "partial_support"]'),
    (["NuggetizeAssignerLLM", "Passage: Ice", "ice crystals"], '["support"]'),
    (["NuggetizeAssignerLLM", "boil water"], '["not_support", "not_support"]'),
    (["NuggetizeAssignerLLM"], '["not_support"]'),
]


def test_nuggets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("queries.tsv").write_text(QUERIES, encoding="utf-8")
    lines = [json.dumps({"doc_id": doc_id, "text": text}) + "\n" for doc_id, text in DOCUMENTS.items()]
    Path("docs.jsonl").write_text("".join(lines), encoding="utf-8")
    Path("runs").mkdir()
    for name, text in RUNS.items():
        Path("runs", f"{name}.run").write_text(text, encoding="utf-8")
    rules = [json.dumps({"contains": contains, "reply": reply}) + "\n" for contains, reply in RULES]
    Path("model.jsonl").write_text("".join(rules), encoding="utf-8")
    block = blocks("nuggets", "sh")[0]
    commands = [shlex.split(line) for line in block.strip().split("\n")]
    assert [command[:2] for command in commands] == [
        ["rubric_measures", name] for name in ("pool", "grade", "generate", "grade", "leaderboard")
    ]
    for command in commands[:4]:
        assert main([part.replace("$MODEL", "scripted:model.jsonl") for part in command[1:]]) == 0
    capsys.readouterr()
    assert main([*commands[4][1:], "--format", "tsv", "--no-overall"]) == 0
    table = [line.split("\t") for line in capsys.readouterr().out.strip().split("\n")]
    scores = {row[0]: dict(zip(table[0][1:], row[1:], strict=True)) for row in table[1:]}
    # bm25: q1 boil water (vital) 1, pour over leaves (okay) 0.5; q2 ice crystals (vital) 1.
    #   V = (1 + 1) / 2; W = ((1 + 0.5 * 0.5) / 1.5 + 1) / 2 = 0.9167; A = (1.5 / 2 + 1) / 2 = 0.875
    # dense: q1 the same at cutoff 20; q2 nothing. V = 0.5, W = 0.8333 / 2 = 0.4167, A = 0.75 / 2 = 0.375
    # The levels are those of assigned nuggets: 2 is support, 1 partial support.
    levels = "(rel=2,partial_rel=1)@20"
    columns = ["NuggetV(rel=2,strict=True)@20", f"NuggetV{levels}", f"NuggetW{levels}", f"NuggetA{levels}"]
    found = {run: [float(row[name]) for name in columns] for run, row in scores.items()}
    assert found == {"bm25": [1.0, 1.0, 0.9167, 0.875], "dense": [0.5, 0.5, 0.4167, 0.375]}


def test_own_grades(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in zip(("grades.csv", "bank.csv"), blocks("own-grades", "csv"), strict=True):
        Path(name).write_text(text, encoding="utf-8")
    outputs = [printed.out.splitlines() for printed in run(commands("own-grades"), capsys)]
    # gpt: both boil the water (vital); prod has 1 of 2 items, candidate both.
    rows = [row.split()[:3] for row in outputs[0][1:3]]
    assert rows == [["candidate", "1.0000", "1.0000"], ["prod", "1.0000", "0.5000"]]
    # ada is the truth of gpt and llama.
    assert [row.split()[1] for row in outputs[1][1:3]] == ["gpt", "llama"]
    # The median of 2, 0 and 1 is 1.
    assert [row.split()[:2] for row in outputs[3][1:3]] == [["candidate", "1.0000"], ["prod", "0.5000"]]


def test_support(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "resources" / "example", "example")
    shutil.copytree("example/answers", "answers")
    # A person on two sentences of the example: document d0101 is there, and says the first.
    person = labelled("thorough", "q01", (["2"], ["0"]))
    for sentence, text in zip(
        person["sentences"], ("Leaves stay green forever.", "Chlorophyll is green."), strict=True
    ):
        sentence["text"], sentence["citations"][0]["reference"] = text, "d0101"
    write(Path("labels.jsonl"), person)
    write(Path("rag24.webassess.jsonl.gz"), labelled("one", "t1"), labelled("two", "t1", (["1"],)))
    write(Path("rag24.without-prediction.jsonl.gz"), labelled("one", "t2", (["2"],), style="ID") | {"topic_id": "t2"})
    answer = json.loads(Path("answers/thorough.jsonl").read_text().splitlines()[0])
    cited = {
        "topic_id": answer["metadata"]["narrative_id"], "run_id": "thorough", "sentence_index": 0, "citation_index": 0,
        "docid": answer["references"][answer["answer"][0]["citations"][0]],
    }  # fmt: skip
    task = {"statement": answer["answer"][0]["text"], "support_label": "FS", "status": "completed", "metadata": cited}
    write(Path("ragdoll.jsonl"), task)
    outputs = [printed.out for printed in run(commands("support"), capsys)]
    board = outputs[1].splitlines()
    assert board[0].split() == [
        "run",
        *("SupportPrecision", "SupportRecall", "CitationF1"),
        *("present:SupportPrecision", "present:SupportRecall", "present:CitationF1"),
        "grades",
    ]
    # What is fluent and empty has no word of what it cites; one run has an empty answer, which is there and scores 0.
    assert [row.split()[0] for row in board[1:4]] == ["thorough", "concise", "fluent-but-empty"]
    # One: t1 1.5 / 3, t2 1. Two: t1 1/2, t2 absent.
    published = {row.split("\t")[0]: row.split("\t") for row in outputs[5].splitlines()}
    columns = published["run_id"]
    place, present = columns.index("SupportPrecision"), columns.index("present:SupportPrecision")
    assert (published["one"][place], published["two"][place]) == ("0.750000", "0.250000")
    assert (published["one"][present], published["two"][present]) == ("0.750000", "0.500000")
    # The person says 2 and 0; of "leaves stay green forever" the document has two words of four, and of the other all.
    assert re.search(r"^pairs +2 ", outputs[7], re.MULTILINE)
    assert Path("sentences.jsonl").exists()


def test_test_banks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("queries.tsv").write_text("q1\thow is tea made\n", encoding="utf-8")
    Path("passages.tsv").write_text("d1#0\tTea is hot.\nd1#1\tIt is brown.\nd2#0\tInk.\n", encoding="utf-8")
    Path("real.txt").write_text("is tea hot?\n", encoding="utf-8")
    rules = [
        {"contains": ["into concise questions"], "reply": '{"questions": ["Which leaf?", "How hot?"]}'},
        {"contains": ["into concise nuggets"], "reply": '```json\n{"nuggets": ["boil water"]}\n```'},
        {"contains": ["Tea is hot.\nIt is brown."], "reply": '{"questions": ["how hot is tea", "is tea brown"]}'},
        {"contains": ["[Text]\nInk."], "reply": '["what is ink"]'},
    ]
    Path("model.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules), encoding="utf-8")
    Path("other.jsonl").write_text(json.dumps({"reply": '["why tea", "why ink"]'}) + "\n", encoding="utf-8")
    names = {"$MODEL": "scripted:model.jsonl", "$OTHER": "scripted:other.jsonl"}
    for block in blocks("test-banks", "sh"):
        for line in block.strip().split("\n"):
            for name, spec in names.items():
                line = line.replace(name, spec)
            assert main(shlex.split(line)[1:]) == 0
    assert [item.text for item in load_bank("questions.jsonl.gz")] == ["Which leaf?", "How hot?"]
    assert [(item.text, item.kind) for item in load_bank("nuggets.jsonl.gz")] == [("boil water", "nugget")]
    lines = [json.loads(line) for line in Path("synthetic.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [set(line) for line in lines] == [{"query_id", "text", "document_id", "doc_ids", "model"}] * 3
    assert len({line["query_id"] for line in lines}) == 3


def test_the_query_file_with_facets(tmp_path: Path) -> None:
    path = tmp_path / "queries.json"
    path.write_text(blocks("test-banks", "json")[0], encoding="utf-8")
    assert read_bank_queries(str(path))[1] == BankQuery("tqa2:L_0002", "Earth science", "T_0011", "what scientists do")


PAGE_TOURNAMENT = text_of("tournament")


def test_tournament(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "resources" / "example", "example")
    shown = commands("tournament", "sh")
    assert [command[0] for command in shown] == [
        "tournament",
        "pool",
        "grade",
        "leaderboard",
        "tournament",
        "correlate",
    ]
    outputs = run(shown, capsys)
    printed = re.findall(r"```text\n(.*?)```", PAGE_TOURNAMENT, re.S)
    assert outputs[0].out == printed[0]
    notes = outputs[0].err
    for said in ("such as that of concise to q06", "50 games (50 new)", "the games do not fix every", "only 9 queries"):
        assert said in notes
    nuggets, games = (read_leaderboard(name) for name in ("nuggets.tsv", "tournament.tsv"))
    rating, share = (games.column(name) for name in ("BradleyTerry", "WinRate"))
    rows = [
        f"| {run_id} | {value:.4f} | {rating[run_id]:.1f} | {share[run_id]:.1f} |"
        for run_id, value in nuggets.column("NuggetV(rel=3,partial_rel=1)@20").items()
    ]
    assert [row for row in rows if row not in PAGE_TOURNAMENT] == []
    scores = dict(line.split()[:3:2] for line in outputs[-1].out.splitlines())
    assert scores == {"measure": "kendall", "BradleyTerry": "1.0000", "WinRate": "1.0000"}


def test_trec_2026(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "resources" / "example", "example")
    shutil.copytree("example/answers", "answers")
    write(Path("labels.jsonl"), labelled("one", "t1"), labelled("two", "t1", (["1"],)))
    # Verdicts by weight 5, 2, 2, -1: x 2.5 + 2 of 9; y 5 - 1 of 9.
    verdicts = {"x": (PART, FULL, NOT, NOT), "y": (FULL, NOT, NOT, FULL)}
    write_lines(Path("graded.jsonl"), [graded(run, "q1", *said) for run, said in verdicts.items()])
    write_lines(Path("judgments.jsonl"), [battle("q1", "A"), battle("q2", "B"), battle("q3", "A")])
    write_lines(Path("run.judgments.jsonl"), REPORTS)
    write_lines(Path("banks.jsonl"), BANKS)
    Path("questions.tsv").write_text("q01\tt\tasker\t1\tWhich pigment makes leaves green?\n")
    write_lines(Path("rubrics.json"), [rubric("t1", QUESTIONS)])
    Path("question_assessments.csv").write_text(COMPARED)
    Path("truth.tsv").write_text("run_id\trequest_id\tmetric\tvalue\na\tall\tf1_macro\t.7\nb\tall\tf1_macro\t.4\n")
    Path("judged.eval.txt").write_text("a all NuggetA 0.5\nb all NuggetA 0.1\n")
    asked = commands("trec-2026")
    outputs = {" ".join(command): printed.out for command, printed in zip(asked, run(asked, capsys), strict=True)}
    shown = {command: text for command, text in outputs.items() if text}
    rows = {row["run_id"]: row for row in csv.DictReader(io.StringIO(_of(shown, "graded.jsonl")), delimiter="\t")}
    assert {run: row["WeightedCover"] for run, row in rows.items()} == {"x": "0.500000", "y": "0.444444"}
    assert len(next(csv.reader(io.StringIO(_of(shown, "SupportPrecision(strict=True)")), delimiter="\t"))) > 6
    assert "NuggetV(rel=3,strict=True)" in _of(shown, "nuggets.jsonl.gz")
    assert _of(shown, "tournament").splitlines()[1].split("\t")[0] == "y"
    # b: 2 / 3 of the one topic that it answers, 0 of the other.
    assert read_leaderboard("run.scores.tsv").column("f1_macro") == pytest.approx({"a": 0.75, "b": 1 / 3})
    assert "CitationCoverage" in _of(shown, "CitationCoverage")
    assert "1.0" in _of(shown, "truth.tsv")
    assert "asker" in _of(shown, "same.jsonl.gz")


def _of(shown: dict[str, str], part: str) -> str:
    """What the first command with this part printed."""
    return next(text for command, text in shown.items() if part in command)


PAGE_VERIFICATION = text_of("verification")


def test_verification(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "resources" / "example", "example")
    shown = commands("verification", "sh")
    assert [command[0] for command in shown] == ["verify"] * 6
    outputs = [printed.out for printed in run(shown, capsys)]
    _, grading, grid, uncovered, bad, _ = outputs
    assert grading.startswith("q01: Which pigment makes leaves green in summer?")
    assert grid.startswith("### q01: why do leaves change colour in autumn")
    assert "passages judged 2 or better, no item graded 4 or better" in uncovered
    assert bad.startswith("report\ttitle\tspurious")
    rows = [json.loads(line) for line in Path("items.jsonl").read_text(encoding="utf-8").splitlines()]
    assert sum(row["report"] == "items" for row in rows) == 90
    assert "</html>" in Path("report.html").read_text(encoding="utf-8")


def test_graders_are_calibrated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    example = ROOT / "resources" / "example"
    shutil.copy(example / "nuggets.jsonl", "nuggets.jsonl")
    answers = sorted(map(str, (example / "answers").glob("*.jsonl")))
    asked = ["--bank", "nuggets.jsonl", "--model", "lexical", "-o", "by-words.jsonl"]
    assert main(["pool", *answers, "--whole", "--collection", str(example), "-o", "answers.jsonl"]) == 0
    assert main(["grade", "answers.jsonl", *asked]) == 0
    assert main(["qrels", "by-words.jsonl", "--per", "item", "-o", "words.qrels"]) == 0
    rows = [line.split() for line in Path("words.qrels").read_text(encoding="utf-8").splitlines()]
    scale = next(row[1] for row in rows if row[1].startswith("scale="))
    graded = [row for row in rows if row[2] != "*"]
    # Each grades what words say, but off by so much on some: an assessor by -1, a newer model by +1.
    for name, every, off, grader in (("human", 2, -1, "human:ada"), ("old", 1, 0, "gpt-4o"), ("new", 1, 1, "gpt-5")):
        moved = [[*row[:3], str(min(5, max(0, int(row[3]) + off * (place % 3 > 0)))), grader] for place, row in
                 enumerate(graded) if place % every == 0]  # fmt: skip
        table = [["query_id", "item_id", "doc_id", "grade", "grader"], *moved]
        Path(f"{name}.csv").write_text("".join(",".join(row) + "\n" for row in table), encoding="utf-8")
        texts = ["--collection", "answers.jsonl", "--bank", "nuggets.jsonl", "--grader", scale]
        assert main(["convert", f"{name}.csv", "--to", "records", *texts, "-o", f"{name}.jsonl"]) == 0
    assert main(["convert", "by-words.jsonl", "human.jsonl", "--to", "records", "-o", "reviewed.jsonl.gz"]) == 0
    assert main(["convert", "old.jsonl", "-o", "graded.jsonl.gz"]) == 0
    assert main(["convert", "answers.jsonl", "new.jsonl", "--to", "records", "-o", "regraded.jsonl.gz"]) == 0
    capsys.readouterr()
    printed = []
    for line in re.findall(r"^    rubric_measures (calibrate .*)$", PAGE_VERIFICATION, re.MULTILINE):
        assert main(shlex.split(line)) == 0, capsys.readouterr().err
        printed.append(capsys.readouterr().out)
    assessors, older = printed
    for text, truth in ((assessors, "assessors"), (older, "gpt-4o")):
        assert f"bias: the mean of the grader's grade − that of {truth}" in text
        [row] = [line.split() for line in text.splitlines() if line.split()[:1] == ["all"]]
        assert row[-1] == "higher" and float(row[4]) > 0.3
        # What a grader that is too kind finds, the truth finds less of.
        [run] = [line.split() for line in text.splitlines() if line.startswith("thorough")]
        assert float(run[3]) < float(run[2]) < float(run[1])


PAGE_RAG = text_of("tutorial-rag")


def test_tutorial_rag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    printed, said = [], []
    for line in re.findall(r"^(?:rubric_measures|cp) .*$", PAGE_RAG, re.MULTILINE):
        program, *arguments = shlex.split(line)
        if program == "cp":
            shutil.copytree(*arguments[1:]) if arguments[0] == "-r" else shutil.copy(*arguments)
            continue
        assert main(arguments) == 0, (line, capsys.readouterr().err)
        captured = capsys.readouterr()
        printed.append(captured.out)
        said.append(captured.err)
    # What the page shows, and says in words.
    [shown] = re.findall(r"^```text\n(.*?)^```", PAGE_RAG, re.MULTILINE | re.DOTALL)
    assert printed[1].startswith(shown)
    assert "44 items" in said[1]
    assert "122 calls, 0 replies" in said[1]
    assert "no calls, 122 replies" in said[2]
    assert "Leaderboard" in Path("report/index.html").read_text(encoding="utf-8")
