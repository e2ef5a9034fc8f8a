"""The scales of the grades that prompt classes stand for, known without reading the prompts.

Records name a prompt class, and scoring asks for its scale alone: to read all prompts takes longer than to score a
small file. A test holds this table equal to the prompts' own files.
"""

from __future__ import annotations

from rubric_measures.base.plugins import plug_ins
from rubric_measures.base.scales import ASSIGNED, SELF_RATING, YES_NO, Scale

__all__ = ["BUILT_IN", "PLUG_INS", "scale_of_prompt"]

# The group of entry points of other packages' prompts, and what one of them is.
PLUG_INS = ("rubric_measures.prompts", "folder of prompts")
# What assessors' grade sets of the review page are called, which say no scale before version 0.2: they are 0 to 5.
_ASSESSORS = "HumanReview"
_WITH_KEY = "QuestionCompleteConcisePromptWith"
_SUPPORT = ("No Support", "Partial Support", "Full Support")
_BY_SCALE = {
    SELF_RATING: "QuestionSelfRatedUnanswerablePromptWithChoices NuggetSelfRatedPrompt LexicalCoverage "
    "QuestionSelfRatedUnanswerablePromptWithChoices@workbench NuggetSelfRatedPrompt@workbench",
    YES_NO: f"ExtractiveQuestionAnswering {_WITH_KEY}AnswerKey {_WITH_KEY}AnswerKey2 {_WITH_KEY}T5VerifiedAnswerKey2 "
    f"{_WITH_KEY}AnswerKey@workbench {_WITH_KEY}AnswerKey2@workbench {_WITH_KEY}T5VerifiedAnswerKey2@workbench",
    YES_NO._replace(names=("No", "Yes")): f"{_WITH_KEY}T5VerifiedAnswerKey2.verify FagB FagB_few HELM Sun Sun_few "
    "FagB@workbench FagB_few@workbench HELM@workbench Sun@workbench Sun_few@workbench",
    ASSIGNED: "nuggets.assign nuggets.assign@nuggetizer",
    ASSIGNED._replace(names=("not_satisfied", "partially_satisfied", "satisfied")): "criteria.verdicts",
    Scale(0, 2, 2, 1, _SUPPORT): "LexicalSupport SupportJudgment",
    Scale(-2, 2, 2, 1, ("Contradiction", "", *_SUPPORT)): "SupportOrContradiction",
    Scale(0, 2, 1): "Thomas Thomas@workbench",
    Scale(0, 2, 2): "ragelo.answer_pointwise",
    Scale(0, 2, 2, 1, ("Not relevant", "Somewhat relevant", "Very relevant")): "ragelo.retrieval_reasoner "
    "ragelo.retrieval_reasoner@ragelo",
    Scale(0, 3, 2): "umbrela3 umbrela3@umbrela umbrela3@umbrela-0.0.3",
    Scale(0, 4, 2): "umbrela4",
}
BUILT_IN = {name: scale for scale, names in _BY_SCALE.items() for name in names.split()}


def scale_of_prompt(name: str) -> Scale | None:
    """The scale of the grades that a prompt class stands for; None where the class is not known, or leads to none."""
    if name == _ASSESSORS:
        return SELF_RATING
    if name in BUILT_IN or not plug_ins(*PLUG_INS):
        return BUILT_IN.get(name)
    from rubric_measures.prompts._library import added_prompts

    added = added_prompts().get(name)
    return None if added is None else added.grade_scale
