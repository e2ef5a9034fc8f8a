"""Settings of all tests: property tests have no deadline, because a loaded machine is no failure."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
