"""How a case ended, and whether it may end so."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["BAD", "End", "verdict"]

# Verdicts that fail the run.
BAD = ("traceback", "hang", "crash", "status", "lines", "unnamed", "torn", "silent cut", "control", "long", "no number")
_LONGEST = 1500
# What no text that goes to a terminal may hold: escape sequences, and marks that turn the direction of writing.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\u202a-\u202e\u2066-\u2069]")
_OPTION = re.compile(r"\(--?[a-z-]+")
# A value that is no number where a number stands: a column or a JSON value.
_NO_NUMBER = re.compile(rb"(?i)(?:^|[\t ,:\[])-?(?:nan|inf|infinity)(?:$|[\s,\]}])", re.MULTILINE)
_HEX = re.compile(rb"[0-9a-f]{12,}")


@dataclass
class End:
    """How a command ended.

    Attributes:
        status: its exit status; None where an exception came out.
        out: standard output.
        err: standard error.
        files: what stands in its output folder.
        trouble: the exception, as text, with the place; `hang` or `crash`.
    """

    status: int | None
    out: bytes = b""
    err: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)
    trouble: str = ""

    @property
    def result(self) -> tuple[object, ...]:
        """What was computed: hashes of inputs left out, which are others for the same content in other bytes."""
        return (_HEX.sub(b"#", self.out), {name: _HEX.sub(b"#", data) for name, data in self.files.items()})

    @property
    def texts(self) -> list[bytes]:
        """All that was written."""
        return [self.out, *self.files.values()]

    @property
    def notes(self) -> list[str]:
        """The lines of standard error, without what counts hashes and names."""
        return [line for line in self.err.splitlines() if "signature " not in line]


def verdict(
    before: End, after: End, mutation: str, names: tuple[str, ...], *, at_line_end: bool, has_none: bool
) -> str:
    """One word for how a damaged case ended: one of BAD, or what is allowed (refused, same, noted, changed).

    Args:
        before: the command with the undamaged files.
        after: the command with one file damaged.
        mutation: the damage.
        names: the files that an error may name: those of the command line.
        at_line_end: whether a cut left whole lines only.
        has_none: whether the damaged file says NaN or infinity itself, which may be the name of something.
    """
    if after.trouble:
        return after.trouble.partition(":")[0] if after.trouble.startswith(("hang", "crash")) else "traceback"
    if after.status not in (0, 1, 2):
        return "status"
    lines = after.err.splitlines()
    if any(len(line) > _LONGEST for line in lines if "signature " not in line):
        return "long"
    if _CONTROL.search(after.out.decode("utf-8", "replace").replace("\r\n", "\n")) or _CONTROL.search(after.err):
        return "control"
    refused = after.status == 2 or (after.status == 1 and before.status == 0 and after.result != before.result)
    if after.status == 2:
        if not lines or any(not line.startswith("rubric_measures") for line in lines):
            return "lines"
        # What is wrong between two files names the option that takes one of them.
        if not any(name in lines[-1] for name in names) and not _OPTION.search(lines[-1]):
            return "unnamed"
        # Standard output may end in the middle, as of any program in a pipe; files may not.
        return "torn" if any(name.endswith(".part") for name in after.files) else "refused"
    if refused:
        # `check` says on standard output what differs.
        return "refused" if lines or after.out != before.out else "lines"
    if after.result == before.result:
        return "same"
    if not has_none and any(map(_NO_NUMBER.search, after.texts)) and not any(map(_NO_NUMBER.search, before.texts)):
        return "no number"
    if set(after.notes) - set(before.notes):
        return "noted"
    if mutation in ("cut", "cut-last-line") and not at_line_end:
        return "silent cut"
    return "changed"
