"""An evaluation as a folder that a stranger can check: board, grades, bank, runs and what else belongs to it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from rubric_measures.api._checking import KeptBoard, read_board
from rubric_measures.api._loading import content_of, load, load_bank
from rubric_measures.base.errors import FormatError, InputError
from rubric_measures.base.files import path_name, read_text
from rubric_measures.types.entities import TestBank

_MANIFEST = "bundle.json"
_FORMAT = "rubric_measures bundle 1"
_BOARD = "board.json"
# Where texts are left out, this stands for one.
_DIGEST = "sha256:"


def bundle(
    folder: str | os.PathLike[str],
    board: str | os.PathLike[str],
    graded: str | os.PathLike[str],
    runs: Sequence[str | os.PathLike[str]] = (),
    *,
    bank: str | os.PathLike[str] | None = None,
    qrels: str | os.PathLike[str] | None = None,
    also: Sequence[str | os.PathLike[str]] = (),
    texts: bool = True,
    **chosen: Any,
) -> Path:
    """Collects an evaluation in a new folder, after it was recomputed from what goes in.

    The manifest that `grade` wrote beside the records (prompts as sent, settings, calls, costs) goes in by itself.

    Args:
        folder: the folder to make.
        board: the leaderboard, as `Board.render("json")` writes it.
        graded: what it was scored from.
        runs: the runs, where they are not inside.
        bank: the test bank.
        qrels: the judgments, where official measures stand beside ours.
        also: other files that belong to it: prompts, the ledger, other boards.
        texts: whether texts of passages, replies and reasons go in; else digests of the texts stand in graded records,
            and the replies are left out.
        chosen: which grades count, as for `load`.

    Returns:
        the folder.

    Raises:
        InputError: the folder exists, two files would have one name, or the board is not what the files give.
        FormatError: a file cannot be read.
    """
    target = Path(folder)
    if target.exists():
        raise InputError(f"{target}: exists; name a new folder", settings=("folder",))
    if not texts and content_of(path_name(graded)) != "records":
        raise InputError(f"{path_name(graded)}: only graded records can go without texts", settings=("texts",))
    given = {name: value for name, value in chosen.items() if value is not None}
    kept_board = read_board(board)
    grades = load(graded, bank, **{"on_failed": kept_board.on_failed, **given})
    _refuse(board, kept_board.differences(grades, [os.fspath(run) for run in runs] or None, qrels=qrels))
    # What `grade` wrote beside its records: prompts as sent, settings, calls and what they cost.
    beside = f"{path_name(graded)}.manifest.json"
    if Path(beside).is_file() and all(os.fspath(one) != beside for one in also):
        also = [*also, beside]
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as temporary:
        made = Path(temporary) / "bundle"
        made.mkdir()
        shutil.copyfile(board, made / _BOARD)
        kept = {
            "graded": _put(made, graded, f"graded{''.join(Path(graded).suffixes)}", texts),
            "bank": None if bank is None else _put(made, bank, f"bank{''.join(Path(bank).suffixes)}"),
            "qrels": None if qrels is None else _put(made, qrels, f"qrels{''.join(Path(qrels).suffixes)}"),
            "runs": [_put(made, run, f"runs/{Path(run).name}") for run in runs],
            "also": [_put(made, one, f"also/{Path(one).name}") for one in also],
        }
        names = [_BOARD, *_names(kept)]
        manifest = {
            "format": _FORMAT,
            "texts": texts,
            "load": given,
            **kept,
            "files": {name: _digest(made / name) for name in names},
        }
        text = json.dumps(manifest, ensure_ascii=False, indent=1)
        (made / _MANIFEST).write_text(text + "\n", encoding="utf-8")
        if not texts:
            _refuse(board, check_bundle(made))
        made.rename(target)
    return target


def _refuse(board: str | os.PathLike[str], differences: Sequence[str]) -> None:
    """Refuses a board that is another one than the files give."""
    if differences:
        more = f" (and {len(differences) - 1} more)" if len(differences) > 1 else ""
        raise InputError(f"{path_name(board)}: is not what these files give: {differences[0]}{more}")


def _names(kept: Mapping[str, Any]) -> list[str]:
    single = [kept.get(name) for name in ("graded", "bank", "qrels")]
    return [*(name for name in single if name), *kept["runs"], *kept["also"]]


def _put(made: Path, source: str | os.PathLike[str], name: str, texts: bool = True) -> str:
    target = made / name
    if target.exists():
        raise InputError(f"{path_name(source)}: another file of the bundle is called {name}, too; rename one")
    target.parent.mkdir(exist_ok=True)
    if not texts:
        _without_texts(source, target)
        return name
    try:
        shutil.copyfile(source, target)
    except FileNotFoundError:
        raise InputError(f"{path_name(source)}: no such file") from None
    return name


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _without_texts(source: str | os.PathLike[str], target: Path) -> None:
    """Graded records with digests in the place of texts, and without replies and reasons."""
    from rubric_measures.records.files import load_graded, write_graded
    from rubric_measures.records.models import GradedPassage, QueryPassages

    def bare(passage: GradedPassage) -> GradedPassage:
        digest = _DIGEST + hashlib.sha256(passage.text.encode("utf-8")).hexdigest()
        sets = passage.exam_grades and [
            _fields_only(entry.model_copy(update={"answers": [(item, "") for item, _ in entry.answers]}))
            for entry in passage.exam_grades
        ]
        labels = passage.grades and [_fields_only(entry.model_copy(update={"answer": ""})) for entry in passage.grades]
        changed = passage.model_copy(update={"text": digest, "exam_grades": sets, "grades": labels})
        # What the collection says about the passage may quote it.
        return changed.model_copy(update={"paragraph": None}) if passage.paragraph is not None else changed

    write_graded(
        target,
        (QueryPassages(group.query_id, [bare(one) for one in group.passages]) for group in load_graded(source)),
    )


# What replies say stands in these fields of grade sets that other fields or programs add.
_WORDS = ("details", "llm_response_errors", "llm_response_error")


def _fields_only(entry: Any) -> Any:
    """A grade set without what quotes replies."""
    changed = {name: None for name in _WORDS if getattr(entry, name, None)}
    return entry.model_copy(update=changed) if changed else entry


def _manifest(folder: Path) -> dict[str, Any]:
    from rubric_measures.base.json_files import parse_json

    name = str(folder / _MANIFEST)
    content = parse_json(read_text(name), path=name)
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise FormatError("is no bundle; make one with `bundle`", path=name)
    fields = {"load": dict, "graded": str, "runs": list, "also": list, "files": dict}
    for key, kind in fields.items():
        if not isinstance(content.get(key), kind):
            raise FormatError(f"lacks {key}", path=name)
    for one in (*content["files"], *_names(content)):
        path = PurePosixPath(str(one))
        if path.is_absolute() or ".." in path.parts or "\\" in str(one):
            raise FormatError(f"names a file outside of the folder: {one!r:.60}", path=name)
    return content


def check_bundle(folder: str | os.PathLike[str]) -> list[str]:
    """What differs between a bundle and what is computed from it now, a line each; empty where nothing does.

    Files are held to their digests, then every number of the board is computed again.

    Raises:
        FormatError: the folder is no bundle.
        InputError: as of `score`.
    """
    at = Path(folder)
    content = _manifest(at)
    lines = []
    for name, digest in content["files"].items():
        if not (at / name).is_file():
            lines.append(f"{name}: is missing")
        elif _digest(at / name) != digest:
            lines.append(f"{name}: other content than when the bundle was made")
    unsaid = sorted(set(_names(content)) - set(content["files"]))
    lines += [f"{name}: without a digest" for name in unsaid]
    if any(not (at / name).is_file() for name in content["files"]):
        return lines
    board = read_board(at / _BOARD)
    bank = content.get("bank")
    chosen = {"on_failed": board.on_failed, **content["load"]}
    grades = load(at / content["graded"], None if bank is None else at / bank, **chosen)
    qrels = content.get("qrels")
    runs = [str(at / run) for run in content["runs"]] or None
    return lines + board.differences(grades, runs, qrels=None if qrels is None else at / qrels)


def compare_bundles(first: str | os.PathLike[str], second: str | os.PathLike[str]) -> list[str]:
    """What changed from one bundle to the other, a line each: inputs, and the ranks of runs by each measure.

    The first line says what it was: the judge (other grades of the same items), the bank, the runs, the settings, or
    several of them. Where the bank is another one, the judge is one only if its name or settings are.
    """
    manifests = [_manifest(Path(folder)) for folder in (first, second)]
    boards = [read_board(Path(folder) / _BOARD) for folder in (first, second)]
    old, new = boards
    runs = _changed(old.runs, new.runs)
    queries = _changed(old.grades, new.grades)
    judged = _changed(old.qrels, new.qrels)
    settings = [
        name
        for name in sorted(old.settings.keys() | new.settings.keys())
        if name not in ("scored", "runs", "bank", "graders", "grades", "version")
        and old.settings.get(name) != new.settings.get(name)
    ]
    is_bank = old.settings.get("bank") != new.settings.get("bank")
    graders = [name for name in ("graders", "grades") if old.settings.get(name) != new.settings.get(name)]
    causes = [
        name
        for name, is_so in (
            ("the bank", is_bank),
            ("the judge", bool(graders) if is_bank else bool(queries)),
            ("the judgments", bool(judged)),
            ("the runs", bool(runs)),
            ("the settings", bool(settings)),
        )
        if is_so
    ]
    lines = [f"changed: {' and '.join(causes)}" if causes else "nothing changed"]
    for name in (*settings, *graders):
        lines.append(f"{name}: {old.settings.get(name)} before, {new.settings.get(name)} now")
    if is_bank and all(one["bank"] for one in manifests):
        banks = [load_bank(Path(at) / one["bank"]) for at, one in zip((first, second), manifests, strict=True)]
        lines += _changed_items(*banks)
    # Digests of queries hold items and grades together.
    lines += [f"query {name}: other {'items or ' if is_bank else ''}grades" for name in queries]
    lines += [f"query {name}: other judgments" for name in judged]
    lines += [f"run {name}: other rankings" for name in runs]
    return lines + _moved(old, new)


def _changed(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    return [name for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name)]


def _changed_items(old: TestBank, new: TestBank) -> list[str]:
    """What became of items, a line each."""
    # Items of two queries may have one id.
    before, now = ({(item.query_id, item.item_id): item for item in bank} for bank in (old, new))
    said = {key: "new" if key not in before else "changed" for key, item in now.items() if before.get(key) != item}
    said |= dict.fromkeys(before.keys() - now.keys(), "gone")
    return [f"query {query_id}, item {item_id}: {what}" for (query_id, item_id), what in sorted(said.items())]


def _moved(old: KeptBoard, new: KeptBoard) -> list[str]:
    """The runs whose rank among the runs of both changed, by each measure that both have."""
    from rubric_measures.analysis.correlation import ranks
    from rubric_measures.formats.leaderboards import OVERALL

    common = sorted(old.scores.keys() & new.scores.keys() - {OVERALL})
    lines = []
    for measure in (one for one in old.measures if one in new.measures):
        means = [[_mean(board, run, measure) for run in common] for board in (old, new)]
        before, after = (ranks(values).tolist() if values else [] for values in means)
        for place, run in enumerate(common):
            if before[place] != after[place]:
                lines.append(
                    f"{measure}: {run} from rank {before[place]:g} to {after[place]:g} "
                    f"({means[0][place]:.4f} to {means[1][place]:.4f})"
                )
    return lines


def _mean(board: KeptBoard, run: str, measure: str) -> float:
    mean = board.scores[run][measure][""]
    return float("-inf") if mean is None else round(mean, 12)
