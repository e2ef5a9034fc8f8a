"""Commands that make grades: answers, combine, example, generate, grade, pool.

`answers`: a table of answers to grades, scores and a report that says which facts are missing.

`combine`: the grades of several graders as those of a panel, in one file.

`example`: the main job from start to end on the example collection, each step printed as the command that it is.

The command `generate`: queries -> test bank; queries and documents -> nuggets; passages -> synthetic queries.

`grade`: passages and a test bank through a grader, cached and resumable, into graded passage records.

`pool`: runs, answers, judgments and texts become the passages to grade.
"""

from __future__ import annotations

import logging
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rubric_measures.base.errors import InputError, refuse_ignored, warn
from rubric_measures.base.tables import Report, Table, columns, render
from rubric_measures.cli.declared import Call, Command
from rubric_measures.cli.inputs import CALLS, REPLIES, gated, gates_of, review_over

if TYPE_CHECKING:
    from rubric_measures.grading.grader import GradedRecords


@Command(
    ["rubric_measures.api.answers:evaluate_answers"],
    files={"answers": "ANSWERS…"}, spelled={"output": "--folder"}, without=("title", "gates", "review"),
    fields={"asking": ("explain", "items_per_call", "max_tokens"), "calls": CALLS},
)  # fmt: skip
def answers(
    evaluate: Call,
    *,
    output: str,
    columns: str | None = None,
    measures: Sequence[str] = (),
    against: str | None = None,
    run: str | None = None,
    fail_under: Mapping[str, float] = {},
    fail_if_worse: bool = False,
    format: Literal["text", "markdown"] = "text",
) -> int:
    """a table of answers to grades, scores and a report

    examples:
      rubric_measures answers results.csv --model openai:gpt-4o --folder report
      rubric_measures answers v1.csv v2.csv --bank report/bank.csv --model openai:gpt-4o --folder report
      rubric_measures answers new.csv --against main --model openai:gpt-4o --folder new --confirm 3 --fail-if-worse
      rubric_measures answers both.csv --systems prod candidate --against prod --model openai:gpt-4o --folder report
      rubric_measures answers results.jsonl --columns query=ask,answer=said --model lexical --folder report

    A row is an answer. The column names of ragas, deepeval and Hugging Face datasets are known. Several
    files are several runs. The same command again goes on where it stopped, and makes no call twice. The bank that was
    made lies in report/bank.csv: edit it, and run again. Exit code 3: a gate is not passed.

    Args:
        answers: tables: CSV, TSV, JSON, JSON lines, parquet.
        output: the folder for grades, scores, bank and report.
        columns: ROLE=COLUMN,… for other names: query, answer, reference, contexts, id, run.
        measures: what is scored; by default what fits the bank.
        against: the answers before: a folder of this command, whose bank is used; a table, graded in the same call; or
            a run of ANSWERS. Facts that were gained and lost are named.
        run: the run that has to pass, and is compared; by default each.
        fail_under: a gate, MEASURE=N: the least mean, of each run.
        fail_if_worse: a gate: the whole interval against the answers before is below 0.
        format: markdown is a comment for a pull request.
    """
    from rubric_measures.formats.answers import parsed_columns
    from rubric_measures.measures.measure import SupportMeasure, parse_measures

    gates = gates_of(fail_under, run, against is not None)
    if fail_if_worse and against is None:
        raise InputError("--fail-if-worse: worse than what? Name it with --against")
    given = {"output": output, "measures": measures or None, "against": against, "run": run, "gates": gates}
    kept = [str(Path(output) / name) for name in ("graded.jsonl.gz", "bank.csv")]
    review = review_over([kept[0], "--bank", kept[1]])
    if not any(isinstance(one, SupportMeasure) for one in parse_measures(measures or "NuggetV")):
        given |= {"review": review.address, "notes": [review.note]}
    made = evaluate(**given, columns=parsed_columns(columns) if columns else None)
    if made.plan is not None:
        print(made.plan)
        return 0
    status = 0 if made.is_complete else 1
    if format == "markdown":
        board = made.board.render("markdown")
        sys.stdout.write(board if made.diff is None else f"{made.diff.markdown(beside=len(board))}\n{board}")
    else:
        print(*[made.board, *([] if made.diff is None else [made.diff]), f"report: {made.page}"], sep="\n\n")
    status = gated(gates, made.board, status, made.runs)
    if made.diff is None or not fail_if_worse:
        return status
    for one in made.diff.worse:
        logging.getLogger("rubric_measures").error("%s", str(one).replace("\n", "; "))
    warn("not counted by --fail-if-worse: %s", made.diff.not_counted or 0)
    return 3 if made.diff.worse else status


@Command(["rubric_measures.analysis.graders:combine"], files={"passages": "GRADED"}, without=("name",))
def combine(combine: Call, *, output: str) -> int:
    """grades of several graders as those of one

    examples:
      rubric_measures combine graded.jsonl.gz --grader A --grader B --grader C --by majority -o panel.jsonl.gz
      rubric_measures leaderboard panel.jsonl.gz --grader panel:majority --bank bank.jsonl.gz
      rubric_measures combine graded.jsonl.gz --by prefer --grader large --grader small -o best.jsonl.gz

    Args:
        by: how grades become one; prefer is no vote: of each item the grade of the first grader that has one, so that
            one that failed, or was not asked, leaves it to the next.
        grader: a member of the panel, a choice as for `leaderboard`; repeat it for each.
        output: the records with the new grades, or their table by name: .csv, .tsv.
    """
    combine(output=output)
    return 0


def _copied(source: Path, target: Path) -> Path:
    """The collection, copied into a folder that is new or empty."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"{target}: is there already; name a folder that is new or empty")
    try:
        return Path(shutil.copytree(source, target, dirs_exist_ok=True))
    except shutil.Error as error:
        shutil.rmtree(target, ignore_errors=True)
        raise InputError(f"{target}: cannot be written ({error.args[0][0][2]})") from None


@Command()
def example(*, folder: str = "example-output", copy: str | None = None) -> int:
    """run the main job on the example collection

    examples:
      rubric_measures example --folder /tmp/example
      rubric_measures example --copy example   (all files at hand, with the commands that use them)

    Passages are pooled from seven rankings and three generated-answer runs, graded against a bank of questions and a
    bank of nuggets by the embedded lexical grader, and scored; then the answers by what they cite. No key, no GPU, no
    network; a second run makes no call.

    Args:
        folder: where the files go.
        copy: only put the collection into this folder, and print the commands.
    """
    from rubric_measures.cli import run_command
    from rubric_measures.corpora.collections import example_folder

    target = Path(folder)
    if target.resolve() == example_folder().resolve():
        raise InputError(f"{target}: is the example collection itself; name another folder")
    source = example_folder() if copy is None else _copied(example_folder(), Path(copy))
    named = {"source": shlex.quote(str(source)), "folder": shlex.quote(str(target))}
    said = Path(__file__).with_name("example.txt").read_text(encoding="utf-8").format_map(named)
    steps, _, closing = said.partition("\n\n")
    if copy is not None:
        print(f"{source}: the example collection. What `rubric_measures example` runs, over these files:\n")
        print(f"$ mkdir -p {shlex.quote(str(target))}")
    else:
        target.mkdir(parents=True, exist_ok=True)
    status = 0
    for step in steps.splitlines():
        print(f"{'$' if copy else chr(10) + '$'} rubric_measures {step}", flush=True)
        if copy is None:
            status = max(status, run_command(shlex.split(step)))
    if copy is None:
        print(f"\n{closing}", end="", flush=True)
    return status


@Command(
    ["rubric_measures.grading.generation:generate"],
    files={"queries": "[QUERIES]"}, fields={"asking": REPLIES, "calls": CALLS},
)  # fmt: skip
def generate(generate: Call, *, output: str = "-") -> int:
    """queries to a test bank; passages to synthetic queries

    examples:
      rubric_measures generate queries.tsv --model openai:gpt-4o -o bank.jsonl.gz
      rubric_measures generate queries.tsv --target nuggets --from-documents graded.jsonl.gz --by direct \\
          --model openai:gpt-4o -o nuggets.jsonl.gz
      rubric_measures generate --target queries --passages passages.tsv --examples real.txt --model openai:gpt-4o \\
          --quota openai:gpt-4o=100 -o queries.jsonl

    Exit code 1: some calls led to nothing (they are listed on standard error); the rest is in the file. Run the same
    command again: only what is missing is asked.

    Args:
        output: the file to write (default: standard output).
    """
    made = generate(output=output)
    if made.plan:
        names = ["model", "calls", "cached", "prompt_tokens", "completion_tokens_at_most", "cost_at_most"]
        of_row = attrgetter("name", "calls", "cached", "prompt_tokens", "completion_tokens", "cost")
        sys.stdout.writelines(render(Report([Table(columns(names), [*map(of_row, made.plan)])]), "tsv"))
    return 0 if made.is_complete else 1


@Command(
    [
        "rubric_measures.grading.grade:grade",
        "rubric_measures.grading.grade:regrade",
        "rubric_measures.grading.grade:grade_support",
    ],
    files={"passages": "PASSAGES…"},
    spelled={"measures": "--for", "limit": "--passages-per-query"},
    without=("answers", "graded", "give_up_after", "document_texts"),
)
def grade(
    grade: partial[GradedRecords],
    regrade: partial[GradedRecords],
    grade_support: partial[GradedRecords],
    *,
    passages: Sequence[str],
    output: str | None = None,
    dry_run: bool = False,
    support: bool = False,
    only_changed: bool = False,
) -> int:
    """grade passages against a test bank with a model; cached, resumable

    examples:
      rubric_measures grade passages.jsonl.gz --bank bank.jsonl.gz --model lexical -o graded.jsonl.gz
      rubric_measures grade passages.jsonl.gz --bank bank.jsonl.gz --model openai:gpt-4o --dry-run --prices prices.json
      rubric_measures grade review/graded.jsonl.gz --bank review/bank.jsonl --model lexical --only-changed \\
          -o new.jsonl.gz
      rubric_measures grade graded.jsonl.gz --bank bank.jsonl.gz --model hf:google/flan-t5-large \\
          --prompt QuestionSelfRatedUnanswerablePromptWithChoices --prompt Thomas -o graded2.jsonl.gz
      rubric_measures grade passages.jsonl.gz --bank bank.jsonl.gz --model openai:gpt-4o \\
          --for 'RubricCover(rel=4)@20' -o graded.jsonl.gz
      rubric_measures grade --support answers/*.jsonl --collection docs --model openai:gpt-4o -o support.jsonl.gz
      rubric_measures grade passages.jsonl.gz --bank bank.jsonl.gz --model hf:google/flan-t5-large --runner ray \\
          --ray-address auto -o graded.jsonl.gz

    Every reply is kept in the cache (OUT.cache.sqlite unless --cache names a file): run the same command again after an
    interruption, and finished calls are not made again. OUT.manifest.json says what made the grades.
    A price table is JSON: {"gpt-4o": {"input": 2.5, "output": 10}}, for a million tokens.

    Args:
        passages: passages by query, graded or not (JSON lines, .gz or -); with --support answers, one file or several.
        output: where the graded records go (- for standard output).
        dry_run: say what would be called and what it would cost; write nothing.
        support: PASSAGES are answers, one file or several: judge each sentence by the documents that it cites.
        only_changed: PASSAGES have grades: grade only the items that edits of the bank touched.
    """
    if output is None and not dry_run:
        raise InputError("name the output with -o (or ask for --dry-run)")
    way = "support" if support else "only_changed" if only_changed else ""
    done = grade_support if support else regrade if way else grade
    ignored = {name for one in (grade, regrade, grade_support) for name in one.keywords} - done.keywords.keys()
    if support and only_changed:
        ignored.add("only_changed")
    kind = "citations are judged" if support else "only some items are graded" if way else "all items are graded"
    beside = {"old_bank": "only_changed", "collection": "support", "citations": "support"}
    refuse_ignored(ignored, f"where {kind}", way or beside.get(min(ignored, default=""), ""))
    if not support and len(passages) > 1:
        raise InputError("name one file of passages; several are answers, with --support")
    graded = done(passages if support else passages[0], output=output, dry_run=dry_run)
    if graded.plan is not None:
        print(graded.plan)
        return 0
    return 0 if graded.report.is_complete else 1


@Command(
    ["rubric_measures.corpora.pooling:pool"],
    files={"runs": "[RUN…]"}, spelled={"queries": "--query-file"},
)  # fmt: skip
def pool(pool: Call, *, output: str, whole: bool = False) -> int:
    """runs and answers to the passages to grade

    examples:
      rubric_measures pool --collection resources/example -o passages.jsonl.gz
      rubric_measures pool bm25.run dense.run -c msmarco-passage/trec-dl-2020/judged -k 10 -o passages.jsonl.gz
      rubric_measures pool answers/*.jsonl --whole --query-file topics.jsonl -o passages.jsonl.gz

    Args:
        output: write the records there (.jsonl.gz).
        whole: leave answers whole; grade each as one passage.
    """
    if whole and "max_words" in pool.keywords:
        raise InputError("answers that are left whole need no longest passage; leave one out", settings=("max_words",))
    pool(output=output, **({"max_words": None} if whole else {}))
    return 0
