from rubric_measures.formats.answers import Answer
from rubric_measures.formats.specs import PRESENT, Field, Spec, ident

TEAM_ANSWERS = Spec(
    kind="answers",
    description="answers as our team keeps them",
    what="answers",
    fields=(
        Field("query_id", ("ask_id",), ident),
        Field("run_id", ("bot", "bot_name"), ident),
        Field("text", ("said",), default=PRESENT),
    ),
    key=("run_id", "query_id"),
    into=lambda rows: [Answer(**row.said) for row in rows],
    outof=lambda answers: ({"query_id": one.query_id, "run_id": one.run_id, "text": one.text} for one in answers),
)
