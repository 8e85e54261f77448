"""The state of eight layers in every trace, from recorded columns and verdicts alone.

Each layer is P (pass), F (fail), G (a gap: the corpus lacks it), N (not applicable) or ? (what
the rule needs is not recorded, or disputed). `RULES` says each rule in words. A state is a label to
start at: a layer that passes may still be at fault together with another.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ragcore.diagnosis import phrasing
from ragcore.diagnosis.corpus import HELD, LOST
from ragcore.diagnosis.facts import WHOLE, Facts
from ragcore.diagnosis.judged import NO, OPEN, UNJUDGED, YES, Judged
from ragcore.evidence import CONFLICTING
from ragcore.formats.compute import pc
from ragcore.lists import Lists
from ragcore.measures.citation_checks import faults
from ragcore.measures.cited import cited as emitted
from ragcore.measures.selected import Shown, marks
from ragcore.measures.surfaced import forbidden, unauthorised
from ragcore_kernels.citations import NO as NOT_SHOWN

LAYERS = (
    "corpus", "query", "retrieval", "ranking", "context", "generation", "citation", "evaluation",
)  # fmt: skip
STATES = "PFGN?"
P, F, G, N, UNKNOWN = range(5)
RULES = {
    "corpus": "N nothing is required; G the snapshot lacks a required item; F its document is "
    "there and no unit holds its text; else P",
    "query": "F the recorded query lost a number, a word with a digit or a negation of the "
    "question; else P; N without a recorded query: the question itself was searched",
    "retrieval": "F a forbidden or unauthorised unit is a candidate, or a required item is not "
    "among the first candidate_k; N nothing is required, or the corpus lacks it; else P",
    "ranking": "of the required candidates: F one is not among the first context_k of the final "
    "ranking, else P; without one: F if a labelled unit that is not required is there, else N",
    "context": "F a forbidden or unauthorised unit is packed, or a required item that was "
    "selected is lost or cut; else P",
    "generation": "a silent proposal: F if silence was not expected and a required item was "
    "packed whole; else: F the state is not the expected one, or a claim is not entailed by the "
    "context, or, where claims are not judged, the value is not the expected one; else P",
    "citation": "N no factual claim, or silence; F a factual claim without citation, or a citation "
    "that does not resolve, was not supplied, is of a unit not labelled as supporting, or does "
    "not entail its claim; else P",
    "evaluation": "N nothing was judged; F a verdict is disputed, or a replay of the evaluator "
    "says otherwise; else P",
}
_SILENT = ("abstain", "fail_closed")


def layer_states(facts: Facts, judged: Judged, flipped: Any = None) -> Any:
    """(8, n) int8, places in `STATES`, of every ranking.

    Parameters
    ----------
    facts, judged : of one run.
    flipped : (n,) bool, where a frozen-output replay said otherwise; None for nowhere.
    """
    corpus = _corpus(facts)
    return np.array(
        [
            corpus, _query(facts), _retrieval(facts, corpus), _ranking(facts, corpus),
            _context(facts), _generation(facts, judged), _citation(facts, judged),
            _evaluation(judged, flipped),
        ],
        np.int8,
    )  # fmt: skip


def shown_amiss(facts: Facts) -> dict[str, Any]:
    """(n,) bool: a forbidden or unauthorised unit is a ``candidate``, or in the ``context``."""
    return facts.inputs.once("shown amiss", lambda: _amiss(facts))


def _amiss(facts: Facts) -> dict[str, Any]:
    inputs = facts.inputs
    out = {"candidate": np.zeros(facts.n, np.bool_), "context": np.zeros(facts.n, np.bool_)}
    lists = ["ranked", *(f"stage {name}" for name in facts.found_in)]
    for check in (unauthorised(inputs), forbidden(inputs)):
        where = check.where or {}
        for name, broken in where.items():
            if name in lists:
                out["candidate"] |= broken
            if name == "context":
                out["context"] |= broken
    return out


def _corpus(facts: Facts) -> Any:
    need = facts.any(facts.required)
    lost = facts.any(facts.required & (facts.held == LOST))
    gone = facts.any(facts.required & (facts.held != HELD) & (facts.held != LOST))
    unlabelled = (facts.inputs.label_of < 0) | (facts.evidence is None)
    out = np.where(need, np.int8(P), np.int8(N))
    out = np.where(lost, np.int8(F), out)
    out = np.where(gone, np.int8(G), out)
    return np.where(unlabelled, np.int8(UNKNOWN), out)


def _query(facts: Facts) -> Any:
    inputs = facts.inputs
    query, question = inputs.trace("query"), inputs.case("question")
    out = np.full(facts.n, np.int8(N))
    if query is None or pa.types.is_null(query.type):
        return out
    recorded = np.asarray(query.is_valid())
    if question is None:
        return np.where(recorded, np.int8(UNKNOWN), out)
    left, right = (text.cast(pa.large_string()) for text in (question, query))
    changed = np.asarray(pc.not_equal(left, right).fill_null(False)).astype(np.bool_)
    out[recorded] = P
    out[recorded & ~np.asarray(question.is_valid())] = UNKNOWN
    at = np.flatnonzero(changed)
    if at.size:
        rows = pa.array(at)
        found = phrasing.kept(
            left.take(rows).to_pylist(), right.take(rows).to_pylist(),
            [inputs.langs[i] for i in at.tolist()],
        )  # fmt: skip
        out[at] = [P if kept else F for kept in found]
    return out


def _retrieval(facts: Facts, corpus: Any) -> Any:
    short = facts.any(facts.required & ~facts.candidate)
    out = np.where(short, np.int8(F), np.int8(P))
    out = np.where(facts.searched, out, np.int8(UNKNOWN))
    out = np.where(np.isin(corpus, (N, G)), np.int8(N), out)
    return np.where(shown_amiss(facts)["candidate"], np.int8(F), out)


def _ranking(facts: Facts, corpus: Any) -> Any:
    wanted = facts.required & facts.candidate
    among = facts.any(wanted)
    displaced = facts.any(wanted & ~facts.selected)
    others = facts.any(~facts.required & facts.selected)
    out = np.where(others, np.int8(F), np.int8(N))
    out = np.where(among, np.where(displaced, np.int8(F), np.int8(P)), out)
    out = np.where(facts.ranked, out, np.int8(UNKNOWN))
    return np.where(np.isin(corpus, (N, G)), np.int8(N), out)


def _context(facts: Facts) -> Any:
    due = facts.required & facts.selected
    broken = facts.any(due & (facts.packed != WHOLE))
    out = np.where(broken, np.int8(F), np.int8(P))
    out = np.where(facts.packing, out, np.int8(UNKNOWN))
    return np.where(shown_amiss(facts)["context"], np.int8(F), out)


def _generation(facts: Facts, judged: Judged) -> Any:
    state, known = facts.state_right
    value, _ = facts.value_right
    silent = np.array([word in _SILENT for word in facts.words(facts.source)], np.bool_)
    unused = facts.any(facts.required & (facts.packed == WHOLE))
    quiet = np.where(state | ~unused, np.int8(P), np.int8(F))
    quiet = np.where(state | facts.packing, quiet, np.int8(UNKNOWN))
    backed = judged.backed
    spoken = np.where(backed == YES, np.int8(P), np.int8(F))
    spoken = np.where(backed == UNJUDGED, np.where(value, np.int8(P), np.int8(F)), spoken)
    spoken = np.where(backed == OPEN, np.int8(UNKNOWN), spoken)
    spoken = np.where(state, spoken, np.int8(F))
    return np.where(known, np.where(silent, quiet, spoken), np.int8(UNKNOWN))


def _citation(facts: Facts, judged: Judged) -> Any:
    inputs = facts.inputs
    cited = inputs.trace_lists("citations")
    wrong = faults(inputs) > 0
    if inputs.has_trace("context"):
        wrong |= (emitted(inputs).shown == NOT_SHOWN) & facts.packing[cited.owners]
    wrong |= _beside(facts, cited)
    amiss = np.bincount(cited.owners[wrong], minlength=facts.n) > 0
    claims = judged.claims
    factual = np.bincount(claims.owners[claims.flags("factual", True)], minlength=facts.n) > 0
    silent = np.array([word in _SILENT for word in facts.words(facts.source)], np.bool_)
    spoken = np.where(claims.present, factual, cited.counts > 0)
    held = judged.cited
    out = np.where(held == OPEN, np.int8(UNKNOWN), np.int8(P))
    out = np.where(amiss | _uncited(claims, cited) | (held == NO), np.int8(F), out)
    out = np.where(cited.present, out, np.int8(UNKNOWN))
    quiet = np.where(claims.present | silent, np.int8(N), np.int8(UNKNOWN))
    return np.where(spoken, out, quiet)


def _beside(facts: Facts, cited: Lists) -> Any:
    """(n_citations,) bool: whether the cited unit contains no item labelled as supporting.

    Both sides of a labelled conflict count; where nothing at all is labelled, any unit does. What
    lies inside the cited span is the question of `measures.chain`.
    """
    if facts.evidence is None:
        return np.zeros(len(cited.items), np.bool_)
    labelled = np.bincount(facts.owner, minlength=facts.n) > 0
    one = Shown(cited, emitted(facts.inputs).unit, "cited")
    serves = marks(facts.inputs, one, facts.evidence.role <= CONFLICTING)
    return ~serves & labelled[cited.owners]


def _uncited(claims: Lists, cited: Lists) -> Any:
    """(n,) bool: answers with a factual claim that nothing is cited for."""
    n = claims.counts.size
    place = cited.integers("claim")
    ok = (place >= 0) & (place < claims.counts[cited.owners])
    has = np.zeros(len(claims.items), np.bool_)
    has[(claims.offsets[cited.owners] + place)[ok]] = True
    bare = claims.flags("factual", True) & ~has
    return np.bincount(claims.owners[bare], minlength=n) > 0


def _evaluation(judged: Judged, flipped: Any) -> Any:
    out = np.where(judged.judged, np.int8(P), np.int8(N))
    out = np.where(judged.disputed, np.int8(F), out)
    return out if flipped is None else np.where(flipped, np.int8(F), out)


def spelled(states: Any) -> list[str]:
    """The eight states of every ranking, as ``P P F N P P N P``."""
    found, place = np.unique(states, axis=1, return_inverse=True)
    words = [" ".join(STATES[s] for s in column) for column in found.T.tolist()]
    return [words[i] for i in place.ravel().tolist()]
