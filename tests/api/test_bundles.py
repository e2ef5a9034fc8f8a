"""Tests of bundles: made, checked elsewhere, damaged, compared with a later one."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from pathlib import Path

import pytest

from rubric_measures.cli import main
from tests.api.test_checking import folder  # noqa: F401 - a fixture

Captured = pytest.CaptureFixture[str]
MEASURES = ("-m", "RubricCover(rel=4)@20", "nDCG@10", "--format", "json", "--output")


def call(capsys: Captured, *arguments: object) -> tuple[int, str, str]:
    status = main([str(one) for one in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def inputs(at: Path) -> tuple[object, ...]:
    """What a board is scored from, in a folder."""
    return (at / "graded.jsonl", at / "bm25.run", at / "fusion.run", "--bank", at / "bank.jsonl")


def pack(capsys: Captured, at: Path, name: str, *more: object, board: str = "board.json") -> tuple[int, str, str]:
    """Checks a board of a folder, and packs it there."""
    return call(capsys, "check", at / board, *inputs(at), "--pack", at / name, *more)


@pytest.fixture
def made(folder: Path, capsys: Captured) -> Path:  # noqa: F811
    """A bundle beside the files that it was made from."""
    assert call(capsys, "leaderboard", *inputs(folder), *MEASURES, folder / "board.json")[0] == 0
    (folder / "graded.jsonl.manifest.json").write_text('{"prompts": {}}\n')
    status, out, err = pack(capsys, folder, "made")
    assert status == 0 and err.endswith(f"{folder / 'made'}: packed, 7 files\n"), err
    # What it says is what anybody finds who checks the folder.
    assert call(capsys, "check", folder / "made")[1] == out
    return folder / "made"


def test_a_bundle_is_checked_anywhere(made: Path, tmp_path: Path, capsys: Captured) -> None:
    elsewhere = tmp_path / "else" / "where"
    shutil.copytree(made, elsewhere)
    for name in ("graded.jsonl", "bank.jsonl", "bm25.run"):
        (made.parent / name).unlink()
    status, out, _ = call(capsys, "check", elsewhere)
    same, proved, claimed, digest = out.splitlines()
    assert (status, same.partition(":")[0], proved.partition(":")[0]) == (0, "the same", "proved")
    assert claimed == "claimed: also/graded.jsonl.manifest.json, settings/version, settings/grades, settings/graders"
    # A paper can cite the bundle, however its files are packed.
    records = (elsewhere / "graded.jsonl").read_bytes()
    (elsewhere / "graded.jsonl").write_bytes(gzip.compress(records))
    assert call(capsys, "check", elsewhere)[1].splitlines()[-1] == digest
    (elsewhere / "graded.jsonl").rename(elsewhere / "graded.jsonl.gz")
    (elsewhere / "bank.jsonl.gz").write_bytes(gzip.compress((elsewhere / "bank.jsonl").read_bytes()))
    assert call(capsys, "check", elsewhere)[1].startswith("bank.jsonl.gz: is not named by bundle.json\n")
    (elsewhere / "bank.jsonl").unlink()
    status, out, _ = call(capsys, "check", elsewhere, "--format", "json")
    found = json.loads(out)
    assert (status, f"bundle sha256:{found['digest']}") == (0, digest)
    assert found["values"]["also/graded.jsonl.manifest.json"] == "claimed" and found["values"]["bank.jsonl"] == "proved"
    # Nothing else lies in the folder.
    (elsewhere / "more.txt").write_text("more")
    assert call(capsys, "check", elsewhere)[1].startswith("more.txt: is not named by bundle.json\n")
    (elsewhere / "more.txt").unlink()
    (elsewhere / "link").symlink_to(tmp_path)
    status, out, err = call(capsys, "check", elsewhere)
    assert (status, out) == (2, "") and "stands beside link, which is no file; a bundle holds its files" in err
    (elsewhere / "link").unlink()
    os.mkfifo(elsewhere / "runs" / "pipe")
    status, out, err = call(capsys, "check", elsewhere)
    assert (status, out) == (2, "") and "stands beside runs/pipe, which is no file; a bundle holds its files" in err
    manifest = json.loads((elsewhere / "bundle.json").read_text())
    assert (manifest["graded"], manifest["bank"]) == ("graded.jsonl", "bank.jsonl")
    assert manifest["runs"] == ["runs/bm25.run", "runs/fusion.run"] and manifest["also"] == [
        "also/graded.jsonl.manifest.json"
    ]


def test_what_a_bundle_says_is_in_its_digest(made: Path, capsys: Captured) -> None:
    """Which file is a run, and which only belongs to it."""
    digest = call(capsys, "check", made)[1].splitlines()[-1]
    path = made / "bundle.json"
    honest = json.loads(path.read_text())
    for changed in ({"also": [*honest["also"], "bank.jsonl"]}, {"certificate": True}):
        path.write_text(json.dumps({**honest, **changed}))
        assert digest not in call(capsys, "check", made)[1]
    path.write_text(json.dumps(dict(reversed(honest.items()))))
    assert call(capsys, "check", made)[1].splitlines()[-1] == digest


def test_each_thing_takes_its_own_options(made: Path, capsys: Captured) -> None:
    source, board = made.parent, made.parent / "board.json"
    compared = source / "compared.json"
    call(capsys, "compare", board, "-o", compared)
    report = source / "run.jsonl"
    report.write_text('{"metadata": {"run_id": "a", "topic_id": "q1"}, "responses": []}\n')
    usages = {
        "a board": ((board, *inputs(source)), "check BOARD.json GRADED RUN…"),
        "a bundle": ((made,), "check FOLDER"),
        "a conclusion": ((compared, board), "check COMPARED.json BOARD…"),
        "a run of a track": ((report, "--track", "ragtime"), "check RUN… --track TRACK"),
        "a pool": ((*inputs(source), "--pool-depth", 5), "check GRADED RUN… --pool-depth K"),
    }
    assert [call(capsys, "check", *files)[0] for files, _ in usages.values()] == [0, 0, 0, 1, 0]
    mixes = {
        "a board": (("--topics", "x"), ("-m", "AP")),
        "a bundle": (("--pack", "x"), ("--bank", "x"), ("--on-failed", "zero"), (made, made)),
        "a conclusion": (("--qrels", "x"), ("--certificate",), ("--grader", "x")),
        "a run of a track": (("--pool-depth", 5), ("--bank", "x"), ("--certificate",)),
        "a pool": (("--qrels", "x"), ("--topics", "x")),
    }
    for what, wrong in mixes.items():
        files, usage = usages[what]
        for more in wrong:
            status, out, err = call(capsys, "check", *files, *more)
            assert (status, out, len(err.splitlines())) == (2, "", 1), err
            assert f"{files[0]}: is checked as `{usage}`" in err
            named = {"-m": "--measures"}.get(str(more[0]), str(more[0]))
            assert named in err.partition("; leave the rest out (")[2] or more == (made, made)
    for file in (board, source / "graded.jsonl", source / "bank.jsonl"):
        assert "is read here, and would be replaced" in call(capsys, "check", board, *inputs(source), "-o", file)[2]
    table = source / "table.tsv"
    call(capsys, "compare", board, "--format", "tsv", "-o", table)
    assert call(capsys, "check", table, board)[2].endswith(
        ": is no leaderboard as JSON; write one with the output form json\n"
    )
    for file, what in ((board, "a board"), (compared, "a conclusion")):
        assert f"is checked as `{usages[what][1]}`" in call(capsys, "check", file)[2]
    assert "nothing is packed; name the folder to make (--pack)" in call(
        capsys, "check", board, *inputs(source), "--certificate"
    )[2]  # fmt: skip


def test_what_made_the_grades_goes_in(made: Path, capsys: Captured) -> None:
    from tests.cli.test_analysis import SCHEMAS

    at = made.parent
    (at / "graded.jsonl.manifest.json").write_text('{"prompts": {}}\n')
    assert pack(capsys, at, "second")[0] == 0
    manifest = json.loads((at / "second" / "bundle.json").read_text())
    assert manifest["also"][0] == "also/graded.jsonl.manifest.json"
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(manifest, json.loads(SCHEMAS["bundle"]))


def test_what_differs_is_said(made: Path, capsys: Captured) -> None:
    # A number that somebody improved: the file is another one, and the number is not what the grades give.
    board = json.loads((made / "board.json").read_text())
    row = next(row for row in board["runs"] if row["run_id"] == "bm25")
    name = board["measures"][1]
    row["measures"][name]["mean"] = 0.999
    (made / "board.json").write_text(json.dumps(board))
    status, out, _ = call(capsys, "check", made)
    assert status == 1
    assert out.splitlines()[0] == "board.json: other content than when the bundle was made"
    assert out.splitlines()[1].startswith(f"runs, bm25, measures, {name}, mean: 0.999 in the file, 0.")
    # `check` of the board itself says so, too.
    assert "mean: 0.999 in the file" in call(capsys, "check", made / "board.json", *inputs(made.parent))[1]
    (made / "runs/bm25.run").unlink()
    out = call(capsys, "check", made)[1]
    # Without it nothing is computed again.
    assert "runs/bm25.run: is missing" in out and "\nnot looked at: format, measures, runs, " in out


def test_what_makes_no_bundle(made: Path, capsys: Captured) -> None:
    source = made.parent
    status, out, err = pack(capsys, source, "made")
    assert (status, out, len(err.splitlines())) == (2, "", 1) and "exists; name a new folder (--pack)" in err
    assert "bank.jsonl" in pack(capsys, source, "no", board="bank.jsonl")[2]
    # A board that is not what the files give is no bundle, and it is said what differs.
    given = (source / "graded.jsonl", source / "bm25.run", "--bank", source / "bank.jsonl", "--pack", source / "no")
    status, out, err = call(capsys, "check", source / "board.json", *given)
    digest = json.loads((source / "board.json").read_text())["inputs"]["runs"]["fusion"]
    assert (status, out.splitlines()[0]) == (1, f"inputs, runs, fusion: {digest} in the file, nothing now")
    assert err.endswith(f"warning: {source / 'no'}: was not made, because of what differs\n")
    assert not [path for path in source.iterdir() if path.name.startswith((".no-", "no-"))]
    assert "bundle.json" in call(capsys, "check", source)[2]
    manifest = json.loads((made / "bundle.json").read_text())
    for field, value, said in (
        ("load", {"bank": "b"}, "unknown field"),
        ("load", {"grader": 5}, "grader"),
        ("runs", ["../bm25.run"], "outside of the folder"),
        ("bank", "", "outside of the folder: ''"),
    ):
        (made / "bundle.json").write_text(json.dumps({**manifest, field: value}))
        status, _, err = call(capsys, "check", made)
        assert (status, len(err.splitlines())) == (2, 1) and said in err, err


def certificate(source: Path, capsys: Captured, *more: object) -> tuple[int, str, str]:
    """Makes a bundle of a board of cover alone, with the grades that prove it."""
    board = source / "cover.json"
    arguments = ("-m", "RubricCover(rel=4)@20", "RubricCover(rel=3)@5", "--format", "json", "-o", board)
    assert call(capsys, "leaderboard", *inputs(source), *arguments, *more)[0] < 2
    return pack(capsys, source, "few", "--certificate", board="cover.json")


def test_a_certificate_alone_proves_the_board(made: Path, capsys: Captured) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    from tests.cli.test_analysis import SCHEMAS

    source = made.parent
    status, _, err = certificate(source, capsys)
    kept, _, given, *_ = err.splitlines()[-1].split(": ")[1].split()
    assert status == 0 and err.endswith("grades prove the scores; the others are left out\n")
    assert f"{source / 'few' / 'graded.jsonl'}: grades were asked only as far as they can change" in err
    assert ".few-" not in err
    few, cover = source / "few", "RubricCover(rel=4)@20, RubricCover(rel=3)@5"
    records = [json.loads(line) for line in (few / "graded.jsonl").read_text().splitlines()]
    sets = [entry for _, passages in records for passage in passages for entry in passage["exam_grades"]]
    assert sum(len(entry["self_ratings"]) for entry in sets) == int(kept) < int(given)
    # The board is the published one, with its signature, and says that all grades were there.
    board = json.loads((source / "cover.json").read_text())
    assert (few / "board.json").read_bytes() == (source / "cover.json").read_bytes() and "exact" not in board
    shutil.copytree(few, source / "elsewhere")
    status, out, _ = call(capsys, "check", source / "elsewhere")
    assert (status, out.splitlines()[:2]) == (
        0, [f"the same: signature {board['signature_hash']}", f"exact, whatever the grades that are not here: {cover}"]
    )  # fmt: skip
    assert "coverage and failures, best, settings/version" in out
    found = json.loads(call(capsys, "check", few, "--format", "json")[1])
    jsonschema.validate(found, json.loads(SCHEMAS["check"]))
    jsonschema.validate(json.loads((few / "bundle.json").read_text()), json.loads(SCHEMAS["bundle"]))
    place = "runs/bm25/measures/RubricCover(rel=4)@20/"
    assert ", ".join(found["exact"]) == cover
    assert [found["values"][place + name] for name in ("mean", "coverage")] == ["proved", "claimed"]
    # Scores that nobody proves are said: a grade was taken out, or another number stands there.
    for entry in sets:
        gone = {one["question_id"] for one in entry["self_ratings"] if one["self_rating"] >= 4}
        entry["self_ratings"] = [one for one in entry["self_ratings"] if one["question_id"] not in gone]
        entry["answers"] = [one for one in entry["answers"] if one[0] not in gone]
        entry["correctAnswered"] = [one for one in entry["correctAnswered"] if one not in gone]
    text = "".join(json.dumps(line) + "\n" for line in records)
    (few / "graded.jsonl").write_text(text)
    status, out, _ = call(capsys, "check", few)
    assert status == 1 and "not proved by a part of the grades, as needed ones failed or were never made" in out
    # Without the mark, what is not there is not known to be 0.
    (few / "graded.jsonl").write_text(text.replace("asked_for", "asked"))
    assert "RubricCover(rel=4)@20, RubricCover(rel=3)@5: not proved" in call(capsys, "check", few)[1]


def test_what_has_no_certificate(made: Path, capsys: Captured) -> None:
    source = made.parent
    status, _, err = pack(capsys, source, "no", "--certificate")
    assert status == 2
    assert "RubricQrels(measure='nDCG@10'): any grade may change it, so none can be left out" in err
    # A failed grade of a passage that a run misses an item with leaves it open.
    lines = [json.loads(line) for line in (source / "graded.jsonl").read_text().splitlines()]
    for passage in lines[0][1]:
        for entry in passage["exam_grades"]:
            first = next(one for one in entry["self_ratings"] if one["self_rating"] < 3)
            entry["item_status"] = {first["question_id"]: "failed"}
    (source / "graded.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    status, out, err = certificate(source, capsys)
    assert status == 1 and "not proved by a part of the grades, as needed ones failed" in out
    assert "few: was not made" in err
    assert not (source / "few").exists()
    # Counted as not covering, it leaves nothing open.
    assert certificate(source, capsys, "--on-failed", "zero")[0] == 0
    qrels = source / "item.qrels"
    qrels.write_text("".join(f"{query} {item} {doc} 4\n" for query, doc, item in ROWS))
    given = (qrels, source / "bm25.run")
    call(capsys, "leaderboard", *given, "-m", "RubricCover(rel=4)@20", "--format", "json", "-o", source / "item.json")
    status, _, err = call(capsys, "check", source / "item.json", *given, "--pack", source / "no", "--certificate")
    assert status == 2 and "go without some of the grades (--certificate)" in err


ROWS = [("q01", "d1", "q01/one"), ("q01", "d2", "q01/two")]
