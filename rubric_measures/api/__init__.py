"""The public functions: any file or object in, objects out; `rubric_measures` exports them, and the commands call them.

One module a topic. What takes time to import is imported inside functions, so that `import rubric_measures` is instant.
"""

from rubric_measures.api._banks import load_bank
from rubric_measures.api._canaries import run_canaries
from rubric_measures.api._generating import generate
from rubric_measures.api._grading import grade
from rubric_measures.api._pooling import pool
from rubric_measures.api._tournaments import tournament

__all__ = ["generate", "grade", "load_bank", "pool", "run_canaries", "tournament"]
