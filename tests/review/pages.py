"""All screens of the page, by name."""

from types import SimpleNamespace
from typing import Any

from rubric_measures.review import bank_screens
from rubric_measures.review import screens as other_screens

screens: Any = SimpleNamespace(**vars(other_screens) | vars(bank_screens))
