"""Before spending: how many calls and tokens a grading run would need, how much is cached, what it would cost."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rubric_measures.base.tables import Cell, Column, Report, Table, columns, render
from rubric_measures.grading._grader import Grader, default_prompts
from rubric_measures.grading._report import GradingReport
from rubric_measures.models.base import CountingBackend
from rubric_measures.models.running import LocalRunner, Price
from rubric_measures.records.models import QueryPassages
from rubric_measures.types.entities import TestBank

__all__ = ["Estimate", "GradingPlan", "estimate"]


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
        heads = columns(["prompt", "calls", "cached", "shared"])
        heads.append(Column("cached_share", places=3))
        heads += columns(["kept", "prompt_tokens", "completion_tokens_at_most", "checks_at_most"])
        heads += columns(["cost_of_calls", "cost_at_most"])
        rows: list[list[Cell]] = [
            [row.prompt_class, row.calls, row.cached, row.shared, row.cached_share, row.kept, row.prompt_tokens,
             row.completion_tokens, row.checks, row.cost, row.cost_at_most]
            for row in self
        ]  # fmt: skip
        if len(self) > 1:
            rows.append(["all", self.calls, *[None] * 7, self.cost, self.cost_at_most])
        return "".join(render(Report([Table(heads, rows)]), "tsv")).rstrip("\n")

    __repr__ = __str__


def _total(costs: Sequence[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None


def estimate(
    grader: Grader,
    read: Callable[[], Iterable[QueryPassages]],
    bank: TestBank,
    price: Price | None = None,
) -> GradingPlan:
    """What grading would need, prompt by prompt; makes no call and changes no file.

    Args:
        grader: as it would grade; its cache is only read.
        read: gives the passages anew for each prompt.
        bank: the test bank.
        price: what the model costs.
    """
    found = []
    known: set[str] = set()
    for name in grader.prompts or default_prompts(grader.runner.backend.model, bank, grader.citations is not None):
        counter = CountingBackend(grader.runner.backend, known)
        # Nothing is called, so whatever runs the calls of the grader, here it is this process.
        runner = LocalRunner(counter, grader.runner.cache, price=grader.runner.price, stop=grader.runner.stop)
        report = GradingReport()
        single = dataclasses.replace(grader, runner=runner, prompts=(name,))
        [maker] = single.makers(bank)
        for _ in single.grade_records(read(), bank, report):
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
