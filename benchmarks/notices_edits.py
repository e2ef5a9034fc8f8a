"""Edits of files, for `benchmarks.notices`: functions from a text to another one, well-formed but wrong."""

from __future__ import annotations

import itertools
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from benchmarks.notices_files import ANSWERING, lines_of

Files = Mapping[str, str]
# From a text, and all unchanged texts by name.
Edit = Callable[[str, Files], "str | bytes"]


# Edits of lines, whatever they hold.


def of_lines(edit: Callable[[list[str]], Iterable[str]]) -> Edit:
    return lambda text, _: "".join(f"{line}\n" for line in edit(text.splitlines()))


def instead(name: str) -> Edit:
    """Another file in its place."""
    return lambda _, files: files[name]


def mixed(name: str) -> Edit:
    """The second half of the lines from another file."""

    def edit(text: str, files: Files) -> str:
        mine, others = text.splitlines(), files[name].splitlines()
        return "".join(f"{line}\n" for line in mine[: len(mine) // 2] + others[len(others) // 2 :])

    return edit


def _encoded(encoding: str) -> Edit:
    return lambda text, _: text.encode(encoding, "replace")


CUT = of_lines(lambda lines: lines[: len(lines) * 7 // 10])
TORN: Edit = lambda text, _: text[: len(text) * 2 // 3]  # noqa: E731 - one of a table of edits
EVERY_TENTH = of_lines(lambda lines: [line for place, line in enumerate(lines) if place % 10 != 3])
EVERY_OTHER = of_lines(lambda lines: lines[::2])
CRLF: Edit = lambda text, _: text.replace("\n", "\r\n")  # noqa: E731
ENCODINGS: dict[str, Edit] = {
    "written as latin-1": _encoded("latin-1"),
    "written as ASCII, ? for what it lacks": _encoded("ascii"),
    "written as UTF-16": _encoded("utf-16"),
    "UTF-8 read as latin-1 and written again": lambda text, _: text.encode().decode("latin-1"),
    "with a byte order mark": lambda text, _: "\ufeff" + text,
    "with CRLF": CRLF,
}


# Edits of columns.


def _says(row: list[str]) -> bool:
    """Whether a line of item qrels says the scale or the bank, and holds no grade."""
    return row[2] == "*"


def of_rows(edit: Callable[[list[str]], list[str] | None], of_all: bool = False) -> Edit:
    """Each line by its columns; None drops it. Lines that hold no grade stay, unless the edit is `of_all`."""

    def whole(text: str, _: Files) -> str:
        kept = []
        for line in text.splitlines():
            row = line.split()
            changed = row if _says(row) and not of_all else edit(row)
            if changed is not None:
                kept.append(" ".join(changed))
        return "\n".join(kept) + "\n"

    return whole


def swapped(one: int, two: int) -> Edit:
    def edit(row: list[str]) -> list[str]:
        row[one], row[two] = row[two], row[one]
        return row

    return of_rows(edit)


def column(place: int, change: Callable[[str], str]) -> Edit:
    return of_rows(lambda row: [*row[:place], change(row[place]), *row[place + 1 :]], of_all=place == 0)


def numbers(change: Callable[[float], object], place: int = 3, part: Callable[[float], bool] | None = None) -> Edit:
    """Numbers of a column, in all lines or where the place in the file, from 0 to 1, is of a part."""

    def whole(text: str, _: Files) -> str:
        rows = [line.split() for line in text.splitlines()]
        for number_, row in enumerate(rows):
            if not _says(row) and (part is None or part(number_ / len(rows))):
                row[place] = str(change(float(row[place])))
        return lines_of(rows)

    return whole


def only_queries(change: Callable[[list[str]], Iterable[str]]) -> Edit:
    """Only the queries that `change` keeps of all of them, in order."""

    def whole(text: str, _: Files) -> str:
        rows = [line.split() for line in text.splitlines()]
        kept = set(change(list(dict.fromkeys(row[0] for row in rows))))
        return lines_of(row for row in rows if row[0] in kept)

    return whole


def doubled(place: int, change: Callable[[str], str]) -> Edit:
    """Each line a second time, with another id."""

    def whole(text: str, _: Files) -> str:
        rows = [line.split() for line in text.splitlines()]
        more = [row for row in rows if place == 0 or not row[1].startswith("scale=")]
        return lines_of([*rows, *([*row[:place], change(row[place]), *row[place + 1 :]] for row in more)])

    return whole


def rotated(place: int) -> Edit:
    """A column one line further down, as after a paste that missed by one."""

    def whole(text: str, _: Files) -> str:
        rows = [line.split() for line in text.splitlines()]
        body = [row for row in rows if not _says(row)]
        values = [row[place] for row in body]
        for row, value in zip(body, values[-1:] + values[:-1], strict=True):
            row[place] = value
        return lines_of(rows)

    return whole


def of_rankings(change: Callable[[list[list[str]]], list[list[str]]]) -> Edit:
    """The lines of each query of a run."""

    def whole(text: str, _: Files) -> str:
        queries: dict[str, list[list[str]]] = {}
        for line in text.splitlines():
            queries.setdefault(line.split()[0], []).append(line.split())
        return lines_of(row for rows in queries.values() for row in change(rows))

    return whole


def of_next_query(text: str, _: Files) -> str:
    """Rankings under the id of the next query, as after an off-by-one."""
    rows = [line.split() for line in text.splitlines()]
    queries = list(dict.fromkeys(row[0] for row in rows))
    after = dict(zip(queries, queries[1:] + queries[:1], strict=True))
    return lines_of(sorted(([after[row[0]], *row[1:]] for row in rows), key=lambda row: str(row[0])))


def rescored(rows: list[list[str]], score: Callable[[int, float], object]) -> list[list[str]]:
    return [[*row[:4], str(score(place, float(row[4]))), *row[5:]] for place, row in enumerate(rows, 1)]


def nfd(text: str) -> str:
    return unicodedata.normalize("NFD", text)


def no_zeros(text: str) -> str:
    """The id as a number that a spreadsheet has read."""
    return str(int(text)) if text.isdecimal() else text


def _no_zeros_inside(text: str) -> str:
    return "-".join(map(no_zeros, text.split("-")))


def _without_collection(text: str) -> str:
    return text.removeprefix("Zürich-")


DOC_IDS: dict[str, Callable[[str], str]] = {
    "passage ids in lower case": str.lower,
    "passage ids in NFD": nfd,
    "passage ids without the collection's name": _without_collection,
    "passage ids without leading zeros": _no_zeros_inside,
    "passage ids with .txt": "{}.txt".format,
    "passage ids with #1": "{}#1".format,
    "passage ids percent-encoded": lambda doc: doc.replace("ü", "%C3%BC"),
    "passage ids with a folder before them": "docs/{}".format,
    "hyphens of passage ids as underscores": lambda doc: doc.replace("-", "_"),
}
QUERY_IDS: dict[str, Callable[[str], str]] = {
    "query ids without leading zeros": no_zeros,
    "query ids with a year before them": "2024-{}".format,
    "query ids in quotes": '"{}"'.format,
    "query ids with a decimal point": lambda query: f"{int(query)}.0",
}


def one_tenth(change: Callable[[str], str]) -> Callable[[str], str]:
    """The change in one of ten ids alone."""
    return lambda one: change(one) if one.endswith("3") else one


def every_id(change: Callable[[str], str]) -> Edit:
    """Ids of passages, wherever they stand in a file."""
    return lambda text, _: re.sub(r"Zürich-\d+-\d+", lambda found: change(found[0]), text)


# Edits of JSON lines.


def of_objects(edit: Callable[[Any], Any]) -> Edit:
    """Each line; what is None is dropped. `edit` may change what it gets."""

    def whole(text: str, _: Files) -> str:
        rows = (edit(json.loads(line)) for line in text.splitlines())
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows if row is not None)

    return whole


def renamed(old: str, new: str) -> Edit:
    """A field under another name."""
    return lambda text, _: text.replace(f'"{old}":', f'"{new}":')


def of_passages(edit: Callable[[str, dict[str, Any]], dict[str, Any] | None]) -> Edit:
    """Each passage of records, with the id of its query."""

    def of_line(row: Any) -> Any:
        query, passages = row
        changed = [edit(query, passage) for passage in passages]
        return [query, [passage for passage in changed if passage is not None]]

    return of_objects(of_line)


def of_sets(edit: Callable[[dict[str, Any]], None]) -> Edit:
    """Each grade set of records."""

    def of_passage(_: str, passage: dict[str, Any]) -> dict[str, Any]:
        for found in passage.get("exam_grades") or ():
            edit(found)
        return passage

    return of_passages(of_passage)


def ratings(change: Callable[[float], object], part: Callable[[float], bool] | None = None) -> Edit:
    """The ratings of records, in all lines or those whose place in the file, from 0 to 1, is of a part."""

    def whole(text: str, _: Files) -> str:
        lines = text.splitlines()
        done = []
        for place, line in enumerate(lines):
            query, passages = json.loads(line)
            if part is None or part(place / len(lines)):
                for passage in passages:
                    for found in passage["exam_grades"]:
                        for rating in found["self_ratings"]:
                            rating["self_rating"] = change(rating["self_rating"])
            done.append(json.dumps([query, passages], ensure_ascii=False))
        return "\n".join(done) + "\n"

    return whole


def some_ratings(keep: Callable[[int], bool]) -> Edit:
    """Only some of all grades of records, by their place."""

    def whole(text: str, files: Files) -> str | bytes:
        places = itertools.count(1)

        def edit(found: dict[str, Any]) -> None:
            kept = {item for item, _ in found["answers"] if keep(next(places))}
            _keep_items(found, kept.__contains__)

        return of_sets(edit)(text, files)

    return whole


def _keep_items(found: dict[str, Any], keep: Callable[[str], bool]) -> None:
    for name in ("correctAnswered", "wrongAnswered"):
        found[name] = [item for item in found[name] if keep(item)]
    found["answers"] = [pair for pair in found["answers"] if keep(pair[0])]
    found["self_ratings"] = [
        one for one in found["self_ratings"] if keep(one.get("question_id") or one.get("nugget_id") or "")
    ]


def item_ids(change: Callable[[str], str]) -> Edit:
    """Item ids in the grades of records."""

    def edit(found: dict[str, Any]) -> None:
        for name in ("correctAnswered", "wrongAnswered"):
            found[name] = [change(item) for item in found[name]]
        found["answers"] = [[change(item), said] for item, said in found["answers"]]
        for one in found["self_ratings"]:
            for name in ("question_id", "nugget_id"):
                if name in one:
                    one[name] = change(one[name])

    return of_sets(edit)


def of_ranked(change: Callable[[dict[str, Any]], None]) -> Edit:
    """Each ranking inside of records."""

    def of_passage(_: str, passage: dict[str, Any]) -> dict[str, Any]:
        for entry in passage["paragraph_data"]["rankings"]:
            change(entry)
        return passage

    return of_passages(of_passage)


def field(name: str, change: Callable[[Any], Any]) -> Callable[[dict[str, Any]], None]:
    def edit(entry: dict[str, Any]) -> None:
        entry[name] = change(entry[name])

    return edit


def swap_fields(one: str, two: str) -> Callable[[dict[str, Any]], None]:
    def edit(entry: dict[str, Any]) -> None:
        entry[one], entry[two] = entry[two], entry[one]

    return edit


def _with(change: Callable[[dict[str, Any]], None]) -> Edit:
    """Each JSON line, changed in place."""

    def edit(row: Any) -> Any:
        change(row)
        return row

    return of_objects(edit)


def of_list(name: str, change: Callable[[int, dict[str, Any]], None]) -> Edit:
    """Each entry of a list of each line, with its place; changed in place."""

    def edit(row: Any) -> Any:
        for place, entry in enumerate(row[name]):
            change(place, entry)
        return row

    return of_objects(edit)


def entries(name: str, change: Callable[[list[Any]], list[Any]]) -> Edit:
    """A list of each line as a whole."""
    return _with(field(name, change))


def always(value: Any) -> Callable[[Any], Any]:
    return lambda _: value


def _no_ratings(found: dict[str, Any]) -> None:
    found.update(correctAnswered=[], wrongAnswered=[], answers=[], self_ratings=[], exam_ratio=0.0)


def without_scale(found: dict[str, Any]) -> None:
    for name in ("scale", "covers", "partial"):
        found["prompt_info"].pop(name, None)


def only_lists(found: dict[str, Any]) -> None:
    """Covered and not covered changed over, and no ratings."""
    found["correctAnswered"], found["wrongAnswered"] = found["wrongAnswered"], found["correctAnswered"]
    found["self_ratings"] = []


def twin_passage(row: Any) -> Any:
    """Each passage a second time under another id, ranked by nobody."""
    query, passages = row
    twins = json.loads(json.dumps(passages))
    for twin in twins:
        twin["paragraph_id"] += "-copy"
        twin["paragraph_data"] = {"judgments": [], "rankings": []}
    return [query, [*passages, *twins]]


def half_under(rename: Callable[[str], str]) -> Callable[[dict[str, Any]], None]:
    """Every other query's rankings under another run id."""

    def edit(entry: dict[str, Any]) -> None:
        if int(entry["queryId"]) % 2:
            entry["method"] = rename(entry["method"])

    return edit


def shifted_grades(row: Any) -> Any:
    """The grades of each passage at the next one."""
    query, passages = row
    found = [passage["exam_grades"] for passage in passages]
    for passage, grades in zip(passages, found[-1:] + found[:-1], strict=True):
        passage["exam_grades"] = grades
    return [query, passages]


def twin_items(row: dict[str, Any]) -> dict[str, Any]:
    twins = [dict(item) for item in row["items"]]
    for twin in twins:
        for name in ("question_id", "nugget_id"):
            if name in twin:
                twin[name] += "-v2"
    return {**row, "items": [*row["items"], *twins]}


def new_texts(row: dict[str, Any]) -> dict[str, Any]:
    """Half of the items with another text, and so another id, as ids are made from texts."""
    for place, item in enumerate(row["items"]):
        if place % 2:
            kind = "question" if "question_id" in item else "nugget"
            item[f"{kind}_text"] += ", in short"
            item[f"{kind}_id"] = f"{row['query_id']}/{place:012x}"
    return row


def bank_ids(change: Callable[[str], str]) -> Edit:
    def edit(_: int, item: dict[str, Any]) -> None:
        for name in ("question_id", "nugget_id"):
            if name in item:
                item[name] = change(item[name])

    return of_list("items", edit)


def bank_queries(change: Callable[[str], str]) -> Edit:
    def edit(row: dict[str, Any]) -> dict[str, Any]:
        row["query_id"] = change(row["query_id"])
        for item in row["items"]:
            item["query_id"] = row["query_id"]
        return row

    return of_objects(edit)


def every_second(text: str, change: Callable[[Any], Any]) -> str:
    """A change of every second line."""
    rows = [json.loads(line) for line in text.splitlines()]
    done = [change(row) if place % 2 else row for place, row in enumerate(rows)]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in done)


def lost_item(text: str) -> str:
    """Item grades without the first item of each query."""
    rows = [line.split() for line in text.splitlines()]
    first: dict[str, str] = {}
    for row in rows:
        if not _says(row):
            first.setdefault(row[0], row[1])
    return lines_of(row for row in rows if first.get(row[0]) != row[1])


def without_item(row: Any) -> Any:
    query, passages = row
    for passage in passages:
        for found in passage["exam_grades"]:
            first = min(item for item, _ in found["answers"])
            _keep_items(found, lambda item, first=first: item != first)  # type: ignore[misc]
    return [query, passages]


def failed_passage(passage: dict[str, Any]) -> dict[str, Any]:
    for found in passage["exam_grades"]:
        _no_ratings(found)
    return passage


def cut_rankings(passage: dict[str, Any], depth: int) -> dict[str, Any]:
    data = passage["paragraph_data"]
    data["rankings"] = [entry for entry in data["rankings"] if entry["rank"] <= depth]
    return passage


def twin_grades(found: dict[str, Any]) -> None:
    """Every item graded a second time under another id."""
    for name in ("correctAnswered", "wrongAnswered"):
        found[name] += [f"{item}-v2" for item in found[name]]
    found["answers"] += [[f"{item}-v2", said] for item, said in found["answers"]]
    found["self_ratings"] += [{**one, "question_id": one["question_id"] + "-v2"} for one in found["self_ratings"]]


def direct_labels(change: Callable[[float], object], part: Callable[[int], bool] | None = None) -> Edit:
    def edit(query: str, passage: dict[str, Any]) -> dict[str, Any]:
        for entry in passage["grades"]:
            if part is None or part(int(query)):
                entry["self_ratings"] = change(entry["self_ratings"])
        return passage

    return of_passages(edit)


def less(entry: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key != name}


def assigned(change: Callable[[str], str], only: Callable[[dict[str, Any]], bool] | None = None) -> Edit:
    """Assignments of the answers, of all or some lines."""

    def edit(row: dict[str, Any]) -> dict[str, Any]:
        if only is None or only(row):
            for nugget in row["nuggets"]:
                nugget["assignment"] = change(nugget["assignment"])
        return row

    return of_objects(edit)


def is_first_run(row: Mapping[str, Any]) -> bool:
    return bool(row["run_id"] == ANSWERING[0])


def is_odd(row: Mapping[str, Any]) -> bool:
    return int(row["qid"]) % 2 == 1


def weighted(name: str, change: Callable[[int, dict[str, Any]], object]) -> Edit:
    def edit(place: int, entry: dict[str, Any]) -> None:
        change(place, entry)

    return of_list(name, edit)


def judged(change: Callable[[str], str]) -> Edit:
    return of_list("criteria", lambda _, one: one.update(verdict=change(one["verdict"])))


def of_table(edit: Callable[[list[str]], list[str] | None]) -> Edit:
    """Each line of a leaderboard by its columns, which tabs part."""

    def whole(text: str, _: Files) -> str:
        changed = (edit(line.split("\t")) for line in text.splitlines())
        return "".join("\t".join(row) + "\n" for row in changed if row is not None)

    return whole


def run_ids(change: Callable[[str], str], only: Callable[[str], bool] | None = None) -> Edit:
    return of_table(lambda row: [change(row[0]) if only is None or only(row[0]) else row[0], *row[1:]])


def board_values(change: Callable[[float], float]) -> Edit:
    return of_table(lambda row: [*row[:3], f"{change(float(row[3])):.4f}"])


def as_ranks(text: str, _: Files) -> str:
    """Places in the place of means."""
    means = {row[0]: float(row[3]) for row in (line.split("\t") for line in text.splitlines()) if row[1] == "all"}
    order = sorted(means, key=means.__getitem__, reverse=True)
    return "".join(f"{name}\tall\tRubricCover@10\t{rank}\n" for rank, name in enumerate(order, 1))


def is_even(name: str) -> bool:
    return name[-1] in "02468"


def rotated_table(text: str) -> str:
    """Means by run, each at the next run."""
    rows = [line.split("\t") for line in text.splitlines()]
    means = [row for row in rows if row[1] == "all"]
    values = [row[3] for row in means]
    for row, value in zip(means, values[-1:] + values[:-1], strict=True):
        row[3] = value
    return "".join("\t".join(row) + "\n" for row in rows)
