"""Tests of query files in all their forms."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from rubric_measures.base.errors import InputError
from rubric_measures.cli import main
from rubric_measures.formats import detect_format
from rubric_measures.formats.queries import QUERIES, Limit, QueryFile, read_queries, read_query_file
from tests.example_records import write_text


@pytest.mark.parametrize(
    "text",
    [
        '{"q1": "skin", "q/2 é": "a b"}',
        '{\n "q1": "skin",\n "q/2 é": "a b"\n}\n',
        '{"q1": {"title": "skin"}, "q/2 é": {"text": "a b"}}',
        '[{"id": "q1", "query": "skin"}, {"qid": "q/2 é", "text": "a b"}]',
        '{"query_id": "q1", "title": "skin"}\n{"query_id": "q/2 é", "text": "a b"}\n',
        "\ufeffq1\tskin\r\n\r\nq/2 é\ta b\r\n",
        "query_id\ttext\nq1\tskin\nq/2 é\ta b\n",
        "qid,query,source\nq1,skin,web\nq/2 é,a b,\n",
    ],
)
def test_forms(tmp_path: Path, text: str) -> None:
    assert read_queries(write_text(tmp_path / "q", text)) == {"q1": "skin", "q/2 é": "a b"}


# As TREC left them: robust04 (SGML, not closed), TREC-COVID and the web track (XML), clinical trials (the text alone).
SGML = """
<top>

<num> Number: 301
<title> International Organized Crime

<desc> Description:
Identify organizations that participate in international criminal
activity &amp; the activity.

<narr> Narrative:
A relevant document must name them. The topic: a crime.

</top>

<top>
<num> Number: 302 </num>
<title> Poliomyelitis and Post-Polio </title>
<desc> Description: Is it under control?
</top>
"""
COVID = """<?xml version="1.0" encoding="UTF-8"?>
<topics task="COVIDSearch">
  <topic number="1">
    <query>coronavirus origin</query>
    <question>what is the origin of COVID-19</question>
    <narrative>seeking range of information</narrative>
  </topic>
</topics>
"""
WEB = """<webtrack2012>
  <topic number="151" type="faceted">
    <query>403b</query>
    <description>What is a 403b plan?
    </description>
    <subtopic number="1" type="inf">What is it?</subtopic>
    <subtopic number="2" type="nav">The forms &lt;5500&gt;.</subtopic>
  </topic>
</webtrack2012>
"""
TRIALS = (
    '<topics task="2021 TREC Clinical Trials">\n<topic number="1">\nPatient is a 45-year-old man.\n</topic></topics>\n'
)


def test_topics_of_trec(tmp_path: Path) -> None:
    assert read_query_file(write_text(tmp_path / "q", SGML)) == QueryFile(
        {"301": "International Organized Crime", "302": "Poliomyelitis and Post-Polio"},
        further={
            "301": {
                "description": "Identify organizations that participate in international criminal activity & the "
                "activity.",
                "narrative": "A relevant document must name them. The topic: a crime.",
            },
            "302": {"description": "Is it under control?"},
        },
    )
    found = read_query_file(write_text(tmp_path / "q", COVID))
    assert found.texts == {"1": "coronavirus origin"}
    assert found.further["1"]["question"] == "what is the origin of COVID-19"
    found = read_query_file(write_text(tmp_path / "q", WEB))
    assert found.texts == {"151": "403b"} and found.facets["151"] == {"1": "What is it?", "2": "The forms <5500>."}
    assert read_queries(write_text(tmp_path / "q", TRIALS)) == {"1": "Patient is a 45-year-old man."}
    for content in (SGML, COVID, WEB, TRIALS):
        assert detect_format(write_text(tmp_path / "q", content)) == "queries"


def test_limits_are_those_of_the_topics(tmp_path: Path) -> None:
    rows = [
        {"request_id": "1", "title": "a", "limit": 2000, "problem_statement": "Why?"},
        {"id": 2, "narrative": "b", "word_limit": 9},
        {"qid": "3", "query": "c", "limit": None},
    ]
    found = read_query_file(write_text(tmp_path / "q", "".join(json.dumps(row) + "\n" for row in rows)))
    assert found.texts == {"1": "a", "2": "b", "3": "c"}
    assert [found.limit_of(one) for one in found.texts] == [Limit(2000, "characters"), Limit(9, "words"), None]
    assert found.further["1"] == {"limit": 2000, "problem_statement": "Why?"}


def test_frames_and_mappings_are_queries() -> None:
    assert read_queries({"q1": "skin", "q2": {"title": "hair"}}) == {"q1": "skin", "q2": "hair"}
    assert read_queries([{"qid": 1, "query": "skin"}]) == {"1": "skin"}
    pandas = pytest.importorskip("pandas")
    assert read_queries(pandas.DataFrame({"qid": [1, 2], "text": ["skin", "hair"]})) == {"1": "skin", "2": "hair"}


@pytest.mark.parametrize(
    "facets",
    ['{"T1": "Layers"}', '[{"heading_id": "T1", "heading": "Layers"}]', '[{"facet_id": "T1", "text": "Layers"}]'],
)
@pytest.mark.parametrize(
    "form",
    ['{{"squid": "tqa2:L_2", "title": "skin", "facets": {0}}}', '{{"tqa2:L_2": {{"title": "skin", "facets": {0}}}}}'],
)
def test_facets(tmp_path: Path, form: str, facets: str) -> None:
    found = read_query_file(write_text(tmp_path / "q", form.format(facets)))
    assert (found.texts, found.facets) == ({"tqa2:L_2": "skin"}, {"tqa2:L_2": {"T1": "Layers"}})


CAR = {
    "tqa2:L_0002": {"text": "earth science", "facets": {"f1": "heading one", "f/2": "heading two"}},
    "tqa2:L_0003": "plain",
    "tqa2:L_0004": {"title": "rocks", "id": 7, "note": {"by": [{"who": "ann"}]}, "text": None},
    "tqa2:L_0005": {
        "query": "sky",
        "facets": [{"id": "f1", "heading": "blue", "level": 2}, {"id": "f2", "text": "red"}],
    },
}


@pytest.mark.parametrize("name", ["q.json", "q.jsonl", "q.json.gz"])
def test_facets_and_unknown_fields_are_kept(tmp_path: Path, name: str) -> None:
    (tmp_path / "in.json").write_text(json.dumps(CAR))
    found = read_query_file(tmp_path / "in.json")
    assert found.facets["tqa2:L_0002"]["f/2"] == "heading two"
    assert found.further["tqa2:L_0004"] == {"id": 7, "note": {"by": [{"who": "ann"}]}}
    QUERIES.write(tmp_path / name, found)
    assert read_query_file(tmp_path / name) == found
    # What is written once is written the same again.
    QUERIES.write(tmp_path / f"again-{name}", read_query_file(tmp_path / name))
    assert (tmp_path / f"again-{name}").read_bytes() == (tmp_path / name).read_bytes()


def test_a_table_says_what_it_cannot_hold(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "in.json").write_text(json.dumps(CAR))
    with caplog.at_level(logging.WARNING, "rubric_measures"):
        QUERIES.write(tmp_path / "q.tsv", read_query_file(tmp_path / "in.json"))
    assert [message.partition(": ")[2] for message in caplog.messages] == [
        "left out, as such files have no place for it: facets of 2 rows, id of 1 row, note of 1 row"
    ]
    with pytest.raises(InputError, match="holds a tab or a line end"):
        QUERIES.write(tmp_path / "q.tsv", QueryFile({"q": "a\n"}))


def test_topics_of_trec_as_a_table_of_two_columns_lose_texts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topics = write_text(tmp_path / "topics.xml", SGML)
    assert main(["convert", str(topics), "-o", str(tmp_path / "q.tsv")]) == 0
    assert read_queries(tmp_path / "q.tsv")["302"] == "Poliomyelitis and Post-Polio"
    said = capsys.readouterr().err
    assert "left out, as such files have no place for it: description of 2 rows, narrative of 1 row\n" in said
