"""How a prompt is put to a model: what requests say, and where the texts of models without a chat template end."""

from __future__ import annotations

from pathlib import Path

import pytest

from rubric_measures.cli import main
from rubric_measures.grading.asking import Asker, Asking
from rubric_measures.prompts.library import load_prompt
from rubric_measures.records.models import load_graded
from tests.models.test_end_to_end_http import RATING, endpoint, grades, model, says, write_items, write_passages

pytest.importorskip("openai")
pytest.importorskip("aiohttp")


def asker(api: str, prompt: str, **options: object) -> Asker:
    from rubric_measures.models.openai import OpenAICompatible

    backend = OpenAICompatible("m", "http://host/v1", api="completions" if api == "completions" else "chat")
    return Asker(backend, load_prompt(prompt), Asking(option=options))


@pytest.mark.parametrize(
    ("prompt", "stop"),
    [
        ("FagB_few", ["\n"]),
        ("Thomas", ["\n"]),
        (RATING, ["\nQuestion:", "\nContext:"]),
        ("NuggetSelfRatedPrompt", ["\nKey Fact:", "\nContext:"]),
        ("umbrela3", None),  # reasons over some lines
        ("QuestionCompleteConciseUnanswerablePromptWithChoices", None),  # extracts a text
    ],
)
def test_verdicts_of_plain_texts_end_by_themselves(prompt: str, stop: list[str] | None) -> None:
    assert asker("completions", prompt).options.get("stop") == stop
    assert "stop" not in asker("chat", prompt).options
    # What the user says counts; null sends none.
    assert asker("completions", prompt, stop=["END"]).options["stop"] == ["END"]
    assert asker("completions", prompt, stop=None).options["stop"] is None


def test_a_base_model_is_not_graded_by_what_it_makes_up(tmp_path: Path) -> None:
    """Behind its verdict it writes another example; where that is read as well, two verdicts are none."""
    passages, bank = write_passages(tmp_path, sun="about the sun"), write_items(tmp_path, "How long?")
    invented = "\nPassage: The cat sat.\nQuestion: Where do dogs live?\nAnswer:"
    rules = [
        says(f" Yes{invented} No{invented}", "Respond with 'Yes' or 'No'"),
        says(f" 2{invented} 0{invented}", "should never be shown"),
        says(" for years.\nRating: 4\nQuestion: Who?\nContext: No.\nRating: 0", "How long?"),
    ]
    command = ["grade", passages, "--bank", bank, "--cache", str(tmp_path / "c.sqlite")]
    names = ["--prompt", "FagB_few", "--prompt", "Thomas", "--prompt", RATING]

    def labels(path: Path) -> dict[str, object]:
        [passage] = [passage for group in load_graded(path) for passage in group.passages]
        return {
            entry.prompt_info.prompt_class: entry.self_rating for entry in passage.grades or () if entry.prompt_info
        }

    with model(tmp_path, *rules) as server:
        command += [*names, *endpoint(server, api="completions")]
        assert main([*command, "-o", str(tmp_path / "o.jsonl")]) == 0
        assert grades(tmp_path / "o.jsonl") == {"sun": {"How long?": 4}}
        assert labels(tmp_path / "o.jsonl") == {"FagB_few": 1, "Thomas": 2}
        assert main([*command, "--option", "stop=null", "-o", str(tmp_path / "whole.jsonl")]) == 1
        assert labels(tmp_path / "whole.jsonl") == {"FagB_few": None, "Thomas": None}


def test_replies_that_end_before_they_begin_name_the_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    passages, bank = write_passages(tmp_path, sun="about the sun"), write_items(tmp_path, "How long?")
    command = ["grade", passages, "--bank", bank, "--prompt", "FagB_few", "--cache", str(tmp_path / "c.sqlite")]
    advice = "a model that begins its reply with an empty line needs the option stop=null"
    with model(tmp_path, says("\n\nYes", "Respond with 'Yes' or 'No'")) as server:
        command += endpoint(server, api="completions")
        assert main([*command, "-o", str(tmp_path / "o.jsonl")]) == 1
        assert advice in capsys.readouterr().err
        assert main([*command, "--option", "stop=null", "-o", str(tmp_path / "whole.jsonl")]) == 0
        assert advice not in capsys.readouterr().err
    # Without an end of the request's own the reply is empty for another reason.
    with model(tmp_path, says("", "Respond with 'Yes' or 'No'")) as server:
        assert main([*command[:8], *endpoint(server), "-o", str(tmp_path / "chat.jsonl")]) == 1
        said = capsys.readouterr().err
        assert "the reply is empty" in said and advice not in said


def test_a_prompt_that_says_where_its_grade_stands_is_not_read_by_a_programs_rule(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    passages, bank = write_passages(tmp_path, sun="about the sun"), write_items(tmp_path, "How long?")
    prompt = tmp_path / "own.toml"
    prompt.write_text(
        'target = "question"\nparser = "rating"\nscale = [0, 5]\ncovers = 4\n'
        'json_field = "met"\ntext = "{question} {context}"\n'
    )
    command = ["grade", passages, "--bank", bank, "--prompt", str(prompt), "-o", str(tmp_path / "o.jsonl")]
    with model(tmp_path, says('{"rating": 1, "met": 4}', "How long?")) as server:
        assert main([*command, *endpoint(server)]) == 0
        assert grades(tmp_path / "o.jsonl") == {"sun": {"How long?": 4}}
        assert main([*command, *endpoint(server), "--compat", "workbench"]) == 2
    assert "says where the grade stands in a reply, and so does that program" in capsys.readouterr().err
