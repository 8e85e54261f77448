"""Ranked measures: their definitions, and their specification for the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragcore.errors import UsageError
from ragcore.measures import variants
from ragcore.measures.definitions import Definition, Measure, directed

_TREC = "trec_eval 10"
_NA = "no relevant document (0 under --no-relevant zero)"


def _ranked(name: str, formula: str, question: str, **rest: Any) -> Definition:
    given: dict[str, Any] = {"na": _NA, "needs": ("ranked", "relevance"), "source": _TREC} | rest
    params = {"judged_only": False, "ties": None, "holes": None} | given.pop("params", {})
    return Definition(
        name=name, layer="ranked", formula=formula, question=question, params=params,
        bounds=variants.explained(name), **given,
    )  # fmt: skip


_ALL = (
    _ranked(
        "P", "relevant in the first k / k; k even if fewer were returned",
        "How much of what is shown is relevant?", cutoff="needed", aliases=("Precision",),
    ),
    _ranked(
        "R", "relevant in the first k / all relevant; without @k, in the whole list",
        "How much of what is relevant was found?", aliases=("Recall",),
    ),
    _ranked(
        "R_capped", "relevant in the first k / min(k, all relevant)",
        "How much of what could be found in k ranks was found?",
        source="BEIR R_cap; trec_eval relative_P", aliases=("R_cap", "recall_capped"),
    ),
    _ranked(
        "Success", "1 if a relevant document is in the first k, else 0",
        "Does the reader see anything relevant?", aliases=("HitRate", "hit_rate", "hit", "hits"),
    ),
    _ranked(
        "RR", "1 / rank of the first relevant document; 0 if there is none (in the first k)",
        "How soon does the first relevant document come?",
        aliases=("MRR", "recip_rank", "RecipRank"),
        limit="sees the first relevant document only",
    ),
    _ranked(
        "AP", "sum over relevant documents found of precision at their rank / all relevant",
        "How good is the whole ranking, precision and recall together?", aliases=("MAP",),
        limit="gm_map is its geometric mean over cases, each at least 0.00001",
    ),
    _ranked(
        "nDCG", "DCG / DCG of the best order of all judgements; DCG = sum of grade / log2(rank+1)",
        "Do the best documents come first?", na="no judgement with gain (0 under zero)",
        params={"gain": "linear", "gains": None, "dcg": None},
        source="Järvelin & Kekäläinen, TOIS 20(4), 2002; trec_eval ndcg, ndcg_cut",
        limit="gain is the grade itself, whatever rel= is; nDCG_exp has 2^grade - 1",
    ),
    _ranked(
        "nDCG_exp", "as nDCG with gain 2^grade - 1",
        "Do the best documents come first, the highest grades above all?",
        na="no judgement with gain (0 under zero), or 2^grade overflows",
        source="Burges et al., ICML 2005; gdeval", aliases=("nDCG_burges",),
    ),
    _ranked(
        "Rprec", "precision at rank R, R = number of relevant documents (or a multiple of it)",
        "How precise is a list as long as the truth?", cutoff="none",
        aliases=("R-precision", "RPrecision"), params={"multiple": 1.0},
    ),
    _ranked(
        "RBP", "(1 - p) x sum over relevant documents of p^(rank - 1)",
        "What does a reader gain who goes on with chance p?", params={"p": 0.8},
        source="Moffat & Zobel, TOIS 27(1), 2008; binary at rel",
        limit="below 1 even for a perfect ranking",
    ),
    _ranked(
        "ERR", "sum over ranks of 1/rank x chance that the reader stops there, the chance for a "
        "document being (2^grade - 1) / 2^max",
        "How soon is a reader satisfied who stops when satisfied?", params={"max": 4},
        source="Chapelle et al., CIKM 2009; scale 0..4 as gdeval",
        limit="grades above max are refused",
    ),
    _ranked(
        "Bpref", "1/R x sum over relevant found of 1 - min(non-relevant above, R) / min(R, N)",
        "Are judged relevant documents above judged non-relevant ones?", cutoff="none",
        source="Buckley & Voorhees, SIGIR 2004; trec_eval",
        limit="ignores unjudged documents",
    ),
    _ranked(
        "infAP", "AP estimated from a sample of the pool; a grade < 0 is pooled, not judged",
        "What would AP be if the whole pool were judged?", cutoff="none",
        source="Yilmaz & Aslam, CIKM 2006; trec_eval",
    ),
    _ranked(
        "IPrec", "highest precision at or after the rank where recall r is reached",
        "What does it cost to reach recall r?", params={"recall": None},
        aliases=("iprec_at_recall",), limit="r x R is rounded to the nearest document",
    ),
    _ranked(
        "11pt_avg", "mean of IPrec at recall 0.0, 0.1, ..., 1.0 (or at given points)",
        "How precise is the ranking over all recall levels?", cutoff="none",
        params={"points": tuple(i / 10 for i in range(11))},
    ),
    _ranked(
        "Judged", "judged documents in the first k / min(k, documents returned)",
        "How much of this number rests on judgements?", na="empty ranking",
        source="ir_measures Judged", zero=False,
    ),
    _ranked(
        "Unjudged", "unjudged documents in the first k / k", "How many holes are in the top k?",
        na="never", aliases=("unj",), cutoff="needed",
    ),
    _ranked("NumQ", "1 a case", "Over how many cases?", na="never", cutoff="none",
            aliases=("num_q",), aggregate="sum"),
    _ranked("NumRet", "documents returned", "How long are the lists?", na="never", cutoff="none",
            aliases=("num_ret",), aggregate="sum"),
    _ranked("NumRel", "relevant documents judged", "How many are there to find?", na="never",
            cutoff="none", aliases=("num_rel",), aggregate="sum"),
    _ranked("NumRelRet", "relevant documents returned", "How many were found?", na="never",
            cutoff="none", aliases=("num_rel_ret",), aggregate="sum"),
    _ranked("num_nonrel_judged_ret", "judged non-relevant documents returned",
            "How many known bad ones are shown?", na="never", cutoff="none", aggregate="sum"),
    _ranked("SetP", "relevant returned / returned (0 for an empty list)",
            "How precise is the returned set?", cutoff="none", aliases=("set_P",)),
    _ranked("SetR", "relevant returned / all relevant", "How complete is the returned set?",
            cutoff="none", aliases=("set_recall",)),
    _ranked("SetF", "(beta + 1) P R / (beta P + R) of the returned set; beta as trec_eval's weight",
            "How good is the returned set?", cutoff="none", aliases=("set_F",),
            params={"beta": 1.0}),
    _ranked("SetAP", "SetP x SetR", "How good is the returned set, both at once?", cutoff="none",
            aliases=("set_map",)),
    _ranked("utility", "a x relevant returned + b x others returned + c x relevant missed",
            "What is the returned set worth?", na="never", cutoff="none",
            params={"weights": (1.0, -1.0, 0.0, 0.0)},
            limit="a weight for what was rightly left out needs the collection's size: refused"),
    _ranked("binG", "mean over the relevant of 1 / log2(2 + other documents above)",
            "How many others must be read first?", cutoff="none"),
)  # fmt: skip
DEFINITIONS = directed(
    _ALL, less=("Unjudged", "num_nonrel_judged_ret"), neither=("NumQ", "NumRet", "NumRel")
)

_KINDS = {
    "retrieval.coverage": "SET_R", "P": "P", "R": "R", "R_capped": "R_CAPPED",
    "Success": "SUCCESS", "RR": "RR", "AP": "AP",
    "nDCG": "NDCG", "nDCG_exp": "NDCG", "Rprec": "RPREC", "RBP": "RBP", "ERR": "ERR",
    "Bpref": "BPREF", "infAP": "INFAP", "IPrec": "IPREC", "11pt_avg": "IPREC", "Judged": "JUDGED",
    "Unjudged": "UNJUDGED", "NumQ": "ONE", "NumRet": "NUM_RET", "NumRel": "NUM_REL",
    "NumRelRet": "NUM_REL_RET", "num_nonrel_judged_ret": "NUM_NONREL_RET", "SetP": "SET_P",
    "SetR": "SET_R", "SetF": "SET_F", "SetAP": "SET_AP", "utility": "UTILITY", "binG": "BIN_G",
}  # fmt: skip

STANDARD = (
    "nDCG@10", "nDCG", "AP", "RR@10", "R@5", "R@10", "R@100", "R@1000", "P@5", "P@10",
    "Success@1", "Success@5", "Success@10",
)  # fmt: skip
"""What is scored when nothing is asked for, before the counts."""
DEFAULT = (*STANDARD, "Judged@10", "NumRet", "NumRel", "NumRelRet")


class Specification:
    """Ranked measures as `ragcore_kernels.measures.evaluate` takes them.

    Attributes
    ----------
    spec, params, gains : the kernel's arrays; a measure may own several rows.
    rows : for each measure, its rows; their mean is its value.
    """

    def __init__(self, measures: list[Measure]) -> None:
        from ragcore_kernels import gains
        from ragcore_kernels import measures as kernel

        spec: list[list[int]] = []
        params: list[list[float]] = []
        maps: list[dict[int, float]] = []
        self.rows: list[slice] = []
        for one in measures:
            kind = getattr(kernel, _KINDS[one.definition.name])
            mode = gains.GAIN_LINEAR
            if one.definition.name == "nDCG_exp" or one.params.get("gain") == "exp":
                mode = gains.GAIN_EXP
            if one.params.get("gains"):
                mode = gains.GAIN_TABLE + len(maps)
                maps.append(one.params["gains"])
            start = len(spec)
            for numbers in _numbers(one):
                spec.append([kind, one.k, one.rel, int(bool(one.params["judged_only"])), mode])
                params.append(numbers)
            self.rows.append(slice(start, len(spec)))
        self.spec = np.array(spec, np.int64).reshape(-1, kernel.SPEC_FIELDS)
        self.params = np.array(params, np.float64).reshape(-1, 3)
        top = max((g for m in maps for g in m), default=0)
        self.gains = np.full((max(len(maps), 1), top + 1), np.nan)
        for i, given in enumerate(maps):
            for grade, value in given.items():
                if grade >= 0:
                    self.gains[i, grade] = value
        self.plain = all(r.stop - r.start == 1 for r in self.rows)

    def means(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Mean of each measure's rows, added in their order whatever the number of rankings."""
        return np.stack([sum(values[r]) / (r.stop - r.start) for r in self.rows])


def _numbers(one: Measure) -> list[list[float]]:
    params = one.params
    match one.definition.name:
        case "Rprec":
            return [[float(params["multiple"]), 0.0, 0.0]]
        case "RBP":
            return [[float(params["p"]), 0.0, 0.0]]
        case "ERR":
            return [[float(params["max"]), 0.0, 0.0]]
        case "SetF":
            return [[float(params["beta"]), 0.0, 0.0]]
        case "utility":
            weights = params["weights"]
            if len(weights) != 4 or weights[3] != 0:
                raise UsageError(
                    f"measure {one.text!r}: weights {weights}",
                    "four, the last 0: the collection's size is not known",
                )
            return [[float(w) for w in weights[:3]]]
        case "IPrec":
            if params["recall"] is None:
                raise UsageError(f"measure {one.text!r} needs a recall level", "IPrec@0.1")
            return [[float(params["recall"]), 0.0, 0.0]]
        case "11pt_avg":
            return [[float(p), 0.0, 0.0] for p in params["points"]]
        case _:
            return [[0.0, 0.0, 0.0]]
