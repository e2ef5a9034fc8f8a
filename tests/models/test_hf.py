"""Hugging Face backends on tiny models built here: every kind, mode and failure; nothing comes from a hub."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from rubric_measures.base.errors import (  # noqa: E402
    BackendError,
    DeviceLostError,
    InputError,
    MissingExtraError,
    UnknownNameError,
)
from rubric_measures.grading.asking import Asking  # noqa: E402
from rubric_measures.grading.grader import GradingEngine, GradingReport  # noqa: E402
from rubric_measures.grading.styles import Style  # noqa: E402
from rubric_measures.models import make_backend  # noqa: E402
from rubric_measures.models.base import Backend, Reply, Request  # noqa: E402
from rubric_measures.models.hf import (  # noqa: E402
    HuggingFaceModel,
    chat_text,
)
from rubric_measures.models.running import LocalRunner  # noqa: E402
from rubric_measures.records.models import GradedPassage, QueryPassages, grade_of_items  # noqa: E402
from rubric_measures.types.entities import RubricItem  # noqa: E402
from rubric_measures.types.scales import Message  # noqa: E402
from tests import hf_models  # noqa: E402
from tests.example_records import bank_from_items  # noqa: E402

LABELS = tuple("012345")
PASSAGE = "The epidermis is the outer layer of the skin. Rivers carry water to the sea; lakes keep it for a while. "
THINGS = ["skin", "sea and lakes", "rivers", "a leap year of 366 days", "epidermis", "water", "layer", "outer context"]
PROMPTS = [f"Question: What is named {thing}? Answer:" for thing in THINGS]
TAUGHT = {prompt: LABELS[place % 6] for place, prompt in enumerate(PROMPTS)}


@pytest.fixture(scope="module", autouse=True)
def alone() -> Iterator[None]:
    """No network; and one thread, since two that wait for each other take minutes on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    root = tmp_path_factory.mktemp("models")
    chat = {f"<|user|>{PASSAGE}{prompt}<|end|><|assistant|>": label for prompt, label in TAUGHT.items()}
    makers: dict[str, Callable[[Path], Path]] = {
        "t5": hf_models.save_t5,
        "t5-taught": lambda path: hf_models.save_t5(path, taught=TAUGHT),
        "llama": hf_models.save_llama,
        "llama-plain": lambda path: hf_models.save_llama(path, chat=False),
        "llama-taught": lambda path: hf_models.save_llama(path, taught=chat),
        "bert": hf_models.save_bert,
    }

    def folder(name: str) -> str:
        path = root / name
        if not path.exists():
            path.mkdir()
            makers[name](path)
        return str(path)

    return folder


def ask(backend: Backend, *prompts: str, labels: Sequence[str] = (), group: str = "", **options: Any) -> list[Request]:
    settings = {"temperature": 0, "max_tokens": 8, **backend.options, **options}
    return [Request(backend.model, (Message("user", text),), settings, tuple(labels), 0, group) for text in prompts]


def replies(backend: Backend, requests: Sequence[Request]) -> list[Reply]:
    """In the order of the requests; every request is answered exactly once."""
    found = list(backend.complete(iter(requests)))
    assert sorted(request.key for request, _ in found) == sorted(request.key for request in requests)
    by_key = {request.key: reply for request, reply in found}
    return [by_key[request.key] for request in requests]


def generated(folder: str, prompts: Sequence[str], kind: str, limit: int = 8) -> list[str]:
    """What the library's own `generate` writes, one prompt at a time."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    network = getattr(transformers, kind).from_pretrained(folder).eval()
    texts = []
    for prompt in prompts:
        shown = tokenizer(prompt, return_tensors="pt", add_special_tokens="Seq2Seq" in kind)
        shown.pop("token_type_ids", None)
        out = network.generate(**shown, max_new_tokens=limit, do_sample=False, num_beams=1)[0]
        start = 1 if "Seq2Seq" in kind else shown["input_ids"].shape[1]
        texts.append(tokenizer.decode(out[start:], skip_special_tokens=True).strip())
    return texts


# Sequence-to-sequence


@pytest.mark.parametrize("name", ["t5", "t5-taught"])
def test_seq2seq_generates_what_the_library_generates(folders: Callable[[str], str], name: str) -> None:
    backend = make_backend(f"hf:{folders(name)}", batch_tokens=90)
    found = replies(backend, ask(backend, *PROMPTS, labels=LABELS))
    assert [reply.text for reply in found] == generated(folders(name), PROMPTS, "AutoModelForSeq2SeqLM")


def test_labels_above_a_half_are_what_greedy_decoding_writes(folders: Callable[[str], str]) -> None:
    labels = make_backend(f"hf:{folders('t5-taught')}", mode="labels", label_mass=0.5)
    greedy = generated(folders("t5-taught"), PROMPTS, "AutoModelForSeq2SeqLM")
    found = replies(labels, ask(labels, *PROMPTS, labels=LABELS))
    shares: list[Any] = [reply.raw["label_probabilities"] for reply in found]
    proved = [place for place, of_labels in enumerate(shares) if max(of_labels.values()) > 0.5]
    assert len(proved) >= 5
    assert [found[place].text for place in proved] == [greedy[place] for place in proved]


def test_labels_are_scored_whole(folders: Callable[[str], str]) -> None:
    # "1010" has several tokens here; its probability is the product over all of them and the end token.
    folder = folders("t5-taught")
    labels = ("1010", "Yes", "4")
    backend = make_backend(f"hf:{folder}", dtype="float32", mode="labels", label_mass=0.0)
    [reply] = replies(backend, ask(backend, PROMPTS[2], labels=labels))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    network = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    expected = {}
    for label in labels:
        target = tokenizer(label, return_tensors="pt")["input_ids"]
        assert label != "1010" or target.shape[1] > 2
        shown = tokenizer(PROMPTS[2], return_tensors="pt")["input_ids"]
        with torch.no_grad():
            scores = torch.log_softmax(network(input_ids=shown, labels=target).logits[0], -1)
        expected[label] = float(scores.gather(1, target[0][:, None]).sum().exp())
    found = reply.raw["label_probabilities"]
    assert isinstance(found, dict)
    assert reply.text == max(expected, key=lambda label: expected[label])
    for label, value in found.items():
        assert value == pytest.approx(expected[label], rel=1e-3)


@pytest.mark.parametrize(("name", "mode"), [("t5-taught", "labels"), ("t5-taught", "generate"), ("t5", "labels")])
def test_replies_do_not_depend_on_the_batch(folders: Callable[[str], str], name: str, mode: str) -> None:
    one = make_backend(f"hf:{folders(name)}", mode=mode, batch_tokens=1, dtype="float32")
    many = make_backend(f"hf:{folders(name)}", mode=mode, batch_tokens=4096, dtype="float32")
    requests = ask(one, *PROMPTS, labels=LABELS)
    assert [reply.text for reply in replies(one, requests)] == [reply.text for reply in replies(many, requests)]


def test_rules_that_a_model_has_for_generation_do_not_apply(folders: Callable[[str], str], tmp_path: Path) -> None:
    hf_models.save_t5(tmp_path)
    config = json.loads((tmp_path / "generation_config.json").read_text())
    (tmp_path / "generation_config.json").write_text(json.dumps({**config, "no_repeat_ngram_size": 1}))
    backend = make_backend(f"hf:{tmp_path}")
    found = replies(backend, ask(backend, *PROMPTS))
    assert [reply.text for reply in found] == generated(folders("t5"), PROMPTS, "AutoModelForSeq2SeqLM")


def test_draws_follow_the_key_of_the_request(folders: Callable[[str], str]) -> None:
    backend = make_backend(f"hf:{folders('t5')}", mode="labels")
    requests = ask(backend, *PROMPTS[:3], labels=LABELS, temperature=1.0)
    again = [Request(r.model, r.messages, r.options, r.labels, replicate=1) for r in requests]
    first = replies(backend, requests)
    assert replies(backend, requests[::-1])[::-1] == first
    assert [reply.text for reply in replies(backend, again)] != [reply.text for reply in first]


def test_a_prompt_that_does_not_fit_fails_and_is_not_cut(folders: Callable[[str], str]) -> None:
    backend = make_backend(f"hf:{folders('t5')}", context=20)
    short, long = replies(backend, ask(backend, "Question:", PASSAGE))
    count = backend.count_tokens(PASSAGE) + 1  # the end token
    assert (long.status, long.text) == ("failed", None)
    assert long.error == f"the prompt has {count} tokens; the model takes 20"
    assert short.text is not None
    assert make_backend(f"hf:{folders('t5')}").context_tokens == 512


# Decoder-only


def test_labels_that_begin_one_another_are_generated(folders: Callable[[str], str]) -> None:
    backend = make_backend(f"hf:{folders('llama')}", label_mass=0.0)
    [reply] = replies(backend, ask(backend, PROMPTS[0], labels=("1", "10")))
    assert reply.raw["mode"] == "generate"
    [reply] = replies(backend, ask(backend, PROMPTS[0], labels=("1", "2")))
    assert reply.raw["mode"] == "labels"


def test_system_messages_and_dates_in_chat_templates(folders: Callable[[str], str]) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders("llama"))
    messages = (Message("system", "Be strict."), Message("user", "Grade."))
    assert chat_text(tokenizer, messages, (), thinking=False) == (
        "<|system|>Be strict.<|end|><|user|>Grade.<|end|><|assistant|>"
    )
    tokenizer.chat_template = (
        "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}{{ m.content }}"
        "{% endfor %} {{ strftime_now('%Y-%m-%d') }} {{ date_string }} {{ enable_thinking }}"
    )
    assert chat_text(tokenizer, messages, (), thinking=False) == "Be strict.\n\nGrade. 2024-07-26 26 Jul 2024 False"


def test_context_of_decoders_counts_the_reply_and_the_template(folders: Callable[[str], str]) -> None:
    backend = make_backend(f"hf:{folders('llama')}", context=60)
    assert backend.context_tokens == 60 - 4  # <|user|> a <|end|> <|assistant|>
    room = 60 - 3 - 8  # what the template adds, and the reply
    text = " ".join(["a"] * room)
    while backend.count_tokens(text) > room:
        text = text[:-2]
    fits, not_fits = replies(backend, ask(backend, text, text + " year in a year"))
    assert fits.text is not None
    assert not_fits.status == "failed"
    assert "the model takes 60 together" in not_fits.error


# Label scoring by hand


# Extractive question answering


def question(backend: Backend, *contexts: str, text: str = "What is named?") -> list[Request]:
    return ask(backend, *[json.dumps({"context": context, "question": text}) for context in contexts])


def best_span(folder: str, context: str, text: str) -> tuple[str, float, float]:
    """The best span of a passage that fits one window, by trying all."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    network = transformers.AutoModelForQuestionAnswering.from_pretrained(folder).eval()
    shown = tokenizer(text, context, return_tensors="pt", return_offsets_mapping=True)
    offsets = shown.pop("offset_mapping")[0].tolist()
    with torch.no_grad():
        out = network(**shown)
    starts, ends = out.start_logits[0].tolist(), out.end_logits[0].tolist()
    inside = [place for place, part in enumerate(shown.sequence_ids(0)) if part == 1]
    score, first, last = max(
        (starts[first] + ends[last], first, last) for first in inside for last in inside if 0 <= last - first < 30
    )
    return context[offsets[first][0] : offsets[last][1]], score, starts[0] + ends[0]


def test_spans_are_the_best_of_all(folders: Callable[[str], str]) -> None:
    folder = folders("bert")
    contexts = ["The epidermis is the outer layer.", "Rivers carry water to the sea.", "A leap year has 366 days."]
    for margin in (-1e9, 0.0, 1e9):
        backend = make_backend(f"hf:{folder}", dtype="float32", no_answer_margin=margin)
        for context, reply in zip(contexts, replies(backend, question(backend, *contexts)), strict=True):
            text, score, null = best_span(folder, context, "What is named?")
            assert reply.text == ("no answer" if null > score + margin else text)
            assert reply.raw["no_answer_score"] == pytest.approx(null, abs=1e-3)


def test_long_passages_are_seen_in_windows(folders: Callable[[str], str]) -> None:
    backend = make_backend(f"hf:{folders('bert')}", no_answer_margin=1e9)
    [long] = replies(backend, question(backend, PASSAGE * 5))
    start, end = long.raw["span"]  # type: ignore[misc]
    assert long.text == (PASSAGE * 5)[start:end].strip()
    assert backend.context_tokens is None
    # The best window's score is that of the passage: no shorter part has a better one.
    parts = replies(backend, question(backend, PASSAGE, "Lakes. " + PASSAGE))
    assert long.status == "ok"
    assert all(part.status == "ok" for part in parts)


def test_extractive_models_refuse_what_they_cannot_read(folders: Callable[[str], str]) -> None:
    backend = make_backend(f"hf:{folders('bert')}")
    prose, empty, long = replies(
        backend,
        [*ask(backend, "Question: x?"), *question(backend, " "), *question(backend, PASSAGE, text="What is " * 60)],
    )
    assert (prose.status, prose.error) == (
        "failed",
        "this model reads only the prompt ExtractiveQuestionAnswering",
    )
    assert empty.text == "no answer"
    assert long.status == "failed"
    assert "no room of the 64 tokens" in long.error


# Batches and failures


class Job:
    def __init__(self, request: Request) -> None:
        self.request = request
        self.tokens = 1


class Batches(HuggingFaceModel):
    """What the kinds of models have in common, with functions in the place of a network."""

    look_ahead, context_tokens = 100, None

    def __init__(self, execute: Callable[[Sequence[Job]], list[Reply]], prepare: Callable[[Request], Job] = Job):
        self.execute, self.prepare, self.released, self.batch_tokens = execute, prepare, 0, 1000

    def _prepare(self, request: Request) -> Job:
        return self.prepare(request)

    def _execute(self, jobs: Sequence[Job]) -> list[Reply]:
        return self.execute(jobs)

    def release_memory(self) -> None:
        self.released += 1


def test_a_batch_without_memory_is_halved_and_poison_stays_alone() -> None:
    requests = [Request("m", (Message("user", str(number)),)) for number in range(16)]
    sizes = []

    def execute(jobs: Sequence[Job]) -> list[Reply]:
        sizes.append(len(jobs))
        if len(jobs) > 4:
            raise torch.OutOfMemoryError("CUDA out of memory")
        if any(job.request.messages[0].content == "5" for job in jobs):
            raise IndexError("index out of range in self")
        return [Reply(job.request.messages[0].content) for job in jobs]

    def prepare(request: Request) -> Job:
        if request.messages[0].content == "9":
            raise ValueError("bad\ntext")
        return Job(request)

    model = Batches(execute, prepare)
    found = {request.messages[0].content: reply for request, reply in model.complete(requests)}
    assert found.pop("5") == Reply(None, "failed", "IndexError: index out of range in self")
    assert found.pop("9") == Reply(None, "failed", "the prompt cannot be prepared: bad text")
    assert {name: reply.text for name, reply in found.items()} == {str(n): str(n) for n in range(16) if n not in (5, 9)}
    assert max(sizes) == 15
    assert model.released
    # What did not fit is not tried again.
    sizes.clear()
    assert len(list(model.complete(requests[:8]))) == 8
    assert max(sizes) <= 4


def test_a_lost_device_stops_the_run() -> None:
    def execute(jobs: Sequence[Job]) -> list[Reply]:
        raise RuntimeError("CUDA error: device-side assert triggered")

    requests = [Request("m", (Message("user", "x"),))]
    with pytest.raises(DeviceLostError, match="the device is lost"):
        list(Batches(execute).complete(requests))


# Loading


def test_unknown_models_and_kinds_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(BackendError) as caught:
        make_backend("hf:nobody/no-such-model@v1")
    assert "hf:nobody/no-such-model: the configuration cannot be loaded" in str(caught.value)
    assert "\n" not in str(caught.value)
    transformers.BertConfig(architectures=["BertForMaskedLM"]).save_pretrained(tmp_path)
    with pytest.raises(BackendError, match="BertForMaskedLM is no sequence-to-sequence"):
        make_backend(f"hf:{tmp_path}")


def test_missing_weights_are_an_error(folders: Callable[[str], str], tmp_path: Path) -> None:
    hf_models.save_bert(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    network = transformers.BertModel.from_pretrained(tmp_path, add_pooling_layer=False)
    network.save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(config))
    backend = make_backend(f"hf:{tmp_path}")
    with pytest.raises(BackendError, match="2 weights are missing"):
        list(backend.complete(question(backend, PASSAGE)))


def test_a_missing_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtraError, match=r"\[hf\]"):
        make_backend("hf:google/flan-t5-small")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"mode": "beam"}, "mode 'beam': expected generate or labels"),
        ({"label_mass": 2}, "label_mass is 2"),
        ({"batch_tokens": -1}, "must be positive"),
        ({"beams": 3}, "beams"),
    ],
)
def test_options_are_checked(folders: Callable[[str], str], options: dict[str, Any], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        make_backend(f"hf:{folders('t5')}", **options)


def test_unknown_generation_options_are_refused(folders: Callable[[str], str]) -> None:
    backend = make_backend(f"hf:{folders('t5')}")
    with pytest.raises(UnknownNameError, match="unknown generation option 'top_k'"):
        Style(backend, "QuestionSelfRatedUnanswerablePromptWithChoices", Asking(option={"top_k": 3}))
    for name in ("device", "dtype"):
        with pytest.raises(InputError, match=f"{name} is a setting of the model, not of a reply"):
            Style(backend, "QuestionSelfRatedUnanswerablePromptWithChoices", Asking(option={name: "cpu"}))


# Through the grader


def graded(backend: Backend, prompt: str, text: str) -> Any:
    items = [RubricItem("q/1", "q", "Outer layer of the skin?", gold_answers=("epidermis",))]
    grader = GradingEngine(backend, bank_from_items(items), (prompt,), Asking(max_tokens=8))
    passage = GradedPassage(doc_id="d", text=text)
    [group] = list(grader.grade_records([QueryPassages("q", [passage])], LocalRunner(backend), GradingReport()))
    entries = group.passages[0].exam_grades
    assert entries is not None
    return entries[0]


def test_extractive_answers_are_checked_against_the_key(folders: Callable[[str], str]) -> None:
    backend = make_backend(f"hf:{folders('bert')}", no_answer_margin=1e9)
    entry = graded(backend, "ExtractiveQuestionAnswering", "Epidermis")
    assert grade_of_items(entry) == {"q/1": 1}
    assert entry.answers == [("q/1", "Epidermis")]
    silent = make_backend(f"hf:{folders('bert')}", no_answer_margin=-1e9)
    assert grade_of_items(graded(silent, "ExtractiveQuestionAnswering", "Epidermis")) == {"q/1": 0}
    with pytest.raises(InputError, match="reads only the prompt ExtractiveQuestionAnswering"):
        graded(backend, "QuestionSelfRatedUnanswerablePromptWithChoices", "Epidermis")
