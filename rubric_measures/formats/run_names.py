"""What runs are called that are read together: by their tags, and by their files where tags collide."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Sequence

from rubric_measures.base.errors import InputError
from rubric_measures.formats.trec import run_name_of

__all__ = ["distinct_run_names"]


def distinct_run_names(tags: Sequence[str], paths: Sequence[str | os.PathLike[str]]) -> list[str]:
    """One name a run file: its tag; runs that share a tag are called after their files, which is said once.

    Args:
        tags: the tag of each run.
        paths: the file of each run.

    Raises:
        InputError: two runs still have one name.
    """
    shared = {tag for tag, count in Counter(tags).items() if count > 1}
    names = [run_name_of(os.fspath(path)) if tag in shared else tag for tag, path in zip(tags, paths, strict=True)]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"two runs are called {twice[0]!r}, by tag and by file; rename one")
    if shared:
        logging.getLogger("rubric_measures").warning(
            "%d runs share the tag %s; runs that share a tag are called after their files",
            sum(tag in shared for tag in tags),
            min(shared),
        )
    return names
