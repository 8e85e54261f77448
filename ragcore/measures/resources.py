"""Measures of time, cost, energy and work: what answers take."""

from __future__ import annotations

from ragcore.measures.definitions import Definition

_WHOLE = (
    "the stage end_to_end where it is timed; else from the first start to the last end; else, "
    "without all starts, the sum of the stages"
)
_TRACES = "over traces, by nearest rank; interval by order statistics"


def _latency(name: str, share: str, question: str) -> Definition:
    return Definition(
        name=f"latency.{name}", layer="resources",
        formula=f"{share} of the time that a trace took, in milliseconds: {_WHOLE}; with "
        "stage=NAME of that stage",
        na="never", needs=("timings",),
        source=_TRACES if name != "mean" else "per case, then the mean over cases",
        question=question,
        limit="a stage that stands several times counts from its first start to its last end",
        cutoff="none", params={"stage": ""}, zero=False, better="less",
        aggregate="mean" if name == "mean" else f"quantile(0.{name[1:]})",
    )  # fmt: skip


def _cost(name: str, over: str, question: str, needs: tuple[str, ...], limit: str) -> Definition:
    return Definition(
        name=f"cost.{name}", layer="resources",
        formula=f"cost of all traces, whatever became of them / {over}",
        na=f"per trace: it is none of the {over}; the whole: there are none", needs=needs,
        source="sums over traces; cost is the sum of the eight parts of the column",
        question=question, limit=limit, cutoff="none", zero=False, better="less",
        aggregate="ratio",
    )  # fmt: skip


def _energy(kind: str, other: str) -> Definition:
    return Definition(
        name=f"energy.{kind}", layer="resources",
        formula=f"1000 x joules {kind} / (3.6 million x traces): kWh per thousand queries",
        na="never", needs=("energy",),
        source=f"sums over traces whose joules are {kind}; {other} ones are counted as missing",
        question=f"What energy do a thousand queries take, as {kind}?",
        limit=f"never mixed with joules that are {other}; tokens are no unit of energy",
        cutoff="none", zero=False, better="less", aggregate="ratio",
    )  # fmt: skip


def _count(name: str, column: str, what: str, better: str) -> Definition:
    return Definition(
        name=name, layer="resources", formula=f"{what} of a trace", na="never", needs=(column,),
        source="per case, then the mean over cases", question=f"How many {what} does it take?",
        limit="as recorded", cutoff="none", zero=False, better=better,
    )  # fmt: skip


DEFINITIONS = (
    _latency("p50", "median", "How long does a usual request take?"),
    _latency("p95", "95th percentile", "How long do slow requests take?"),
    _latency("p99", "99th percentile", "How long do the slowest requests take?"),
    _latency("mean", "mean", "How long do requests take, compared case by case?"),
    Definition(
        name="latency.unexplained", layer="resources",
        formula="time of the stage end_to_end less the time in which any other stage ran, in "
        "milliseconds",
        na="never", needs=("timings",), source="per case, then the mean over cases",
        question="How much of the time is no stage's?",
        limit="without all starts, stages are taken as one after the other; below 0 stamps "
        "contradict each other, or stages overlapped",
        cutoff="none", zero=False, better="neither",
    ),
    Definition(
        name="queueing.p95", layer="resources",
        formula="95th percentile of the time that a trace waited in queues, in milliseconds: that "
        "of the stage end_to_end where it is recorded, else the sum over stages; with stage=NAME "
        "of that stage",
        na="never", needs=("timings.queue_us",), source=_TRACES,
        question="How long do requests wait before they are served?",
        limit="stages without a recorded queue add nothing",
        cutoff="none", params={"stage": ""}, zero=False, better="less",
        aggregate="quantile(0.95)",
    ),
    _cost("request", "traces", "What does a request cost?", ("cost",),
          "the amortised part (parsing, index, review) is not in it"),
    _cost("answered", "traces that answered, wholly or in part", "What does an answer cost?",
          ("cost", "final or proposed"), "a wrong answer counts as one"),
    _cost("correct_cited", "traces that answered as expected and cite something",
          "What does a right answer with citations cost?",
          ("cost", "final or proposed", "cases.expected_state", "citations"),
          "that a citation supports the answer is another measure's"),
    _cost("resolved",
          "traces that answered as expected and cite something, or abstained as expected",
          "What does a case cost that is settled?",
          ("cost", "final or proposed", "cases.expected_state", "citations"),
          "an escalation that was expected counts as settled, its own cost elsewhere"),
    _energy("measured", "modelled"),
    _energy("modelled", "measured"),
    _count("tokens.in", "tokens_in", "tokens into the models", "less"),
    _count("tokens.out", "tokens_out", "tokens out of the models", "neither"),
    _count("work.steps", "steps", "steps of the agent", "neither"),
    _count("work.retries", "retries", "retries", "less"),
)  # fmt: skip
