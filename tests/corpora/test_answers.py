"""Tests of cutting answers into passages, of what is counted about them, and of pooling them."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rubric_measures
from rubric_measures.base.errors import InputError, UnknownNameError
from rubric_measures.corpora.answers import Answer, AnswerSegment, answer_segments, check_answers, split_answer
from rubric_measures.corpora.pooling import pooled
from rubric_measures.formats.queries import Limit


@pytest.mark.parametrize(
    ("text", "max_words", "passages"),
    [
        ("One two. Three four five. Six.", 5, ["One two. Three four five.", "Six."]),
        ("One two. Three four five. Six.", 4, ["One two.", "Three four five. Six."]),
        ("One two. Three four five. Six.", 400, ["One two. Three four five. Six."]),
        ("One two? Three!\n\nFour five", 3, ["One two? Three!", "Four five"]),
        # Neither abbreviations nor a stop before a small letter end a sentence.
        ("Ask Dr. Who now. Not J. Smith.", 4, ["Ask Dr. Who now.", "Not J. Smith."]),
        ("See e.g. this one. Then stop.", 4, ["See e.g. this one.", "Then stop."]),
        ('He said "stop." Then he left.', 3, ['He said "stop."', "Then he left."]),
        ("a heading\n\nand text below", 3, ["a heading", "and text below"]),
        # A sentence that is too long is cut at words, and the rest of it stays with what follows.
        ("a b c d e f g. H i.", 3, ["a b c", "d e f", "g. H i."]),
        ("Go. a b c d. E.", 3, ["Go. a b", "c d. E."]),
        # Names of countries, times and authors go on; a list's numbers begin what follows.
        ("He led the U.S. Navy then. He left.", 5, ["He led the U.S. Navy", "then. He left."]),
        ("He led the U.S. Navy then. He left.", 6, ["He led the U.S. Navy then.", "He left."]),
        ("As Smith et al. Said it. Good.", 6, ["As Smith et al. Said it.", "Good."]),
        ("Open until 5 p.m. Monday to Friday. Good.", 7, ["Open until 5 p.m. Monday to Friday.", "Good."]),
        ("Two kinds:\n1. First one.\n2. Second one.", 5, ["Two kinds:\n1. First one.", "2. Second one."]),
        # Hindi, Urdu, Arabic, and Chinese, which has no blanks: two characters are a word.
        ("एक दो तीन। चार पाँच छह॥ सात।", 5, ["एक दो तीन।", "चार पाँच छह॥ सात।"]),
        ("ایک دو تین۔ چار پانچ چھ۔", 5, ["ایک دو تین۔", "چار پانچ چھ۔"]),
        ("ما هذا الشيء؟ هو كتاب كبير.", 5, ["ما هذا الشيء؟", "هو كتاب كبير."]),
        ("天地玄黄。宇宙洪荒！「日月盈昃？」", 4, ["天地玄黄。", "宇宙洪荒！", "「日月盈昃？」"]),
        # An abbreviation in the line before is not at the end of this one.
        ("Ask Mr.\nBo. Then go.", 3, ["Ask Mr.\nBo.", "Then go."]),
        # No end in sight: cut at blanks, and inside of what alone is too long.
        ("天地玄黄宇宙洪荒", 3, ["天地玄黄宇宙", "洪荒"]),
        ("a b c 天地玄黄宇宙洪荒 d", 3, ["a b c", "天地玄黄宇宙", "洪荒 d"]),
        ("a b 天地玄黄 c", 3, ["a b", "天地玄黄 c"]),
        ("กขคงจฉชซฌญฎฏ", 2, ["กขคงจฉชซฌญ", "ฎฏ"]),
        ("x" * 120, 2, ["x" * 100, "x" * 20]),
        ("  \n ", 3, []),
        ("", 3, []),
    ],
)
def test_split(text: str, max_words: int, passages: list[str]) -> None:
    assert split_answer(text, max_words) == passages


@given(st.text("abA .!?…\n。।؟\"'”天กี1", max_size=80), st.integers(1, 6))
def test_no_word_is_lost_and_none_is_too_long(text: str, max_words: int) -> None:
    passages = split_answer(text, max_words)
    assert "".join("".join(passages).split()) == "".join(text.split())
    assert all(0 < len(passage.split()) <= max_words for passage in passages)


@pytest.mark.parametrize("mark", [".", "!", "…", "。", "॥", '."', "\n", " ", "\n ", "U.", "天", "1.\n", "[", "x"])
def test_answers_of_models_that_loop_are_cut_in_linear_time(mark: str) -> None:
    # Quadratic time would be an hour; whatever white space there is, nothing else is lost.
    text = "It loops" + mark * 100_000
    passages = split_answer(text)
    assert "".join("".join(passages).split()) == "".join(text.split())
    assert max(map(len, passages)) <= 400 * 51


def test_answers_in_sentences_are_cut_between_them_and_keep_their_citations() -> None:
    answer = Answer("q", "r", "A b. c D. E f g h.", ("A b.", "c D.", "E f g h."), (("d1",), (), ("d2", "d3")))
    assert list(answer_segments([answer], 4)) == [
        AnswerSegment("q", "r", 1, "A b. c D.", ("A b.", "c D."), (("d1",), ())),
        AnswerSegment("q", "r", 2, "E f g h.", ("E f g h.",), (("d2", "d3"),)),
    ]
    # A sentence that is too long is cut, and then nobody can say what cites what.
    assert list(answer_segments([answer], 3)) == [
        AnswerSegment("q", "r", 1, "A b.", ("A b.",), (("d1",),)),
        AnswerSegment("q", "r", 2, "c D.", ("c D.",), ((),)),
        AnswerSegment("q", "r", 3, "E f g"),
        AnswerSegment("q", "r", 4, "h."),
    ]
    with pytest.raises(InputError, match="passages of 0 words"):
        list(answer_segments([answer], 0))


def test_whole_answers_are_one_passage() -> None:
    answers = [
        Answer("q1", "r", "A. B.", ("A.", "B."), (("d",), ())),
        Answer("q2", "r", " A.  "),
        Answer("q3", "r", " ", (" ",), ((),)),
    ]
    assert list(answer_segments(answers, None)) == [
        AnswerSegment("q1", "r", 1, "A. B.", ("A.", "B."), (("d",), ())),
        AnswerSegment("q2", "r", 1, "A."),
    ]


def test_empty_missing_and_too_long_answers_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    answers = [
        Answer("q1", "r", "w " * 401),
        Answer("q2", "r", " "),
        Answer("q1", "s", "w " * 400),
        Answer("q9", "s", "ﬁve"),
    ]
    check_answers(answers, ["q1", "q2"], track="rag25")
    assert caplog.messages == [
        "1 empty answer, scored 0 (such as that of run r to query q2)",
        "1 missing answer, scored 0 (such as that of run s to query q2)",
        "1 answer of 1 run is longer than allowed (run r has 401 of 400 words for query q1); it is kept whole",
    ]
    caplog.clear()
    # A ligature is two characters after normalisation; a topic's own limit goes before the track's.
    limit = Limit(4, "characters")
    check_answers(answers[3:], limits={"q9": limit})
    assert caplog.messages == []
    check_answers([Answer("q9", "s", "w"), Answer("q9", "t", "ﬁves")], track="rag24", limits={"q9": limit})
    assert "(run t has 5 of 4 characters for query q9)" in caplog.text
    with pytest.raises(UnknownNameError, match="unknown track"):
        check_answers([], track="rag99")


def test_files_of_plain_answers_are_pooled(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "answers.tsv").write_text("q1\tr\tA b.\nq2\tr\t\n")
    (tmp_path / "topics.jsonl").write_text(
        '{"qid": "q1", "query": "x", "word_limit": 1}\n{"qid": "q2", "query": "y"}\n'
    )
    with caplog.at_level(logging.WARNING, logger="rubric_measures"):
        groups = rubric_measures.pool(tmp_path / "answers.tsv", queries=tmp_path / "topics.jsonl", max_words=None)
        found = [(passage.doc_id, passage.text) for group in groups for passage in group.passages]
    assert found == [("r/q1/1", "A b."), ("r/q2/1", "")]
    assert "1 empty answer, scored 0" in caplog.text
    assert "run r has 2 of 1 word for query q1" in caplog.text


def test_a_run_that_never_says_anything_is_named(caplog: pytest.LogCaptureFixture) -> None:
    answers = [Answer("q1", "a", "words"), Answer("q2", "a", ""), Answer("q1", "b", " "), Answer("q2", "b", "")]
    check_answers(answers)
    assert "1 run without a word in any answer, scored 0: b" in caplog.messages
    # Empty answers are passages, too, and are shared.
    groups = list(pooled(answers=[*answers, Answer("q2", "c", "")]))
    found = [(p.doc_id, p.text, [place.method for place in p.rankings]) for group in groups for p in group.passages]
    assert found == [
        ("a/q1/1", "words", ["a"]),
        ("b/q1/1", "", ["b"]),
        ("a/q2/1", "", ["a", "b", "c"]),
    ]
    assert groups == list(pooled(answers=[Answer("q2", "c", ""), *answers[::-1]]))
