"""Public functions for files: boards checked (`boards.kept` compares) and packed; files converted; qrels written."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace as changed
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from msgspec.structs import asdict, replace

from rubric_measures.analysis.boards import Board, load_board, score
from rubric_measures.base.errors import InputError, counted, naming, tell, warn
from rubric_measures.base.files import path_name
from rubric_measures.base.json_text import parse_json, typed
from rubric_measures.boards.board import board_content
from rubric_measures.boards.kept import (
    BOARD,
    BUNDLE,
    MANIFEST,
    Manifest,
    Proof,
    compared,
    digest_of,
    held,
    read_kept,
    read_manifest,
    unread,
)
from rubric_measures.corpora.loading import (
    Bank,
    File,
    Gradable,
    Runs,
    are_labels,
    content_of,
    grader_of,
    load,
    read_runs,
    run_list,
)
from rubric_measures.measures.findings import Looked, Note, say
from rubric_measures.measures.grades import Grades
from rubric_measures.measures.measure import is_supported, parse_measures, rubric_measures_of

if TYPE_CHECKING:
    from rubric_measures.analysis.comparing import Comparisons
    from rubric_measures.analysis.correlating import Correlations
    from rubric_measures.measures.grade_sets import Grader
    from rubric_measures.measures.grades import Label
    from rubric_measures.measures.qrels import Unit
    from rubric_measures.records.models import QueryPassages

_Path: TypeAlias = str | os.PathLike[str]


def check_board(
    board: File | Board,
    grades: Gradable,
    runs: Runs | None = None,
    *,
    bank: Bank | None = None,
    qrels: Gradable | None = None,
    pack: _Path | None = None,
    certificate: bool = False,
    grader: str | Grader | None = None,
) -> Proof:
    """Makes a board again, and compares every value of its file with it; where nothing differs, it can be packed.

    Where inputs or settings differ, other numbers are no news and are not compared. Failed grades count as in the
    board.

    What is packed is a new folder with all that the board was made of, for `check_bundle` on any machine: board,
    grades, bank, judgments and runs. The manifest that `grade` wrote beside the records (prompts as sent, settings,
    calls, costs) goes in by itself. With a certificate in the place of all grades, what hangs on all (digests,
    coverage, counts of failures, best possible scores) is claimed.

    Args:
        board: the board, or the file that `Board.save` wrote.
        grades: what it was scored from.
        runs: the runs, where they are not inside.
        bank: the test bank.
        qrels: official judgments, where official measures stand beside ours.
        pack: where nothing differs, make this folder, a bundle of all that the board was made of.
        certificate: of the grades in graded records pack only the few that prove the scores, whatever the others are.
        grader: whose grades count: a name, or `model=…,prompt=…,scale=0-5:4`; see `load`.

    Returns:
        What became of each value; of a board that was packed also of the files, with the digest of the bundle.

    Raises:
        FormatError: a file cannot be read.
        InputError, MeasureError: as of `score`; the board does not say what it was scored from; it has
            official measures and no qrels are given, or the other way round; the folder exists; two files would have
            one name; or a certificate is asked for, and the board has a measure or a setting that needs all grades.
    """
    if pack is None and certificate:
        raise InputError("nothing is packed; name the folder to make", settings=("pack",))
    kept = load_board(board)
    wanted = grader_of(grader)
    if pack is not None:
        said = {} if wanted is None else {"grader": str(wanted)}
        target, files = Path(pack), (board, grades, bank, qrels, [] if runs is None else run_list(runs))
        manifest, places = _planned(target, *files, load=said, certificate=certificate)
    # Grades say how failed ones count.
    counted_as = None if isinstance(grades, Grades) else kept.on_failed
    known = load(grades, bank, grader=wanted, on_failed=counted_as)
    with naming(board):
        proof = _proved(kept, known, runs, qrels, source=grades)
    if pack is None:
        return proof
    counts: Counter[str] = Counter()
    cut = None
    if proof.holds and certificate:
        from rubric_measures.records.models import GradedFile, load_graded

        groups = _proving(load_graded(places[manifest.graded]), kept, known, runs, counts)
        cut = GradedFile(path_name(target / manifest.graded), groups)
        proof = _proved(kept, load(cut, bank, grader=wanted, on_failed=counted_as), runs, qrels, part=True)
    if not proof.holds:
        warn("%s: was not made, because of what differs", pack)
        return proof
    manifest = _written(target, manifest, places, cut)
    tell(f"{path_name(target)}: packed, {counted(len(manifest.files) + 1, 'file')}")
    tell("%d of %d grades prove the scores; the others are left out", counts["kept"], counts["given"])
    return changed(proof, values={**manifest.held(target)[1], **proof.values}, digest=manifest.digest)


def _planned(
    target: Path,
    board: Any,
    graded: Any,
    bank: Any,
    qrels: Any,
    runs: Sequence[Any],
    **said: Any,
) -> tuple[Manifest, dict[str, _Path]]:
    """What a bundle will say of its files, and file of it -> what it is copied from."""
    if target.exists():
        raise InputError(f"{target}: exists; name a new folder", settings=("pack",))
    for one in (board, graded, bank, qrels, *runs):
        if one is not None and not isinstance(one, str | os.PathLike):
            raise InputError(f"{one!r:.60} is no file, and a bundle is packed of files", settings=("pack",))
    if said["certificate"] and content_of(path_name(graded)) != "records":
        text = f"{path_name(graded)}: only graded records can go without some of the grades"
        raise InputError(text, settings=("certificate",))
    # What `grade` wrote beside its records: prompts as sent, settings, calls and what they cost.
    beside = f"{path_name(graded)}.manifest.json"
    also = [beside] if Path(beside).is_file() else []
    places: dict[str, _Path] = {BOARD: board}

    def put(source: _Path | None, what: str) -> str:
        """The name in the bundle; nothing where there is no file."""
        if source is None:
            return ""
        name = f"{what}/{Path(source).name}" if what in ("runs", "also") else what + "".join(Path(source).suffixes)
        if not Path(source).is_file():
            raise InputError(f"{path_name(source)}: no such file")
        if name in places:
            raise InputError(f"{path_name(source)}: another file of the bundle is called {name}, too; rename one")
        places[name] = source
        return name

    files = (put(graded, "graded"), put(bank, "bank") or None, put(qrels, "qrels") or None)
    several = ([put(run, "runs") for run in runs], [put(one, "also") for one in also])
    manifest = Manifest(BUNDLE, *files, *several, files={}, **said)
    return manifest, places


def _written(
    target: Path, manifest: Manifest, places: Mapping[str, _Path], cut: Iterable[QueryPassages] | None
) -> Manifest:
    """Writes a bundle, whole or not at all; the `cut` records stand in the place of those that were given."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as temporary:
            made = Path(temporary) / "bundle"
            for name, source in places.items():
                (made / name).parent.mkdir(parents=True, exist_ok=True)
                if name == manifest.graded and cut is not None:
                    from rubric_measures.records.models import write_graded

                    write_graded(made / name, cut)
                else:
                    shutil.copyfile(source, made / name)
            manifest = replace(manifest, files={name: digest_of(made / name) for name in manifest.named})
            text = json.dumps(asdict(manifest), ensure_ascii=False, indent=1)
            (made / MANIFEST).write_text(text + "\n", encoding="utf-8")
            made.rename(target)
    except OSError as error:
        # A copy on a full disk names its source, and others the hidden folder.
        raise InputError(f"{target}: cannot be written ({error.strerror})", settings=("pack",)) from None
    return manifest


def _proving(
    groups: Iterable[QueryPassages], board: Board, grades: Grades, runs: Runs | None, counts: Counter[str]
) -> Iterator[QueryPassages]:
    """Leaves of each query the grades that prove its scores; counts those that are `given` and `kept`."""
    from rubric_measures.grading.lazy import NeededFor

    if board.asked.compat:
        raise InputError("a board by another program's rules needs all grades", settings=("certificate",))
    measures = parse_measures(board.signature.settings["measures"])
    # What judgments say needs no grades of ours.
    ours = [one for one in measures if is_supported(one)] if board.inputs.qrels else rubric_measures_of(measures)
    needed = NeededFor(tuple(ours), None if runs is None else tuple(read_runs(runs)))
    for group in groups:
        of_query = grades.queries[group.query_id]
        made, kept = needed.proving(group, of_query)
        counts.update(kept=kept, given=int(of_query.valid.sum()))
        yield made


def _proved(
    board: Board, grades: Grades, runs: Runs | None, qrels: Gradable | None, *, part: bool = False, source: Any = None
) -> Proof:
    """Makes a board again; `part`: of the grades of a certificate, where every score has to be exact."""
    kept = board.content or parse_json(board.render("json", -1))
    settings = board.signature.settings
    if "inputs" not in kept:
        raise InputError("the board does not say what it was scored from; score again and keep the JSON")
    if bool(board.inputs.qrels) != (qrels is not None):
        text = "has official measures; give their qrels, too" if board.inputs.qrels else "was scored without qrels"
        raise InputError(f"the board {text}", settings=("qrels",))
    measures: Any = settings.get("measures", board.measures)
    # The measures are those of the board: what does not fit them is the file.
    with naming(source):
        made = score(grades, runs, measures, qrels=qrels, **asdict(board.asked), notes=False)
    if part and (lacking := [name for name in board.measures if name not in made.exact]):
        text = f"{', '.join(lacking)}: not proved by a part of the grades, as needed ones failed or were never made"
        return Proof([text], {}, board.signature.short)
    proof = held(kept, board_content(made), made.signature, ("version", "scored") if part else ("version",), part)
    return changed(proof, exact=made.exact) if part else proof


def check_bundle(folder: _Path) -> Proof:
    """Makes the board of a bundle again, and compares every value with it.

    Files are held to their digests, and the folder to the files that its manifest names.

    Args:
        folder: the bundle.

    Raises:
        FormatError: a folder is no bundle, or holds links or pipes.
        InputError: as of `score`.
    """
    at = Path(folder)
    manifest, board = read_manifest(at), load_board(at / BOARD)
    lines, values = manifest.held(at)
    places = manifest.places(at)
    if all(places[name].is_file() for name in manifest.named):
        bank, qrels = (None if name is None else places[name] for name in (manifest.bank, manifest.qrels))
        grades = load(places[manifest.graded], bank, **{"on_failed": board.on_failed, **manifest.load})
        runs = [str(places[run]) for run in manifest.runs] or None
        proof = _proved(board, grades, runs, qrels, part=manifest.certificate, source=folder)
    else:
        # Nothing can be computed again.
        proof = Proof((), unread(board.content), str(board.content.get("signature_hash", "")))
    found = {**values, **proof.values}
    return changed(proof, differences=[*lines, *proof.differences], values=found, digest=manifest.digest)


def check_conclusions(path: _Path, scores: Any, *others: Any, bank: Bank | None = None) -> Proof:
    """Makes the comparisons or correlations of a file again, and compares every value of it.

    Args:
        path: what `compare` or `correlate` found, as JSON.
        scores: as for these: the board that it was made of, or the official one.
        others: the others.
        bank: of a grid.

    Raises:
        FormatError: it is no such file.
        InputError: as of `compare` and `correlate`.
    """
    from rubric_measures.analysis.comparing import COMPARISONS, KeptComparisons, compare
    from rubric_measures.analysis.correlating import CORRELATIONS, AskedCorrelation, correlate

    problem = "is no comparison or correlation of this version; write one with the output form json"
    name, content = read_kept(path, (COMPARISONS, CORRELATIONS), problem)
    asked: Any
    made: Comparisons | Correlations
    if content["format"] == COMPARISONS:
        asked = asdict(typed(KeptComparisons, content, name).asked)
        made = compare(scores, *others, **asked)
    else:
        asked = asdict(typed(AskedCorrelation, content.get("asked"), name))
        made = correlate(scores, *others, **asked, bank=bank, notes=False)
    now = made.report().content
    return compared(content, {} if now is None else now())


class QrelsWritten(NamedTuple):
    """What is to be said of qrels that were written: how many grades failed, and what may be wrong with the others."""

    failed: int
    notes: Sequence[Note]


def write_qrels(
    grades: Gradable,
    path: str | os.PathLike[str],
    *,
    per: Unit = "passage",
    label: Label = "max",
    rel: int | None = None,
) -> QrelsWritten:
    """Writes grades as a TREC qrels file.

    Args:
        grades: `Grades`, or what `load` takes.
        path: the file, gzipped where its name ends in `.gz`; `-` is standard output.
        per: one label a `passage`, or one line an `item` (diversity qrels).
        label: the highest grade of the items (`max`), or how many of them have `rel` (`count`); not for items. In
            Python see `QueryGrades`.
        rel: the inclusive minimum grade that counts; left out, `max` keeps all grades, and `count` takes the level that
            covers on the scale. Not for items.

    Returns:
        the number of grades that failed, and what may be wrong.

    Raises:
        InputError: no passage has a grade, a label of items is asked for, lines of items of what
            has one label a passage, or items are to be counted and neither a level nor the scale is known.
    """
    from rubric_measures.formats import trec
    from rubric_measures.measures.qrels import qrels_of

    if per == "item" and (label, rel) != ("max", None):
        text = "lines of items hold the grades themselves; leave out how they become labels"
        raise InputError(text, settings=("label", "rel"))
    known = load(grades)
    if per == "item" and are_labels(known):
        text = "there are no item grades here, only one label a passage; write qrels of passages"
        raise InputError(text, settings=("per",))
    said: list[Note] = []
    trec.write_qrels(path, qrels_of(known, per, label, rel, said))
    failed, looked = 0, Looked()
    for query in known.queries.values():
        failed += 0 if query.failed is None else int(query.failed.sum())
        looked.add(query, {})
    least = known.scale.covers if rel is None and known.scale is not None else rel
    say(looked.notes((), least), said)
    return QrelsWritten(failed, said)
