"""What is wrong in a file is said in one line, with the file, the line and the field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rubric_measures.base.errors import FormatError
from rubric_measures.formats import FORMATS
from rubric_measures.formats.answers import read_answer_table
from rubric_measures.formats.banks import bank_of_entries

QUESTION = {"question_id": "i", "question_text": "Why?"}
FACET = {"query_id": "q", "facet_id": "T", "facet_text": "A", "items": [QUESTION]}
ASSIGNED = {"qid": "1", "run_id": "a", "nuggets": [{"text": "t", "assignment": "support"}]}
BATTLE = {
    "task_id": "t", "qid": "q1", "query": "", "pair": ["x", "y"], "assistant_a_run_id": "y", "assistant_b_run_id": "x",
    "judge_verdict": "A", "preferred_run_id": "y", "status": "completed", "error": None, "raw_output": "[[A]]",
}  # fmt: skip
GAME = {"query_id": "q", "agent_a": "x", "agent_b": "y", "verdict": "a"}
CRITERION = {"text": "a", "type": "explicit", "tier": "optional", "weight": 1, "verdict": "satisfied"}
GRADED = {"task_id": "t", "status": "completed", "qid": "1", "run_id": "x", "criteria": [CRITERION]}
REPORT = {"metadata": {"run_id": "dr", "topic_id": "m#1"}, "responses": [{"text": "One.", "citations": ["d2", "d1"]}]}
LABELS = {
    "topic_id": "1",
    "run_id": "r",
    "sentences": [{"text": "", "citations": [{"reference": "d", "support": "3"}]}],
}
LESSON = {
    "globalID": "L", "lessonName": "the skin", "questions": {"nonDiagramQuestions": {"N": {
        "beingAsked": {"processedText": "?"}, "answerChoices": {}, "correctAnswer": {"processedText": "b"}}}},
}  # fmt: skip


def nuggets(**said: Any) -> dict[str, Any]:
    return {"query_id": "q", "nugget_bank": {"x": {"question": "x", **said}}}


def asked(**said: Any) -> list[Any]:
    return [{**LESSON, "questions": {"nonDiagramQuestions": {"N": {"beingAsked": {"processedText": "?"}, **said}}}}]


def rubric(weight: str) -> str:
    return f'{{"qid": "1", "rubrics": [{{"criterion": "x", "weight": {weight}}}]}}'


RUN, GAMES, TABLE = "q1 Q0 a 1 1 s\n", "qid,agent_a,agent_b,raw_answer,answer\n", "query_id,doc_id,grade"
# Format, its file (a text, or objects), and what is said of it behind its name.
WRONG: list[tuple[str, Any, str]] = [
    ("run", "\n \n", ": is empty"),
    ("run", "q1 Q0 a 1 nan s\n", ":1: score: 'nan' is not a finite number"),
    ("run", RUN + "q1 Q0 b 2 -inf s\n", ":2: score: '-inf'"),
    # Python reads both as numbers, other programs do not.
    ("run", RUN + "q1 Q0 b 2 2_0 s\n", ":2: score: '2_0' is not a finite number"),
    ("run", "q1 Q0 a 1 ٣ s\n", ":1: score: '٣' is not a finite number"),
    ("run", RUN + "q1 Q0 b -2 0 s\n", ":2: rank: '-2'"),
    # Python reads no integer of more than 4300 digits.
    ("run", RUN + f"q1 Q0 b {'9' * 5000} 0 s\n", ":2: rank: '999"),
    ("run", f"q1 Q0 a {'9' * 19} 1 s\n", f":1: rank: '{'9' * 19}' is not an integer from 0 of at most 18 digits"),
    ("run", RUN + "q1 Q0 a b 2 0 s\n", ":2: has 7 columns; expected 6"),
    ("run", "q1 Q0 a 1 1\nq1 Q0 b 2 0 s\n", ":2: has 6 columns; expected 5"),
    ("run", "q1 0 a 1\n", ":1: has 4 columns; expected 6"),
    # Comments of ir_metadata stand at the top.
    ("run", RUN + "# ir_metadata.start\n", ":2: has 2 columns"),
    ("run", RUN + "q1 Q0 b 2 1 s\n\nq1 Q0 a 3 0 s\n", ":4: document 'a' of query 'q1' is already in line 1"),
    # Twelve tokens in two lines, but seven and five of them.
    ("run", "q1 Q0 a 1 1 s q1\nQ0 b 2 0 s\n", ":1: has 7 columns"),
    ("run", "qid,docno,alike\nq1,a,1\n", ":1: has 1 column; expected 6: query_id Q0 doc_id rank score tag (ids"),
    ("item-qrels", "", ": is empty"),
    ("qrels", "q1 a d1 1\nq1 b d1 2\n", ": judges items (several lines a document)"),
    ("qrels", "q1 0 a 1\nq1 0 a\n", ":2: has 3 columns; expected 4"),
    ("qrels", "q1 0 a 1\nq1 0 b 2_0\n", ":2: relevance '2_0' is not a number"),
    ("qrels", "q1 0 a ٣\n", ":1: relevance '٣' is not a number"),
    # More than the programs behind measures can hold.
    ("qrels", "q1 0 a 1\nq1 0 b 2147483648\n", ":2: relevance 2147483648 is too large"),
    ("qrels", f"q1 0 a {'9' * 5000}\n", ":1: relevance '999"),
    ("qrels", "q1 0 a 1\n\nq1 0 a 2\n", ":3: document 'a' of query 'q1' was judged 1 before, now 2"),
    ("csv", TABLE + "\nq1,d1,high\n", ":2: grade: expected a number, at most 1e+100; found 'high'"),
    ("csv", TABLE + "\nq1,d1,1\nq1,d1,2\n", ":3: q1 / d1 / 0 stands in line 2 already; keep one"),
    ("csv", TABLE + ",rank\nq1,d1,1,1\n", ":2: a rank has no run_id; name the run"),
    ("csv", TABLE + ",status\nq1,d1,1,failed\n", ":2: grade 1 and status failed; keep one"),
    ("csv", [{"query_id": "q", "doc_id": "d", "grade": 1, "status": []}], ":1: status: expected graded, unparsed"),
    ("csv", [{"query_id": ["q1"], "doc_id": "d1", "grade": 1}], ":1: query_id: expected a text"),
    ("bank", [], ": is empty; expected test bank entries"),
    ("bank", "hello\n", ":1: query_id: lacks query_id; items; it has hello"),
    ("bank", "[]\n", ": holds no test bank entries"),
    ("bank", [["q1", []]], ":1: expected an object, found 'q1'"),
    ("bank", [{"query_id": "q1"}], ":1: items: lacks items"),
    ("bank", [{"query_id": "q1", "items": [{}]}], ":1: items[0]: expected either a question or a nugget"),
    ("bank", [{"query_id": "q", "items": [{**QUESTION, "nugget_text": "a"}]}], ":1: items[0]: expected either"),
    ("bank", [{"query_id": "q1", "items": [{"question_id": "x"}]}], ":1: items[0].question_text: lacks"),
    ("bank", [{"query_id": "q", "items": [{**QUESTION, "weight": "much"}]}], ":1: items[0].weight: expected a number"),
    (
        "bank",
        [{"query_id": "q", "items": [{**QUESTION, "importance": "x"}]}],
        ":1: items[0].importance: expected",
    ),
    ("bank", [{"query_id": "q2", "items": [{**QUESTION, "query_id": "q"}]}], ":1: items[0].query_id: the item belongs"),
    ("bank", [FACET, {**FACET, "facet_text": "B"}], ":2: facet 'T' has two texts"),
    ("bank", [FACET, {**FACET, "items": [{**QUESTION, "question_text": "Who?"}]}], ":2: item 'i' has two texts"),
    ("bank:csv", "query_id,kind\nq1,nugget\n", ":2: text: lacks text or question_text or nugget_text or question"),
    ("bank:csv", "query_id,text,kind\nq1,A,fact\n", ":2: kind: expected question or nugget; found 'fact'"),
    ("bank:csv", "query_id,text,importance\nq1,A,must\n", ":2: importance: expected vital or okay; found 'must'"),
    (
        "bank:csv",
        "query_id;text;weight\nq1;A;2,5\n",
        ":2: weight: expected a number, at most 1e+100, decimals with a po",
    ),
    ("bank:csv", "query_id,text,item_id\nq1,A,1\nq1,B,1\n", ":3: item '1' has two texts, 'A' and 'B'; keep one, or"),
    ("bank:csv", "query_id,text,item_id\nq1,,1\n", ":2: text is empty"),
    ("bank:csv", "query_id,text,kind\n,A,nugget\n", ":2: query_id: is empty"),
    ("bank:csv", "query_id,text,kind\nq1,A, b,nugget\n", ":2: 4 cells; the header has 3"),
    ("bank:csv", "query_id,text,kind\n", ": holds no items"),
    ("nugget-bank", [{"claim_bank": {"x": {"claim": "x"}}}], ":1: query_id: lacks query_id; it has claim_bank"),
    ("nugget-bank", [{"query_id": "q", "nugget_bank": {"x": {}}}], ":1: nugget_bank.x.question: lacks question"),
    ("nugget-bank", [nuggets(), nuggets(a=1)], ":2: q stands in line 1 already; keep one"),
    ("nugget-bank", [nuggets(importance=10**400)], ":1: nugget_bank.x.importance: expected a number, at most 1e+100"),
    ("nugget-bank", [nuggets(importance=True)], ":1: nugget_bank.x.importance: expected a number"),
    ("nugget-bank", [nuggets(answers=[{"answer": " "}])], ":1: nugget_bank.x.answers[0].answer: is empty"),
    ("nugget-bank", [nuggets(query_id="q2")], ":1: items[0].query_id: the item belongs to query 'q2', its entry to"),
    *(("rubrics", rubric(weight), ":1: rubrics[0].weight: ") for weight in ('"five"', "1e300", "9" * 400, "true")),
    ("nuggets", [{"qid": "1", "nuggets": []}, {"qid": "1", "nuggets": [], "a": 1}], ":2: 1 stands in line 1 already"),
    ("tqa", "[]", ": holds no TQA lessons"),
    ("tqa", [[LESSON, {**LESSON, "lessonName": "hair"}]], ":1: L stands in line 1 already; keep one"),
    (
        "tqa",
        [asked(beingAsked={})],
        ":1: questions.nonDiagramQuestions.N.beingAsked.processedText: lacks beingAsked.processedText",
    ),
    (
        "tqa",
        [asked(correctAnswer={"processedText": "a"}, answerChoices=[1])],
        ":1: questions.nonDiagramQuestions.N.ans",
    ),
    ("assignments", [], ": is empty; expected assignments"),
    ("assignments", [{"qid": "1", "run_id": "a"}], ":1: nuggets: required field is missing"),
    ("assignments", [{"qid": "1", "run_id": "a", "nuggets": [{"text": "t"}]}], ":1: nuggets[0].assignment"),
    ("assignments", [ASSIGNED, ASSIGNED], ":2: a / 1 stands in line 1 already; keep one"),
    ("assignments", [ASSIGNED | {"run_id": ""}], ":1: run_id: names no run; say which one it is"),
    ("ragdoll:graded", [GRADED, GRADED | {"query": 7}], ":2: query: "),
    ("ragdoll:graded", [GRADED | {"qid": ""}], ":1: qid: "),
    ("ragdoll:graded", [GRADED | {"criteria": [CRITERION | {"weight": float("inf")}]}], ":1: is not JSON: "),
    ("ragdoll:graded", [GRADED | {"criteria": [CRITERION | {"verdict": 1}]}], ":1: criteria[0].verdict: "),
    ("ragdoll:graded", [GRADED | {"more": float("nan")}], ":1: is not JSON: expected value at column"),
    ("ragdoll:battles", [BATTLE | {"judge_verdict": "C"}], ":1: judge_verdict: expected A, B, Tie or Tie (Both Bad)"),
    ("ragdoll:battles", [BATTLE | {"status": "failed"}], ":1: expected a verdict exactly when the status is"),
    ("ragdoll:battles", [BATTLE | {"assistant_b_run_id": "y", "pair": ["y", "y"]}], ":1: query 'q1': agent 'y' plays"),
    ("games", [GAME | {"verdict": "c"}], ":1: verdict: expected a, b, tie or both_bad; found 'c'"),
    ("games", [{"query_id": "q", "agent_a": "x", "agent_b": "y"}], ":1: verdict"),
    ("games", [GAME | {"agent_b": [7]}], ":1: agent_b: expected a text; found '[7]'"),
    ("games", [GAME | {"status": "failed"}], ":1: expected a verdict exactly when the status is graded"),
    ("games", [GAME, GAME | {"verdict": "b"}], ":2: q / x / y stands in line 1 already"),
    ("ragelo:games", "qid,agent_a,agent_b,answer\n1,x,y,A\n", ":1: raw_answer: lacks raw_answer"),
    ("ragelo:games", GAMES + "1,x,y,,D\n", ":2: answer: expected A, B or C"),
    ("ragelo:games", GAMES + "1,x,x,,A\n", ":2: query '1': agent 'x' plays against itself"),
    ("ragelo:queries", "qid,query\n1,What, then?\n", ":2: 3 cells; the header has 2"),
    ("ragelo:queries", 'qid,query\n1,"open\n', ":2: is no table"),
    ("ragelo:answers", "qid,agent,answer\n1,,a\n", ":2: agent: is empty"),
    ("ragelo:documents", "qid,did,document\n1,d1,One.\n1,d1,Other.\n", ":3: 1 / d1 stands in line 2 already"),
    ("queries", "", ": is empty; expected queries"),
    ("queries", "{}", ": holds no queries"),
    ("queries", "q1 skin", ":1: query_id: lacks query_id or qid"),
    ("queries", "q1\tskin\nq1\thair", ":2: q1 stands in line 1 already; keep one"),
    ("queries", "\tskin", ":1: query_id: is empty"),
    ("queries", '{"q1": 3}', ":1: text: expected a text; found '3'"),
    ("queries", '{"q1": [3]}', ":1: text: expected a text; found '3'"),
    ("queries", [{"qid": "1", "query": "a"}, {"qid": "2"}], ":2: text: lacks text or query"),
    ("queries", [{"qid": True, "query": "a"}], ":1: qid: expected a text; found 'True'"),
    ("queries", '{"q1": "skin"', ":1: is not JSON"),
    ("queries", '{"q1": "\\ud800"}', ":1: is not JSON"),
    ("queries", '{"q1": {"title": "skin", "facets": 3}}', ":1: facets: expected a list"),
    ("queries", '{"q1": {"text": "s", "facets": [{"id": "f"}]}}', ":1: facets[0].facet_text: lacks"),
    (
        "queries",
        '{"q1": {"text": "s", "facets": [{"id": "f", "text": "x"}, {"id": "f", "text": "y"}]}}',
        ":1: facets: a facet comes twice",
    ),
    ("queries", "[3]", ":1: expected an object"),
    ("queries", '[{"qid": "1", "query": "a", "query": "b"}]', ":1: the key 'query' comes twice in one object"),
    ("queries", '{"q1": {"text": "a", "facets": {"f": "x", "f": "x"}}}', ":1: the key 'f' comes twice"),
    ("queries", [{"qid": "1", "query": "a", "n": 1}, {"qid": "1", "query": "a", "n": 2}], ":2: 1 stands in line 1"),
    ("queries", "<DOC>\n<DOCNO>1</DOCNO>\n</DOC>\n", ": holds no queries"),
    ("queries", "<top>\n<num> 401\n</top>\n", ":1: text: lacks text or query"),
    ("queries", "<!-- of\nTREC -->\n<top>\n<title> skin\n</top>\n", ":3: query_id: lacks query_id or qid"),
    ("answers", [], ": is empty"),
    ("answers", [{"metadata": {"run_id": "r", "topic_id": "1"}}], ":1: has neither answer nor responses"),
    ("answers", [{"metadata": {"topic_id": "1"}, "responses": []}], ":1: names no run_id"),
    (
        "answers",
        [{"metadata": {"run_id": "r", "topic_id": ""}, "responses": []}],
        ":1: names no topic_id or narrative_",
    ),
    ("answers", [{**REPORT, "topic_id": "2"}], ":1: names two topic_id or narrative_id: 2, m#1"),
    ("answers", [{**REPORT, "answer": [{"text": "Two."}]}], ":1: answer and responses differ"),
    ("answers", [REPORT, REPORT], ":2: dr / m#1 stands in line 1 already"),
    ("reports", [REPORT, REPORT], ":2: dr / m#1 stands in line 1 already"),
    ("reports", [{**REPORT, "responses": [{"text": 1}]}], ":1: responses[0].text: "),
    (
        "reports",
        [{**REPORT, "responses": [{"text": "A", "citations": {"d1": 0.5, "d2": "high"}}]}],
        ":1: responses[0].citations.d2: expected a number; found 'high'",
    ),
    ("answers", [{"nugget_bank": [{"question": "What?"}]}], ":1: metadata.topic_id: lacks metadata.topic_id"),
    ("answers", [{"query_id": "1", "text": "x"}], ":1: run_id: lacks run_id or run"),
    ("answers", [{"query_id": "1", "run_id": "r", "text": {}}], ":1: text: expected a text; found '{}'"),
    ("answers", "7\n", ":1: query_id: lacks query_id or qid"),
    ("reports", f"[{json.dumps(REPORT)}\n{json.dumps(REPORT)}]", ":2: is not JSON: expected ',' or ']' after"),
    ("answers", f"[{json.dumps(REPORT)}", ":1: is not JSON: expected ',' or ']' after"),
    ("reports", '[\n{"metadata": }]', ":2: is not JSON: Expecting value"),
    (
        "reports",
        '{\n"run_name": "r", "results": [{"topic_id": 1}]}',
        ":1: results[0].answer: lacks answer; it has topic_id",
    ),
    ("support-labels", [LABELS], ":1: sentences[0].citations[0].support: "),
    ("leaderboard", "", ": is empty"),
    ("leaderboard", "r1 all V nan\n", ":1: value: expected a number, at most 1e+100; found 'nan'"),
    ("leaderboard", "r1 all V 1\nr1 t1 V x\n", ":2: value: expected a number, at most 1e+100; found 'x'"),
    ("leaderboard", "r1 all V 1\nr1 t1 V 2_0\n", ":2: value: expected a number, at most 1e+100; found '2_0'"),
    ("leaderboard", "r1 all V 1\nr1 all V\n", ":2: 3 cells; the form ir_measures has 4"),
    ("leaderboard", "r1 all V 1\nr1 all V 2\n", ":2: r1 / V / all stands in line 1 already; keep one"),
    ("leaderboard", "all V\n", ":1: is none of ir_measures (run topic measure value)"),
    ("leaderboard", "t1 X r1 1 0.5 V\n", ":1: is none of ir_measures"),
    ("leaderboard", "run_id\tV\nr1\n", ":2: 1 cell; the header has 2"),
    ("leaderboard", "run_id\tAP\na\t0.5\n" + "x" * 140_000 + "\n", ":3: 1 cell; the header has 2"),
    ("leaderboard", "run_id\tV\tV\nr1\t1\t1\n", ":1: the header names V twice; keep one"),
    ("leaderboard", "run_id\tV\nr1\t1\nr2\thigh\n", ":3: V: expected a number, at most 1e+100; found 'high'"),
    ("leaderboard", "run_id\tV\nr1\t0,5\n", ": holds no number; expected a leaderboard, with decimal points"),
    ("leaderboard", [{"run_id": "", "measure": "V", "value": 1}], ":1: run_id: is empty"),
    ("leaderboard", '{"run_id": "a"\n', ":1: is not JSON"),
    ("leaderboard", f'{{"run_id": "a", "measure": "V", "value": {"9" * 5000}}}', ":1: is not JSON"),
    ("leaderboard", [{"run_id": "a", "measure": [1], "value": 1}], ":1: measure: expected a text; found '[1]'"),
    ("leaderboard", '{"a": true}', ": a: expected a number, at most 1e+100, 1 for True, 0 for False; found 'True'"),
    ("leaderboard", "[1]", ": holds a JSON list"),
    ("leaderboard", '{"run_id":"a","x":1}\n{}\n', ":2: is an empty object"),
    ("leaderboard", '{"format": "rubric_measures leaderboard 1"}', ": measures: required field is missing"),
    ("table", "", ": is empty"),
    ("table", "question,answer\n", ": holds no answers"),
    ("table", "[]", ": holds no answers"),
    ("table", "question,response,output\na,b,c\n", ": columns response and output could each be the answer"),
    ("table", "question,answer\na,b\n,c\n", ":3: question: is empty"),
    ("table", "question,answer\na,b,c\n", ":2: 3 cells; the header has 2"),
    ("table", [{"question": ["a"], "response": ["b", "c"]}], ":1: question: expected a text; found"),
]


@pytest.mark.parametrize(("name", "content", "said"), WRONG, ids=[f"{name}-{said}"[:60] for name, _, said in WRONG])
def test_what_is_wrong_is_one_line(tmp_path: Path, name: str, content: Any, said: str) -> None:
    path = tmp_path / "file"
    lines = content if isinstance(content, str) else "".join(json.dumps(line) + "\n" for line in content)
    path.write_text(lines, encoding="utf-8")
    with pytest.raises(FormatError) as caught:
        found = read_answer_table(path) if name == "table" else FORMATS[name].read(path)  # type: ignore[misc]
        # What entries say together is looked at where they become a bank.
        bank_of_entries(found, str(path))
    assert str(caught.value).startswith(f"{path}{said}")
    assert "\n" not in str(caught.value)
