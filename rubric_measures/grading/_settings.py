"""The settings of grading: everything besides model, prompt, bank and passage that may change a grade."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from rubric_measures.base.errors import InputError
from rubric_measures.models.base import ATTEMPT_STEP
from rubric_measures.types.entities import content_hash


@dataclass(frozen=True)
class GradingSettings:
    """How prompts are put to the model and how its replies are read.

    Attributes:
        temperature: of the model; 0 takes the most probable reply.
        max_tokens: the longest reply, in tokens; None takes 64 for grades, 256 for extracted texts, and for label
            lists 16 a nugget and 64 more. A reply that is cut there is asked for once more with four times as many.
        options: further generation options. One that is None is not sent, `temperature` and `max_tokens` too.
        replicates: how many draws of every reply; their grades are combined.
        combine: `median` (of an even number, the lower one) or `majority` (of equally frequent grades, the lower one).
        retries: how often a reply that cannot be parsed is drawn again, past the cache; backends whose replies are
            always the same are not asked again. With 0, none that was cut is asked for with more tokens either.
        unparsed: what a reply without a rating is: empty for no grade; `exampp`: 0 for an unanswerable expression or
            nothing, else 1 (EXAM++ 4.2.2); `workbench`: the reverse, as the Rubric workbench's program has it.
        compat: `workbench`: replies are read and answers matched as the Rubric workbench's program does it;
            `nuggetizer`: label lists count as in the nuggetizer program (see `as_nuggetizer`).
        long_passages: what happens to a passage that the model's context cannot hold: `chunk` (overlapping pieces, the
            best grade counts), `truncate` (the beginning is graded, with status `truncated`), `refuse`.
        empty_texts: what happens to a passage without words: `lowest` (the lowest grade of the scale, without a call),
            or `ask` (the model is asked, to see what it makes of nothing).
        chunk_overlap: the share of a chunk that the next one repeats.
        nuggets_per_call: how many nuggets a label-list prompt shows at once.
        items_per_call: how many questions or nuggets of a passage one call of any other prompt asks about, or `all` of
            them. The reply is JSON; an item that it does not grade is asked about by itself.
        fields: values of a prompt's own settings (`domain`), in place of those that come with it.
        documents: query_id -> the documents that prompts about answers show beside an answer.
        explain: ask for a reason before the grade, as JSON (an endpoint is held to it where it can be), and keep it.
        shuffle_seed: with it, the items of a call that shows several are in another order for each replicate.
    """

    temperature: float = 0.0
    max_tokens: int | None = None
    options: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    replicates: int = 1
    combine: Literal["median", "majority"] = "median"
    retries: int = 1
    unparsed: Literal["", "exampp", "workbench"] = ""
    compat: Literal["", "workbench", "nuggetizer"] = ""
    long_passages: Literal["chunk", "truncate", "refuse"] = "chunk"
    empty_texts: Literal["lowest", "ask"] = "lowest"
    chunk_overlap: float = 0.25
    nuggets_per_call: int = 10
    fields: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    documents: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    shuffle_seed: int | None = None
    explain: bool = False
    items_per_call: int | Literal["all"] = 1

    def __post_init__(self) -> None:
        for name, low, high in (
            ("replicates", 1, ATTEMPT_STEP - 1),
            ("retries", 0, 100),
            ("nuggets_per_call", 1, 100),
            ("items_per_call", 1, 100),
            ("max_tokens", 1, 10**7),
            ("temperature", 0, 100),
            ("chunk_overlap", 0, 0.9),
        ):
            value = getattr(self, name)
            if value is None or (name, value) == ("items_per_call", "all"):
                continue
            if not isinstance(value, int | float) or not low <= value <= high:
                raise InputError(f"{name} is {value}; expected {low} to {high}")
        own = sorted(name for name in ("temperature", "max_tokens") if self.options.get(name) is not None)
        if own:
            raise InputError(f"{own[0]} is a setting of its own, no further generation option", settings=own)
        for name, known in (
            ("combine", ("median", "majority")),
            ("unparsed", ("", "exampp", "workbench")),
            ("compat", ("", "workbench", "nuggetizer")),
            ("long_passages", ("chunk", "truncate", "refuse")),
            ("empty_texts", ("lowest", "ask")),
        ):
            if getattr(self, name) not in known:
                raise InputError(f"{name} is {getattr(self, name)!r}; expected one of {', '.join(filter(None, known))}")

    def as_json(self) -> dict[str, object]:
        """All settings, defaults included, for signatures and manifests; of documents, the hash.

        Fields, documents, reasons, calls about several items and the asking about empty texts are left out where there
        is none: they are no part of most prompts.
        """
        found: dict[str, object] = {
            name: dict(value) if isinstance(value, Mapping) else value
            for name, value in ((name, getattr(self, name)) for name in self.__dataclass_fields__)
        }
        documents = found.pop("documents")
        if self.empty_texts == "lowest":
            del found["empty_texts"]
        if not self.explain:
            del found["explain"]
        if self.items_per_call == 1:
            del found["items_per_call"]
        if not self.fields:
            del found["fields"]
        if documents:
            found["documents"] = content_hash(documents)[:16]
        return found
