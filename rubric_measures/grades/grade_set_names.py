"""The names of grade sets: model, prompt and kind; where these are alike, a hash, and in what they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from rubric_measures.records.models import GradeSetKey

__all__ = [
    "CHOOSING",
    "UNKNOWN_GRADER",
    "choices_of",
    "graders_of",
    "options_of",
    "prompt_cells",
]

UNKNOWN_GRADER = "none"
# The prompt's hash and the model are said by themselves; a bank is no setting of a grader.
_TOLD_ELSEWHERE = ("prompt", "prompt_hash", "model", "bank")


# The filters that choose a grade set, for errors.
CHOOSING = ("llm", "prompt_class", "prompt_type", "grade_set")


def prompt_cells(keys: Iterable[GradeSetKey]) -> dict[GradeSetKey, str]:
    """The prompt class of each grade set, and the beginning of its hash where several are called alike."""
    keys = list(keys)
    shared = _alike(keys)
    return {key: f"{key.prompt_class} [{_short(key)}]" if shared[key[:3]] > 1 else key.prompt_class for key in keys}


def options_of(keys: Iterable[GradeSetKey]) -> dict[GradeSetKey, str]:
    """The filters that choose each of some grade sets: its names, and `grade_set` where the names are alike."""
    keys = list(keys)
    shared = _alike(keys)
    return {key: f"{key} grade_set={_short(key)}" if shared[key[:3]] > 1 else str(key) for key in keys}


def choices_of(keys: Iterable[GradeSetKey], made: Mapping[GradeSetKey, Mapping[str, Any]] | None = None) -> str:
    """The grade sets of an error: the filters that choose each, and in what those that are called alike differ.

    Args:
        keys: the grade sets.
        made: what each says about its making, see `made_by_set`.
    """
    told = {key: _facts((made or {}).get(key, {})) for key in keys}
    listed = sorted(options_of(told).items())
    return "; ".join(options if made is None else options + _apart(key, told) for key, options in listed)


def graders_of(made: Mapping[GradeSetKey, Mapping[str, Any]]) -> str:
    """The graders of direct labels, for an error: prompt and model, and in what those that are called alike differ.

    Args:
        made: what each says about its making, see `made_by_set`.
    """
    told = {key: _facts(said) for key, said in made.items()}
    cells = sorted(prompt_cells(told).items())
    return "; ".join(f"{cell} by {key.llm}{_apart(key, told)}" for key, cell in cells)


def _alike(keys: Iterable[GradeSetKey]) -> Counter[tuple[str, ...]]:
    return Counter(key[:3] for key in set(keys))


def _short(key: GradeSetKey) -> str:
    return key.grader[:8] or UNKNOWN_GRADER


def _facts(made: Mapping[str, Any]) -> dict[str, object]:
    """What a grade set says about its grader, each fact by itself."""
    facts: dict[str, object] = {name: made[name] for name in ("model", "prompt") if name in made}
    definition = made.get("definition")
    settings = definition.get("settings") if isinstance(definition, Mapping) else None
    for name, value in settings.items() if isinstance(settings, Mapping) else ():
        if name in _TOLD_ELSEWHERE:
            continue
        if not isinstance(value, Mapping):
            facts[name] = value
            continue
        facts.update((one if name == "options" else f"{name}.{one}", said) for one, said in value.items())
    return facts


def _apart(key: GradeSetKey, told: Mapping[GradeSetKey, Mapping[str, object]]) -> str:
    """In brackets, what sets apart a grade set of which others have the names; empty where none has."""
    others = [facts for other, facts in told.items() if other[:3] == key[:3] and other != key]
    return f" ({_difference(told[key], others)})" if others else ""


def _difference(mine: Mapping[str, object], others: Iterable[Mapping[str, object]]) -> str:
    """What a grade set says about its grader that the others do not, in a few words."""
    if not mine:
        return "settings unknown"
    others = [other for other in others if other]
    names = dict.fromkeys(name for facts in (mine, *others) for name in facts)
    different = [name for name in names if any(mine.get(name) != other.get(name) for other in others)]
    return ", ".join(f"{name} {_said(name, mine.get(name))}" for name in different) or "other settings"


def _said(name: str, value: object) -> str:
    if name == "prompt":
        return f"text {str(value)[:8]}"
    return "none" if value in (None, "", {}) else " ".join(str(value).split())[:60]
