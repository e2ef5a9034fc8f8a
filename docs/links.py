"""A hook of mkdocs: links to files outside this folder; options, measures and functions as the code describes them."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# Repository files that are pages of the site too, under `project/`.
BESIDE = [
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "benchmarks/README.md",
    "resources/example/README.md",
]
# The measures that a page is about, each with its section.
MEASURES = re.compile(r"^Measures: (`\w+`(?:, `\w+`)*)\.$", re.MULTILINE)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    """Adds the files that stand beside this folder."""
    from mkdocs.structure.files import File

    for name in BESIDE:
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, f"project/{name}", content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lets each link point at where its file stands in the site; the name of a file that is no page stays as text."""
    here = page.file.src_uri
    beside = here.removeprefix("project/")
    folder = posixpath.dirname(beside if beside != here else f"docs/{here}")

    def moved(match: re.Match[str]) -> str:
        mark, text, target, anchor = match.groups()
        path = posixpath.normpath(posixpath.join(folder, target))
        if path in BESIDE:
            path = f"project/{path}"
        elif path.startswith("docs/"):
            path = path.removeprefix("docs/")
        else:
            return text if text.startswith("`") else f"{text} (`{path}`)"
        return f"{mark}[{text}]({posixpath.relpath(path, posixpath.dirname(here) or '.')}{anchor or ''})"

    text = LINK.sub(moved, markdown)
    made = {"commands.md": lambda: text + _options(), "measures.md": lambda: MEASURES.sub(_sections, text),
            "api.md": lambda: text + _exported()}  # fmt: skip
    return made[here]() if here in made else text


def _sections(line: re.Match[str]) -> str:
    """A section a measure that the line names: what its docstring says, with its parameters."""
    import inspect

    import ir_measures

    import rubric_measures  # noqa: F401 - registers its measures

    parts = [line[0]]
    for name in re.findall(r"\w+", line[1]):
        measure = ir_measures.measures.registry[name]
        said, formula, *others = (inspect.getdoc(measure) or "").split("\n\n")
        code = "\n".join(f"    {one}" for one in formula.split("\n"))
        parts += [f"### {name}", said, code]
        for text in others:
            text = " ".join(text.split())
            text = re.sub(r"(?<![\w`])([\w]+=[\w\"]+(?:\([^)]*\)@\d+\")?)", r"`\1`", text)
            parts.append(re.sub(r"^\.\. cite::", "**Source:**", re.sub(r"^Range:", "**Range:**", text)))
        rows = [f"| `{one}` | {info.desc} |" for one, info in measure.SUPPORTED_PARAMS.items()]
        if rows:
            parts.append("\n".join(["| parameter | what it is |", "|---|---|", *rows]))
    return "\n\n".join(parts)


def _exported() -> str:
    """What is exported, but measures, which have a page of their own."""
    import rubric_measures

    kind = rubric_measures.RubricMeasure
    names = [
        name
        for name in rubric_measures.__all__
        if name != "__version__" and not isinstance(getattr(rubric_measures, name), kind)
    ]
    # Functions first.
    names.sort(key=lambda name: name[0].isupper())
    return "\n" + "\n\n".join(f"::: rubric_measures.{name}" for name in names) + "\n"


def _options() -> str:
    """A section a command: what it takes, as its `--help` says."""
    import argparse

    from rubric_measures.cli import COMMANDS, _command_parser

    lines: list[str] = []
    for name in COMMANDS:
        parser, _ = _command_parser(name)
        lines += ["", f"## {name}", "", f"{parser.description}", "", "| argument | what it is |", "|---|---|"]
        for action in parser._actions:
            if action.help in (None, argparse.SUPPRESS):
                continue
            text = (action.help or "") % {**vars(action), "prog": parser.prog}
            named = ", ".join(action.option_strings) or str(action.metavar or action.dest)
            lines.append(f"| `{named}` | {text} |".replace("<", "&lt;"))
        if parser.epilog:
            lines += ["", "```text", parser.epilog, "```"]
    return "\n".join(lines) + "\n"
