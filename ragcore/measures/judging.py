"""Measures of judges: what became of the verdicts that a run needs."""

from __future__ import annotations

from ragcore.measures.definitions import Definition

_NEEDED = (
    "one verdict is needed for each claim of the answer (correct, entailed), each reference claim "
    "(covered), each claim and chunk of the context (chunk_entails, chunk_entails_reference), each "
    "claim and chunk that it cites (cites), each chunk of the context (relevance), or the answer "
    "(conflict_shown, and correct where no verdict on it names a claim)"
)


def _share(name: str, what: str, question: str, limit: str, better: str = "less") -> Definition:
    return Definition(
        name=name,
        layer="judging",
        formula=f"verdicts {what} / verdicts needed; {_NEEDED}",
        na="no verdict is needed: the answer or the case has no claims, or nothing was shown",
        needs=("judgments", "claims", "context", "citations"),
        source="per trace, one relation or, by default, all that any verdict speaks of",
        question=question,
        limit=limit,
        cutoff="none",
        params={"relation": "all"},
        zero=False,
        pooled=True,
        better=better,
    )


DEFINITIONS: tuple[Definition, ...] = (
    _share(
        "judge.coverage", "that settle what they are on",
        "How much of what has to be judged is decided?",
        "decided is not right: see ragcore judges for how good the judges are",
        better="more",
    ),
    _share(
        "judge.disputed", "on which equals differ, or that leave it open",
        "How much waits for people?",
        "disputes between judges of different rungs are settled by the higher one and not counted",
    ),
    _share(
        "judge.below_rung", "that stand on a lower rung than their case requires",
        "How much was judged by somebody who may not decide it?",
        "0 where the suite requires no rung",
    ),
    _share(
        "judge.errors", "that are errors, where nothing else was said",
        "How much did the judges fail on?",
        "an error beside a verdict of anybody is not counted",
    ),
    _share(
        "judge.missing", "that nobody gave",
        "How much was never judged?",
        "a case that the run lacks needs verdicts on its reference claims alone",
    ),
    Definition(
        name="judge.ppi",
        layer="judging",
        formula="PPI++: w * mean of the judge over cases without a label + mean over labelled "
        "cases of (label - w * judge); label and judge are shares of yes among the verdicts that "
        "both gave, w is the weight of least variance, from 0 to 1",
        na="never: a case without a label is missing, and counts by what the judge says of it",
        needs=("judgments",),
        source="Angelopoulos et al., PPI++, 2023; one value a case, as claims of one answer are "
        "no independent sample",
        question="Which share would people give, if they had judged all cases?",
        limit="the labelled cases must be drawn from those of the run; an estimate of a mean, "
        "never of one answer; per case the label alone is shown",
        cutoff="none",
        params={"relation": "correct", "against": "human", "judge": ""},
        aggregate="ppi",
        zero=False,
    ),
)  # fmt: skip
