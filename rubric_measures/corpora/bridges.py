"""Bridges: what one kind of file holds, made into what another holds."""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from rubric_measures.base.errors import FormatError, InputError, naming, warn
from rubric_measures.base.files import path_name, run_of_file
from rubric_measures.formats import FORMATS, banks, detect_format, judged, plain, support, trec
from rubric_measures.formats.answers import Answer, CitedReport, answer_of_report, say_contradictions
from rubric_measures.formats.base import PathName
from rubric_measures.formats.judged import GradeRow
from rubric_measures.formats.specs import Row
from rubric_measures.measures.grade_sets import Grader, chosen_grades, prompt_cells
from rubric_measures.measures.grades import DIRECT_ITEM, PARTIAL, UNSAID, all_rows
from rubric_measures.measures.loading import collect_grades, select_queries
from rubric_measures.records import models
from rubric_measures.records.models import GradedPassage, PassageData, QueryPassages
from rubric_measures.types.entities import GradeStatus, Qrel, Run, TestBank, make_run, sentence_items
from rubric_measures.types.scales import ASSIGNED


@dataclass(frozen=True)
class Options:
    """What conversions may need besides the files.

    Attributes:
        collection: where texts come from, for records made of a table of grades.
        bank: the test bank of grades.
        wanted: which grade set of records counts.
        answers: the answers that support judgments are about.
        name: what errors call the records.
    """

    collection: str | Sequence[str] | None = None
    bank: TestBank | None = None
    wanted: Grader = field(default_factory=Grader)
    answers: Sequence[Answer] = ()
    name: str = "the records"


Bridge = Callable[[Any, Options], Any]


def _records_to_judgments(groups: Sequence[QueryPassages], _: Options) -> list[Qrel]:
    labels: dict[tuple[str, str], set[float]] = {}
    for passage in (one for group in groups for one in group.passages):
        for said in passage.judgments:
            labels.setdefault((said.query_id, passage.doc_id), set()).add(said.relevance)
    several = [doc_id for (_, doc_id), found in labels.items() if len(found) > 1]
    warn("%d passages have several judgments; the highest is written (such as %s)", len(several), *several[:1] or [""])
    return [Qrel(*pair, max(found)) for pair, found in labels.items()]


def _records_to_grades(groups: Iterable[QueryPassages], options: Options) -> Iterable[GradeRow]:
    """All grades of all grade sets, and labels of whole passages; the names of prompts tell the sets apart."""
    passages = (one for group in groups for one in group.passages)
    keys = {models.grade_set_key(entry) for one in passages for entry in _sets_of(one)}
    prompts, types = prompt_cells(keys), Counter(key[:2] for key in {key[:3] for key in keys})
    # Other queries may call other items the same.
    texts = {(item.query_id, item.item_id): item.text for item in options.bank or ()}

    def rows() -> Iterator[GradeRow]:
        lost = 0
        for group, passage in ((one, passage) for one in groups for passage in one.passages):
            lost += bool(passage.text.strip())
            ranked = [(one.method, one.rank) for one in passage.rankings if one.query_id == group.query_id]
            places: Sequence[tuple[str | None, int | None]] = ranked or [(None, None)]
            for entry in _sets_of(passage):
                key = models.grade_set_key(entry)
                prompt = prompts[key] + f" ({key.kind})" * (types[key[:2]] > 1) or None
                reasons = models.reasons_of(entry)
                for (run, rank), (item, (grade, status)) in itertools.product(places, _grades_of(entry).items()):
                    text, reason = texts.get((group.query_id, item)), reasons.get(item)
                    ids = (group.query_id, passage.doc_id, run, rank, item)
                    yield GradeRow(*ids, text, grade, status, entry.llm, prompt, reason)
        warn("texts of %d passages left out: a table of grades has no place for them", lost)

    return rows() if keys else []


def _sets_of(passage: GradedPassage) -> Iterator[Any]:
    return itertools.chain(passage.exam_grades or (), passage.grades or ())


def _grades_of(entry: Any) -> dict[str, tuple[float | None, GradeStatus]]:
    """Item -> its grade and status."""
    if isinstance(entry, models.DirectGrade):
        return {DIRECT_ITEM: (entry.label, entry.known_status)}
    if models.is_partial(entry):
        raise InputError(f"{PARTIAL}, and {UNSAID}; grade all")
    grades, statuses = models.items_of_set(entry)
    return {one: (grades.get(one), statuses.get(one, "graded")) for one in (*grades, *statuses)}


def _table_to_records(rows: Sequence[GradeRow], options: Options) -> list[QueryPassages]:
    """The grades with the texts of their passages: of one grader, where the user names it, else of all."""
    if options.wanted.model or options.wanted.prompt:
        rows = chosen_grades(rows, options.name, options.wanted, options.bank)
    rows = [row if row.grader else row._replace(grader="qrels") for row in rows]
    if options.collection is None:
        raise InputError("records need the texts of their passages; name a collection", settings=("collection",))
    # ir_datasets takes longer to import than most files to convert.
    from rubric_measures.corpora.collections import load_collection, texts_of

    collection = load_collection(options.collection)
    if not collection.has_docs():
        raise InputError(f"{collection.source}: has no documents")
    texts = texts_of(collection.docs_store(), sorted({row.doc_id for row in rows}))
    kinds = {item.kind for item in options.bank or ()}
    kind = kinds.pop() if len(kinds) == 1 else "question"
    return judged.records_of_rows(rows, options.name, texts=texts, kind=kind, scale=options.wanted.scale)


def _requests_to_runs(lines: Sequence[plain.RequestLine], options: Options) -> list[Run]:
    """The candidates as one run, by their scores; where these are missing, in their order."""
    rows: dict[str, list[tuple[str, str, float]]] = {}
    for line in lines:
        query_id = line.query if isinstance(line.query, str) else str(line.query.qid)
        doc_ids = [str(getattr(one, "docid", "")) for one in line.candidates]
        if query_id is line.query or query_id in rows or not all(doc_ids):
            problem = f"see the query {query_id!r:.60}"
            raise InputError(f"a run needs the qid of each query, once, and the docid of each candidate; {problem}")
        scores: Any = [getattr(one, "score", None) for one in line.candidates]
        scores = [float(-place) for place in range(len(doc_ids))] if None in scores else scores
        rows[query_id] = list(zip(itertools.repeat(query_id), doc_ids, scores, strict=False))
    return [make_run(run_of_file(options.name), itertools.chain(*rows.values()))]


def _requests_to_records(lines: Sequence[plain.RequestLine], options: Options) -> list[QueryPassages]:
    """The candidates as passages to grade, ranked by the run that they are."""
    places = judged.places_of_runs(_requests_to_runs(lines, options))
    ranked = {pair: PassageData(rankings=of_pair) for pair, of_pair in places.items()}
    return [
        QueryPassages(one, [passage.replacing(paragraph_data=ranked[one, passage.doc_id]) for passage in passages])
        for one, passages, *_ in plain.passages_of_requests(lines, {})
    ]


def _records_to_assignments(groups: Sequence[QueryPassages], options: Options) -> list[judged.AssignmentLine]:
    if options.bank is None:
        problem = "assignments list the nuggets of each query; name the test bank"
        raise InputError(problem, settings=("bank",))
    groups = list(groups)
    grades = collect_grades(select_queries(groups, options.name, options.bank, options.wanted), options.bank)
    # Other grades would mean something else as assignments.
    scale = grades.scale
    if scale is None or scale[:2] != ASSIGNED[:2]:
        problem = f"assignments are grades on the scale {ASSIGNED}, and these are on {scale or 'none that is known'}"
        raise InputError(f"{problem}; if they are assignments, say their scale", settings=("scale",))
    if scale[:4] != ASSIGNED[:4]:
        warn("the grades' scale was %s; as assignments it is %s (support, partial support)", scale, ASSIGNED)
    rows = itertools.chain.from_iterable(map(all_rows, grades.queries.values()))
    return judged.lines_of_grades(options.bank, rows, groups)


def _judgments_to_labels(tasks: Sequence[Row], options: Options) -> list[support.SupportAnswer]:
    if not options.answers:
        problem = "support judgments say nothing of sentences that cite nothing"
        raise InputError(f"{problem}; name the answers that they are about", settings=("answers",))
    return support.answers_of_judgments(tasks, options.answers)


def _records_to_bank(groups: Sequence[QueryPassages], _: Options) -> list[banks.BankEntry]:
    """The sentences of answers whose citations are judged; other records say nothing of their items but ids."""
    sentences = {group.query_id: sentence_items(models.cited_answers(group)) for group in groups}
    if not any(sentences.values()):
        problem = "is no test bank: these graded records name their items by id alone"
        raise InputError(f"{problem}; records of answers with citations hold their texts")
    kept = {query_id: tuple(item for item in items if item.text.strip()) for query_id, items in sentences.items()}
    blank = sum(len(items) - len(kept[query_id]) for query_id, items in sentences.items())
    warn("%d sentences without text left out; a bank holds texts", blank)
    return banks.bank_entries(TestBank(kept))


def _reports_to_answers(found: Sequence[CitedReport], _: Options) -> list[Answer]:
    grades = sum(len(report.item_grades) for report in found)
    warn("%d grades of evaldata.nugget_grades left out; the format item-qrels takes them", grades, settings=("to",))
    say_contradictions(found)
    return [answer_of_report(report) for report in found]


def _reports_to_item_qrels(found: Sequence[CitedReport], _: Options) -> list[Qrel]:
    """What graders put into `evaldata.nugget_grades`; the document is called after the run."""
    rows = [(one.query_id, one.run_name, said.grade, item) for one in found for item, said in one.item_grades.items()]
    graded = [Qrel(query_id, run_id, grade, item) for query_id, run_id, grade, item in rows if grade is not None]
    warn("%d entries of evaldata.nugget_grades left out: they have no grade", len(rows) - len(graded))
    return graded


def _judged_to(target: str, lines: Sequence[judged.JudgedAnswer], options: Options) -> Any:
    """Judged answers as their items, as themselves without labels, or by way of records."""
    if target == "bank":
        return banks.bank_entries(judged.bank_of_judged(lines))
    if target == "answers":
        found = [Answer(str(one.qid), str(one.run_id), one.answer_text) for one in lines if one.answer_text is not None]
        warn("%d answers without a text left out", len(lines) - len(found))
        warn("the labels of %d answers left out", len(found))
        return found
    if target == "grades" and judged.toolkit_of(lines) is not judged.DRAGUN:
        # They bring the texts of their items.
        items = judged.bank_of_judged(lines)
        options = replace(options, bank=options.bank or items)
        lost = sum(item.importance is not None or item.weight is not None for item in items)
        warn("importances or weights of %d items left out: a table of grades has no place for them", lost)
    return bridged(judged.records_of_judged(lines), "records", target, options)


def _of_experiment(kind: str) -> Bridge:
    return lambda experiment, _: experiment[kind]


BRIDGES: Mapping[tuple[str, str], Bridge] = {
    ("records", "judgments"): _records_to_judgments,
    ("records", "runs"): lambda groups, _: trec.runs_of_records(groups),
    ("records", "assignments"): _records_to_assignments,
    ("reports", "answers"): _reports_to_answers,
    ("reports", "item qrels"): _reports_to_item_qrels,
    ("requests", "runs"): _requests_to_runs,
    ("requests", "records"): _requests_to_records,
    ("support labels", "records"): lambda answers, _: support.records_of_support_labels(answers),
    ("support judgments", "support labels"): _judgments_to_labels,
    ("records", "bank"): _records_to_bank,
    ("records", "grades"): _records_to_grades,
    ("grades", "records"): _table_to_records,
    **{("experiment", kind): _of_experiment(kind) for kind in ("queries", "records", "answers", "games")},
    **{
        (kind, target): partial(_judged_to, target)
        for kind in judged.TOOLKITS
        for target in ("records", "runs", "grades", "bank", "answers")
        # Assessments know their items by ids alone, and hold no answers.
        if kind != "assessments" or target not in ("bank", "answers")
    },
}


def targets_of(kind: str, kinds: Sequence[str]) -> list[str]:
    """Those of `kinds` that a kind can become, itself included."""
    return [target for target in kinds if target == kind or (kind, target) in BRIDGES]


def bridged(content: Any, kind: str, target: str, options: Options) -> Any:
    """The content of one kind as another, which it can become.

    Raises:
        InputError: the content holds nothing of the kind, or the content or the options do not do.
    """
    made = content if kind == target else BRIDGES[kind, target](content, options)
    if not made:
        raise InputError(f"the {kind} hold{'s' * (kind[-1] != 's')} no {'entries' if kind == target else target}")
    return made


def read_entries(path: PathName) -> list[banks.BankEntry]:
    """The entries of a bank in any format that holds one; two columns, or objects, of query ids and texts are one, too.

    Raises:
        InputError: the file cannot be opened.
        FormatError: it holds no bank; or it contradicts itself. Names file, line and field.
    """
    if path_name(path) == "-" or banks.is_bank(path):
        return list(banks.read_bank(path))
    name, is_told = bank_format(path)
    one = FORMATS[name]
    if one.read is None or not targets_of(one.kind, ["bank"]):
        raise FormatError(f"is no test bank (its format is {name})", path=path_name(path), line=1)
    try:
        with naming(path):
            return list(bridged(one.read(path), one.kind, "bank", Options()))
    except FormatError as error:
        # What the header lacks says what the file may be; what a row lacks is a slip.
        if not is_told and error.line <= 1:
            error.problem = f"is no test bank ({error.problem})"
        raise


def bank_format(path: PathName) -> tuple[str, bool]:
    """The format of a file, and whether its content tells it: what could be anything is a bank, where one is wanted."""
    name = "queries"
    with contextlib.suppress(FormatError):
        name = detect_format(path)
    return (name, True) if name != "queries" else ("bank:csv", False)
