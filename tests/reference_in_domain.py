"""Answers of the in-domain suite counted in plain Python, from its Arrow files alone.

A trace has a share (numerator and denominator), `None` where the denominator is empty by
definition, or `OPEN` where a verdict that it needs was not given.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from pathlib import Path

import tables

FOLDER = Path(__file__).resolve().parents[1] / "data" / "in_domain"
STRATEGIES = ("bm25", "dense-exact", "hybrid-exact")
OPEN = "missing"


def _rows(file, *dropped):
    return tables.read_ipc(FOLDER / file).drop_columns(list(dropped)).to_pylist()


CASES = {(r["case_id"], r["lang"]): r for r in _rows("cases.arrow", "vector")}
CHUNKS = {r["chunk_id"]: r for r in _rows("chunks.arrow", "vector")}
TRACES = {
    name: {(r["case_id"], r["lang"]): r for r in _rows(f"runs/extractive-{name}.arrow")}
    for name in STRATEGIES
}
PACKED = {
    (r["run"], r["case_id"], r["lang"], r["relation"]): r["verdicts"]
    for r in _rows("judgments/rules.arrow")
}
CITES = {
    (r["run"], r["case_id"], r["lang"], r["claim"], r["evidence"][0]): r["verdict"]
    for r in _rows("judgments/rules-cites.arrow")
}


def share(flags):
    """Those that hold of all; None of none."""
    flags = list(flags)
    return (sum(flags), len(flags)) if flags else None


class Trace:
    """One trace with its case and verdicts."""

    def __init__(self, strategy, key):
        self.case, self.row = CASES[key], TRACES[strategy][key]
        run = f"extractive-{strategy}"
        said, wanted = len(self.row["claims"]), len(self.case["claims"])
        self.shown = [CHUNKS[one["id"]] for one in self.row["context"]]
        one = {name: PACKED.get((run, *key, name), []) for name in (
            "correct", "entailed", "covered", "chunk_entails_reference")}  # fmt: skip
        self.correct, self.entailed, self.covered, matrix = one.values()
        assert (len(self.correct), len(self.entailed)) == (said, said)
        assert (len(self.covered), len(matrix)) == (wanted, wanted * len(self.shown))
        n = len(self.shown)
        self.matrix = [matrix[i * n : i * n + n] for i in range(wanted)]
        self.cites = [CITES[(run, *key, c["claim"], c["id"])] for c in self.row["citations"]]
        self.answers = self.row["final"]["state"] == "answer"

    def recalled(self):
        """For each reference claim, whether some chunk shown says it."""
        return ["yes" in row for row in self.matrix]

    def in_scope(self, one):
        """Whether what a citation cites is of the case's topic and valid on its day."""
        chunk, case = CHUNKS[one["id"]], self.case
        begun = chunk["valid_from"] <= case["as_of"]
        over = chunk["valid_until"] is not None and chunk["valid_until"] <= case["as_of"]
        return begun and not over and case["topic"] in (None, chunk["topic"])

    def proves(self, one):
        """Whether a citation contains a labelled quote."""
        return any(
            item["doc_id"] == one["doc_id"] and item["quote"] in one["quote"]
            for item in self.case["evidence"] if item["role"] in ("supporting", "conflicting")
        )  # fmt: skip


def context_precision(t):
    if not t.matrix or not t.shown:
        return None
    if any(None in row for row in t.matrix):
        return OPEN
    return share("yes" in column for column in zip(*t.matrix, strict=True))


def context_recall(t):
    if any(None in row for row in t.matrix):
        return OPEN
    return share(t.recalled())


def context_coverage(t):
    shown = {(chunk["doc_id"], chunk["block_first"]) for chunk in t.shown}
    return share((i["doc_id"], i["block"]) in shown for i in t.case["evidence"] if i["required"])


def faithfulness(t):
    return share(v == "yes" for v in t.entailed)


def claims_precision(t):
    return share(v == "yes" for v in t.correct)


def grounded_precision(t):
    both = zip(t.correct, t.entailed, strict=True)
    return share(pair == ("yes", "yes") for pair in both)


def claims_recall(t):
    if None in t.covered and t.row["claims"]:
        return OPEN
    return share(v == "yes" for v in t.covered)


def completeness(t):
    if any(None in row for row in t.matrix) or (None in t.covered and t.row["claims"]):
        return OPEN
    claims = zip(t.recalled(), t.covered, t.case["claims"], strict=True)
    return share(v == "yes" for found, v, claim in claims if found and claim["required"])


def state(t):
    return share([t.row["final"]["state"] == t.case["expected_state"]])


def abstained(t):
    return share([not t.answers]) if t.case["expected_state"] == "abstain" else None


def false_answer(t):
    return None if t.case["answerable"] else share([t.answers])


def unnecessary(t):
    return share([not t.answers]) if t.case["answerable"] else None


def presence(t):
    cited = {one["claim"] for one in t.row["citations"]}
    return share(i in cited for i in range(len(t.row["claims"])))


def citation_precision(t):
    return share(v == "yes" for v in t.cites)


def citation_recall(t):
    held = {c["claim"] for c, v in zip(t.row["citations"], t.cites, strict=True) if v == "yes"}
    return share(i in held for i in range(len(t.row["claims"])))


def entails(t):
    """Of citations that are in scope and around a labelled quote."""
    pairs = zip(t.row["citations"], t.cites, strict=True)
    return share(v == "yes" for c, v in pairs if t.in_scope(c) and t.proves(c))


def end_to_end(t):
    right = t.row["final"]["state"] == t.case["expected_state"]
    right &= t.row["final"]["value"] == t.case["expected_value"]
    if right and t.answers:
        right = all(v == "yes" for v in t.cites) and all(map(t.in_scope, t.row["citations"]))
    return share([right])


MEASURES = {
    "context.coverage": context_coverage, "context.precision": context_precision,
    "claims.context_recall": context_recall, "grounded.faithfulness": faithfulness,
    "claims.precision": claims_precision, "grounded.precision": grounded_precision,
    "claims.recall": claims_recall, "completeness": completeness, "generation.state": state,
    "abstention.correct": abstained, "abstention.false_answer": false_answer,
    "abstention.unnecessary": unnecessary, "citation.presence": presence,
    "citation.precision": citation_precision, "citation.recall": citation_recall,
    "citation.entailment": citation_precision, "citation.entails": entails,
    "end_to_end": end_to_end,
}  # fmt: skip


def by_case(strategy, measure):
    """By case: the mean over its languages that have a share, else None or `OPEN`."""
    found = defaultdict(list)
    for key in CASES:
        found[key[0]].append(MEASURES[measure](Trace(strategy, key)))
    out = {}
    for case, values in found.items():
        given = [Fraction(*v) for v in values if v not in (None, OPEN)]
        empty = OPEN if OPEN in values else None
        out[case] = sum(given, Fraction(0)) / len(given) if given else empty
    return out


def totals(values):
    """Sum and number of the values, and how many have none by definition or are missing."""
    given = [v for v in values if v not in (None, OPEN)]
    values = list(values)
    return sum(given, Fraction(0)), len(given), values.count(None), values.count(OPEN)
