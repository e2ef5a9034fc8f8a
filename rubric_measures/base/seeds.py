"""The one source of numpy's random numbers: a seed gives one generator, and a seed that gives none is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rubric_measures.base.errors import InputError

if TYPE_CHECKING:
    import numpy as np

__all__ = ["seeded"]


def seeded(seed: int) -> np.random.Generator:
    """numpy's PCG64 generator of a seed.

    Raises:
        InputError: the seed is negative.

    >>> int(seeded(1).integers(100))
    47
    """
    import numpy as np

    if seed < 0:
        raise InputError(f"a seed is 0 or more, not {seed}")
    return np.random.default_rng(seed)
