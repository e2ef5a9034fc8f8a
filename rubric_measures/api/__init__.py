"""The public functions: any file or object in, objects out; `rubric_measures` exports them, and the commands call them.

One module a topic. What takes time to import is imported inside functions, so that `import rubric_measures` is instant.
"""

from rubric_measures.api._banks import load_bank

__all__ = ["load_bank"]
