"""What is wrong with a user's prompt file: keys, fields, scales that no record holds, labels that no reply can name."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence, Set
from typing import Any

from rubric_measures.base.errors import users_pattern
from rubric_measures.prompts.frames import FIELD
from rubric_measures.types.scales import CONTRADICTED, HELD, scale_problems

# target -> (fields that its prompts must have, further fields that they may have)
FIELDS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    "question": (frozenset({"question", "context"}), frozenset({"query"})),
    "nugget": (frozenset({"nugget", "context"}), frozenset({"query"})),
    "direct": (frozenset({"query_title", "context"}), frozenset({"examples"})),
    "support": (frozenset({"statement", "citation"}), frozenset({"query"})),
    "answer": (frozenset({"query", "answer"}), frozenset({"documents", "domain"})),
    "answers": (frozenset({"answer_a", "answer_b"}), frozenset({"query", "documents"})),
}
# Grades of user's prompts begin at 0; of support there is also a contradiction.
_LOWEST = {"support": CONTRADICTED}
PARSERS = ("rating", "yes_no", "label", "phrase", "label_list", "list", "items", "aspects", "verdict", "text")
# Parsers whose labels are grades, one after the other.
_OF_LABELS = ("yes_no", "label", "phrase", "label_list")
# Parsers that a prompt may tell where the one grade of a reply stands.
_OF_ONE_GRADE = ("rating", "yes_no", "label", "phrase")


def problems_of(entry: Mapping[str, Any]) -> list[str]:
    """Everything that is wrong with a user's prompt, as far as it can be seen at once."""
    types: dict[str, type] = {
        "name": str, "text": str, "system": str, "target": str, "task": str, "parser": str, "scale": list,
        "covers": int, "partial": int, "labels": list, "citation": str, "defaults": dict, "reply_tokens": int,
        "pattern": str, "json_field": str,
    }  # fmt: skip
    problems = [f"missing key {key}" for key in ("text", "target", "parser") if key not in entry]
    problems += [f"unknown key {key}" for key in sorted(set(entry) - set(types))]
    problems += [
        f"{key} must be a {kind.__name__}"
        for key, kind in types.items()
        if not isinstance(entry.get(key, kind()), kind)
    ]
    if problems:
        return problems
    target, parser, scale, labels = entry["target"], entry["parser"], entry.get("scale"), entry.get("labels", [])
    if target not in FIELDS:
        problems.append(f"unknown target {target!r} (known: {', '.join(FIELDS)})")
    if parser not in PARSERS:
        problems.append(f"unknown parser {parser!r} (known: {', '.join(PARSERS)})")
    problems += _problems_of_scale(entry)
    if parser in ("label", "phrase", "label_list", "aspects") and not labels:
        problems.append(f"parser {parser} needs labels, lowest grade first")
    if not all(isinstance(text, str) for text in [*labels, *entry.get("defaults", {}).values()]):
        problems.append("labels and defaults must be strings")
    elif parser in _OF_LABELS and labels and (scale is None or _is_scale(scale)):
        problems += _problems_of_labels(parser, labels, scale)
    return [*problems, *_problems_of_reading(entry), *_problems_of_fields(entry)]


def _problems_of_scale(entry: Mapping[str, Any]) -> list[str]:
    """What is wrong with the grades that a prompt asks for."""
    scale, lowest = entry.get("scale"), _LOWEST.get(entry["target"], 0)
    if scale is None:
        without = entry["parser"] != "yes_no" and entry.keys() & {"covers", "partial"}
        problems = ["covers and partial need a scale, such as scale = [0, 5]"] if without else []
        return [*problems, *(["parser rating needs a scale, such as scale = [0, 5]"] * (entry["parser"] == "rating"))]
    if not _is_scale(scale):
        return ["scale must be [lowest, highest], two integers"]
    if not lowest <= scale[0] < scale[1] <= HELD[1]:
        return [
            f"scale {str(scale)[:40]} has grades that no record holds: it must lie within {lowest} to {HELD[1]}, such "
            "as scale = [0, 5]"
        ]
    wrong = scale_problems(scale, entry.get("covers"), entry.get("partial"))
    return [wrong] if wrong else []


def _problems_of_fields(entry: Mapping[str, Any]) -> list[str]:
    """The fields that the text of a prompt lacks, and those that its target does not have."""
    if entry["target"] not in FIELDS:
        return []
    required, optional = FIELDS[entry["target"]]
    present = set(FIELD.findall(entry.get("system", "") + "\n" + entry["text"])) - set(entry.get("defaults", {}))

    def braced(names: Set[str]) -> str:
        return ", ".join("{" + name + "}" for name in sorted(names))

    missing, unknown = required - present, present - required - optional
    problems = [f"the text lacks {braced(missing)}"] if missing else []
    if unknown:
        known = braced(required | optional)
        problems.append(f"unknown {braced(unknown)} (a {entry['target']} prompt has {known})")
    return problems


def _problems_of_reading(entry: Mapping[str, Any]) -> list[str]:
    """What is wrong with where a prompt says that the grade stands."""
    own = [key for key in ("pattern", "json_field") if key in entry]
    if not own:
        return []
    if len(own) == 2:
        return ["pattern and json_field both say where the grade stands: leave one of them out"]
    if not entry[own[0]]:
        return [f"{own[0]} is empty: leave it out, or say where the grade stands"]
    if entry["parser"] not in _OF_ONE_GRADE:
        return [f"{own[0]} needs parser {', '.join(_OF_ONE_GRADE[:-1])} or {_OF_ONE_GRADE[-1]}"]
    if own[0] == "json_field":
        return []
    try:
        has_group = "grade" in users_pattern(entry["pattern"]).groupindex
    except re.error as error:
        return [f"pattern is no regular expression ({error})"]
    return [] if has_group else ["pattern has no group named grade, such as (?P<grade>[0-5])"]


def _is_scale(scale: Sequence[object]) -> bool:
    return len(scale) == 2 and all(type(grade) is int for grade in scale) and scale[0] < scale[1]  # type: ignore[operator]


def _problems_of_labels(parser: str, labels: Sequence[str], scale: Sequence[int] | None) -> list[str]:
    """Labels that do not stand for the grades of the scale one by one, or that the parser would never read as that."""
    low = scale[0] if scale else 0
    if scale and len(labels) != scale[1] - low + 1:
        return [f"{len(labels)} labels do not fit scale {list(scale)}: one label a grade, lowest first"]
    if low + len(labels) - 1 > HELD[1]:
        return [f"{len(labels)} labels are too many: the records hold grades 0 to {HELD[1]}"]
    if parser == "yes_no" and (scale or [0, 1])[0] != 0:
        return [f"scale {scale} does not fit parser yes_no: it must be [0, 1]"]
    given = [(place, label) for place, label in enumerate(labels) if label or parser != "phrase"]
    unread = [label for place, label in given if _read_back(label, parser, labels) != place]
    if not unread and (parser != "yes_no" or len(labels) == 2):
        return []
    hint = {
        "yes_no": 'its labels are "No" and "Yes"; parser label reads others',
        "label_list": "labels are different, in small letters, with _ for blanks",
        "label": "labels are different words",
        "phrase": "labels are different words",
    }[parser]
    return [f"parser {parser} can never read {', '.join(map(repr, unread or labels))} as listed ({hint})"]


def _read_back(label: str, parser: str, labels: Sequence[str]) -> int | None:
    """The place at which the parser sees a reply that is the label itself; None where it sees no label."""
    from rubric_measures.prompts.parsers import Parsed, parse_label, parse_label_list, parse_phrase, parse_yes_no

    if not label.strip():
        return None
    if parser == "yes_no":
        return parse_yes_no(label).value
    if parser == "label":
        return parse_label(label, labels).value
    if parser == "phrase":
        return parse_phrase(label, labels).value
    found: Parsed[tuple[str, ...]] = parse_label_list(json.dumps([label]), labels, 1)
    return labels.index(found.value[0]) if found.value else None
