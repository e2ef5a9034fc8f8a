"""One passage and its items put to a model, and the replies read.

The settings of grading: everything besides model, prompt, bank and passage that may change a grade.

The distribution over grades that a reply comes with: probabilities of its labels, or of its first token.

Several items of a passage in one call: which prompts can be asked so, how they ask, and how their reply is read.

Putting a prompt to the model and reading the reply: requests, retries of unreadable replies, statuses.

What came of each item, and from several answers to one grade: the best chunk, median or majority of replicates.

Long passages: what the model's context cannot hold is graded in overlapping chunks; the question is never cut.
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
import math
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median_low
from typing import Any, Literal, NamedTuple, Self, cast, get_args, get_origin, get_type_hints

from rubric_measures.base.errors import GradingError, InputError, refuse_ignored
from rubric_measures.models.base import ATTEMPT_STEP, Backend, Reply, Request, SharedOptions, refuse_settings
from rubric_measures.models.settings import given_of, refuse_outside
from rubric_measures.prompts.library import Prompt
from rubric_measures.prompts.parsers import Parsed, clean_reply, objects_of, without_thoughts
from rubric_measures.types.entities import GradeStatus, RubricItem, content_hash
from rubric_measures.types.scales import CONTRADICTED, Message


@dataclass(frozen=True)
class Asking:
    """How prompts are put to a model and how its replies are read.

    >>> Asking(temperature=1, replicates=3).retries
    1

    Attributes:
        temperature: of the model; 0 takes the most probable reply.
        max_tokens: the longest reply, in tokens; by default as the kind of prompt needs: 64 for a grade, 256 for a
            text, 16 an item and 64 more for a list, 2048 for what a test bank is made of. A reply that is cut there is
            asked for once more with four times as many.
        option: further generation options. One that is null is not sent, `temperature` and `max_tokens` too.
        replicates: draws of every reply, the median of whose grades counts (of an even number, the lower one); needs a
            temperature.
        retries: how often a reply that cannot be read is drawn again, past the cache; backends whose replies are
            always the same are not asked again. With 0, none that was cut is asked for with more tokens either.
        explain: ask for a reason before each grade, as JSON (an endpoint is held to it where it can be), and keep it;
            by default of answers in tables alone, where the model is behind an endpoint and no prompt is named.
        unparsed: what a reply without a rating is: by default no grade; `exampp`: 0 for an unanswerable expression or
            nothing, else 1 (EXAM++ 4.2.2). `compat` has the reverse, as the Rubric workbench's program has it.
        compat: `workbench`: replies are read and answers matched as the Rubric workbench's program does it;
            `nuggetizer`: label lists count as in the nuggetizer program.
        items_per_call: how many items of a passage one call asks about, or `all`; by default ten where the reply is a
            list, or a reason is asked for by default, else one. By prompts that are about one item the reply is JSON
            then, and an item that it does not grade is asked about by itself.
        document_texts: query_id -> the documents that prompts about answers show beside an answer.

    Raises:
        InputError: a setting is out of its range, or two do not go together.
    """

    temperature: float = 0.0
    max_tokens: int | None = None
    option: Mapping[str, Any] | None = None
    replicates: int = 1
    retries: int = 1
    explain: bool | None = None
    unparsed: Literal["", "exampp"] = ""
    compat: Literal["", "workbench", "nuggetizer"] = ""
    items_per_call: int | Literal["all"] | None = None
    document_texts: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        items = {} if self.items_per_call == "all" else {"items_per_call": (1, 100)}
        drawn = {"replicates": (1, ATTEMPT_STEP - 1), "retries": (0, 100)}
        refuse_outside(self, **drawn, **items, max_tokens=(1, 10**7), temperature=(0, 100))
        option = self.option or {}
        own = sorted(name for name in ("temperature", "max_tokens") if option.get(name) is not None)
        if own:
            raise InputError(f"{own[0]} is a setting of its own, not a generation option", settings=own)
        for name, kind in get_type_hints(Asking).items():
            if get_origin(kind) is Literal and (value := getattr(self, name)) not in get_args(kind):
                raise InputError(f"{name} is {value!r}; expected one of {', '.join(filter(None, get_args(kind)))}")
        greedy = self.temperature == 0 and "temperature" not in option
        if self.replicates > 1 and greedy:
            raise InputError(
                "replicates at temperature 0 are all the same reply; give a temperature",
                settings=("temperature",),
            )

    def only(self, *names: str) -> Self:
        """The same, where only these settings have an effect.

        Raises:
            InputError: another one is not what it is by default.
        """
        refuse_ignored(given_of(self).keys() - set(names))
        return self

    def as_json(self, prompt: Prompt) -> dict[str, object]:
        """What signatures and manifests say of the settings for a prompt; options and documents as they are sent.

        Settings that are no part of most prompts are there only where they are not the usual ones.
        """
        is_list = prompt.parser == "label_list"
        usual = "temperature max_tokens replicates retries unparsed compat"
        found: dict[str, object] = {
            **{name: getattr(self, name) for name in usual.split()},
            "combine": "median",
            "long_passages": "chunk",
            "chunk_overlap": _OVERLAP,
            "nuggets_per_call": (self.items_per_call if is_list else None) or OF_LIST,
            "documents": content_hash(self.document_texts)[:16] if self.document_texts else None,
            "shuffle_seed": None,  # as signatures always had it: they are those of the grades that there are
            "explain": self.explain,
            "items_per_call": None if is_list or self.items_per_call == 1 else self.items_per_call,
        }
        return {name: value for name, value in found.items() if value or name not in _LEFT_OUT}


# Settings that signatures have only where they are not the usual ones: they are no part of most prompts.
_LEFT_OUT = ("documents", "explain", "items_per_call")
OF_LIST = 10  # items that a prompt whose reply is a list shows at once, as nuggetizer does
_OVERLAP = 0.25  # the share of a chunk that the next one repeats
# With less on all labels together, the first token says something else than a label.
_LEAST_MASS = 0.5
# What tokenizers write in the place of a blank.
_BLANKS = " \t\n▁Ġ"


def distribution_of_reply(
    raw: Mapping[str, object], labels: Sequence[str], grade_of: Callable[[str], Any]
) -> dict[int, float] | None:
    """Grade -> probability of a reply, together 1; None where the reply does not tell.

    Args:
        raw: what else came with the reply: `label_probabilities` (of whole labels), or `first_token_logprobs`, the
            candidates for the first token, each of which counts for the label that begins with it. Labels of which no
            candidate is listed have less than the least candidate, and count as 0.
        labels: the labels that the prompt allows.
        grade_of: reads the grade of a label; None where it has none.
    """
    shares = _whole_labels(raw.get("label_probabilities"), labels)
    if shares is None:
        shares = _first_tokens(raw.get("first_token_logprobs"), labels)
    if shares is None:
        return None
    found: dict[int, float] = {}
    for label, share in shares.items():
        grade = grade_of(label)
        if type(grade) is not int:
            return None
        found[grade] = found.get(grade, 0.0) + share
    total = math.fsum(found.values())
    return {grade: share / total for grade, share in sorted(found.items())}


def _whole_labels(said: object, labels: Sequence[str]) -> dict[str, float] | None:
    """The probabilities of all labels; None where some are not said."""
    if not isinstance(said, Mapping) or not set(labels) <= said.keys():
        return None
    shares = {label: float(said[label]) for label in labels}
    return shares if sum(shares.values()) > 0 else None


def _first_tokens(said: object, labels: Sequence[str]) -> dict[str, float] | None:
    """The probabilities of labels by the first token; None where one begins several, or most of it begins none.

    Whether "1" is the whole of a number is known where a number of two digits is one token, too.
    """
    shares = dict.fromkeys(labels, 0.0)
    tokens = [(str(token).strip(_BLANKS).casefold(), score) for token, score in said] if isinstance(said, list) else []
    are_split = not any(start.isdecimal() and len(start) > 1 for start, _ in tokens)
    for start, score in tokens:
        if not start:
            continue
        is_part = are_split and start.isdecimal()
        fitting = [label for label in labels if label.casefold() == start and not is_part]
        fitting = fitting or [label for label in labels if label.casefold().startswith(start)]
        if len(fitting) > 1:
            return None
        if fitting:
            shares[fitting[0]] += math.exp(score)
    return shares if sum(shares.values()) >= _LEAST_MASS else None


_NAMES = {"question": "questions", "nugget": "key facts"}
_REASONED = '{"reason": "one or two sentences", "grade": "…"}'
_KEY = re.compile(r"\s*#?(\d{1,3})[.):]?\s*")


def refuse_other_forms(prompt: Prompt, settings: Asking, asked: str, fits: bool) -> None:
    """Refuses a setting by which replies are JSON where a prompt, or another setting, has replies of another form.

    Raises:
        InputError: so it is.
    """
    if not fits or prompt.format != "template":
        text = (
            f"{asked} needs a prompt that asks a model for one grade of one thing, and {prompt.prompt_class} does not"
        )
        raise InputError(f"{text}; leave {asked} out, or name another", settings=("model", "prompt"))
    if settings.compat or settings.unparsed:
        text = f"with {asked} replies are JSON, and another setting wants another form; leave one out"
        raise InputError(text, settings=(asked, "compat", "unparsed"))


def prompt_of_several(prompt: Prompt, settings: Asking) -> Prompt:
    """The prompt with a last line that asks for a grade of each item, perhaps with a reason before it.

    Raises:
        InputError: it does not ask for one grade of one item in its own words.
    """
    is_read = prompt.task == "grade" and prompt.parser in ("rating", "yes_no", "label", "phrase")
    fits = is_read and prompt.target in _NAMES and "item" not in prompt.fields
    refuse_other_forms(prompt, settings, "items_per_call", fits)
    what, one, more = "the grade", '"…"', '"…"'
    if settings.explain:
        what, one, more = "a reason and then the grade", _REASONED, "{…}"
    line = (
        f"There are several {_NAMES[prompt.target]} above, each with its number. Grade each of them by itself, as if "
        f"it were the only one. Reply with one JSON object and nothing else, which has {what} of each number: "
        f'{{"1": {one}, "2": {more}}}. Each grade is one of {prompt.reply_words}.'
    )
    return dataclasses.replace(prompt, text=f"{prompt.text.rstrip()}\n\n{line}\n")


def prompt_with_reason(prompt: Prompt) -> Prompt:
    """The prompt with a last line that asks for a reason before the grade."""
    line = f"Reply with one JSON object and nothing else: {_REASONED}. The reason comes first; the grade is one of "
    return dataclasses.replace(prompt, text=f"{prompt.text.rstrip()}\n\n{line}{prompt.reply_words}.\n")


def numbered(items: Sequence[RubricItem]) -> str:
    """The items as such a call shows them: a line each, with its number."""
    return "\n" + "\n".join(f"{number}. {' '.join(item.text.split())}" for number, item in enumerate(items, 1))


def read_several(text: str, prompt: Prompt, count: int) -> Parsed[dict[int, tuple[int, str]]]:
    """Reads the grades of numbered items: place from 0 -> grade, and the reason beside it (or nothing).

    Those that are missing or no grade are left out. Of an item with two different grades there is none. A reply that
    has a number that was not asked about counted in another way, so none of its grades surely belongs to its item.
    """
    said: dict[int, set[int | None]] = {}
    reasons: dict[int, str] = {}
    for found in objects_of(clean_reply(text)):
        for key, entry in found.items():
            if match := _KEY.fullmatch(key):
                number, (grade, reason) = int(match[1]), _graded(entry if isinstance(entry, dict) else {"grade": entry})
                said.setdefault(number, set()).add(None if grade is None else prompt.parse(grade).value)
                reasons[number] = reason or reasons.get(number, "")
    if strange := [number for number in said if not 1 <= number <= count]:
        return Parsed(None, f"the reply grades item {strange[0]}, and there are {count}")
    grades = {}
    for number, values in said.items():
        if len(values) == 1 and (value := next(iter(values))) is not None:
            grades[number - 1] = value, reasons[number]
    return Parsed(grades) if grades else Parsed(None, "no grades of numbered items in the reply")


def _graded(entry: Mapping[str, object]) -> tuple[str | None, str]:
    """The grade that JSON says, as text, and the reason beside it."""
    grade, reason = entry.get("grade"), entry.get("reason")
    word = ("no", "yes")[grade] if isinstance(grade, bool) else str(grade)
    return word if isinstance(grade, str | int | float) else None, reason.strip() if isinstance(reason, str) else ""


_LONGER = 4  # times as many tokens for a reply that was cut
_PER_MESSAGE = 8  # what a chat template or special tokens add to a message, at most


class Ask(NamedTuple):
    """One question to the model: what is shown, for which replicate, and of how many items the reply is a list.

    `unread` are the keys of requests about this and others, whose replies could not be read.
    """

    messages: tuple[Message, ...]
    replicate: int = 0
    labels: int | None = None
    unread: tuple[str, ...] = ()


class ReadReply(NamedTuple):
    """What the model said: the value read (None when there is none), its status, the raw text, and why not.

    `retries` counts further draws; `checks` has (gold answer, reply) where a model checked the text; `thinking` is what
    the model thought before the text, and `max_tokens` how long it might be where it was asked for once more;
    `distribution` is grade -> probability, where the reply came with those of its labels; `reason` is why the model
    gave the grade, where it was asked for that; `alone` says that the item was asked about by itself, as a reply about
    several did not grade it; `unread` are the keys of requests about this whose replies could not be read.
    """

    value: Any
    status: GradeStatus
    text: str
    note: str = ""
    retries: int = 0
    checks: tuple[tuple[str, str], ...] = ()
    thinking: str = ""
    max_tokens: int = 0
    distribution: Mapping[int, float] | None = None
    reason: str = ""
    alone: bool = False
    unread: tuple[str, ...] = ()


UNREAD = 10
_TRIED = 3  # jobs that are begun together as long as no reply could be read


@dataclass
class Trial:
    """Looks whether any reply can be read.

    Attributes:
        most: after so many of them a run ends where none could be read; None never ends one.
        unread: the keys of requests whose replies could not be read, of questions without a reply that can be: a
            further run is to ask anew.
    """

    most: int | None = UNREAD
    unread: set[str] = field(default_factory=set)
    _tried: int = 0
    _is_over: bool = False

    def note(self, answer: ReadReply) -> None:
        """Notes what a reply said.

        Raises:
            GradingError: none could be read by now.
        """
        if self.most is None or answer.status == "failed":
            return
        if answer.status == "unparsed":
            self.unread.update(answer.unread[-1:])
        elif answer.value is not None:
            self.unread.difference_update(answer.unread)
        self._is_over |= answer.value is not None
        self._tried += 1
        if self._tried >= self.most and not self._is_over:
            said = " ".join(answer.text.split())
            text = f"none of the first {self.most} replies can be read: {answer.note} ({said!r:.100})"
            raise GradingError(f"{text}; mend that, and run again")

    def waits(self, under_way: int) -> bool:
        """Whether no further job begins beside those under way, as nobody knows whether replies can be read."""
        return self.most is not None and not self._is_over and under_way >= _TRIED


class Asker:
    """One prompt put to one model with one set of options; holds no state but the memory of replies read before.

    Attributes:
        options: the generation options.
        limit: how many tokens the model's context has; None where there is no limit, or nobody knows it.
        count: the tokens of a text, by the model's own tokenizer.
        draws: how often one question is put to the model at most, as long as its replies cannot be read.
        told: is told what each reply said, where somebody looks whether any can be read.

    Raises:
        InputError: the backend does not read the prompt, or a generation option is a setting of the backend.
    """

    def __init__(self, backend: Backend, prompt: Prompt, settings: Asking) -> None:
        self.prompt = prompt
        self.settings = settings
        self.model = backend.model
        embedded = getattr(backend, "embedded", False)
        # Backends that are shown fields instead of prose name the prompts that they read.
        reads: Sequence[str] = getattr(backend, "reads_prompts", ())
        if reads and prompt.prompt_class not in reads:
            raise InputError(f"{backend.model} reads only the prompt {' or '.join(reads)}, not {prompt.prompt_class}")
        if settings.option:
            refuse_settings(backend, settings.option)
        self.options: Mapping[str, object] = (
            dict(backend.options)
            if embedded
            else {"temperature": settings.temperature, **backend.options, **(settings.option or {})}
        )
        if settings.explain:
            fits = not embedded and prompt.parser in ("rating", "yes_no", "label")
            refuse_other_forms(prompt, settings, "explain", fits)
            if "structured" in backend.options:
                held = backend.options["structured"]
                self.options = {**self.options, "explain": True, "structured": "json_schema" if held == "off" else held}
        self._embedded = embedded
        self._options_of: dict[tuple[int | None, int], SharedOptions] = {}
        self.limit = backend.context_tokens
        self.count = functools.lru_cache(maxsize=4096)(backend.count_tokens)
        # An encoder-decoder writes its reply elsewhere.
        self._is_shared = bool(getattr(backend, "reply_shares_context", True))
        self._labels = tuple(prompt.replies)
        # Another draw of a reply that is always the same would only cost.
        fixed = embedded or (getattr(backend, "deterministic", False) and not self.options.get("temperature"))
        self._retries = 0 if fixed else settings.retries
        self.draws = 1 + self._retries
        self.told: Callable[[ReadReply], None] | None = None
        self._answer = functools.lru_cache(maxsize=4096)(self._make_answer)

    def taken(self, messages: Sequence[Message], reply_tokens: int) -> int:
        """The tokens of messages and their reply."""
        shown = sum(self.count(message.content) + _PER_MESSAGE for message in messages)
        return shown + (reply_tokens if self._is_shared else 0)

    def why_too_long(self, messages: Sequence[Message], reply_tokens: int) -> str:
        """Why messages and their reply do not fit; empty when they do, or when nobody knows."""
        if self.limit is None or (taken := self.taken(messages, reply_tokens)) <= self.limit:
            return ""
        return f"it needs {taken} of the model's {self.limit} tokens"

    def max_tokens(self, count: int | None = None) -> int:
        """The longest reply that is asked for."""
        if self.settings.max_tokens is not None:
            return self.settings.max_tokens
        if count is not None:
            return 64 + (128 if self.settings.explain else 16) * count
        if self.prompt.reply_tokens:
            return self.prompt.reply_tokens
        return 256 if self.prompt.parser == "text" or self.settings.explain else 64

    def at_most(self, shown: int, written: int) -> tuple[int, int]:
        """The tokens of questions with all that may follow: replies that are cut, then unreadable as often as drawn.

        Args:
            shown: tokens shown when each is asked once.
            written: the most that are written then.
        """
        if self._embedded or not self.settings.retries:
            return shown * self.draws, written * self.draws
        return shown * (1 + self.draws), written * (1 + _LONGER * self.draws)

    def request(self, ask: Ask, group: str, attempt: int = 0, longest: int = 0) -> Request:
        """The request of one question; another attempt, or another longest reply, is another request."""
        options = self._options_of.get((ask.labels, longest))
        if options is None:
            options = self._options_of[ask.labels, longest] = SharedOptions(self.options)
            if not self._embedded:
                options.setdefault("max_tokens", longest or self.max_tokens(ask.labels))
        replicate = ask.replicate + ATTEMPT_STEP * attempt
        labels = self._labels if ask.labels is None else ()
        return Request(self.model, ask.messages, options, labels, replicate, group)

    def ask(
        self, asks: Sequence[Ask], group: str = ""
    ) -> Generator[Sequence[Request], Sequence[Reply], list[ReadReply]]:
        """A step of a job that asks some questions at once; answers in the same order.

        Replies that were cut are asked for once more with more tokens, and those that cannot be read are drawn again.
        """
        answers: list[ReadReply | None] = [None] * len(asks)
        longest: dict[int, int] = {}
        draws: dict[int, int] = {}
        unread = [ask.unread for ask in asks]
        open_ = list(range(len(asks)))
        while open_:
            requests = [self.request(asks[place], group, draws.get(place, 0), longest.get(place, 0)) for place in open_]
            replies = yield requests
            again = []
            for place, request, reply in zip(open_, requests, replies, strict=True):
                answer = self._read_reply(reply, asks[place].labels)
                if answer.status == "unparsed":
                    unread[place] += (request.key,)
                if unread[place]:
                    answer = answer._replace(unread=unread[place])
                if self.told is not None:
                    self.told(answer)
                if answer.status == "graded" and not longest and not draws:
                    # As nearly all are.
                    answers[place] = answer
                    continue
                if answers[place] is not None and answer.status in ("failed", "refused"):
                    # No other reply came, as where a limit is reached: what was read is all that there is.
                    continue
                if answer.status == "truncated" and reply.is_answer and place not in longest:
                    if longer := self._more_tokens(asks[place]):
                        longest[place] = longer
                        answers[place] = answer
                        again.append(place)
                        continue
                elif place in longest:
                    answer = answer._replace(max_tokens=longest[place])
                drawn = draws.get(place, 0)
                answers[place] = answer._replace(retries=drawn) if drawn else answer
                if answer.status == "unparsed" and drawn < self._retries:
                    draws[place] = drawn + 1
                    again.append(place)
            open_ = again
        return cast(list[ReadReply], answers)

    def ask_what_fits(
        self, asks: Sequence[Ask], group: str = "", what: str = ""
    ) -> Generator[Sequence[Request], Sequence[Reply], list[ReadReply]]:
        """The same, where what does not fit the model is not asked, as it would cut it; `what` begins its note."""
        problems = [self.why_too_long(ask.messages, self.max_tokens(ask.labels)) for ask in asks]
        fitting = [ask for ask, problem in zip(asks, problems, strict=True) if not problem]
        answers = iter((yield from self.ask(fitting, group)))
        return [ReadReply(None, "failed", "", what + problem) if problem else next(answers) for problem in problems]

    def _more_tokens(self, ask: Ask) -> int:
        """How long the reply may be when it is asked for once more because it was cut; 0: it is not."""
        if self._embedded or not self.settings.retries or "max_tokens" in self.options:
            return 0
        more = _LONGER * self.max_tokens(ask.labels)
        return 0 if self.why_too_long(ask.messages, more) else more

    def _read_reply(self, reply: Reply, count: int | None) -> ReadReply:
        # Half a surrogate pair, which no file can hold, is shown as a question mark.
        said = reply.text or "", reply.error, str(reply.raw.get("thinking") or "") if reply.raw else ""
        text, error, given = [one.encode("utf-8", "replace").decode("utf-8") for one in said]
        if reply.status in ("failed", "refused") or reply.text is None:
            status: GradeStatus = "failed" if reply.status == "ok" else reply.status
            return ReadReply(None, status, text, error or "the model gave no reply")
        answer = self._answer(text, count)
        if given:
            answer = answer._replace(thinking="\n".join(filter(None, (given, answer.thinking))))
        if reply.raw and self._labels and count is None and answer.value is not None:
            found = distribution_of_reply(reply.raw, self._labels, lambda label: self._answer(label, count).value)
            # A reply that says a grade which the labels hold impossible is none of them.
            if found is not None and found.get(answer.value):
                answer = answer._replace(distribution=found)
        if reply.status == "truncated":
            # A verdict in front of the cut is kept, and marked.
            return answer._replace(status="truncated", note=error or "the reply or the prompt was cut")
        return answer

    def _make_answer(self, text: str, count: int | None) -> ReadReply:
        """What a complete reply says, and what the model thought before it."""
        settings, prompt, reason = self.settings, self.prompt, ""
        thoughts, text = without_thoughts(text)
        parsed: Parsed[Any] = Parsed(None, "the reply has several grades")
        is_list = count is not None and prompt.parser != "label_list"
        entries = [_graded(one) for one in objects_of(clean_reply(text))] if settings.explain and not is_list else []
        if count is not None and is_list:
            parsed = read_several(text, prompt, count)
        elif grades := {grade for grade, _ in entries if grade is not None}:
            reason = next((reason for grade, reason in entries if grade is not None and reason), "")
            parsed = prompt.parse(*grades) if len(grades) == 1 else parsed
        else:
            parsed = prompt.parse(text, unparsed=settings.unparsed, compat=settings.compat, count=count)
        status: GradeStatus = "unparsed" if parsed.value is None else "graded"
        return ReadReply(parsed.value, status, text, parsed.reason, thinking=thoughts, reason=reason)


class Unit(NamedTuple):
    """What one job grades: a passage and some items of its query (none for a direct relevance label)."""

    query_id: str
    query_text: str
    doc_id: str
    text: str
    items: tuple[RubricItem, ...] = ()


class Outcome(NamedTuple):
    """What came of one item of a passage.

    Attributes:
        item_id: the item; `"0"` for a direct relevance label.
        grade: the grade; None where there is none.
        status: as in `Grade`.
        answer: the raw reply that the grade comes from.
        note: the reason of a status other than `graded`.
        details: what else is worth keeping: the replies of the other chunks and replicates, the answer that was
            matched, the number of retries.
    """

    item_id: str
    grade: float | None
    status: GradeStatus = "graded"
    answer: str = ""
    note: str = ""
    details: Mapping[str, object] | None = None


# How the notes of grades end that only the rules of the nuggetizer program make.
BY_RULE = "(nuggetizer)"


def as_nuggetizer(answer: ReadReply, place: int, labels: Sequence[str]) -> ReadReply:
    """The answer about one nugget as the nuggetizer program counts it.

    An unknown label earns nothing, and so does a list that cannot be read after all retries (its label is `failed`);
    both stay in the denominator. A nugget without a label, because the list is too short, is dropped: it has no grade.
    Labels too many are ignored. A call that failed or was refused is no grade here either.

    Args:
        answer: its value being the labels as they stand, in small letters.
        place: of the nugget, from 0.
        labels: the known labels, by grade from 0.

    Source: nuggetizer 0.0.5.
    """
    if answer.value is None:
        if answer.status != "unparsed":
            return answer
        return answer._replace(value=0, status="graded", note=f"{answer.note}; counts as failed, 0 {BY_RULE}")
    if place >= len(answer.value):
        return answer._replace(value=None, status="unparsed", note=f"no label for this nugget; dropped {BY_RULE}")
    label = answer.value[place]
    if label not in labels:
        return answer._replace(value=0, note=f"unknown label {label[:40]!r}; counts as 0 {BY_RULE}")
    return answer._replace(value=labels.index(label))


def best_answer(answers: Sequence[ReadReply], top: int, what: str = "chunks") -> ReadReply:
    """The answer with the highest grade; the first of equal ones; with the retries of all of them.

    One without a grade could have had the highest one, so it decides the status, unless another has the top of the
    scale anyway.

    Args:
        answers: the answers about the chunks of a passage, or the checks of one answer; their values being grades.
        top: the highest grade of the scale.
        what: what they are answers about, as the note says it.
    """
    if len(answers) == 1:
        return answers[0]
    retries = sum(answer.retries for answer in answers)
    graded = [answer for answer in answers if answer.value is not None]
    # A chunk that says the opposite says more than one that says nothing.
    best = max(graded, key=lambda answer: 0.5 if answer.value == CONTRADICTED else answer.value, default=None)
    if best is not None and (len(graded) == len(answers) or best.value >= top):
        return best._replace(retries=retries)
    lost = next(answer for answer in answers if answer.value is None)
    missing = len(answers) - len(graded)
    note = f"{missing} of {len(answers)} {what} have no grade: {lost.note}"
    return lost._replace(note=note, retries=retries)


def combine_replicates(item_id: str, answers: Sequence[ReadReply], details: dict[str, object]) -> Outcome:
    """The outcome of an item from the answers of its replicates.

    Replicates without a grade are left out as long as more than half of them have one; otherwise the item has the
    status of the first one without. The median counts, of an even number the lower middle, so that it is a grade that
    was given. The grades of all replicates are kept in the details.

    Args:
        item_id: the item.
        answers: one answer a replicate, their values being grades.
        details: what else is known about the item; the replicates are added.
    """
    if len(answers) == 1:
        # The usual case, and the one that a night of grading consists of.
        value, status, text, note, *said = answers[0]
        if any(said):
            details.update(_said_of(answers))
        return Outcome(item_id, value, status, text, note, details or None)
    details.update(_said_of(answers))
    grades = [answer.value for answer in answers if answer.value is not None]
    details["replicates"] = [[answer.value, answer.text] for answer in answers]
    if 2 * len(grades) <= len(answers):
        lost = next(answer for answer in answers if answer.value is None)
        note = f"{len(answers) - len(grades)} of {len(answers)} replicates have no grade: {lost.note}"
        return Outcome(item_id, None, lost.status, lost.text, note, details)
    grade = median_low(grades)
    shown = next(answer for answer in answers if answer.value == grade)
    return Outcome(item_id, grade, shown.status, shown.text, shown.note, details)


def _said_of(answers: Sequence[ReadReply]) -> dict[str, object]:
    """What replies say besides grades, as details: one value where there is one reply, else a list."""

    def each(values: Sequence[str]) -> object:
        return (values[0] if len(values) == 1 else [*values]) if any(values) else None

    # Of several draws the shares of their grades are the distribution.
    said = answers[0].distribution if len(answers) == 1 else None
    found = {
        "retries": sum(answer.retries for answer in answers) or None,
        "checks": [list(check) for answer in answers for check in answer.checks] or None,
        "thinking": each([answer.thinking for answer in answers]),
        "reason": each([answer.reason for answer in answers]),
        "max_tokens": max(answer.max_tokens for answer in answers) or None,
        "distribution": {str(grade): float(f"{share:.6g}") for grade, share in said.items()} if said else None,
    }
    return {name: value for name, value in found.items() if value is not None}


_LEAST_ROOM = 16  # with less room than this for the passage, nothing sensible can be shown
_BOUNDARY = re.compile(r"\s+")


class Fit(NamedTuple):
    """The pieces of a passage that are shown one by one: the passage, or its chunks; none where nothing fits.

    `note` says what was done to the passage; it is empty when nothing was.
    """

    pieces: tuple[str, ...]
    note: str = ""


def fit_passage(
    text: str, frame: Sequence[Message], reply_tokens: int, room: Asker, shown: Callable[[str], str] = str
) -> Fit:
    """What of a passage is shown at once.

    Args:
        text: the passage.
        frame: the messages with an empty passage.
        reply_tokens: how long the reply may be.
        room: knows the context of the model.
        shown: a piece as the messages show it, which may be longer.
    """
    if room.limit is None:
        return Fit((text,))
    left = room.limit - room.taken(frame, reply_tokens)

    def count(piece: str) -> int:
        return room.count(shown(piece))

    length = count(text)
    if length <= left:
        return Fit((text,))
    if left < _LEAST_ROOM:
        return Fit((), f"question and reply need {room.limit - left} of the model's {room.limit} tokens")
    pieces = overlapping_chunks(text, left, _OVERLAP, count)
    return Fit(pieces, f"graded in {len(pieces)} chunks: {length} tokens, room for {left}")


def overlapping_chunks(text: str, room: int, overlap: float, count: Callable[[str], int]) -> tuple[str, ...]:
    """Cuts a text between words into chunks of at most `room` tokens, each repeating the end of the one before.

    Args:
        text: the text.
        room: tokens a chunk may have.
        overlap: the share of a chunk (in characters) that the next one repeats.
        count: counts tokens.

    Returns:
        The chunks; together they hold every character of the text, whitespace at the seams aside.
    """
    chunks = []
    start = 0
    while True:
        end = _longest_prefix(text, start, room, count)
        chunks.append(text[start:end].strip())
        if not text[end:].strip():
            return tuple(filter(None, chunks)) or ("",)
        wanted = start + max(1, round((end - start) * (1 - overlap)))
        # Begin at a word, unless there is none before the end of the chunk.
        boundary = _BOUNDARY.search(text, wanted - 1, end)
        start = boundary.end() if boundary and boundary.end() < end else end


def _longest_prefix(text: str, start: int, room: int, count: Callable[[str], int]) -> int:
    """The end of the longest stretch from `start` that has at most `room` tokens and ends between words."""
    ends = [match.start() for match in _BOUNDARY.finditer(text, start) if match.start() > start] + [len(text)]
    fitting = _bisect(len(ends), lambda place: count(text[start : ends[place]]) <= room)
    if fitting:
        return ends[fitting - 1]
    # One word longer than the room (no blanks in the script, or garbage): cut inside it.
    inside = _bisect(ends[0] - start, lambda place: count(text[start : start + place + 1]) <= room)
    return start + max(1, inside)


def _bisect(size: int, holds: Callable[[int], bool]) -> int:
    """How many of the first places hold, for a condition that holds up to some place."""
    return bisect.bisect_left(range(size), True, key=lambda place: not holds(place))
