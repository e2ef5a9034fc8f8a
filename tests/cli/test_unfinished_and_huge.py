"""Files that are cut in a line, name a key twice, or hold names that act."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rubric_measures.base.errors import FormatError
from rubric_measures.cli import main
from rubric_measures.corpora.collections import example_folder
from rubric_measures.formats import FORMATS
from rubric_measures.formats.leaderboards import read_leaderboard
from rubric_measures.formats.trec import read_run
from rubric_measures.models.replies import ReplyCache

RUN = "".join(f"q{query} Q0 d{doc} {doc} {1 - doc / 10} r\n" for query in range(3) for doc in range(5))
QRELS = "".join(f"q{query} 0 d{doc} {doc % 2}\n" for query in range(3) for doc in range(5))
QUESTION = "the last line has no line end; is the file complete?"
LONG = "".join(f"r{run} q{query} m 0.{run}{query}\n" for run in range(4) for query in range(5))
WIDE = "run_id\tm\na\t0.5\nb\t0.25\nc\t0.125\n"
BOARD = "a all m 0.5\nb all m 0.25\nc all m 0.125\n"


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"q": QRELS, "cut": RUN}, "evaluate q cut nDCG@10"),
        ({"cut": QRELS, "r": RUN}, "evaluate cut r nDCG@10"),
        ({"q": QRELS, "cut": RUN}, "leaderboard q cut"),
        ({"cut": QRELS, "r": RUN}, "leaderboard cut r"),
        ({"cut": "q1\thello\nq2\tthere\n"}, "convert cut -o out.json"),
        ({"cut": "qid,query\nq1,hello\nq2,there\n"}, "convert cut -o out.json"),
        ({"cut": RUN}, "convert cut -o out.run"),
        ({"cut": WIDE, "b": BOARD}, "correlate cut b"),
        ({"cut": LONG}, "compare cut"),
        ({"cut": QRELS, "other": QRELS}, "agreement cut other"),
    ],
)
def test_a_last_line_without_its_end_is_said_once(
    files: dict[str, str],
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in files.items():
        Path(name).write_text(content)
    main(command.split())
    assert QUESTION not in capsys.readouterr().err
    Path("cut").write_text(files["cut"][:-1])
    main(command.split())
    assert capsys.readouterr().err.count(f"cut: {QUESTION}") == 1


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("bank", '{"query_id": "q", "items": [{"question_text": "a", "question_text": "b"}]}\n', 1),
        ("nuggets", '{"qid": "q", "nuggets": [{"text": "a", "importance": "okay", "importance": "vital"}]}\n', 1),
        ("rubrics", '\n{"qid": "q", "rubrics": [{"criterion": "a", "weight": 1, "weight": 2}]}\n', 2),
        ("topics", '{"qid": "1", "title": "t", "title": "u"}\n', 1),
        ("leaderboard", '{"a": 0.5,\n"b": 0.25,\n"c": {"d": [1, {"a": 0}]},\n"a": 0.75}\n', 1),
        ("queries", '{"a": "x",\n"b": "a",\n"a": "z"}\n', 1),
    ],
)
def test_a_key_that_comes_twice_is_refused_with_its_line(name: str, content: str, line: int, tmp_path: Path) -> None:
    path = tmp_path / "FILE.json"
    path.write_text(content)
    with pytest.raises(FormatError, match="comes twice in one object") as found:
        FORMATS[name].read(path)  # type: ignore[misc]
    assert found.value.line == line


NAMES = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "plain", "-0.5"]


def test_our_reader_gives_back_names_that_are_no_formulas(tmp_path: Path) -> None:
    written = tmp_path / "board.tsv"
    cells = [f"'{name}" for name in NAMES[:4]] + NAMES[4:]
    written.write_text("run_id\tV\n" + "".join(f"{cell}\t0.5\n" for cell in cells))
    assert list(read_leaderboard(written).run_ids) == NAMES


def test_marks_that_turn_the_direction_are_shown_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "board.json"
    path.write_text(json.dumps({"a\x1b[2Jb": 0.1, "c\u202ed": 0.2, "e\u200ef\u061c": 0.3, "g\th\ni": 0.4}))
    for form in ("text", "tsv", "markdown", "latex"):
        assert main(["correlate", str(path), str(path), "--format", form]) in (0, 2)
        assert not set(capsys.readouterr().out) & set("\x1b\u202e\u200e\u061c")
    qrels = tmp_path / "q"
    qrels.write_text("q\u200e 0 d 1\n")
    run = tmp_path / "r"
    run.write_text("q\u200e Q0 d 1 1 r\n")
    assert main(["evaluate", str(qrels), str(run), "nDCG@10", "-q"]) == 0
    assert capsys.readouterr().out.splitlines()[0].startswith("q\\u200e\t")


def test_runs_in_a_folder_have_safe_names(tmp_path: Path) -> None:
    names = ["../../etc/passwd", ".hidden", "-rf", "a:b*c?", "ordinär", "bm25", "C:\\con", "a%2Fb"]
    graded = tmp_path / "runs.txt"
    places = [{"method": name, "paragraphId": "d", "queryId": "q", "rank": 1, "score": 1.0} for name in names]
    graded.write_text(
        json.dumps(["q", [{"paragraph_id": "d", "text": "t", "paragraph_data": {"rankings": places}}]]) + "\n"
    )
    folder = tmp_path / "out"
    folder.mkdir()
    assert main(["convert", str(graded), "--to", "run", "-o", str(folder)]) == 0
    written = sorted(path.name for path in folder.iterdir())
    assert len(written) == len(names)
    assert {"%2E.%2F..%2Fetc%2Fpasswd.run", "%2Ehidden.run", "%2Drf.run", "a%3Ab%2Ac%3F.run", "bm25.run"} <= set(
        written
    )
    assert {read_run(path).run_id for path in folder.iterdir()} == set(names)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "runs.txt"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on files")
@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("correlate a.tsv b.tsv --plot out.pdf", "out.pdf: cannot be written (File too large)"),
        ("check kept.json qrels.txt bm25.run --pack out", "out: cannot be written (File too large) (--pack)"),
        ("example --copy out", "out: cannot be written ([Errno 27] File too large: "),
        (
            "cache merge out.sqlite replies.sqlite",
            "out.sqlite: the reply cache cannot be used (disk I/O error); mend that",
        ),
    ],
)
def test_a_full_disk_is_one_line_that_names_what_is_written(command: str, said: str, tmp_path: Path) -> None:
    if "--plot" in command:
        pytest.importorskip("matplotlib")
    for name, score in (("a.tsv", "0.3"), ("b.tsv", "0.1")):
        (tmp_path / name).write_text(f"{WIDE}d\t{score}\n")
    for source in (example_folder() / "qrels.txt", example_folder() / "runs" / "bm25.run"):
        shutil.copy(source, tmp_path)
    names = [str(tmp_path / name) for name in ("qrels.txt", "bm25.run", "kept.json")]
    assert main(["leaderboard", *names[:2], "-m", "AP", "-o", names[2]]) == 0
    ReplyCache(tmp_path / "replies.sqlite").__exit__()

    def full() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))

    done = subprocess.run(
        [sys.executable, "-m", "rubric_measures", *command.split()],
        cwd=tmp_path,
        env={**os.environ, "MPLCONFIGDIR": str(tmp_path / "mpl"), "PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=full,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[-1].startswith(f"rubric_measures: {said}"), done.stderr
    assert "Traceback" not in done.stderr
    assert command.startswith("cache") or not list(tmp_path.glob("*out*"))
