"""How replies state a rating: what a verdict looks like, the surest forms first, and which numbers never are one."""

from __future__ import annotations

import re

__all__ = [
    "ABOUT_IT",
    "ASPECT",
    "ASPECT_ANYWHERE",
    "ASPECT_ENTRY",
    "ASPECT_HEADING",
    "ASPECT_KEY",
    "BARE_IS",
    "BOUND",
    "FINAL_LABEL",
    "FOREIGN",
    "HYPOTHETICAL",
    "IF_AFTER",
    "LAST_SENTENCE",
    "LEADING",
    "NEGATED",
    "NUMERALS",
    "OF_ASPECT",
    "OF_OTHERS",
    "OTHER_SCALE_AFTER",
    "OVERALL_ANYWHERE",
    "REVISED_LABEL",
    "SCALE_WORDS",
    "STRONG",
    "WEAK",
    "WHOLE",
    "without_scale",
]

_NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
NUMERALS = {word: number for number, word in enumerate(_NAMES)}
_N = r"(?P<n>[-−]?\d+(?:\.\d+)?)"
_N_OR_WORD = r"(?P<n>[-−]?\d+(?:\.\d+)?|" + "|".join(NUMERALS) + ")"
_OF = r"(?:\s*/\s*(?P<max>\d+(?:\.0)?)|\s+(?:out\s+)?of\s+(?P<max2>\d+|five|three|two|ten))?"
_OUT_OF = r"(?:\s*/\s*(?P<max>\d+(?:\.0)?)|\s+out\s+of\s+(?P<max2>\d+|five|three|two|ten))"
_RANGE = r"(?P<range>\s*(?:-+>|=>|→|-|–|—|to|or|and)\s*\d+(?!\d))?"
# After a verdict: the end, punctuation, or a word that goes on about it. "3 topics", "5 %", "3rd", "4 points are
# covered" are no verdicts, and neither is "4+".
_TAIL = (
    r"(?![\w%°€$+]|\.\d|,\d|/\d|:\d|-\w|-\s*(?:\Z|[\n.]))(?=\s*(?:\Z|[\n.,;:!?)\]}\"'<>|(\[–—=\\-])"
    r"|\s+(?:explanation|reason(?:ing)?|justification|rationale|note)\s*:|\s+(?:because|since|as|for|on|in|due|given|with|and|but|based|here|overall|to|which|that|out|"
    r"rather|instead|it|there|this|where|the\s+(?:answer|passage|context|text|key|nugget|question|document|response))\b"
    r"|\s+(?:stars?|points?)(?=\s*(?:\Z|[\n.,;:!?)\]]|\b(?:out|on|because|since|for|to|as|given)\b)))"
)
# Bounded, like all that may repeat: a reply of 5,000 brackets must not take seconds.
_OPEN = r"[\s\"'(\[{<]{0,12}"
_END = r"(?=\s*(?:\Z|[.!\n]))(?!\.\d)"

# ---- the labels of verdicts
_NOUN = (
    r"(?:ratings?|scores?|grade|verdict|label|mark|judge?ment|overall|conclusion|"
    r"(?:final|my)\s+answer|(?:answer|output|result|choice|response|so|final)(?=\s*:)|therefore|thus|hence)"
)
_ASPECT_NOUN = r"(?:relevance|coverage|completeness|accuracy|correctness|clarity|precision|level)"
# What else a reply may grade beside the rating that it was asked for; only as "depth score", as "depth" is anything.
_OTHER_ASPECT = (
    r"(?:self|conciseness|concision|depth|detail|specificity|usefulness|helpfulness|quality|factuality|faithfulness|"
    r"fluency|coherence|consistency|readability|trustworthiness|groundedness)"
)
_GRADE_NOUN = r"(?:scores?|ratings?|grade|level|mark)"
_ABOUT = (
    r"(?:\s+(?:for|of)\s+(?:(?:the|this)\s+)?(?:question|nugget|passage|key\s+fact|item|context|document|answer|response)"
    r"(?:\s*#?\d{1,3})?(?!\d))?"
)
_ASIDE = r"[\"'\])>}]*\s*(?:\([^()\n]{0,40}\)|\[[^\[\]\n]{0,40}\])?\s*"
_SEPARATOR = r"(?:is|was|of|as|would|should|will|be|it|this|at|to|a|an|the|therefore|thus|=>|[:=|→,]|->|[-–—](?=\s)|_)"
_SEPARATED = rf"(?:{_SEPARATOR}\s*)"
# Where a statement begins: at a line or a sentence, and behind "Question 3:".
_START = (
    r"(?:\A|(?<=[\n.!?;>]))[\s\"'(\[{<#>•|,*/-]{0,20}"
    r"(?:(?:question|nugget|passage|item|key\s+fact|document|answer|verdict|conclusion)\s*#?\d{0,3}\s*[:.)-]\s*)?"
)
_BEFORE_NOUN = (
    r"(?:(?:and|so|thus|therefore|hence|overall|in\s+(?:conclusion|summary)|conclusion|my|the|this|a|an|final|revised|"
    r"updated|new|corrected|adjusted|total|assigned|suggested|(?P<aspect>relevance|coverage|self)|here(?:\s+is|'s)?|based\s+on\s+this|"
    r"given\s+(?:this|that))[\s,:_-]+){0,5}"
)
# "On reflection, rating: 3", "As it does not name the year, the rating is 2"
_INTRODUCTION = r"(?:[A-Z][^,.:;!?\d\n\"'()]{2,80},\s*)?"
_LABELLED = re.compile(
    _START + _INTRODUCTION + _BEFORE_NOUN + r"(?:\b|(?<=_))(?:" + _NOUN + r"|rate(?=\s*[:=]))\b" + _ABOUT + _ASIDE
    + _SEPARATED + "*" + _OPEN + _N_OR_WORD + _RANGE + _OF + _TAIL,
    re.IGNORECASE,
)  # fmt: skip
ASPECT = re.compile(
    _START + r"(?:(?:overall|the|nugget|answer|key\s+fact)\s+)?" + _ASPECT_NOUN + r"\b" + _ABOUT + _ASIDE
    + r"(?:is|[:=|→]|->|[-–—](?=\s))\s*" + _OPEN + _N_OR_WORD + _RANGE + _OF + _TAIL,
    re.IGNORECASE,
)  # fmt: skip
# ---- sub-scores: a rating of one aspect is none of the whole where the whole has one
_AN_ASPECT = rf"(?:{_ASPECT_NOUN}(?:[\s_-]+{_GRADE_NOUN})?|{_OTHER_ASPECT}[\s_-]+{_GRADE_NOUN})"
_ANYWHERE = r"(?:\A|(?<=[\n.!?;:>,|(\[{/•·–—-])|\b(?:and|but|while|whereas|with|though)\b)[\s\"'(\[{<#>•|,*/-]{0,20}"
_ANY_ARTICLE = r"(?:(?:the|its|my|an?|overall|nugget|answer|key\s+fact)\s+){0,2}"
_IS = r"(?:(?:is|was|of|gets|at|a|an|[:=|→]|->|[-–—](?=\s))\s*)+"
# In a row: "Relevance: 5, coverage: 3, overall: 4", "the relevance score is 5 but the coverage score is 3"
ASPECT_ANYWHERE = re.compile(
    _ANYWHERE + r"(?:for\s+)?" + _ANY_ARTICLE + _AN_ASPECT + r"\b(?:,\s*(?:the\s+)?" + _GRADE_NOUN + r"\b)?" + _ABOUT
    + _ASIDE + _IS + _OPEN + _N_OR_WORD + _RANGE + _OF + _TAIL,
    re.IGNORECASE,
)  # fmt: skip
OVERALL_ANYWHERE = re.compile(
    _ANYWHERE + r"(?:(?:the|my|an?|so|thus)\s+){0,2}(?:(?:overall|total|final|combined|my)(?:[\s_-]+(?:" + _GRADE_NOUN
    + r"|verdict|judge?ment))?|(?<=[,|] )(?:rating|score|grade)(?=\s*[:=]))\b" + _ABOUT + _ASIDE
    + _SEPARATED + "+" + _OPEN + _N_OR_WORD + _RANGE + _OF + _TAIL,
    re.IGNORECASE,
)  # fmt: skip
# A line before a number that says what it is of: "**Relevance**", "2. Coverage score:"
ASPECT_HEADING = re.compile(
    rf"\W*(?:\d{{1,2}}[.):]\s*)?(?:the\s+)?{_AN_ASPECT}\W*|\W*{_OTHER_ASPECT}\W*", re.IGNORECASE
)
# "2. Coverage score: 4" is an entry of a list, no grade 2.
ASPECT_ENTRY = re.compile(rf"\W*(?:relevance|coverage|self)[\s_-]+{_GRADE_NOUN}\b", re.IGNORECASE)
# "For relevance, the score is 5", "Score (coverage): 3"
OF_ASPECT = re.compile(
    r"(?:\b(?:for|on|in\s+terms\s+of|regarding|concerning|as\s+(?:for|to))\s+(?:the\s+)?|[(\[]\s*)"
    rf"(?:{_ASPECT_NOUN}|{_OTHER_ASPECT})\s*[,)\]]",
    re.IGNORECASE,
)
# The names of sub-scores in JSON.
ASPECT_KEY = re.compile(rf"(?:{_ASPECT_NOUN}|{_OTHER_ASPECT})(?:_{_GRADE_NOUN})?")
# What makes a sub-score the last word: "Revised relevance score: 2"; "Final relevance score: 2" may be one of several.
REVISED_LABEL = re.compile(r"\b(?:revised|updated|new|corrected|adjusted)\b", re.IGNORECASE)
FINAL_LABEL = re.compile(r"\b(?:final|overall|total)\b", re.IGNORECASE)
_IT = (
    r"(?:(?:it|this|that|the|passage|answer|context|nugget|document|response|text|(?P<coverage>coverage)|a|an|as|at|with|of|rating|score|"
    r"grade|option|level|number|choice|is|be|would|should|can|rated|graded)\b:?\s+){0,6}"
)
_I_SAY = re.compile(
    r"\bI(?:'d|'ll|'m|\s+(?:would|will|shall|must|can|should|have\s+to|am))?(?:\s+(?:therefore|thus|then|only|just|rather|"
    r"still|now|also|like\s+to|going\s+to|inclined\s+to))*\s+"
    r"(?:rate|rating|give|giving|assign|assigning|award|score|scoring|grade|grading|choose|select|pick|set|say|rated|gave|"
    r"assigned|scored|graded|chose|selected|picked|(?:go|going|settle|stick)\s+(?:with|on|for)):?\s+"
    + _IT + _OPEN + _N + _RANGE + _OF + _TAIL,
    re.IGNORECASE,
)  # fmt: skip
# "the answer deserves a rating of 4", "the coverage is rated 3"
_IT_GETS = re.compile(
    _START + r"(?:(?:so|thus|therefore|hence|overall)[\s,:]+)?(?:it|this|(?:the|this)\s+(?:passage|answer|context|"
    r"nugget|document|response|text|(?P<coverage>coverage)|key\s+fact))\s+(?:(?:would|should|is|can|be|only|therefore|thus)\s+){0,3}"
    r"(?:(?:deserves?|merits?|gets?|receives?|earns?|scores?)\s+(?:a|an|the)\s+(?:rating|score|grade)\s+of|rated|graded|"
    r"scored|(?:covered|answered)\s+at\s+(?:a\s+)?level)\s+"
    r"(?:(?:as|at|with|a|an|of)\s+)*" + _OPEN + _N + _RANGE + _OF + _TAIL,
    re.IGNORECASE,
)  # fmt: skip
_TAGGED = re.compile(
    r"<(?:(?P<aspect>(?:"
    + _ASPECT_NOUN
    + "|"
    + _OTHER_ASPECT
    + r")_)|\w+_)?(?:rating|score|grade|answer|label|verdict|output|result|final)(?:_\w+)?>\s*"
    + _N
    + r"\s*</",
    re.IGNORECASE,
)
_BOXED = re.compile(r"\\boxed\{\s*" + _N + r"\s*\}|\[\[\s*(?P<n2>[-−]?\d+(?:\.\d+)?)\s*\]\]")
_OPTION = re.compile(r"\A\W*option\s+" + _N + r"(?=\s*(?:\Z|[:.\n]))(?!\.\d)", re.IGNORECASE)
_SO = re.compile(
    r"(?<=[,;.\n])\s*(?:so|thus|therefore|hence)[\s,:]+(?:(?:it's|it\s+is|a|an|I'd\s+say|I\s+say)\s+)*" + _N + _RANGE
    + _OF + _END, re.IGNORECASE,
)  # fmt: skip

# ---- verdicts that take back one before them: "Actually 2", "No wait. 3", "I change it to 3"
_MARKER = (
    r"(?:hmm+|wait|actually|correction|edit(?:ed)?|update|sorry|hold\s+on|rather|scratch\s+that|i\s+mean|more\s+like|"
    r"let\s+me\s+(?:reconsider|rethink|re-?evaluate|think\s+again|revise|correct)(?:\s+(?:that|this|it|my\s+\w+))?|"
    r"(?:up)?on\s+(?:further\s+|second\s+|closer\s+)?(?:reflection|thoughts?|consideration|inspection|reading)|"
    r"after\s+(?:further\s+|closer\s+|more\s+|some\s+)?(?:review|reflection|consideration|thought|re-?reading)|"
    r"make\s+(?:it|that)|however|no(?=\s*[,:;!–—…-]|\.\.|\s+wait\b|\.\s+(?:wait|make|actually|it)\b))"
)
_GLUE = (
    r"(?:it's|it\s+is|it\s+(?:should|would)\s+be|that's|that|is|it|should\s+be|"
    r"i(?:'d|\s+would)?\s+(?:say|give\s+it|rate\s+it)|a|an)"
)
_REVISED = re.compile(
    r"(?:\A|(?<=[.!?…;,\n(])|\bbut\s|[–—-]\s)\s*[\"'(]{0,3}" + _MARKER + r"(?:[\s,.:;!…–—-]+(?:" + _MARKER + "|" + _GLUE
    + r")){0,6}[\s,.:;!…–—-]+" + _OPEN + r"(?<![-−\d])" + _N + _RANGE + _OF + _END,
    re.IGNORECASE,
)  # fmt: skip
_CHANGE = (
    r"(?:(?:chang|updat|revis|rais|reduc|downgrad|upgrad|adjust|increas|decreas|mov)(?:e|ed|es|ing)|"
    r"(?:lower|correct|bump|drop)(?:p?ed|p?ing|s)?)"
)
_CHANGED = re.compile(
    r"(?:" + _START + r"|\bI(?:'d|'ll|'m|\s+(?:would|will|must|should|can|have\s+to))?\s+(?:(?:therefore|then|now)\s+)?"
    r"|\b(?:rating|score|grade)\s+(?:is|was|has\s+been|should\s+be|must\s+be|gets)\s+)"
    + _CHANGE + r"(?:\s+(?:it|this|that|my|the|rating|score|grade|up|down|slightly|somewhat)){0,4}\s+to\s+(?:an?\s+)?"
    + _OPEN + _N + _RANGE + _OF + _TAIL,
    re.IGNORECASE,
)  # fmt: skip
# ---- verdicts inside of sentences: they may be about something else, so the forms above count more
_IN_PROSE = re.compile(
    r"(?:\b|_)(?:" + _NOUN + r"|relevance|coverage|(?:covered|rated|graded|rating)\s+at\s+(?:a\s+)?level)\b" + _ABOUT
    + _ASIDE + _SEPARATED + "+" + _OPEN + _N_OR_WORD + _RANGE + _OF + _TAIL,
    re.IGNORECASE,
)  # fmt: skip
_VERB = re.compile(
    r"\b(?:(?:rate|rating|score|grade)(?=\s+(?:it|this|that|the|passage)\b)|rated|give|gave|given|assign|assigned|scored|"
    r"scores|graded|choose|chose|chosen|select|selected|pick|picked|deserves?|earns?|gets?|receives?|merits?|"
    r"go(?:ing)?\s+with|say|is|it's|that's)\s+" + _IT + _OPEN + _N + _RANGE + _OF + _TAIL,
    re.IGNORECASE,
)  # fmt: skip
_FRACTION = re.compile(r"(?<![\w./-])" + _N + _OUT_OF + _TAIL, re.IGNORECASE)

STRONG = (_LABELLED, _I_SAY, _IT_GETS, _TAGGED, _BOXED, _OPTION, _SO, _REVISED, _CHANGED)
WEAK = (_IN_PROSE, _VERB, _FRACTION)

# "The answer is 4." may answer the question itself.
BARE_IS = re.compile(r"(?:\bis|it's|that's)\s+[\"'(\[{<]*[-−]?\d", re.IGNORECASE)
# "I would not give it a 5", "rather than a 4": the number after these is not the verdict.
NEGATED = re.compile(r"(?:\b(?:not|never|cannot|than|instead of)|n't) +(?:[\w']+ +){0,2}\Z", re.IGNORECASE)
# What makes a verdict one of another passage, besides "if", before it or after it.
_CONDITION = r"unless|had\s+it|were\s+it|with\s+(?:more|better|further|additional)"
# "If it had named the year, the rating would be 5", "to get a rating of 5 it must …", "I was going to give 4, but …"
HYPOTHETICAL = re.compile(
    r"\b(?:if(?!\s+i\s+(?:had|have|were|must|am)\b)|" + _CONDITION + r"|to\s+(?:get|earn|reach|receive|obtain|achieve|"
    r"merit|deserve)|I\s+(?:was|had\s+been)\s+(?:going|inclined|tempted|about)\s+to|"
    r"I\s+(?:first\s+)?wanted\s+to|"
    r"I\s+(?:had\s+|have\s+)?considered\s+(?:giving|assigning|(?:rating|scoring|grading)\s+it|an?\s+(?:rating|score|grade)))\b(?:(?!\b(?:so|therefore|thus|hence|but|however)\b)[^.!?\n])*\Z",
    re.IGNORECASE,
)
IF_AFTER = re.compile(
    r"[ \t]*,?[ \t]*\b(?:(?:only\s+)?if|" + _CONDITION + r")\b(?!\s+i\s+(?:had|have|must)\b)",
    re.IGNORECASE,
)
# What a verdict in prose must be about: "the hotel has a score of 4" is none.
ABOUT_IT = re.compile(
    r"\b(?:I|we|my|it|its|this|that|passages?|answers?|contexts?|nuggets?|key\s+facts?|documents?|responses?|texts?|coverage|"
    r"questions?|relevance|rating|grade|so|thus|therefore|hence|overall)\b|\bit's",
    re.IGNORECASE,
)
# … and what it must not be about: "the film has a score of 4", "the passage says the film's score is 4"
_OWN = r"(?:passage|answer|context|nugget|key|fact|document|response|text|coverage|question|relevance)s?"
_OF_IT = (
    rf"(?:{_OWN}|(?:rating|score|grade|given|provided|above|overall|final|information|content|article|snippet|paragraph|"
    r"excerpt|query|candidate|retrieved|generated|evidence|explanation|description|page|source|item|first|last|result|"
    r"match|detail)s?)\b"
)
# What the passage says ends where the sentence goes on about the rating: "The passage states the year and gets a 4".
_SAID_END = r"\b(?:and|so|therefore|thus|hence|which|but)\b|[,;:(\[–—→]|\s-"
_SAID = rf"(?:(?!{_SAID_END}).)"
_WORD_OF_THING = rf"(?!{_SAID_END}|\b(?:the|it|this|{_OWN})\b)[\w-]+"
_THING = (
    rf"(?:(?:the|an?|its?|his|her|their|this|that)\s+|(?=(?-i:[A-Z][a-z]))){_WORD_OF_THING}"
    rf"(?:\s+(?:(?:on|in|of|at|by|from)\s+(?:the|an?)\s+)?{_WORD_OF_THING}){{0,3}}?"
)
_HAS = (
    r"(?:has|have|had|got|gets?|receive[sd]?|holds?|held|earn(?:s|ed)?|score[sd]|is|was|are|were|averages?|"
    r"(?:gave|gives|awarded|rated)(?:\s+(?:it|(?:the\s+)?\w+))?)"
)
_MARKS = r"(?:ratings?|scores?|grades?|marks?|rated|graded|scored|ranked)"
OF_OTHERS = re.compile(
    rf"\A\W*(?:the|this|that)(?:\s+(?!{_OF_IT})\w+){{1,3}}\s+(?:has|have|had|got|received|holds|earned)\b"
    r"|\b(?:passage|text|context|document|answer|it)\s+(?:only\s+|just\s+|also\s+|\w+ly\s+)?"
    r"(?:says|states|reports|claims)\s*:?\s*[\"'“‘]?(?:that\s+)?(?:an?\s+(?:[\w-]+\s+){0,2}(?:rating|score|grade)\s+of\s+|"
    rf"{_THING}(?:['’]s?\s+(?:\w+\s+)?{_MARKS}\b(?:\s*:\s*|{_SAID}*)"
    r"|\s+" + _HAS + r"\s+(?:(?:an?|at|about|only|been|given|of|around)\s+)*"
    rf"(?:(?:(?!{_SAID_END}|\bthe\b)[\w-]+\s+){{0,2}}{_MARKS}\b(?:\s*:\s*|{_SAID}*))?))\Z"
    rf"|\baccording\s+to\s+the\s+(?:passage|text|context|document)\b,?{_SAID}*(?:\b{_MARKS}\s*:\s*)?\Z",
    re.IGNORECASE | re.DOTALL,
)
# "rated 4 on the Mohs scale"
OTHER_SCALE_AFTER = re.compile(r"\s+on\s+(?:the|an?)\s+(?!Likert)[A-Z][a-z]+\s+(?:pain\s+)?scale\b")
# "≥4", "~3": at least, about
BOUND = re.compile(r"(?:(?:[≥≤≈~±≠]|(?<![\w\"'/=-])[<>])\s*=?|\+)\s*\Z")

SCALE_WORDS = (
    r"the\s+(?:answer|passage|context|text|key|nugget|question|document|response)|detailed|sufficient|mentioned|briefly|"
    r"minimally|not\s+mentioned|highly|mostly|partially|not\s+relevant|relevant|very|somewhat|limited"
)
LEADING = re.compile(
    r"^[ \t]*(?:[-•>]\s+)*[\"'(\[]*" + _N + _RANGE
    + r"(?:(?P<mark>\s*[.)\]:\"'–—=-]+)[ \t]*(?P<text>\S[^\n]*)?"
    + r"|[ \t]*(?P<paren>\([^\n]*|,(?!\s*\d)[^\n]*)?"
    + r"|\s+(?=(?:because|since|as|(?:stars?|points?)(?=\s*(?:$|[.,;:!?)]|\b(?:out|on|because|since|for|as|given)\b))|"
    + SCALE_WORDS + r")\b)(?P<more>[^\n]*))[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)  # fmt: skip
WHOLE = re.compile(r"[^\w$€£]*?" + _N + r"(?:\s*/\s*(?P<max>\d+))?(?!\+|-)[^\w%°€$]*")
# A last sentence that is a number: "… is off topic. 0". Before it stands a word: "Vol. 3" and "1. 2. 3." are none.
LAST_SENTENCE = re.compile(r"(?<=[a-z]{4}[.!?])[\"')\]]*\s+" + _N + r"[.!]?\s*\Z")

# ---- numbers that say what the scale is
# Stands for a scale that is not the prompt's: a verdict beside it is on that scale.
FOREIGN = "\ufffc"
_SCALE_OF = re.compile(
    r"(?:\b(?:on|using|with|in|by)\s+)?(?:\b(?:an?|the|this|my)\s+)?(?:\b(?:rating|grading)\s+)?\bscale\s*"
    r"(?:of|from|is|being|:|=|ranges?\s+from|goes\s+from|between)?\s*[(\[]?\s*(?P<low>\d+)\s*(?:\([^()\n]{1,40}\)\s*)?"
    r"(?:-|–|—|to|and|through|\.\.+)\s*(?P<high>\d+)(?!\d|\.\d)\s*(?:[)\]]|\([^()\n]{1,40}\))?"
    r"|\b(?P<low2>\d+)\s*(?:-|–|to)\s*(?P<high2>\d+)\s+scale\b",
    re.IGNORECASE,
)
_LABEL_SCALE = re.compile(
    r"(?P<label>\b(?:rating|score|grade|relevance))\s*[(\[]\s*(?P<low>\d+)\s*(?:-|–|—|to|\.\.+)\s*(?P<high>\d+)\s*[)\]]",
    re.IGNORECASE,
)
_EXTREME = r"(?:max(?:imum)?|min(?:imum)?|highest|lowest|top|best|worst|perfect)"
_THE_EXTREME = re.compile(
    rf"\b(?:the\s+)?{_EXTREME}\b\.?(?:\s+possible)?(?P<noun>\s+(?:ratings?|scores?|grade|mark|level|value|points?))?"
    r"(?:\s+(?:possible|available|allowed))?(?P<sep>\s*(?:\b(?:is|was|being|would\s+be|of)\b|[=:(–-]))?\s*-?\d+(?:\.\d+)?\)?",
    re.IGNORECASE,
)
_GIVEN = re.compile(
    r"\b(?:give|gives|gave|giving|assign\w*|award\w*|deserves?|merits?|gets?|receives?|earns?|rate|rated|choose|"
    r"(?:rating|score|grade)\s+(?:is|would\s+be|should\s+be)|(?:rating|score|grade)\s*:)(?:\s+[^\s\d.!?]+){0,6}\s*\Z",
    re.IGNORECASE,
)
_IS_EXTREME = re.compile(
    r"(?P<before>\b(?:where|with|as|and)\s+|[,;(\[]\s*|\s[-–—]\s+|\bscale\s*:\s*|(?:\A|(?<=[\n.!?]))\s*(?=\d+\s*[a-z]))(?:an?\s+)?"
    rf"\d+\s*(?:is|=|being|means?|meaning|for)\s*(?:the\s+|an?\s+)?{_EXTREME}\b",
    re.IGNORECASE,
)


def without_scale(text: str, scale: tuple[int, int]) -> str:
    """A reply without the numbers that say what the scale is, or where it ends; a scale of others becomes `FOREIGN`.

    >>> without_scale("On a scale of 0 to 5: 3 (max score: 5)", (0, 5))
    ': 3 ()'
    """

    def own(match: re.Match[str]) -> bool:
        groups = match.groupdict()
        low, high = int(groups["low"] or groups["low2"]), int(groups["high"] or groups["high2"])
        return high == scale[1] and low in (scale[0], 1)

    text = _SCALE_OF.sub(lambda match: "" if own(match) else FOREIGN, text)
    text = _LABEL_SCALE.sub(lambda match: match["label"] + ("" if own(match) else FOREIGN), text)
    lows = sorted({scale[0], 1} if scale[1] > 2 else {scale[0]})
    bounds = rf"(?:{'|'.join(map(str, lows))})\s*(?:-|–|—|to|and|\.\.+)\s*{scale[1]}"
    text = re.sub(
        rf"[(\[]\s*{bounds}\s*[)\]]|(?<![\w.-])(?:from\s+|between\s+)?{bounds}(?=\s*[:=]|\s+is\b)"
        rf"|(?<![\d)])\s*(?:\bout\s+of\b|/)\s*{scale[1]}(?=\s*[:=]|\s+is\b)",
        "",
        text,
        flags=re.IGNORECASE,
    )
    text = _IS_EXTREME.sub(lambda match: match["before"].rstrip(" ,;-–—"), text)
    return _THE_EXTREME.sub(_without_extreme, text)


def _without_extreme(match: re.Match[str]) -> str:
    """Nothing for "the maximum score is 5"; what is given stays: "it deserves the highest rating: 5"."""
    if not (match["noun"] or match["sep"]) or _GIVEN.search(match.string, max(0, match.start() - 100), match.start()):
        return match[0]
    return "(" * (match[0].count("(") - match[0].count(")")) + ")" * (match[0].count(")") - match[0].count("("))
