"""rubric_measures: a trec_eval-style measure extension for rubrics, nuggets and generated answers."""

__version__ = "0.1.0"
