"""Generated answers: cut into passages at sentence ends, or whole; what is empty or missing is counted.

What was asked and answered: rows of tables of answers, brought together by query and run; what they cite.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, count
from pathlib import Path
from typing import Any

from rubric_measures.base.errors import FormatError, InputError, counted, tell, warn
from rubric_measures.base.words import sentence_ends
from rubric_measures.corpora.loading import are_rows, file_path, is_file
from rubric_measures.formats.answers import (
    Answer,
    AnswerRow,
    AnswerTable,
    answer_doc_id,
    cited_sentences,
    read_answer_table,
)
from rubric_measures.types.entities import TestBank

# Scripts without blanks: of Han and kana two characters count as a word.
_HAN = "\u3001-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff01-\uffee\U00020000-\U0003ffff"
_LONGEST_WORD = 50
_WORD = re.compile(rf"[{_HAN}]{{1,2}}|[^\s{_HAN}]{{1,{_LONGEST_WORD}}}")


def split_answer(text: str, max_words: float = 400) -> list[str]:
    """Cuts a text into passages at sentence ends, in order, each as long as fits.

    Nothing but white space is lost, and no passage has more than `max_words` words. Words are what white space
    separates; of Han and kana two characters are a word, of longer words 50. Only a sentence that is longer than
    a passage is cut inside, at white space, and only a word that is longer than one, inside the word.

    A sentence ends at `.` `!` `?` or `…` before white space, at the marks of other scripts (`。` `।` `؟` `۔` …), and at
    a blank line; not before a small letter, nor after initials (J. Smith, U.S. Navy), common abbreviations (Dr.,
    et al., p.m.) and the numbers of a list. Time is linear in the length of the text.

    Args:
        text: an answer; white space around passages is dropped, inside it stays.
        max_words: at least 1. The TREC RAG track allows answers of 400 words.

    Returns:
        The passages; none for a text without words.
    """
    ends = itertools.pairwise([*_cuts(_pieces(text, max_words), max_words), len(text)])
    return [passage for start, end in ends if (passage := text[start:end].strip())]


def _words(text: str) -> int:
    """How many words a text has, see `split_answer`."""
    tokens = text.split()
    if text.isascii() and all(len(token) <= _LONGEST_WORD for token in tokens):
        return len(tokens)
    return sum(1 for _ in _WORD.finditer(text))


def _pieces(text: str, max_words: float) -> Iterator[tuple[int, int]]:
    """Where each sentence begins, and how many words it has; after one that is too long the same of its parts."""
    start = 0
    for end in sentence_ends(text):
        sentence = text[start:end]
        words = _words(sentence)
        yield start, words
        for token in re.finditer(r"\S+", sentence) if words > max_words else ():
            places = [word.start() for word in _WORD.finditer(token[0])]
            for number in range(0, len(places), int(max_words)):
                yield start + token.start() + places[number], min(int(max_words), len(places) - number)
        start = end


def _cuts(pieces: Iterable[tuple[int, int]], max_words: float) -> list[int]:
    """Where passages begin of pieces (where it begins, how many words); a piece that is too long is one alone."""
    cuts, words = [0], 0
    for start, more in pieces:
        if words + more > max_words:
            cuts.append(start)
            words = 0
        words += more
    return cuts


def answer_passages(answer: Answer, max_words: int | None = 400) -> list[Answer]:
    """The passages of an answer, in order, each as an answer; one without words has none.

    An answer that comes in sentences is cut between them, so that every passage keeps its citations; only a sentence of
    more than `max_words` words is cut itself, and says none. Ranked questions are a passage each. Other answers are cut
    by `split_answer`.

    Args:
        answer: the answer.
        max_words: the longest passage; None leaves answers whole.

    Raises:
        InputError: max_words is less than 1.
    """
    most = math.inf if max_words is None else max_words
    if most < 1:
        raise InputError(f"an answer cannot be cut into passages of {max_words} words; ask for 1 or more")
    bare = answer._replace(sentences=(), citations=())
    texts = answer.questions or ([] if answer.sentences else split_answer(answer.text, most))
    made, sizes = [bare._replace(text=text) for text in texts], list(map(_words, answer.sentences))
    for start, end in itertools.pairwise([*_cuts(enumerate(sizes), most), len(sizes)]):
        sentences = answer.sentences[start:end]
        if sum(sizes[start:end]) > most:
            made += [bare._replace(text=text) for text in split_answer(sentences[0], most)]
        elif text := " ".join(sentences).strip():
            made.append(bare._replace(text=text, sentences=sentences, citations=answer.citations[start:end]))
    return made


def say_missing(answers: Sequence[Answer], queries: Iterable[str] | None = None) -> None:
    """Says once how many answers are empty or missing, each with an example.

    Args:
        answers: the answers of all runs.
        queries: the queries that were asked; None takes those that any run answers.
    """
    asked = list(dict.fromkeys(queries if queries is not None else (answer.query_id for answer in answers)))
    answered: dict[str, set[str]] = {}
    for answer in answers:
        answered.setdefault(answer.run_id, set()).add(answer.query_id)
    empty = [(answer.run_id, answer.query_id) for answer in answers if not answer.words]
    missing = [(run_id, query_id) for run_id, found in answered.items() for query_id in asked if query_id not in found]
    for pairs, what in ((empty, "empty answer"), (missing, "missing answer")):
        for run_id, query_id in pairs[:1]:
            warn(f"{counted(len(pairs), what)}, which will score 0 (such as that of run {run_id} to query {query_id})")


def answer_tables_of(
    answers: Any, columns: Mapping[str, str] | None = None, systems: Sequence[str] = ()
) -> list[AnswerTable]:
    """The tables, of which each row says its run: where it said none, that is what the table is called."""
    names = list(map(str, answers)) if isinstance(answers, Mapping) and not are_rows(answers) else []
    if names:
        answers = list(answers.values())
    several = names or (isinstance(answers, list | tuple) and answers and all(map(_is_source, answers)))
    tables = [_table(one, columns, systems) for one in (answers if several else [answers])]
    stems = names or [table.stem for table in tables]
    if len(set(stems)) < len(stems):
        # Two files of one name are told apart by their folders.
        stems = [str(Path(table.name).with_suffix("")) for table in tables]
    if len(set(stems)) < len(stems):
        raise InputError("one table is given twice; name each once, or give them names", settings=("answers",))
    said = [{row.run_id for row in table.rows} for table in tables]
    clash = any(one & other for one, other in combinations(said, 2))
    named = []
    for table, stem, runs in zip(tables, stems, said, strict=True):
        others = {run: f"{stem}/{run}" if len(runs) > 1 else stem for run in runs if clash}
        named.append(in_runs(table, {**others, "": stem}))
    return named


def in_runs(table: AnswerTable, names: Mapping[str, str]) -> AnswerTable:
    """The table with other names of runs, of run -> name."""
    rows = (row._replace(run_id=names.get(row.run_id, row.run_id)) for row in table.rows)
    return dataclasses.replace(table, rows=tuple(rows))


def _is_source(one: object) -> bool:
    return is_file(one) or hasattr(one, "columns") or hasattr(one, "to_pandas")


def _table(source: Any, columns: Mapping[str, str] | None, systems: Sequence[str]) -> AnswerTable:
    if is_file(source):
        with file_path(source) as path:
            return read_answer_table(path, columns, systems)
    # Data sets of Hugging Face, tables of pyarrow.
    return read_answer_table(source.to_pandas() if hasattr(source, "to_pandas") else source, columns, systems)


def runs_in(tables: Sequence[AnswerTable]) -> list[str]:
    """The runs of tables, in their order."""
    return list(dict.fromkeys(row.run_id for table in tables for row in table.rows))


@dataclass
class Questions:
    """What was asked and answered.

    Attributes:
        texts: query id -> question, in the order of the tables.
        answers: (query id, run) -> (place of its row, row).
        references: query id -> the reference answer, in one text or several.
    """

    texts: dict[str, str] = field(default_factory=dict)
    answers: dict[tuple[str, str], tuple[str, AnswerRow]] = field(default_factory=dict)
    references: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def runs(self) -> list[str]:
        """The runs, in the order of the tables."""
        return list(dict.fromkeys(run_id for _, run_id in self.answers))


def asked_in(tables: Sequence[AnswerTable], bank: TestBank | None) -> Questions:
    """Brings together what the tables say of each question.

    Raises:
        FormatError: a query has two ids or an id two queries, a run answers a query twice, or a query has
            two references.
    """
    asked = Questions()
    ids = _query_ids(tables, bank)
    for table in tables:
        _note_table(table)
        for row in table.rows:
            query_id = ids[row.query_id, row.query]
            asked.texts.setdefault(query_id, row.query)
            where, first = asked.answers.setdefault((query_id, row.run_id), (f"{table.name}:{row.line}", row))
            if first is not row:
                problem = f"{row.run_id} answers {short(row.query)} a second time (before: {where}); keep one, or name "
                problem += "a column that tells runs apart"
                raise FormatError(problem, path=table.name, line=row.line, settings=("columns",))
            if row.reference and asked.references.setdefault(query_id, row.reference) != row.reference:
                problem = f"{short(row.query)} has another reference answer in a row above; keep one"
                raise FormatError(problem, path=table.name, line=row.line, field=table.columns["reference"])
    return asked


def short(text: str) -> str:
    """A text in one quoted line of at most 50 characters."""
    text = " ".join(text.split())
    return repr(text if len(text) <= 50 else f"{text[:49]}…")


def _note_table(table: AnswerTable) -> None:
    read = ", ".join(f"{role}={column}" for role, column in table.columns.items())
    left = f"; not read: {', '.join(table.unused[:8])}{', …' if len(table.unused) > 8 else ''}" if table.unused else ""
    tell(f"{table.name}: {counted(len(table.rows), 'answer')} ({read}{left})")


def _query_ids(tables: Sequence[AnswerTable], bank: TestBank | None) -> dict[tuple[str, str], str]:
    """(id, question) as they stand in rows -> query id.

    Ids of a column `id` may be those of rows. They are taken for those of questions only where each question has one,
    and each id one question; else questions are told apart by their texts.
    """
    has_ids = all("id" in table.columns and all(row.query_id for row in table.rows) for table in tables)
    problem = _two_ids(tables) if has_ids else None
    if problem is not None:
        if any(table.columns["id"].lower() != "id" for table in tables):
            raise problem
        tell("the column id names rows; queries are told apart by their texts", settings=("columns",))
        has_ids = False
    known = bank or TestBank({})
    of_text = {_same(text): query_id for query_id, text in reversed(list(known.query_texts.items()))}
    pairs = dict.fromkeys((row.query_id, row.query) for table in tables for row in table.rows)
    width = max(2, len(str(len({_same(query) for _, query in pairs}))))
    free = (name for number in count(1) if (name := f"q{number:0{width}}") not in known.items)
    found = {}
    for said, query in pairs:
        text = _same(query)
        if has_ids and (said in known.items or text not in of_text):
            found[said, query] = said
        else:
            found[said, query] = of_text[text] = of_text.get(text) or next(free)
    return found


def _two_ids(tables: Sequence[AnswerTable]) -> FormatError | None:
    """What is wrong with ids, where a question has two, or one is of two questions."""
    known: dict[tuple[str, str], AnswerRow] = {}
    for table, row in ((one, row) for one in tables for row in one.rows):
        for key in (("id", row.query_id), ("text", row.query)):
            first = known.setdefault(key, row)
            if (first.query_id, first.query) != (row.query_id, row.query):
                problem = f"{short(first.query)} has the id {first.query_id}, and {short(row.query)} the id "
                problem += f"{row.query_id}; an id is that of a query, one for all runs"
                return FormatError(problem, path=table.name, line=row.line, settings=("columns",))
    return None


def _same(text: str) -> str:
    """A question as questions are compared: blanks count as one, and neither case nor marks at the end count."""
    return " ".join(text.casefold().split()).rstrip(" ?!.")


_SETTINGS = ("measures", "columns")


def answers_with_citations(asked: Questions) -> list[Answer]:
    """The answers in sentences, with the contexts that each cites: `[1]` is the first one of its row.

    A number that no context has is left out and counted.

    Raises:
        InputError: no row has contexts, or no answer cites one.
    """
    if not any(row.contexts for _, row in asked.answers.values()):
        text = "there are no retrieved contexts that answers could cite; name their column"
        raise InputError(text, settings=_SETTINGS)
    answers = []
    lost: list[str] = []
    for (query_id, run_id), (where, row) in asked.answers.items():
        contexts = {str(place): (f"context/{answer_doc_id(one)}", one) for place, one in enumerate(row.contexts, 1)}
        said, _ = cited_sentences(row.answer, is_behind=True)
        lost += [f"[{number}] at {where}" for _, cited in said for number in cited if number not in contexts]
        sentences = tuple(text for text, _ in said)
        citations = (dict.fromkeys(contexts[one][0] for one in cited if one in contexts) for _, cited in said)
        more = tuple(map(tuple, citations)), tuple(dict(contexts.values()).items())
        answers.append(Answer(query_id, run_id, " ".join(sentences), sentences, *more))
    if not any(cited for answer in answers for cited in answer.citations):
        raise InputError("no answer cites a context of its row; write [1] for the first one", settings=_SETTINGS)
    warn("%d citations of no context left out (such as %s)", len(lost), next(iter(lost), ""))
    return answers
