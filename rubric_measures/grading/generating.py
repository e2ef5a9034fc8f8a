"""Making test banks and queries: queries to questions or nuggets, documents to nuggets, passages to queries."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rubric_measures.base import __version__
from rubric_measures.base.errors import GradingError, InputError, counted, naming, tell, warn
from rubric_measures.base.files import peek_head, read_text
from rubric_measures.base.tables import in_notebook
from rubric_measures.corpora.loading import File, Rows, file_beside, grader_of, is_given, named_files
from rubric_measures.corpora.overwriting import keep_cache, keep_inputs
from rubric_measures.formats.banks import write_bank
from rubric_measures.formats.judged import REQUESTS, passages_of_requests
from rubric_measures.formats.queries import read_queries
from rubric_measures.formats.specs import QUERY_IDS
from rubric_measures.formats.tables import cells_of
from rubric_measures.grading.asking import Ask, Asking
from rubric_measures.grading.generation import (
    MAX_NUGGETS,
    Caller,
    Failure,
    generate_bank,
    generate_queries,
    long_passages,
    made_entries,
    nuggetize,
    published_calls,
    read_bank_queries,
    read_passages,
    related_segments,
    sample_by_model,
    sample_passages,
    write_synthetic,
)
from rubric_measures.grading.grade import refuse_unused
from rubric_measures.measures.grade_sets import Grader
from rubric_measures.models.settings import CalledModel, Calls, Interrupts, note_limit
from rubric_measures.records.models import load_graded
from rubric_measures.types.entities import Query, TestBank

if TYPE_CHECKING:
    from rubric_measures.grading.generation import MadeBank, RelatedBy, SourceSegment, SyntheticQueries, SyntheticQuery
    from rubric_measures.models.base import Backend
    from rubric_measures.models.settings import Progress
    from rubric_measures.records.models import QueryPassages

_File = str | os.PathLike[str]
# Failures that are listed one by one.
_SHOWN = 20
_LONGEST = 2048  # tokens of a reply
# What is made -> the arguments that are about it, and the program whose words there are for its prompts.
_USED_BY: Mapping[str, Sequence[str]] = {
    "queries": ("passages", "examples", "quota"),
    "nuggets of documents": ("queries", "from_documents", "by", "min_judgment", "grader", "over_generate"),
    "a bank": ("queries",),
}
_WORDS = {"queries": "", "nuggets of documents": "nuggetizer", "a bank": "workbench"}


class CallPlan(NamedTuple):
    """What a dry run counted for one model; `cost` is of replies as long as they may be, None where it is unknown."""

    model: str
    calls: int
    cached: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None


@dataclass(frozen=True, repr=False)
class Generated:
    """What was made.

    Attributes:
        bank: the test bank; without items where queries were asked for, or in a dry run.
        queries: the synthetic queries.
        failures: calls that led to nothing.
        missing: model -> queries that its quota asked for and that it did not write.
        plan: of a dry run, what each model would be asked.
    """

    bank: TestBank
    queries: tuple[SyntheticQuery, ...] = ()
    failures: tuple[Failure, ...] = ()
    missing: Mapping[str, int] = field(default_factory=dict)
    plan: tuple[CallPlan, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether all that was asked for is there."""
        return not self.failures and not self.missing

    def __repr__(self) -> str:
        if self.plan:
            calls = ", ".join(f"{counted(one.calls, 'call')} of {one.model}" for one in self.plan)
            return f"Generated(dry run: {calls})"
        made = counted(len(self.queries), "query") if self.queries else repr(self.bank)
        failed = f", {counted(len(self.failures), 'failure')}" if self.failures else ""
        return f"Generated({made}{failed})"

    def _repr_html_(self) -> str:
        return in_notebook([], repr(self)) + (self.bank._repr_html_() if len(self.bank) else "")


def generate(
    queries: File | Mapping[str, str] | Rows | None = None,
    *,
    model: str | Backend | Sequence[str | Backend],
    target: Literal["questions", "nuggets", "queries"] = "questions",
    output: _File | None = None,
    limit: int | None = None,
    program: Literal["", "workbench", "nuggetizer"] = "",
    from_documents: File | Sequence[QueryPassages] | None = None,
    by: Literal["judgments", "direct", "all"] = "judgments",
    min_judgment: int = 1,
    grader: str | Grader | None = None,
    over_generate: bool = False,
    passages: File | Rows | None = None,
    examples: File | Rows | Sequence[str] | None = None,
    quota: Mapping[str, int] | None = None,
    asking: Asking = Asking(),
    calls: Calls = Calls(),
    dry_run: bool = False,
    progress: Progress = None,
) -> Generated:
    """Lets a model write a test bank for queries, or synthetic queries for passages.

    A call that led to nothing is in `failures` of the result; all else is made. With a cache, calling this function
    again asks only what is missing.

    Args:
        queries: query -> text, a file (JSON, JSON lines, TSV), a frame, or an ir_datasets id.
        model: `hf:NAME`, `openai:NAME`, `litellm:PROVIDER/NAME`, `scripted:FILE`, or a backend of your own; several for
            synthetic queries.
        target: what to make.
        output: the file to write; the cache lies beside it, if nothing else is said.
        limit: only this many queries, the first ones; of passages this many texts, drawn at random.
        program: put the prompts in the words that this program sends (`workbench` without documents, `nuggetizer` with
            them), not in those of the papers. `nuggetizer` keeps all 30 nuggets, where its paper keeps 20.
        from_documents: nuggets from these passages: records, or nuggetizer's requests.
        by: what makes a passage related.
        min_judgment: the lowest label that is related.
        grader: of direct labels: whose count; a name, or `model=…,prompt=…`.
        over_generate: keep all nuggets, without importance, for assessors to edit.
        passages: synthetic queries: the collection (records, JSON lines, TSV, or an ir_datasets id).
        examples: real questions: texts, or a file (one a line, or a query file).
        quota: model -> how many of its queries to keep; all of them by default.
        asking: temperature, longest reply (2048 tokens by default), further options and retries.
        calls: where models are called, what is kept, and what it may cost. The cache is `OUTPUT.cache.sqlite` by
            default; without an output replies are not kept.
        dry_run: make no call and write nothing; `plan` of the result says what would be asked.
        progress: True shows a bar; a function is told the counts (`RunStats`); default: a bar in a notebook alone.

    Raises:
        InputError: a setting is missing, wrong or without effect, or an input cannot be read.
        GradingError: the model cannot be used, or no call led to anything.
    """
    given = dict(locals())
    several: Any = model if isinstance(model, list | tuple) else [model]
    models: dict[str, str | Backend] = {one if isinstance(one, str) else one.model: one for one in several}
    specs = list(models)
    path = file_beside(output, calls.cache, ".cache.sqlite")
    calls = dataclasses.replace(calls, cache=path)
    made_of = "queries" if target == "queries" else "nuggets of documents" if is_given(from_documents) else "a bank"
    _check(made_of, specs, given)
    if calls.max_calls == 0 and path is None:
        text = "a run that makes no call needs a cache, or an output file beside which it lies"
        raise InputError(text, settings=("max_calls", "cache"))
    read = [queries, from_documents, passages, examples, calls.prices]
    read += [spec.removeprefix("scripted:") for spec in specs if spec.startswith("scripted:")]
    keep_inputs(output, *read)
    keep_cache(path, output, *read)
    how = asking.only("temperature", "max_tokens", "option", "retries")
    how = dataclasses.replace(how, max_tokens=how.max_tokens or _LONGEST)
    with contextlib.ExitStack() as stack, _callers(models, calls, how, dry_run, progress) as asked:
        queries, passages, examples, from_documents = (
            named_files(one, stack) for one in (queries, passages, examples, from_documents)
        )
        callers = [caller for _, caller in asked]
        first = callers[0]
        if made_of == "queries":
            shown = long_passages(read_passages(str(passages)), first.runner.backend.count_tokens)
            drawn = list(shown) if limit is None else sample_passages(shown, limit)
            # A quota names a model as it was named; its queries bear the canonical name.
            names = {spec: caller.model for spec, caller in zip(specs, callers, strict=True)}
            if unknown := [spec for spec in quota or {} if spec not in names]:
                raise InputError(f"a quota of {unknown[0]}: expected one of {', '.join(names)}", settings=("quota",))
            quotas = {names[spec]: count for spec, count in (quota or {}).items()}
            written = generate_queries(drawn, callers, examples=_examples(examples))
        else:
            with naming(queries):
                listed = read_bank_queries(queries, limit)
            if made_of == "a bank":
                kind: Literal["nugget", "question"] = "nugget" if target == "nuggets" else "question"
                found = generate_bank(listed, first, kind=kind, program=program)
            else:
                texts = {query.query_id: query.text for query in listed}
                related = _related(from_documents, texts, by, min_judgment, grader_of(grader))
                every = [Query(*one) for one in texts.items()]
                found = nuggetize(every, related, first, over_generate=over_generate, program=program)
                if dry_run and not over_generate:
                    text = "importance takes up to %d calls more, by the nuggets that creation leads to"
                    tell(text, published_calls(0, MAX_NUGGETS)[1] * sum(bool(related.get(one)) for one in texts))
        if dry_run:
            return Generated(TestBank({}), plan=tuple(_plan(known, caller) for known, caller in asked))
        made = _drawn(written, quotas, output) if made_of == "queries" else _finished(first, found, output)
        for caller in callers:
            tell("%s: %s", caller.model, caller.stats)
            note_limit(caller.stats, is_kept=path is not None)
        return made


def _check(made_of: str, specs: Sequence[str], given: Mapping[str, Any]) -> None:
    """Refuses what is missing and what would be ignored in silence."""
    if made_of == "queries" and not (is_given(given["passages"]) and is_given(given["examples"])):
        raise InputError("synthetic queries need passages and examples", settings=("passages", "examples"))
    if made_of != "queries" and not is_given(given["queries"]):
        raise InputError("name the queries: a file or an ir_datasets id")
    if made_of != "queries" and len(specs) > 1:
        raise InputError("several models are for synthetic queries; name one", settings=("model", "target"))
    if made_of == "nuggets of documents" and given["target"] != "nuggets":
        raise InputError("nuggets are made from documents, nothing else", settings=("from_documents", "target"))
    if given["program"] not in ("", words := _WORDS[made_of]):
        known = f"the words of {words}" if words else "no program's words"
        raise InputError(f"{given['program']}: there are {known} for these prompts", settings=("program",))
    others = [name for names in _USED_BY.values() for name in names if name not in _USED_BY[made_of]]
    refuse_unused(generate, given, others)
    if wrong := [count for count in (given["quota"] or {}).values() if type(count) is not int or count < 0]:
        raise InputError(f"a quota is a number of queries, not {wrong[0]!r}", settings=("quota",))
    if given["limit"] is not None and given["limit"] < 1:
        raise InputError("limit must be at least 1", settings=("limit",))
    if "lexical" in specs:
        text = "the lexical grader cannot write: choose a model that can (hf:, openai:, scripted:)"
        raise InputError(text, settings=("model",))


@contextlib.contextmanager
def _callers(
    models: Mapping[str, str | Backend], calls: Calls, how: Asking, dry_run: bool, progress: Progress
) -> Iterator[list[tuple[CalledModel, Caller]]]:
    """What puts questions to the models, behind their cache; of a dry run, what counts them."""
    with contextlib.ExitStack() as stack:
        stop = None if dry_run else stack.enter_context(Interrupts()).event
        found = []
        for spec, one in models.items():
            model = calls.to(one)
            if dry_run:
                runner = stack.enter_context(model.planning())
            else:
                runner = stack.enter_context(model.asking(progress, unit="calls", name=spec, stop=stop))
            found.append((model, Caller(runner, how)))
        yield found


def _plan(model: CalledModel, caller: Caller) -> CallPlan:
    tally = caller.runner.tally
    assert tally is not None
    tokens = (tally.prompt_tokens, tally.completion_tokens)
    cost = None if model.price is None else model.price.of(*tokens)
    return CallPlan(caller.model, tally.calls, caller.stats.cached, *tokens, cost)


def _say_failures(failures: Sequence[Failure]) -> None:
    """Lists what led to nothing, and what helps."""
    for failure in failures[:_SHOWN]:
        warn("query %s, %s: %s", *failure)
    warn("and %d more calls that led to nothing", len(failures[_SHOWN:]))
    if any(failure.reason.startswith("truncated") for failure in failures):
        tell("replies that were cut need a higher max_tokens", settings=("max_tokens",))
    if any(not failure.reason.startswith(("failed", "refused", "truncated", "none is")) for failure in failures):
        # Such a reply is in the cache: the same call would read it again.
        tell("replies that cannot be read are drawn again with more retries", settings=("retries",))


def _related(
    source: Any, texts: Mapping[str, str], by: RelatedBy, level: int, grader: Grader | None
) -> Mapping[str, Sequence[SourceSegment]]:
    """Query -> the segments that are related to it, of graded records or of nuggetizer's requests."""
    name = "the passages"
    if isinstance(source, str | os.PathLike):
        name = os.fspath(source)
        if name == "-" or peek_head(name).lstrip()[:1] != b"{":
            source = load_graded(name)
        elif by == "all":
            source = passages_of_requests(REQUESTS.read(name), {text: query_id for query_id, text in texts.items()})
        else:
            raise InputError(f"{name}: requests hold no labels of their documents; take all", settings=("by",))
    groups = [group for group in source if group.query_id in texts]
    segments = related_segments(groups, by=by, level=level, grader=grader)
    if not any(segments.values()):
        raise InputError(f"{name}: no query has a passage of level {level} or more")
    return segments


def _finished(caller: Caller, found: MadeBank, output: _File | None) -> Generated:
    """Writes what there is, where it shall be written, and says what there is not."""
    bank, failures = found.bank, found.failures
    _say_failures(failures)
    if not len(bank):
        raise GradingError(f"{caller.model}: no call led to an item; nothing was written")
    if output is not None:
        info = {
            "made_by": f"rubric_measures {__version__}",
            "model": caller.model,
            "options": dict(caller.asker(found.prompts[0]).request(Ask(()), "").options),
            "prompts": {prompt.prompt_class: prompt.hash for prompt in found.prompts},
        }
        write_bank(output, made_entries(bank, info))
    made = [query_id for query_id, items in bank.items.items() if items]
    if lacking := {failure.query_id for failure in failures} - set(made):
        count, names = len(made) + len(lacking), ",".join(made)
        tell(f"the bank has {len(made)} of {count} queries; only passages of these can be graded: {names}")
    return Generated(bank, failures=failures)


def _drawn(made: SyntheticQueries, quotas: Mapping[str, int], output: _File | None) -> Generated:
    """Draws as many as were asked for, writes them, and says what there is not."""
    _say_failures(made.failures)
    # A model of which every call failed takes nothing from the others.
    queries, missing = sample_by_model(made.queries, quotas) if quotas else (made.queries, {})
    for model, count in missing.items():
        warn("%s: %d queries fewer than its quota; give it more passages", model, count)
    if not queries:
        raise GradingError("no call led to a query; nothing was written")
    if output is not None:
        write_synthetic(os.fspath(output), queries)
    return Generated(TestBank({}), tuple(queries), tuple(made.failures), missing)


def _examples(source: Any) -> list[str]:
    """Real questions: texts, those of a query file, or the lines of a file of plain text."""

    if not isinstance(source, str | os.PathLike):
        return list(source)
    text = read_text(source)
    if text.lstrip()[:1] in ("{", "[", "<") or "\t" in text or cells_of(text.partition("\n")[0])[0] in QUERY_IDS:
        return list(read_queries(source).values())
    return [line.strip() for line in text.split("\n") if line.strip()]
