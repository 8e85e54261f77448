"""NoMIRACL in Chinese: is an answer among ten passages? The answers of eleven models as runs.

Half of the questions have a relevant passage among theirs, half have none. The prompt allows two
answers; both at once, and anything else, is an output that is no state: an error, not silence.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from ragcore import schema
from ragcore.public.checks import FLAG, WHOLE, Tables, refuse_twice, refuse_unknown, table
from ragcore.public.columns import documents, in_order, states, typed
from ragcore.public.files import as_published, frame, json_lines, read_text
from ragcore.public.imported import Imported, counted

FILES = {"r": "relevant-zh.jsonl", "n": "non_relevant-zh.jsonl"}
"""The official files by half, with their folders in their names: both are called alike."""
PRESENT, SILENT = "yes, answer is present", "i don't know"
"""The two answers that the prompt allows, in lower case."""
INVALID = "invalid output"
QUESTION, CONTEXTS, OUTPUT = "QUESTION:\n", "\n\nCONTEXTS:\n", "\n\nOUTPUT:"
"""What parts a prompt."""

_KINDS: dict[str, dict[str, Any]] = {
    "corpus": dict.fromkeys(("doc_id", "title", "text", "lang", "source_doc_id"), pl.String),
    "queries": {"query_id": pl.String, "text": pl.String, "answerable": pl.Boolean,
                "lang": pl.String, "source_query_id": pl.String},
    "candidates": {"query_id": pl.String, "doc_id": pl.String, "position": pl.Int32},
    "responses": dict.fromkeys(("query_id", "system", "response"), pl.String),
}  # fmt: skip


def state_of(response: str) -> str | None:
    """What an answer says: ``answer``, ``abstain``, or None for both at once and anything else.

    Either of the allowed answers counts wherever it stands, in any case and with either apostrophe.
    """
    text = response.lower().replace("’", "'")
    silent, present = SILENT in text, PRESENT in text
    if silent == present:
        return None
    return "abstain" if silent else "answer"


def build(tables: Tables) -> Imported:
    """The suite from `corpus`, `queries`, `candidates` and `responses`.

    Raises
    ------
    InputError
        If a table is not as it should be, or a row names what is not there.
    """
    corpus = table(tables, "corpus", "doc_id", "title", "text", key="doc_id")
    queries = table(tables, "queries", "query_id", "text", key="query_id", answerable=FLAG)
    candidates = table(tables, "candidates", "query_id", "doc_id", position=WHOLE)
    responses = table(tables, "responses", "query_id", "system", "response")
    names = queries["query_id"]
    for where, rows in (("candidates", candidates), ("responses", responses)):
        refuse_unknown(rows, where, "query_id", names, "queries")
    refuse_unknown(candidates, "candidates", "doc_id", corpus["doc_id"], "corpus")
    n = len(queries)
    cases = typed(
        {
            "case_id": names,
            "lang": ["zh"] * n,
            "question": queries["text"],
            "answerable": queries["answerable"],
            "expected_state": states(queries["answerable"]),
        },
        schema.CASES,
    )
    shown: dict[str, list[dict[str, str]]] = {name: [] for name in names}
    for query, document, _ in candidates.sort("position").iter_rows():
        shown[query].append({"id": document})
    runs, n_invalid = {}, 0
    for (system,), own in responses.group_by("system", maintain_order=True):
        refuse_twice(own, f"responses of {system}", "query_id")
        runs[str(system)], invalid = _run(shown, own)
        n_invalid += invalid
    total = n * len(runs)
    notes = (
        f"{counted(n_invalid, 'answer')} of {total:,} are neither or both of the two that the "
        f"prompt allows: no state, recorded as {INVALID!r}",
        f"{counted(total - len(responses), 'answer')} not recorded",
        "which of the passages are relevant is not told, only whether any is: no measure of "
        "retrieval",
    )
    return Imported(cases, documents(corpus, "zh"), runs, {}, notes)


def _run(shown: dict[str, list[dict[str, str]]], own: pl.DataFrame) -> tuple[pa.Table, int]:
    """The answers of one system in the order of the cases, and how many are invalid."""
    rows = in_order(own, "query_id", pl.Series(list(shown), dtype=pl.String))
    said = rows["response"].to_list()
    states = [state_of(one) for one in said]
    invalid = [None if state else INVALID for state in states]
    columns = {
        "case_id": rows["query_id"],
        "context": [shown[name] for name in rows["query_id"]],
        "proposed": [
            {"state": state, "text": text} for state, text in zip(states, said, strict=True)
        ],
        "error": invalid,
    }
    return typed(columns, schema.RUNS), len(invalid) - invalid.count(None)


def official(folder: Path) -> dict[str, pl.DataFrame]:
    """The tables that `build` takes, out of the prompts and answers that the authors published.

    A passage stands in the prompt alone, as `title: text`. An id with a second text gets the
    beginning of that text's hash.

    Raises
    ------
    InputError
        If a file is missing or is not as published.
    """
    passages: dict[str, dict[str, Any]] = {}
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in _KINDS}
    for half, file in FILES.items():
        for number, one in json_lines(read_text(folder, file), folder / file):
            with as_published(folder / file, "a prompt with answers", number):
                question, texts = _parted(one["prompt"], len(one["docids"]))
                query = f"zh:{half}:{one['query_id']}"
                ids = [
                    _named(passages, name, text)
                    for name, text in zip(one["docids"], texts, strict=True)
                ]
                rows["responses"] += [
                    {"query_id": query, "system": system, "response": text}
                    for system, text in sorted(one["results"].items())
                ]
            rows["queries"].append(
                {"query_id": query, "text": question, "answerable": half == "r", "lang": "zh",
                 "source_query_id": one["query_id"]}
            )  # fmt: skip
            rows["candidates"] += [
                {"query_id": query, "doc_id": name, "position": at}
                for at, name in enumerate(ids, 1)
            ]
    rows["corpus"] = list(passages.values())
    return {name: frame(rows[name], kinds, folder) for name, kinds in _KINDS.items()}


def _parted(prompt: str, n: int) -> tuple[str, list[str]]:
    """The question of a prompt, and its `n` passages."""
    start = prompt.index(QUESTION) + len(QUESTION)
    middle = prompt.index(CONTEXTS, start)
    body = prompt[middle + len(CONTEXTS) : prompt.rindex(OUTPUT)]
    texts, at = [], 0
    for number in range(1, n + 1):
        mark = f"[{number}] "
        if not body.startswith(mark, at):
            raise ValueError(f"no passage {mark.strip()}")
        at += len(mark)
        end = body.index(f"\n\n[{number + 1}] ", at) if number < n else len(body)
        texts.append(body[at:end])
        at = end + 2
    return prompt[start:middle], texts


def _named(passages: dict[str, dict[str, Any]], source: str, whole: str) -> str:
    """The id of a passage, which is entered if it is new."""
    title, _, text = whole.partition(": ")
    row = {"doc_id": f"zh:{source}", "title": title, "text": text, "lang": "zh"}
    known = passages.get(row["doc_id"])
    if known is not None and (known["title"], known["text"]) != (title, text):
        row["doc_id"] += f"@{hashlib.sha1(whole.encode(), usedforsecurity=False).hexdigest()[:6]}"
    passages.setdefault(row["doc_id"], row | {"source_doc_id": source})
    return row["doc_id"]
