"""A hook of mkdocs: links to files outside this folder, and the options of the commands."""

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

    return LINK.sub(moved, markdown) + (_options() if here == "commands.md" else "")


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
