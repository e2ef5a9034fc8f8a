"""Files of documents as others write them: BEIR, Anserini, PyTerrier, MS MARCO; several files; bad ones."""

from __future__ import annotations

import csv
import gzip
import json
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies

from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.cli import main
from rubric_measures.corpora.collections import load_collection
from rubric_measures.formats.queries import read_documents
from rubric_measures.formats.specs import ident

SKY, GRASS = "The sky is blue.", "Grass is green."


def lines(*rows: dict[str, object]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


FILES = {
    "beir.jsonl": lines({"_id": "d1", "title": "Sky", "text": SKY}, {"_id": "d2", "title": "", "text": GRASS}),
    "anserini.jsonl": lines({"id": "d1", "contents": SKY}, {"id": "d2", "contents": GRASS}),
    "answers.jsonl": lines({"id": "d1", "answer_id": 77, "text": SKY}, {"answer_id": "d2", "text": GRASS}),
    "pyterrier.jsonl": lines({"docno": "d1", "text": SKY}, {"docno": "d2", "text": GRASS}),
    "segments.jsonl": lines({"docid": "d1", "title": "Sky", "segment": SKY}, {"docid": "d2", "segment": GRASS}),
    "passages.tsv": f"d1\t{SKY}\nd2\t{GRASS}\n",
    "docs.tsv": f"d1\thttp://x\tSky\t{SKY}\nd2\thttp://y\t\t{GRASS}\n",
    "named.tsv": f"docno\ttext\ttitle\nd1\t{SKY}\tSky\nd2\t{GRASS}\t\n",
    # As pandas and Hugging Face's viewer write them.
    "pandas.csv": f'doc_id,title,text\nd1,Sky,"{SKY}"\nd2,,{GRASS}\n',
    "list.json": json.dumps([{"id": "d1", "title": "Sky", "text": SKY}, {"id": "d2", "text": GRASS}], indent=1),
    # MS MARCO v2: a passage has the id of its document as well; documents have theirs last.
    "v2.jsonl": lines({"pid": "d1", "passage": SKY, "docid": "D"}, {"pid": "d2", "passage": GRASS, "docid": "D"}),
    "v2-docs.jsonl": lines(
        {"url": "http://x", "title": "Sky", "headings": "", "body": SKY, "docid": "d1"},
        {"url": "http://y", "title": "", "headings": "", "body": GRASS, "docid": "d2"},
    ),
}
TITLED = {
    "beir.jsonl", "segments.jsonl", "docs.tsv", "named.tsv", "pandas.csv", "list.json", "v2-docs.jsonl",
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("is_packed", [False, True])
def test_each_form_is_read(name: str, is_packed: bool, tmp_path: Path) -> None:
    path = tmp_path / (name + ".gz" * is_packed)
    path.write_bytes(gzip.compress(FILES[name].encode()) if is_packed else FILES[name].encode())
    texts = {doc.doc_id: doc.default_text() for doc in load_collection(path).docs_iter()}
    assert texts == {"d1": f"Sky\n{SKY}" if name in TITLED else SKY, "d2": GRASS}
    # Some alone, and then others.
    store = load_collection(path).docs_store()
    assert {key: doc.default_text() for key, doc in store.get_many(["d1", "d9"]).items()} == {"d1": texts["d1"]}
    assert store.get("d2").default_text() == GRASS


def test_parquet(tmp_path: Path) -> None:
    # Newer versions of pyarrow refuse the oldest numpy that we take.
    pyarrow = pytest.importorskip("pyarrow", exc_type=ImportError)
    parquet = pytest.importorskip("pyarrow.parquet", exc_type=ImportError)
    parquet.write_table(pyarrow.table({"_id": ["d1", "d2"], "text": [SKY, GRASS]}), tmp_path / "corpus.parquet")
    assert {doc.doc_id: doc.text for doc in load_collection(tmp_path / "corpus.parquet").docs_iter()} == {
        "d1": SKY,
        "d2": GRASS,
    }
    assert load_collection(tmp_path / "corpus.parquet").docs_store().get("d2").text == GRASS


TEXT = strategies.sampled_from(["x", 'say "a",', "a, b", "é"])
IDS = strategies.one_of(
    strategies.sampled_from(
        ["a", "b,c", "d e", "caf\u00e9", "\u4e2d", "f/g", "h\\i", "1", "2.0", " a", "b ", "\u00a0c"]
    ),
    strategies.sampled_from([1, 2, 10, 1.0, 2.5, -3]),
)
SHAPES: dict[str, Callable[[list[tuple[Any, str]]], str]] = {
    "as Python writes it": lambda pairs: lines(*({"id": one, "text": said} for one, said in pairs)),
    "as UTF-8": lambda pairs: "".join(
        json.dumps({"id": one, "text": said}, ensure_ascii=False, separators=(",", ":")) + "\n" for one, said in pairs
    ),
    "with upper-case escapes": lambda pairs: "".join(
        f'{{"id":{re.sub("u00e9", "u00E9", json.dumps(one))},"text":{json.dumps(said)}}}\n' for one, said in pairs
    ),
    "with blanks": lambda pairs: "".join(
        f' {{ "id" : {json.dumps(one)} , "text" : {json.dumps(said)} }}\n' for one, said in pairs
    ),
    "a tab first": lambda pairs: "".join("\t" + lines({"id": one, "text": said}) for one, said in pairs),
    "the id last": lambda pairs: lines(*({"text": said, "id": one} for one, said in pairs)),
    "a list": lambda pairs: json.dumps([{"id": one, "text": said} for one, said in pairs]),
    "a list with tabs": lambda pairs: json.dumps([{"id": one, "text": said} for one, said in pairs], indent="\t"),
    "lists of a column": lambda pairs: json.dumps(
        dict(zip(("id", "text"), map(list, zip(*pairs, strict=True)), strict=True))
    ),
    "as pandas.to_json": lambda pairs: json.dumps(
        {name: {str(at): pair[place] for at, pair in enumerate(pairs)} for place, name in enumerate(("id", "text"))}
    ),
    "objects on one line": lambda pairs: " ".join(json.dumps({"id": one, "text": said}) for one, said in pairs),
    "TSV": lambda pairs: "".join(f"{one}\t{said}\n" for one, said in pairs),
    "TSV, the id last": lambda pairs: "text\tid\n" + "".join(f"{said}\t{one}\n" for one, said in pairs),
    "CSV": lambda pairs: "id,text\n" + "".join(f'"{one}",{len(said)}\n' for one, said in pairs),
}


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pairs=strategies.lists(strategies.tuples(IDS, TEXT), min_size=1, unique_by=lambda pair: ident(pair[0])))
@example(pairs=[(1, "x"), ("2.0", "x"), ("b ", "x"), ("caf\u00e9", "x")])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_wanted_documents_are_those_of_the_whole_reading(
    shape: str, pairs: list[tuple[Any, str]], tmp_path: Path
) -> None:
    path = tmp_path / "docs"
    path.write_text(SHAPES[shape](pairs), encoding="utf-8", newline="")
    known = read_documents([path])
    for wanted in ({next(iter(known))}, set(list(known)[::2]), {*known, "none"}, {"none"}):
        assert read_documents([path], wanted) == {one: known[one] for one in known if one in wanted}


@pytest.mark.parametrize("ending", ["jsonl", "tsv", "csv", "parquet"])
def test_of_a_corpus_the_wanted_texts_alone_are_kept(tmp_path: Path, ending: str) -> None:
    path, texts = tmp_path / f"corpus.{ending}", {f"d{number}": f"{number} " + "word " * 400 for number in range(5000)}
    if ending == "parquet":
        pyarrow = pytest.importorskip("pyarrow", exc_type=ImportError)
        parquet = pytest.importorskip("pyarrow.parquet", exc_type=ImportError)
        parquet.write_table(pyarrow.table({"_id": [*texts], "text": [*texts.values()]}), path)
    elif ending == "jsonl":
        path.write_text(lines(*({"_id": one, "text": text} for one, text in texts.items())))
    else:
        blank = {"csv": ",", "tsv": "\t"}[ending]
        path.write_text("".join(f"{one}{blank}{text}\n" for one, text in [("_id", "text"), *texts.items()]))
    # What is loaded once does not count.
    assert read_documents([path], {"d7"}).keys() == {"d7"}
    tracemalloc.start()
    assert read_documents([path], {"d7", "d4000"}).keys() == {"d7", "d4000"}
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.3 * sum(map(len, texts.values()))


def test_of_wanted_documents_all_is_looked_at_and_of_others_the_id(tmp_path: Path) -> None:
    path = tmp_path / "docs.jsonl"
    path.write_text(lines(*({"id": f"d{number}", "text": "a"} for number in (1, 2, 3, 2))))
    assert set(load_collection(path).docs_store().get_many(["d2"])) == {"d2"}
    with path.open("a") as stream:
        stream.write('{"id": "d2", "text": "b"}\n{"id": "d1", "text": "b"}\n')
    assert set(load_collection(path).docs_store().get_many(["d3"])) == {"d3"}
    with pytest.raises(FormatError, match=r"docs\.jsonl:5: 'd2' has another text in line 2"):
        load_collection(path).docs_store().get_many(["d2"])
    with path.open("a") as stream:
        stream.write('{"name": "d5", "text": "b"}\n')
    with pytest.raises(FormatError, match=r"docs\.jsonl:7: doc_id: lacks doc_id"):
        load_collection(path).docs_store().get_many(["d3"])
    path.write_text(lines({"id": "d1", "text": "a"}) + "7\n")
    with pytest.raises(FormatError, match=r"docs\.jsonl:2: expected an object, found 7"):
        load_collection(path).docs_store().get_many(["d1"])
    path.write_text('\n{"id": "d1", "text": NaN}\n{"id": "d2", "text": "a"}\n')
    with pytest.raises(FormatError, match=r"docs\.jsonl:2: is not JSON"):
        read_documents([path], {"d1"})


@pytest.fixture
def run(tmp_path: Path) -> str:
    (tmp_path / "a.run").write_text("q1 Q0 d1 1 2 a\nq1 Q0 d2 2 1 a\n")
    return str(tmp_path / "a.run")


def test_several_files(tmp_path: Path, run: str, capsys: pytest.CaptureFixture[str]) -> None:
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "part1.tsv").write_text(f"d1\t{SKY}\n")
    (parts / "part2.jsonl").write_text(lines({"id": "d2", "contents": GRASS}))
    several = [argument for path in sorted(parts.iterdir()) for argument in ("-c", str(path))]
    assert main(["pool", run, *several, "-o", str(tmp_path / "pooled.jsonl")]) == 0
    records = json.loads((tmp_path / "pooled.jsonl").read_text())
    assert [passage["text"] for passage in records[1]] == [SKY, GRASS]
    # The other commands that look texts up take them likewise.
    (tmp_path / "items.csv").write_text("query_id,item_id,doc_id,grade\nq1,i1,d1,5\nq1,i1,d2,0\n")
    items = ["convert", str(tmp_path / "items.csv"), "--to", "records", *several]
    assert main([*items, "-o", str(tmp_path / "made.jsonl")]) == 0
    made = json.loads((tmp_path / "made.jsonl").read_text())
    assert [passage["text"] for passage in made[1]] == [SKY, GRASS]
    # A folder has its files under names that tell what they are.
    capsys.readouterr()
    assert main(["pool", run, "-c", str(parts), "-o", str(tmp_path / "more.jsonl")]) == 2
    assert "parts: holds no documents (docs.*), " in capsys.readouterr().err
    # A part is not replaced.
    assert main(["pool", run, *several, "-o", str(parts / "part2.jsonl")]) == 2
    assert "would be replaced" in capsys.readouterr().err


def test_a_folder_of_beir(tmp_path: Path, run: str) -> None:
    (tmp_path / "corpus.jsonl").write_text(FILES["beir.jsonl"])
    (tmp_path / "queries.jsonl").write_text(lines({"_id": "q1", "text": "why blue", "metadata": {}}))
    made = load_collection(tmp_path)
    assert [doc.doc_id for doc in made.docs_iter()] == ["d1", "d2"]
    assert made.query_texts == {"q1": "why blue"}
    # Judgments as BEIR has them: a header, and no column between query and document.
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\n")
    made = load_collection(tmp_path)
    assert [tuple(row) for row in made.qrels_iter()] == [("q1", "d1", 2), ("q1", "d2", 0)]
    output = tmp_path / "pooled.jsonl"
    for judgments in ([], ["--judgments", str(tmp_path / "qrels" / "test.tsv")]):
        assert main(["pool", run, "-c", str(tmp_path), "-o", str(output), *judgments]) == 0
        records = json.loads(output.read_text())
        assert [one["paragraph_data"]["judgments"][0]["relevance"] for one in records[1]] == [2, 0]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            lines({"name": "d1", "text": SKY}),
            "1: doc_id: lacks doc_id or docno or pid or docid or did or corpus-id; it has",
        ),
        (lines({"id": "d1", "vector": [1]}), "1: text: lacks text or contents or content or body or segment"),
        (lines({"id": "d1", "text": SKY}, {"id": "d1", "text": GRASS}), "2: 'd1' has another text in line 1"),
        ("d1\ta\nd2\tb\tc\n", "2: 3 cells; the first line has 2"),
        ("d1\ta\tb\n", "1: doc_id: lacks doc_id or docno or pid or docid or did or corpus-id; text or contents"),
        ("\t\n d\ta\n\ttext\n", "3: doc_id: is empty"),
        ("ident,words\nd1,a\n", "1: doc_id: lacks doc_id or docno or pid or docid or did or corpus-id; text or"),
        ("<html><body>a</body></html>\n", "doc_id: lacks doc_id"),
    ],
)
def test_what_is_wrong_is_said(content: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "docs"
    path.write_text(content)
    with pytest.raises(FormatError) as caught:
        list(load_collection(path).docs_iter())
    assert said in str(caught.value)


def test_one_id_in_two_files_and_a_file_that_is_not_there(tmp_path: Path) -> None:
    make: Callable[[str], Path] = lambda name: tmp_path / name  # noqa: E731
    make("1.tsv").write_text("d1\ta\n")
    make("2.tsv").write_text("d1\tb\n")
    with pytest.raises(FormatError, match=r"'d1' has another text in .*1\.tsv:1"):
        list(load_collection([make("1.tsv"), make("2.tsv")]).docs_iter())
    with pytest.raises(InputError, match=r"3\.tsv: cannot be read \(No such file"):
        list(load_collection([make("1.tsv"), make("3.tsv")]).docs_iter())


def test_texts_under_a_header_may_stand_in_quotes(tmp_path: Path) -> None:
    texts = {"d0": 'He said "hi"', "d1": "plain", "d2": "two\nlines"}
    with (tmp_path / "c.tsv").open("w", newline="") as stream:
        csv.writer(stream, delimiter="\t").writerows([("doc_id", "text"), *texts.items()])
    for wanted in (None, {"d0", "d2"}):
        found = read_documents([tmp_path / "c.tsv"], wanted)
        assert {one: said.text for one, said in found.items()} == {one: texts[one] for one in wanted or texts}
    (tmp_path / "no.csv").write_text("rating,doc_id\n1,d1\n")
    with pytest.raises(FormatError, match=r"no\.csv:1: text: lacks text or contents"):
        read_documents([tmp_path / "no.csv"], {"d1"})
    # Without one, a quote is a quote.
    (tmp_path / "msmarco.tsv").write_text('d0\t"Open\nd1\tplain\n')
    assert read_documents([tmp_path / "msmarco.tsv"])["d0"].text == '"Open'
