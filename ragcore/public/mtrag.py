"""MTRAG's conversations: MTRAG-UN over the passages of its own tasks, and MTRAG's rated answers.

Two suites. The first asks with the last turn alone, which is the published baseline "last turn";
all the user's turns, and the whole conversation, stand beside it. The second has what three systems
answered to 159 turns, with the passages that they were given.
"""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pyarrow as pa

from ragcore import schema
from ragcore.errors import InputError
from ragcore.public.checks import (
    NUMBER,
    TEXTS,
    WHOLE,
    WHOLES,
    Tables,
    refuse_grades,
    refuse_twice,
    refuse_unknown,
    table,
)
from ragcore.public.columns import Values, coded, documents, evidence, in_order, typed
from ragcore.public.imported import Imported, counted
from ragcore.public.mtrag_files import RATED, TASKS, rated_of, tasks_of

STATES = {
    "ANSWERABLE": (True, "answer"), "UNANSWERABLE": (False, "abstain"),
    "PARTIAL": (True, "partial"), "CONVERSATIONAL": (None, None),
    "UNDERSPECIFIED": (None, "escalate"),
}  # fmt: skip
"""What MTRAG's classes are to the engine: answerable or not, and the state that is asked for.

Whether something that is not clear yet can be answered, and whether small talk has an answer, is
left open: null. To ask back is to escalate.
"""
WHO = re.compile(r"(?:^|\n)(user|agent): ")
RIGHT = "conditional_idk"
"""The benchmark's own measure of whether a system was right to answer, or not to."""


def build(tables: Tables) -> Imported:
    """The suite of rated answers from tables `human_*`; else MTRAG-UN.

    Raises
    ------
    InputError
        If a table is not as it should be, or a row names what is not there.
    """
    return rated(tables) if "human_tasks" in tables and "un_tasks" not in tables else tasks(tables)


def tasks(tables: Tables) -> Imported:
    """MTRAG-UN from `un_tasks`, `un_contexts`, `un_corpus` and `retrieval_qrels`.

    Raises
    ------
    InputError
        As `build`.
    """
    given = table(
        tables, "un_tasks", "task_id", "domain", "history", "question", "target", "answerability",
        key="task_id", turn=WHOLE, question_type=TEXTS, multi_turn=TEXTS,
    )  # fmt: skip
    corpus = table(tables, "un_corpus", "doc_id", "title", "text", "domain", key="doc_id")
    contexts = table(tables, "un_contexts", "task_id", "doc_id")
    judged = table(tables, "retrieval_qrels", "query_id", "doc_id", "set", relevance=WHOLE)
    qrels = judged.filter(pl.col("set") == "mtragun")
    refuse_unknown(qrels, "retrieval_qrels", "query_id", given["task_id"], "un_tasks")
    refuse_unknown(contexts, "un_contexts", "task_id", given["task_id"], "un_tasks")
    for where, rows in (("retrieval_qrels", qrels), ("un_contexts", contexts)):
        refuse_unknown(rows, where, "doc_id", corpus["doc_id"], "un_corpus")
    refuse_grades(qrels, "retrieval_qrels")
    open_ = given.filter(pl.col("answerability") == "UNDERSPECIFIED")["task_id"]
    items = qrels.select(pl.col("query_id").alias("key"), "doc_id", "relevance")
    more: dict[str, Values] = {
        "type": given["question_type"].to_list(),
        "multi_turn": coded(given["multi_turn"].list.join("/")),
        "domain": coded(given["domain"]),
        "evidence": evidence(given["task_id"], items, "retrieval_qrels", open_),
    }
    pairs = set(qrels.select("query_id", "doc_id").iter_rows())
    n_left = sum(row not in pairs for row in contexts.iter_rows())
    notes = (
        f"the pool is the {counted(len(corpus), 'passage')} of these tasks, not the four corpora "
        "that published figures are over",
        f"{counted(len(open_), 'task')} underspecified: answerable is open, nothing is judged, and "
        f"{counted(n_left, 'passage')} shown with them are no evidence",
        f"{counted(len(judged) - len(qrels), 'judgement')} of MTRAG's own turns left out: their "
        "corpora are not here",
    )
    chunks = documents(corpus, "en", domain=coded(corpus["domain"]))
    return Imported(_cases(given, "un_tasks", **more), chunks, {}, {}, notes)


def rated(tables: Tables) -> Imported:
    """MTRAG's rated turns from `human_tasks`, `human_corpus`, `human_responses`, `human_scores`.

    What a system did is not recorded; whether it was right to answer is, and with the class of the
    task tells whether it did.

    Raises
    ------
    InputError
        As `build`.
    """
    given = table(
        tables, "human_tasks", "task_id", "history", "question", "target", "answerability",
        "collection", key="task_id", turn=WHOLE, doc_ids=TEXTS, relevant_positions=WHOLES,
    )  # fmt: skip
    corpus = table(tables, "human_corpus", "doc_id", "title", "text", key="doc_id")
    responses = table(tables, "human_responses", "task_id", "system", "response")
    scores = table(tables, "human_scores", "task_id", "system", "metric", "kind", value=NUMBER)
    for where, rows in (("human_responses", responses), ("human_scores", scores)):
        refuse_unknown(rows, where, "task_id", given["task_id"], "human_tasks")
    refuse_unknown(given, "human_tasks", "doc_ids", corpus["doc_id"], "human_corpus")
    talk = given.filter(pl.col("answerability") == "CONVERSATIONAL")["task_id"]
    domain = coded(given["collection"].str.extract(r"^mt-rag-([a-z]+)-"))
    items = evidence(given["task_id"], _relevant(given), "human_tasks", talk)
    cases = _cases(given, "human_tasks", domain=domain, evidence=items)
    right = scores.filter(pl.col("metric") == RIGHT)
    runs = {
        str(system): _answers(given, own, right.filter(pl.col("system") == system))
        for (system,), own in responses.group_by("system", maintain_order=True)
    }
    n_rated = int((scores["kind"] == "human").sum())
    n_made = len(scores) - n_rated - len(right)
    notes = (
        "whether a system answered is taken from the benchmark's own figure of whether it was "
        "right to, and the class of the task",
        f"{counted(n_rated, 'rating')} of answers by people left out: no relation of verdicts is a "
        "degree from 1 to 4",
        f"{counted(n_made, 'value')} of the benchmark's other measures left out",
    )
    return Imported(cases, documents(corpus, "en"), runs, {}, notes)


def _cases(given: pl.DataFrame, name: str, **more: Values) -> pa.Table:
    """The columns that both suites have, and others."""
    refuse_unknown(given, name, "answerability", pl.Series(list(STATES)))
    asked = [STATES[kind] for kind in given["answerability"]]
    columns: dict[str, Values] = {
        "case_id": given["task_id"],
        "lang": ["en"] * len(given),
        "question": given["question"],
        "conversation": given["task_id"].str.split("<::>").list.first(),
        "turn": given["turn"],
        "answerable": [answerable for answerable, _ in asked],
        "expected_state": [state for _, state in asked],
        "references": [[one] for one in given["target"]],
        "class": coded(given["answerability"]),
        "question_all_turns": pa.array(map(_turns, given["history"]), pa.large_string()),
        "question_conversation": pa.array(given["history"].to_list(), pa.large_string()),
    }
    return typed(columns | more, schema.CASES)


def _turns(history: str) -> str:
    """What the user said in a conversation, a line a turn."""
    parts = WHO.split(history)
    return "\n".join(b for a, b in zip(parts[1::2], parts[2::2], strict=True) if a == "user")


def _relevant(given: pl.DataFrame) -> pl.DataFrame:
    """Of the passages shown with each task, those that are relevant to it."""
    pairs = []
    for task, ids, places in given.select("task_id", "doc_ids", "relevant_positions").iter_rows():
        wrong = [at for at in places if not 0 <= at < len(ids)]
        if wrong:
            raise InputError(
                "human_tasks", f"relevant position {wrong[0]} of task {task!r}",
                f"one of its {len(ids)} passages, from 0",
            )  # fmt: skip
        pairs += [(task, ids[at]) for at in places]
    rows = pl.DataFrame(pairs, {"key": pl.String, "doc_id": pl.String}, orient="row")
    return rows.with_columns(relevance=pl.lit(1, pl.Int8))


def _answers(given: pl.DataFrame, own: pl.DataFrame, right: pl.DataFrame) -> pa.Table:
    """The answers of one system in the order of the tasks."""
    system = own["system"][0]
    refuse_twice(own, f"human_responses of {system}", "task_id")
    refuse_twice(right, f"human_scores of {system}, {RIGHT}", "task_id")
    rows = in_order(own, "task_id", given["task_id"])
    shown, kinds = (
        dict(given.select("task_id", name).iter_rows()) for name in ("doc_ids", "answerability")
    )
    was_right = dict(right.select("task_id", "value").iter_rows())
    columns: dict[str, Values] = {
        "case_id": rows["task_id"],
        "condition": ["gold_context"] * len(rows),
        "context": [[{"id": one} for one in shown[task]] for task in rows["task_id"]],
        "proposed": [
            {"state": _did(kinds[task], was_right.get(task)), "text": text}
            for task, text in rows.select("task_id", "response").iter_rows()
        ],
    }
    return typed(columns, schema.RUNS)


def _did(kind: str, right: float | None) -> str | None:
    """The state of an answer to a task of a class, by whether it was right to answer."""
    if right is None:
        return None
    return "abstain" if (kind == "UNANSWERABLE") == bool(right) else "answer"


def official(folder: Path) -> dict[str, pl.DataFrame]:
    """The tables that `build` takes, out of the repository's files: of the suite that is there.

    Raises
    ------
    InputError
        If a file is missing or is not as published.
    """
    if not (folder / TASKS).is_file() and (folder / RATED).is_file():
        return rated_of(folder)
    return tasks_of(folder)
