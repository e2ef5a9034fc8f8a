"""Tests of topics and length limits."""

import pytest

from rubric_measures.base.errors import UnknownNameError
from rubric_measures.formats.queries import Limit, length_of, limit_for


def test_the_topic_has_the_first_word_about_length() -> None:
    assert limit_for("rag24") == limit_for("rag25") == Limit(400, "words")
    assert limit_for("rag26") == Limit(1024, "words")
    assert limit_for("dragun") == Limit(250, "words")
    assert limit_for("ragtime") is None
    assert limit_for(None) is None
    assert limit_for("ragtime", Limit(10, "characters")) == Limit(10, "characters")
    assert limit_for("rag24", Limit(9, "words")) == Limit(9, "words")
    with pytest.raises(UnknownNameError, match="unknown track 'rag2'"):
        limit_for("rag2")


def test_characters_are_counted_after_nfkc() -> None:
    # U+FB01 (the ligature fi) is two characters; "e" and the combining acute U+0301 are one.
    assert length_of("\ufb01", "characters") == 2
    assert length_of("e\u0301", "characters") == 1
    assert length_of(" a\u00a0b\nc ", "words") == 3
