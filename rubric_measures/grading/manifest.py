"""The manifest beside graded records: what made them, in full; counts by status."""

from __future__ import annotations

import os
import platform
import sys
from typing import Any

from rubric_measures.files import atomic_writer
from rubric_measures.grading.entries import bank_hash, llm_name
from rubric_measures.grading.grader import Grader, GradingReport
from rubric_measures.records import TestBank
from rubric_measures.signature import canonical_json

__all__ = ["make_manifest", "write_manifest"]

_PACKAGES = ("torch", "transformers", "openai", "pydantic", "snowballstemmer", "rapidfuzz")


def make_manifest(
    grader: Grader, bank: TestBank, report: GradingReport, files: dict[str, str] | None = None
) -> dict[str, Any]:
    """Everything that is needed to say how grades came about, JSON-able.

    The entries of the records name a signature; `prompts` spells each of them out.

    Args:
        grader: the grader.
        bank: the bank that it graded against.
        report: the counts of the run.
        files: what was read and written, by role.
    """
    from rubric_measures import __version__

    run = report.run
    backend = grader.runner.backend
    prompts: dict[str, Any] = {}
    for maker in grader.makers(bank):
        prompt = maker.style.prompt
        prompts[prompt.prompt_class] = {
            "citation": prompt.citation,
            "hash": prompt.hash,
            "signature": maker.signature.short,
            "settings": dict(maker.signature.settings),
            "statuses": dict(sorted(report.statuses.get(prompt.prompt_class, {}).items())),
        }
    amended = {} if grader.change is None else {"only_changed": report.amended.as_json()}
    return {
        **amended,
        "bank": {"hash": bank_hash(bank), "items": len(bank), "queries": len(bank.items)},
        "calls": {
            "cached": run.cached,
            "completion_tokens": run.completion_tokens,
            "cost": run.cost if grader.runner.price else None,
            "failed": run.failed,
            "made": run.calls,
            "prompt_tokens": run.prompt_tokens,
            "retries_of_unparsed": report.unparsed_retries,
            "shared": run.shared,
        },
        "files": files or {},
        "flip_rate": report.flip_rate,
        "llm": llm_name(backend.model),
        "model": backend.model,
        "passages": {"flagged": report.flagged, "graded": report.passages, "grades_kept": report.kept},
        "prompts": prompts,
        "returned_models": [
            {"model": model, "replies": count, "system_fingerprint": fingerprint}
            for (model, fingerprint), count in sorted(run.returned.items())
        ],
        "statuses": dict(sorted(report.by_status.items())),
        "versions": {"python": platform.python_version(), "rubric_measures": __version__, **_loaded()},
    }


def _loaded() -> dict[str, str]:
    """The versions of the packages that took part; none is imported for it."""
    modules = {name: sys.modules[name] for name in _PACKAGES if name in sys.modules}
    return {name: str(getattr(module, "__version__", None) or _installed(name)) for name, module in modules.items()}


def _installed(name: str) -> str:
    """The version of a package whose module does not tell it."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"


def write_manifest(path: str | os.PathLike[str], manifest: dict[str, Any]) -> None:
    """Writes a manifest as canonical JSON, one line."""
    with atomic_writer(path) as stream:
        stream.write(canonical_json(manifest) + "\n")
