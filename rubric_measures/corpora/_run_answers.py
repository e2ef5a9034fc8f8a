"""One answer, or bank of nuggets, of a run that is handed in, held to the rules of its track."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rubric_measures.corpora._run_tasks import listed, nugget_problems
from rubric_measures.formats.queries import Limit, length_of
from rubric_measures.formats.reports import ORIGINAL, lost_brackets

if TYPE_CHECKING:
    from rubric_measures.corpora.run_checks import RunFile

__all__ = ["CheckedAnswer"]


class CheckedAnswer:
    """One answer, held to the rules of its file; `line` is where it begins."""

    def __init__(self, file: RunFile, line: int, content: Mapping[str, Any]) -> None:
        self.file = file
        self.rules = file.rules
        self.line = line
        self.content = content
        given = content.get("metadata")
        self.metadata: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
        if self.rules.top_level:
            self.metadata = {**content, **self.metadata}
        said = self.metadata.get(self.rules.topic)
        self.topic = str(said) if isinstance(said, str | int) and not isinstance(said, bool) else ""

    def add(self, kind: str, problem: str, *, soft: bool = False) -> None:
        """Notes a finding of this answer."""
        self.file.add(kind, problem, self.line, self.topic, soft=soft)

    def check(self) -> None:
        """Notes what is wrong with the answer."""
        self._check_metadata()
        self._check_topic()
        if self.rules.form == "nuggets":
            problems, named = nugget_problems(self.content.get("nugget_bank"))
            for kind, problem in problems:
                self.add(kind, problem)
            self.file.see_documents(named, self.line, self.topic)
            return
        sentences = self.content.get(self.rules.sentences)
        absent = [name for name in self.rules.top_level if name not in self.content and name != self.rules.sentences]
        for name in absent:
            self.add("form", f"has no {name}")
        if "nugget_bank" in self.content and sentences is None:
            self.add("form", "is a bank of nuggets, and this looks at generated answers")
            return
        if not isinstance(sentences, list):
            self.add("form", f"has no list {self.rules.sentences!r} of sentences, as {self.rules.name} expects")
            return
        if self.rules.form == "text" and (lost := lost_brackets(self.content.get(ORIGINAL, {}).get("answer", ""))):
            self.add("place", f"{lost} citations stand behind the end of a sentence, and count nothing", soft=True)
        if not sentences:
            self.add("empty", "the answer is empty, and scores 0")
        texts = [text for place, one in enumerate(sentences) if (text := self._check_text(place, one)) is not None]
        self._check_length(texts)
        cited = [self._cited(place, one) for place, one in enumerate(sentences) if isinstance(one, Mapping)]
        self._check_references([doc_id for ids in cited for doc_id in ids])

    def _check_metadata(self) -> None:
        rules = self.rules
        if not self.metadata:
            self.add("metadata", "has no metadata")
            return
        for name in rules.metadata:
            value = self.metadata.get(name)
            if value is None or (isinstance(value, str) and not value.strip()):
                self.add("metadata", f"the field {name} is missing or empty")
        kind = self.metadata.get("type")
        if rules.types and kind is not None and kind not in rules.types:
            self.add("type", f"type is {kind!r}; expected {' or '.join(rules.types)}")
        run_id = str(self.metadata.get("run_id") or "")
        team = self.metadata.get("team_id")
        if isinstance(team, str):
            self.file.teams.add(team)
        self.file.see_run(run_id, self.line, self.topic)

    def _check_topic(self) -> None:
        if not self.topic:
            return
        if self.topic in self.file.answered:
            self.add("twice", f"is answered in line {self.file.answered[self.topic]} already")
        self.file.answered.setdefault(self.topic, self.line)
        if self.file.topics is None:
            return
        topic = self.file.topics.get(self.topic)
        if topic is None:
            self.add("unknown", "is none of the topics")
            return
        copy = self.metadata.get(self.rules.copies) if self.rules.copies else None
        if isinstance(copy, str) and copy.strip() and copy.strip() != topic.text.strip():
            blanks = ": white space differs" if copy.split() == topic.text.split() else ""
            self.add("copies", f"{self.rules.copies} is not the text of the topic{blanks}")

    def _check_text(self, place: int, sentence: Any) -> str | None:
        where = f"{self.rules.sentences}[{place}]"
        if not isinstance(sentence, Mapping):
            self.add("form", f"{where} is no object {{text, citations}}")
            return None
        text = sentence.get("text")
        if not isinstance(text, str):
            self.add("form", f"{where} has no text")
            return None
        if not text.strip():
            self.add("blank", f"{where} has an empty text")
        return text

    def _check_length(self, texts: Sequence[str]) -> None:
        topic = (self.file.topics or {}).get(self.topic)
        limit = topic.own_limit if topic is not None else None
        if limit is None and self.rules.limit is not None:
            limit = Limit(self.rules.limit, self.rules.unit)
        if limit is None:
            self.file.unlimited += self.rules.unit == "characters"
        elif (length := length_of(" ".join(texts), limit.unit)) > limit.most:
            self.add("length", f"has {length} {limit.unit}; the most is {limit.most}")

    def _cited(self, place: int, sentence: Mapping[str, Any]) -> list[str]:
        """The ids that a sentence cites; positions that lead nowhere are findings."""
        ids: list[str] = []
        for name in self.rules.cited_in:
            where = f"{self.rules.sentences}[{place}].{name}"
            if name not in sentence:
                self.add("form", f"{where} is missing; an empty list cites nothing")
                continue
            own = self._ids(where, sentence[name])
            if self.rules.citations is not None and len(own) > self.rules.citations:
                self.add("citations", f"{where} has {len(own)}; the most is {self.rules.citations}")
            if repeated := [doc_id for doc_id, count in Counter(own).items() if count > 1]:
                self.add("cited_twice", f"{where} cites {repeated[0]!r} twice")
            given = sentence.get(self.rules.given) if self.rules.given else None
            shared = sorted(set(own) & {str(one) for one in given}) if isinstance(given, list) else []
            if shared:
                self.add("given", f"{where} repeats {listed(shared)} of {self.rules.given}")
            ids += own
        return ids

    def _ids(self, where: str, cited: Any) -> list[str]:
        rules, ids = self.rules, []
        if isinstance(cited, Mapping) and "score" in rules.cited_as:
            bad = [key for key, value in cited.items() if isinstance(value, bool) or not isinstance(value, int | float)]
            if bad:
                self.add("form", f"{where}: the score of {bad[0]!r} is no number")
            return list(cited)
        if not isinstance(cited, list):
            self.add("form", f"{where} is no list")
            return []
        references = self.content.get("references")
        known = references if isinstance(references, list) else []
        for one in cited:
            if isinstance(one, bool) or not isinstance(one, int | str):
                found = "a number with a fraction" if isinstance(one, float) else f"{one!r:.40}"
                self.add("form", f"{where} has {found}, which is no citation")
            elif isinstance(one, int) and "position" in rules.cited_as:
                if 0 <= one < len(known):
                    ids.append(str(known[one]))
                else:
                    self.add("place", f"{where} has {one}, and references has {len(known)} entries, from 0")
            elif isinstance(one, str) and "id" not in rules.cited_as:
                self.add("form", f"{where} has {one!r:.60}; expected positions in references")
            else:
                ids.append(str(one))
        return ids

    def _check_references(self, cited: Sequence[str]) -> None:
        rules = self.rules
        references = self.content.get("references")
        entries = [str(one) for one in references] if isinstance(references, list) else []
        if rules.references == "required" and not isinstance(references, list):
            self.add("references", "has no list of references")
        if rules.references != "none" and isinstance(references, list):
            self._check_listed(entries, cited)
        self.file.see_documents(cited, self.line, self.topic, entries)

    def _check_listed(self, entries: Sequence[str], cited: Sequence[str]) -> None:
        rules = self.rules
        lost = sorted(set(cited) - set(entries))
        if lost:
            self.add("place", f"cites {listed(lost)}, which references does not have")
        if repeated := [one for one, count in Counter(entries).items() if count > 1]:
            self.add("reference_twice", f"references has {listed(repeated)} more than once")
        if rules.references_most is not None and len(entries) > rules.references_most:
            self.add("references", f"references has {len(entries)} entries; the most is {rules.references_most}")
        if rules.all_cited and (uncited := sorted(set(entries) - set(cited))):
            self.add("uncited", f"references has {listed(uncited)}, which no sentence cites")
