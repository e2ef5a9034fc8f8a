"""What a grading will cost, and the manifest that says how it was done.

Before spending: how many calls and tokens a grading run would need, how much is cached, what it would cost.

The manifest beside graded records: what made them, in full; counts by status.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rubric_measures.base.files import atomic_writer, path_name, read_text
from rubric_measures.base.json_text import parse_json
from rubric_measures.base.tables import Cell, Column, Report, Table, render
from rubric_measures.grading.grader import GradingEngine, GradingReport, default_prompts
from rubric_measures.models.base import Tally, llm_name
from rubric_measures.models.replies import LedgerRow
from rubric_measures.models.running import LocalRunner, Price
from rubric_measures.records.models import QueryPassages
from rubric_measures.types.entities import TestBank, bank_content, canonical_json


@dataclass(frozen=True)
class Estimate:
    """What the grades of one prompt would need.

    Attributes:
        prompt_class: the prompt.
        calls: calls to make (first draws; further ones of unreadable replies and checks by a model come on top).
        cached: replies that are in the cache.
        shared: requests that equal one of the calls, of this prompt or of one before it.
        kept: grades that the records have already.
        prompt_tokens: tokens shown in the calls, by the model's tokenizer or an estimate.
        completion_tokens: tokens written at most.
        checks: checks by a model that may follow, at most: those of the item with the most gold answers for each call.
        cost: of the calls, with replies as long as they may be; None when the price is unknown.
        cost_at_most: of all that may be called: every reply cut, asked for with more tokens, as long as it may be then,
            unreadable as often as it is drawn again, and checked. None when the price is unknown.
    """

    prompt_class: str
    calls: int
    cached: int
    shared: int
    kept: int
    prompt_tokens: int
    completion_tokens: int
    checks: int
    cost: float | None
    cost_at_most: float | None

    @property
    def cached_share(self) -> float:
        """The share of the requests that needs no call, 0 to 1; 1 where there are none."""
        requests = self.calls + self.cached + self.shared
        return 1 - self.calls / requests if requests else 1.0


# What heads each column of a plan, and the field or property that it has.
_COLUMNS = {
    "prompt": "prompt_class",
    **{name: name for name in ("calls", "cached", "shared", "cached_share", "kept", "prompt_tokens")},
    "completion_tokens_at_most": "completion_tokens",
    "checks_at_most": "checks",
    "cost_of_calls": "cost",
    "cost_at_most": "cost_at_most",
}


class GradingPlan(tuple[Estimate, ...]):
    """What grading would need, prompt by prompt; as text, a table with tabs between its columns."""

    __slots__ = ()

    @property
    def calls(self) -> int:
        """The calls of all prompts."""
        return sum(row.calls for row in self)

    @property
    def cost(self) -> float | None:
        """What they cost, with replies as long as they may be; None when the price is unknown."""
        return _total([row.cost for row in self])

    @property
    def cost_at_most(self) -> float | None:
        """The cost of all that may be called; None when the price is unknown."""
        return _total([row.cost_at_most for row in self])

    def __str__(self) -> str:
        rows: list[list[Cell]] = [[getattr(row, name) for name in _COLUMNS.values()] for row in self]
        if len(self) > 1:
            rows.append(["all", self.calls, *[None] * 7, self.cost, self.cost_at_most])
        heads = [Column(head, places=3) if head == "cached_share" else Column(head) for head in _COLUMNS]
        return "".join(render(Report([Table(heads, rows)]), "tsv")).rstrip("\n")

    __repr__ = __str__


def _total(costs: Sequence[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None


def estimate(
    grader: GradingEngine, groups: Sequence[QueryPassages], bank: TestBank, price: Price | None = None
) -> GradingPlan:
    """What grading would need, prompt by prompt; makes no call and changes no file.

    Args:
        grader: as it would grade; its cache is only read.
        groups: the passages.
        bank: the test bank.
        price: what the model costs.
    """
    found = []
    known: set[str] = set()
    for name in grader.prompts or default_prompts(grader.runner.backend.model, bank, grader.citations is not None):
        counter = Tally(known)
        runner = LocalRunner(grader.runner.backend, grader.runner.cache, max_calls=0, tally=counter)
        report = GradingReport()
        single = dataclasses.replace(grader, runner=runner, prompts=(name,))
        [maker] = single.makers(bank)
        for _ in single.grade_records(groups, bank, report):
            pass
        shown, written = counter.prompt_tokens, counter.completion_tokens
        # A reply that another prompt asks for, too, is checked here as well.
        replies = counter.calls + counter.repeated
        checks, check_shown, check_written = (replies * most for most in maker.style.most_checks(bank))
        most = maker.style.at_most(bank, shown + check_shown, written + check_written)
        found.append(
            Estimate(
                maker.style.prompt.prompt_class,
                counter.calls,
                report.run.cached,
                report.run.shared + counter.repeated,
                report.kept,
                shown,
                written,
                checks,
                None if price is None else price.of(shown, written),
                None if price is None else price.of(*most),
            )
        )
    return GradingPlan(found)


_LOG = logging.getLogger("rubric_measures")
# What of an earlier run's manifest is kept in the next one.
_KEPT = ("calls", "llm", "model", "prompts", "returned_models", "statuses", "versions")

# Of the counts of a run, those that the manifest has under their own names.
_COUNTS = (
    "cached", "cached_completion_tokens", "cached_prompt_tokens", "completion_tokens", "failed", "prefix_tokens",
    "prompt_tokens", "reasoning_tokens", "shared", "truncated",
)  # fmt: skip
_PACKAGES = ("torch", "transformers", "openai", "snowballstemmer", "rapidfuzz")


def make_manifest(
    grader: GradingEngine, bank: TestBank, report: GradingReport, files: dict[str, str] | None = None
) -> dict[str, Any]:
    """Everything that is needed to say how grades came about, JSON-able.

    The grade sets of the records name a signature; `prompts` spells each of them out.

    Args:
        grader: the grader.
        bank: the bank that it graded against.
        report: the counts of the run.
        files: what was read and written, by role.
    """
    from importlib.metadata import version

    from rubric_measures.base import __version__

    run = report.run
    backend = grader.runner.backend
    # Of those that took part; none is imported for it.
    packages = {name: version(name) for name in _PACKAGES if name in sys.modules}
    prompts: dict[str, Any] = {}
    # Those that made the grades: a prompt's file may be another one by now.
    for maker in report.makers or grader.makers(bank):
        prompt = maker.style.prompt
        prompts[prompt.prompt_class] = {
            "citation": prompt.citation,
            "definition": prompt.as_json(),
            "hash": prompt.hash,
            "signature": maker.signature.short,
            "settings": dict(maker.signature.settings),
            "statuses": dict(sorted(report.statuses.get(prompt.prompt_class, {}).items())),
        }
    amended = {} if grader.change is None else {"only_changed": report.amended.as_json()}
    chosen = {} if grader.only is None else {"where": grader.only.as_json()}
    if report.asked_for:
        chosen["asked_for"] = {
            **{name: [*of] for name, of in report.asked_for.items()},
            "never_asked": report.never_asked,
        }
    ledger = grader.runner.cache.ledger() if grader.runner.cache is not None else []
    return {
        **amended,
        **chosen,
        **({"paid": _paid(ledger)} if ledger else {}),
        "bank": {"hash": bank_content(bank), "items": len(bank), "queries": len(bank.items)},
        "calls": {
            **{name: getattr(run, name) for name in _COUNTS},
            "cost": run.cost if grader.runner.price and not run.unpriced else None,
            "left_out": dict(sorted(run.left_out.items())),
            "limit": run.limit or None,
            "made": run.calls,
            "retries_of_unparsed": report.run.redrawn,
        },
        "files": files or {},
        "flip_rate": report.flip_rate,
        "llm": llm_name(backend.model),
        "model": backend.model,
        "passages": {"graded": report.passages, "grades_kept": report.kept},
        "prompts": prompts,
        "returned_models": [
            {"model": model, "replies": count, "system_fingerprint": fingerprint}
            for (model, fingerprint), count in sorted(run.returned.items())
        ],
        "statuses": dict(sorted(report.by_status.items())),
        "versions": {"python": platform.python_version(), "rubric_measures": __version__, **packages},
    }


def _paid(ledger: Sequence[LedgerRow]) -> dict[str, Any]:
    """What all runs over a cache paid, killed ones too; what calls cost that were lost in a kill is not known."""
    names = {"made": "calls"} | {name: name for name in ("failed", "prompt_tokens", "completion_tokens")}
    unpriced = any(row.cost is None and row.calls > row.failed for row in ledger)
    cost = None if unpriced else sum(row.cost or 0.0 for row in ledger)
    return {name: sum(getattr(row, field) for row in ledger) for name, field in names.items()} | {"cost": cost}


def write_manifest(path: str | os.PathLike[str], manifest: dict[str, Any]) -> None:
    """Writes a manifest as canonical JSON, one line; what an earlier run paid stays in it.

    `earlier_runs` lists the runs that wrote this file before, oldest first: models, prompts, calls, statuses. Of equal
    runs without a call one is listed. `paid` is what all runs over the cache paid, this one and killed ones included;
    where no cache was kept it is the sum over these runs. Its `cost` is null where the price of a run was unknown.
    """
    same = _as_run(manifest) if not manifest["calls"]["made"] else None
    earlier = [run for run in _earlier_runs(path) if run != same]
    runs = [*earlier, manifest]
    paid: dict[str, Any] = manifest.get("paid") or {
        name: sum(int(run["calls"].get(name) or 0) for run in runs)
        for name in ("made", "failed", "prompt_tokens", "completion_tokens")
    }
    if "cost" not in paid:
        costs = [run["calls"].get("cost") for run in runs if run["calls"].get("made")]
        paid["cost"] = sum(costs) if None not in costs else None
    with atomic_writer(path) as stream:
        stream.write(canonical_json({**manifest, "earlier_runs": earlier, "paid": paid}) + "\n")


def _earlier_runs(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The runs of the manifest that is there; none, with a warning, where the file is something else."""
    if not Path(path).is_file():
        return []
    try:
        old = parse_json(read_text(path), lenient=True)
        runs = [*old.get("earlier_runs", []), _as_run(old)]
        if all(isinstance(run["calls"], dict) for run in runs):
            return runs
    except (ValueError, AttributeError, TypeError, KeyError):
        pass
    _LOG.warning("%s: was no manifest of a run, and is replaced", path_name(path))
    return []


def _as_run(manifest: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a manifest; of a run that wrote no manifest of its own there is nothing to keep."""
    return {name: manifest[name] for name in _KEPT if name in manifest}
