"""`--cache-only` for hf: models: the same records without weights, without the model, and from another device."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from rubric_measures.backends import make_backend  # noqa: E402
from rubric_measures.backends.hf.loading import HuggingFaceModel  # noqa: E402
from rubric_measures.backends.replies.cache import ReplyCache  # noqa: E402
from rubric_measures.backends.replies.cached_model import CachedModel, make_cached_backend  # noqa: E402
from rubric_measures.backends.replies.model_notes import ModelNote  # noqa: E402
from rubric_measures.base.errors import BackendError, InputError  # noqa: E402
from rubric_measures.cli import main  # noqa: E402
from tests import hf_models  # noqa: E402

SHORT = "The epidermis is the outer layer of the skin. "
TEXTS = [
    "",
    "water",
    SHORT * 30,
    "na\u00efve  \u4e2d\u6587 </s> \uff1c/s\uff1e <|end|>",
    "\u200b<\u200b/s> [SEP] [ SEP]",
]


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No network; and one thread."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def write_inputs(folder: Path) -> list[str]:
    """A short passage and one that is graded in chunks."""
    (folder / "bank.jsonl").write_text(
        '{"query_id": "q", "query_text": "", "test_collection": "", "items": [{"query_id": "q", "question_id": "q/1", '
        '"question_text": "Outer layer of the skin?"}]}\n'
    )
    (folder / "passages.jsonl").write_text(
        f'["q", [{{"paragraph_id": "d", "text": "{SHORT}"}}, {{"paragraph_id": "e", "text": "{SHORT * 40}"}}]]\n'
    )
    return [str(folder / "passages.jsonl"), "--bank", str(folder / "bank.jsonl"), "--cache", str(folder / "c.sqlite")]


def grade(folder: Path, out: str, *extra: str) -> tuple[int, bytes]:
    path = folder / out
    model = ["--model", f"hf:{folder / 'model'}", "--model-option", "label_mass=0", *extra]
    code = main(["grade", *write_inputs(folder), *model, "-o", str(path)])
    return code, path.read_bytes() if path.exists() else b""


@pytest.mark.parametrize("kind", ["t5", "llama"])
@pytest.mark.parametrize("lost", ["weights", "model", "library"])
def test_the_records_are_the_same_without_the_model(
    tmp_path: Path, kind: str, lost: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model").mkdir()
    {"t5": hf_models.save_t5, "llama": hf_models.save_llama}[kind](tmp_path / "model")
    mode = ["--model-option", "mode=labels"]
    code, first = grade(tmp_path, "first.jsonl", *mode)
    assert code == 0
    assert b"chunks" in first
    if lost == "weights":
        (tmp_path / "model" / "model.safetensors").unlink()
    else:
        shutil.rmtree(tmp_path / "model")
    if lost == "library":
        monkeypatch.setattr("rubric_measures.backends.hf.choosing.find_source", _missing)
    # As on a machine whose `auto` is another device in another dtype.
    monkeypatch.setattr("rubric_measures.backends.hf.loading.choose_dtype", lambda wanted, device: "bfloat16")
    capsys.readouterr()
    assert grade(tmp_path, "second.jsonl", *mode, "--cache-only") == (0, first)
    assert "from the cache, as it replied with device=cpu, dtype=float32" in capsys.readouterr().err
    # Nothing is called, so nothing of Ray is needed either, not even installed.
    assert grade(tmp_path, "third.jsonl", *mode, "--cache-only", "--runner", "ray", "--actors", "2") == (0, first)


def _missing(spec: str) -> Any:
    from rubric_measures.base.errors import MissingExtraError

    raise MissingExtraError("the backend hf:NAME", "hf")


@pytest.mark.parametrize("kind", ["t5", "unigram", "llama", "bert"])
def test_a_cached_model_counts_and_says_what_the_model_does(tmp_path: Path, kind: str) -> None:
    makers: dict[str, Any] = {
        "t5": hf_models.save_t5,
        "unigram": lambda path: hf_models.save_t5(path, unigram=True),
        "llama": hf_models.save_llama,
        "bert": hf_models.save_bert,
    }
    backend = make_backend(f"hf:{makers[kind](tmp_path)}")
    assert isinstance(backend, HuggingFaceModel)
    if kind == "bert":  # leaves settings of its windows on the tokenizer
        backend._windows("What?", SHORT, 40, 20)
    path = tmp_path / "c.sqlite"
    with ReplyCache(path) as cache:
        cache.note_model(backend.note())
        [note] = cache.model_notes()
    cached = CachedModel(note)
    assert (cached.model, cached.options, cached.context_tokens) == (
        backend.model,
        backend.options,
        backend.context_tokens,  # type: ignore[attr-defined]
    )
    assert [cached.count_tokens(text) for text in TEXTS] == [backend.count_tokens(text) for text in TEXTS]
    for name in ("deterministic", "reads_prompts", "reply_shares_context", "embedded"):
        wanted = getattr(backend, name, "none")
        found = getattr(cached, name, "none")
        assert (list(found), list(wanted))[0] == list(wanted) if isinstance(wanted, tuple) else found == wanted
    if kind != "bert":
        other: Any = make_backend(f"hf:{tmp_path}", context=100)
        assert CachedModel(note, 100).context_tokens == other.context_tokens
    with pytest.raises(BackendError, match="only its replies in the cache are here"):
        list(cached.complete([]))


def noted(path: Path, *settings: dict[str, object], tokenizer: str = "") -> None:
    facts = {"kind": "t5", "control_ids": [], "control_tokens": [], "limit": 512, "overhead": 0, "unlimited": False}
    with ReplyCache(path) as cache:
        for options in settings:
            cache.note_model(ModelNote("hf:org/t5@main", options, {**facts, "kind": "seq2seq"}, tokenizer))


def test_of_several_runs_the_settings_choose(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    gpu = {"device": "cuda", "dtype": "bfloat16", "revision": "a1", "mode": "generate"}
    noted(path, gpu, {**gpu, "device": "cpu", "dtype": "float32"})
    chosen = make_cached_backend("hf:org/t5", path, dtype="bfloat16", device="auto")
    assert chosen.options == gpu
    with pytest.raises(InputError) as caught:
        make_cached_backend("hf:org/t5", path)
    ways = "device=cpu, dtype=float32; device=cuda, dtype=bfloat16; choose one by device"
    assert str(caught.value) == f"{path} has replies of hf:org/t5 made in several ways: {ways}"
    assert caught.value.settings == ("model_option",)
    with pytest.raises(
        InputError, match=r"no replies of hf:org/t5 with dtype=float16; it has device=cpu, dtype=float32;"
    ):
        make_cached_backend("hf:org/t5", path, dtype="float16")
    with pytest.raises(InputError, match="unknown option 'beams'"):
        make_cached_backend("hf:org/t5", path, beams=3)


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    noted(path, {"device": "cuda", "dtype": "bfloat16", "revision": "a1"})
    with pytest.raises(
        BackendError, match=r"the model's tokenizer and configuration are needed here \(not its weights\)"
    ):
        make_cached_backend("hf:org/t5", path).count_tokens("x")
    with pytest.raises(BackendError, match="does not know the model, so its configuration and tokenizer are needed"):
        make_cached_backend("hf:org/other", path)
    noted(path, {"device": "cuda", "dtype": "bfloat16", "revision": "b2"})
    with pytest.raises(InputError, match="revision=a1; revision=b2; bring the model's files here"):
        make_cached_backend("hf:org/t5", path)


def test_notes_go_with_merged_caches_and_leave_with_the_replies(tmp_path: Path) -> None:
    noted(tmp_path / "a.sqlite", {"device": "cuda"})
    with ReplyCache(tmp_path / "b.sqlite") as cache:
        assert cache.model_notes() == []
        cache.merge([tmp_path / "a.sqlite"])
        cache.merge([tmp_path / "a.sqlite"])
        assert [note.options for note in cache.model_notes()] == [{"device": "cuda"}]
        cache.prune(everything=True)
        assert cache.model_notes() == []
    # A cache of replies alone is one as before.
    with sqlite3.connect(tmp_path / "b.sqlite") as connection:
        connection.execute("DROP TABLE models")
    with ReplyCache(tmp_path / "b.sqlite") as cache:
        assert cache.model_notes() == []
        cache.merge([tmp_path / "b.sqlite"])
