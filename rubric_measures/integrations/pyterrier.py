"""Collections as datasets of PyTerrier: `pt.get_dataset("rubric_measures:example")`, found by its entry point."""

from __future__ import annotations

from typing import Any

from pyterrier.datasets import DatasetProvider, get_dataset

from rubric_measures.corpora.collections import PREFIX


class CollectionProvider(DatasetProvider):  # type: ignore[misc]
    """What stands behind `rubric_measures:` in the name of a dataset: a folder or file, `example`, or a view of one.

    Topics, qrels (labels by the best grade) and documents are those of the collection, see
    `rubric_measures.corpora.collections`.
    """

    def get_dataset(self, name: str) -> Any:
        """The dataset of a collection.

        Args:
            name: what stands behind `rubric-measures/` in an id of ir_datasets: a path, `example`, `example/items`, ….

        Raises:
            KeyError: there is no such folder or file.
            InputError: a file of the collection is wrong.
        """
        return get_dataset(f"irds:{PREFIX}/{name}")
