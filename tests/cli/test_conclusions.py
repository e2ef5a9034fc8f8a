"""Tests of what commands conclude: verdicts, designs, τ without noise, what the best of a grid is worth."""

import re

import ir_measures
import numpy as np
import pytest

import rubric_measures
from tests.cli.test_analysis import call, checked


@pytest.fixture
def boards(tmp_path):
    """Scores of four runs by two measures and 40 queries: `like` is `good`, `bad` is worse, `odd` stands near it."""
    generator = np.random.default_rng(0)
    lines = []
    for measure in ("cover", "nugget"):
        base = generator.uniform(0.3, 0.7, 40)
        rows = {
            "good": base,
            "like": base + generator.normal(0, 0.004, 40),
            "bad": base - 0.2 + generator.normal(0, 0.1, 40),
            "odd": base - 0.18 + generator.normal(0, 0.1, 40),
        }
        for run, scores in rows.items():
            lines += [f"{run} q{i} {measure} {score:.4f}" for i, score in enumerate(scores)]
            lines.append(f"{run} all {measure} {np.round(scores, 4).mean():.4f}")
    path = tmp_path / "scores.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_conclusion_comes_first_and_each_run_has_a_sentence(boards, capsys) -> None:
    status, out, _ = call(capsys, "compare", boards, "-m", "cover", "--smallest", 0.02)
    assert status == 0
    first, heads, *rows = out.splitlines()
    best = rows[0].split()[0]
    assert {best, first.split(": ")[-1]} == {"good", "like"} and "not told apart from it" in first
    assert len(re.split("  +", heads.strip())) <= 8
    said = {row.split()[0]: row for row in rows[:4]}
    assert re.search(r"they differ by at most 0\.00\d+$", rows[1])
    assert re.search(r"worse by 0\.1\d+ to 0\.2\d+$", said["bad"]) and re.search(r"worse by 0", said["odd"])
    assert "a difference below 0.02 is taken not to matter" in out
    assert re.search(r"40 queries told 67 % of 6 pairs apart; as many others would tell \d+ %", out)
    for option, words in ((0.3, "too little to matter"), (0.0001, "not known: 40 queries tell differences above 0.00")):
        assert words in call(capsys, "compare", boards, "-m", "cover", "--smallest", option)[1]
    _, out, _ = call(capsys, "compare", boards, "-m", "cover", "--smallest", 0.02, "--format", "json")
    kept = checked("compare", out)
    comparison = kept["comparisons"]["cover"]
    assert {pair["conclusion"] for pair in comparison["pairs"]} == {"better", "same", "undecided"}
    header, *rows = call(capsys, "compare", boards, "-m", "cover", "--smallest", 0.02, "--format", "tsv")[
        1
    ].splitlines()
    assert len(rows) == 6
    (undecided,) = (dict(zip(header.split("\t"), row.split("\t"), strict=True)) for row in rows if "undecided" in row)
    assert 0 < int(undecided["more queries"]) <= int(undecided["at most"])
    assert float(undecided["low:score"]) < float(undecided["score"]) < float(undecided["high:score"])
    assert "above 0, not 0 (--smallest)" in call(capsys, "compare", boards, "-m", "cover", "--smallest", 0)[2]


def test_power(boards, capsys) -> None:
    status, out, _ = call(capsys, "power", boards, "--smallest", 0.05)
    assert status == 0
    assert re.search(r"measure +deviation +one pair +all pairs\ncover +0\.\d+ +\d+", out)
    content = checked("power", call(capsys, "power", boards, "--smallest", 0.05, "--format", "json")[1])
    assert [one["measure"] for one in content["measures"]] == ["cover", "nugget"]
    assert content["measures"][0]["components"]["run_count"] == 4
    for arguments, said in (
        (("--smallest", 0), "above 0, not 0 (--smallest)"),
        (("--smallest", 0.05, "--level", 1), "(--level)"),
        (("--smallest", 0.05, "--level", 0.05), "not 0.05; for tests at 5 % write 0.95 (--level)"),
        (("-m", "covr"), f"(columns of {boards})"),
    ):
        status, out, err = call(capsys, "power", boards, *arguments)
        assert (status, out, len(err.splitlines())) == (2, "", 1) and said in err, err


def test_a_run_that_was_not_pooled_is_scored_as_by_qrels_without_what_it_alone_brought(tmp_path, capsys) -> None:
    """Qrels of a pool of the first 5, over runs that overlap; each score and rank as ir_measures has it, run by run."""
    generator = np.random.default_rng(4)
    truth = {f"q{q}": dict(zip((f"d{d}" for d in range(60)), generator.integers(0, 4, 60).tolist(), strict=True))
             for q in range(6)}  # fmt: skip
    runs = {f"r{r}": {q: sorted(docs, key=lambda one, docs=docs, r=r: -docs[one] - generator.normal(0, 1 + r / 2))[:12]
                      for q, docs in truth.items()} for r in range(6)}  # fmt: skip
    paths = [tmp_path / f"{run}.run" for run in runs]
    for path, (run, rankings) in zip(paths, runs.items(), strict=True):
        rows = (f"{q} Q0 {d} {r} {20 - r} {run}\n" for q, docs in rankings.items() for r, d in enumerate(docs, 1))
        path.write_text("".join(rows))
    brought = {
        (q, d): {run for run, of_run in runs.items() if d in of_run[q][:5]} for q, docs in truth.items() for d in docs
    }
    pool = [ir_measures.Qrel(q, d, truth[q][d]) for (q, d), of in brought.items() if of]
    qrels = tmp_path / "pool.qrels"
    qrels.write_text("".join(f"{one.query_id} 0 {one.doc_id} {one.relevance}\n" for one in pool))
    measures = [ir_measures.parse_measure(name) for name in ("nDCG@10", "AP(rel=2)")]

    def board(judged):
        scored = {run: [ir_measures.ScoredDoc(q, d, -r) for q, docs in of.items() for r, d in enumerate(docs)]
                  for run, of in runs.items()}  # fmt: skip
        return {run: ir_measures.calc_aggregate(measures, judged, docs) for run, docs in scored.items()}

    command = ("check", qrels, *paths, "-m", "nDCG@10", "AP(rel=2)", "--pool-depth", 5)
    status, out, _ = call(capsys, *command, "--format", "json")
    content = checked("reusability", out)
    assert status == 0 and content["depth"] == 5
    whole, lost = board(pool), dict.fromkeys(("nDCG@10", "AP(rel=2)"), 0)
    for row in content["runs"]:
        run, measure = row["run_id"], ir_measures.parse_measure(row["measure"])
        without = board([one for one in pool if brought[one.query_id, one.doc_id] != {run}])
        for of, score, rank in ((whole, "score", "rank"), (without, "left_out", "rank_left_out")):
            assert row[score] == pytest.approx(of[run][measure])
            assert row[rank] == 1 + sum(one[measure] > of[run][measure] + 1e-9 for one in of.values())
        own = sum(brought[q, d] == {run} for q, docs in runs[run].items() for d in docs[:5])
        assert row["alone"] == pytest.approx(own / 30) and row["left_out"] < row["score"]
        lost[row["measure"]] += row["rank_left_out"] > row["rank"]
    assert min(lost.values()) > 0
    out = call(capsys, *command)[1]
    for measure, count in lost.items():
        assert re.search(
            rf"^{re.escape(measure)}: a run .* less and drops .*; runs that lose a rank: {count} of 6$", out, re.M
        )
    found = rubric_measures.reusability(str(qrels), [str(path) for path in paths], "nDCG@10", pool_depth=5)
    assert [vars(row) for row in found.rows] == content["runs"][:6]
    (tmp_path / "other.run").write_text("other Q0 d 1 1 other\n")
    for arguments, said in (
        ((qrels, *paths, tmp_path / "other.run", "--pool-depth", 5), "run other has no query of the grades"),
        ((qrels, *paths, "--pool-depth", 0), "a pool has the first passage of each run or more, not 0 (--pool-depth)"),
        ((qrels, paths[0], "--pool-depth", 10), "no two runs have a passage in common"),
        ((qrels, *paths, "--pool-depth", 10, "-m", "NumRet"), "is a sum over queries"),
    ):
        status, out, err = call(capsys, "check", *arguments)
        assert (status, out, len(err.splitlines())) == (2, "", 1) and said in err, err


@pytest.mark.parametrize(("command", "format_then"), [("compare", "compare 3"), ("correlate", "correlate 2")])
def test_a_conclusion_of_an_older_version_is_told_so(command, format_then, boards, tmp_path, capsys) -> None:
    given = (boards, *(boards,) * (command == "correlate"))
    _, out, _ = call(capsys, command, *given, "-m", "cover", "--format", "json")
    path = tmp_path / "old.json"
    path.write_text(re.sub(rf"rubric_measures {command} \d+", f"rubric_measures {format_then}", out))
    status, out, err = call(capsys, "check", path, *given)
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert "old.json: is no comparison or correlation of this version; write one with the output form json" in err
