"""`list`: what there is of prompts, measures, formats or models, plug-ins included, a line each."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from rubric_measures.base.errors import InputError, UnknownNameError, escaped
from rubric_measures.base.files import atomic_writer
from rubric_measures.base.tables import Cell, Column, Report, Table
from rubric_measures.cli.inputs import add_output_options, write_output

if TYPE_CHECKING:
    from rubric_measures.prompts import Prompt


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    kinds = f"{{{','.join(_ALL)}}}"
    parser.add_argument("kind", metavar=kinds, choices=tuple(_ALL), help="what to list")
    text = "of prompts and measures: show this one alone, with all there is to say"
    parser.add_argument("name", metavar="NAME", nargs="?", help=text)
    add_output_options(parser)
    parser.epilog = """examples:
  rubric_measures list prompts
  rubric_measures list prompts nuggets.assign
  rubric_measures list measures NuggetV
  rubric_measures list formats
  rubric_measures list models"""


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    if options.name is not None:
        if options.kind not in _ONE:
            raise InputError(f"{options.name}: of {options.kind} there is only the list; leave the name out")
        text = _ONE[options.kind](options.name)
        with atomic_writer(options.output) as stream:
            stream.write(text)
        return 0
    headers, rows = _ALL[options.kind]()
    table = Table([Column(header, is_left=True) for header in headers], list(rows))
    write_output(options, Report([table]))
    return 0


_Listed = tuple[tuple[str, ...], Iterable[list[Cell]]]


def _first_line(thing: object) -> str:
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def _prompts() -> _Listed:
    from rubric_measures.prompts import load_prompt, prompt_names

    rows = (_prompt_row(name, load_prompt(name)) for name in sorted(prompt_names()))
    return ("prompt", "target", "task", "scale", "source"), rows


def _prompt_row(name: str, prompt: Prompt) -> list[Cell]:
    scale = "-" if prompt.scale is None else "{}-{}".format(*prompt.scale)
    levels = [prompt.covers if prompt.covers is not None else prompt.scale and prompt.scale[1], prompt.partial]
    covers = ":".join(str(level) for level in levels if level is not None)
    return [name, prompt.target, prompt.task, f"{scale}:{covers}" if prompt.scale else scale, prompt.citation]


def _prompt(name: str) -> str:
    from rubric_measures.prompts import load_prompt

    prompt = load_prompt(name)
    parts = [("system", prompt.system), ("user", prompt.text)]
    if prompt.format == "json":
        parts = [("fields of the message, as JSON", ", ".join(prompt.json_fields))]
    # As it is sent; escaped line by line, since a prompt may be a plug-in's.
    shown = [f"[{head}]\n{text.strip(chr(10))}\n" for head, text in parts if text]
    row = _prompt_row(name, prompt)[1:4]
    head = " ".join(f"{key}={value}" for key, value in zip(("target", "task", "scale"), row, strict=True))
    return "".join(
        f"{escaped(line)}\n" for line in f"{name}: {head}\n{prompt.citation}\n\n{''.join(shown)}".split("\n")
    )


def _registered() -> dict[str, object]:
    from ir_measures import measures

    from rubric_measures.measures import RubricMeasure

    return {name: one for name, one in measures.registry.items() if isinstance(one, RubricMeasure)}


def _measures() -> _Listed:
    def row(name: str, one: object) -> list[Cell]:
        parameters = getattr(one, "SUPPORTED_PARAMS", {})
        shown = [parameter for parameter in parameters if parameter != "cutoff"]
        return [f"{name}@k" if "cutoff" in parameters else name, ", ".join(shown), _first_line(one)]

    return ("measure", "parameters", "what it is"), (row(*pair) for pair in _registered().items())


def _measure(name: str) -> str:
    known = _registered()
    if name.removesuffix("@k") not in known:
        raise UnknownNameError("measure", name, known)
    return f"{name}\n\n{inspect.getdoc(known[name.removesuffix('@k')])}\n"


def _formats() -> _Listed:
    from rubric_measures.formats import FORMATS

    def yes(value: object) -> str:
        return "yes" if value else "-"

    rows: Iterable[list[Cell]] = (
        [n, yes(f.read), yes(f.write), yes(f.recognise), f.description] for n, f in sorted(FORMATS.items())
    )
    return ("format", "read", "written", "recognised", "what it is"), rows


# Kind of model -> the extra that it needs, and what stands behind the colon.
_OF_KIND = {
    "lexical": ("", "-", "words of the item in the passage: a floor, offline"),
    "scripted": ("FILE", "-", "replies from a file: teaching, tests, replays"),
    "hf": ("NAME", "hf", "a model of the Hugging Face hub, or a folder of one, on this machine"),
    "openai": ("NAME", "openai", "any endpoint that speaks OpenAI's protocol (--base-url)"),
    "litellm": ("PROVIDER/NAME", "litellm", "Anthropic, Gemini, Bedrock, … by the library LiteLLM"),
}


def _models() -> _Listed:
    from rubric_measures.models import BACKENDS

    def row(kind: str) -> list[Cell]:
        if kind not in _OF_KIND:
            return [f"{kind}:NAME", "plug-in", _first_line(BACKENDS[kind])]
        name, extra, text = _OF_KIND[kind]
        return [f"{kind}:{name}" if name else kind, extra, text]

    return ("model", "extra", "what it is"), map(row, BACKENDS)


_ALL: dict[str, Callable[[], _Listed]] = {
    "prompts": _prompts,
    "measures": _measures,
    "formats": _formats,
    "models": _models,
}
_ONE: dict[str, Callable[[str], str]] = {"prompts": _prompt, "measures": _measure}
