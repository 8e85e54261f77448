"""Names of measures, in ir_measures' and in trec_eval's spelling, taken apart.

`nDCG@10`, `P(rel=2)@5`, `RBP(p=0.9)`, `nDCG(judged_only=True)@2` or `nDCG@2(judged_only)`;
`ndcg_cut_10`, `P_5`, `iprec_at_recall_0.10`, `Rprec_mult_0.20`, `ndcg_1=3,2=9`.
"""

from __future__ import annotations

import ast
import re
from typing import Any, NamedTuple


class Spec(NamedTuple):
    """A measure taken apart; `rel` None leaves the level to the caller."""

    kind: str
    k: int | None = None
    rel: int | None = None
    params: dict[str, Any] = {}  # noqa: RUF012 - never written to
    geometric: bool = False


KINDS = {
    "P": ("P", "Precision"),
    "R": ("R", "Recall"),
    "R_capped": ("R_capped", "R_cap", "recall_capped", "relative_P", "set_relative_P"),
    "Success": ("Success", "HitRate", "hit_rate", "hit"),
    "RR": ("RR", "MRR", "recip_rank"),
    "AP": ("AP", "MAP", "gm_map"),
    "nDCG": ("nDCG", "NDCG"),
    "nDCG_exp": ("nDCG_exp",),
    "Rprec": ("Rprec", "RPrec"),
    "RBP": ("RBP",),
    "ERR": ("ERR",),
    "Bpref": ("Bpref", "BPref", "gm_bpref"),
    "infAP": ("infAP",),
    "IPrec": ("IPrec",),
    "Judged": ("Judged",),
    "NumQ": ("NumQ", "num_q"),
    "NumRet": ("NumRet", "num_ret"),
    "NumRel": ("NumRel", "num_rel"),
    "NumRelRet": ("NumRelRet", "num_rel_ret"),
    "SetP": ("SetP", "set_P"),
    "SetR": ("SetR", "set_recall"),
    "SetF": ("SetF", "set_F"),
    "11pt_avg": ("11pt_avg",),
    "Rprec_mult": ("Rprec_mult",),
    "utility": ("utility",),
    "set_map": ("set_map",),
    "num_nonrel_judged_ret": ("num_nonrel_judged_ret",),
    "unj": ("unj",),
    "binG": ("binG",),
}
"""Kind -> its spellings; read without regard to case, the first is the house's own."""

BY_NAME = {spelling.lower(): kind for kind, names in KINDS.items() for spelling in names}

GEOMETRIC = frozenset({"gm_map", "gm_bpref"})

WITH_CUT = {  # trec_eval's name_k
    "P": "P",
    "recall": "R",
    "relative_P": "R_capped",
    "success": "Success",
    "map_cut": "AP",
    "ndcg_cut": "nDCG",
    "unj": "unj",
}


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _arguments(text: str) -> dict[str, Any]:
    """``p=0.9,rel=1`` or a bare flag, with braces kept together."""
    found: dict[str, Any] = {}
    for part in re.findall(r"(?:\{[^}]*\}|[^,{])+", text):
        name, equals, value = part.strip().partition("=")
        found[name] = _literal(value) if equals else True
    return found


def _gains(table: dict[Any, float]) -> dict[int, float]:
    return {int(grade): float(gain) for grade, gain in table.items()}


def _trec_eval(name: str) -> Spec | None:
    """A parameterised name as trec_eval prints it, or None."""
    if name == "rbp":
        return Spec("RBP", params={"p": 0.9})
    if match := re.fullmatch(r"(\w+)_(\d+)", name):
        kind = WITH_CUT.get(match[1])
        if kind is not None:
            return Spec(kind, int(match[2]))
    if match := re.fullmatch(r"iprec_at_recall_([\d.]+)", name):
        return Spec("IPrec", params={"recall_level": float(match[1])})
    if match := re.fullmatch(r"Rprec_mult_([\d.]+)", name):
        return Spec("Rprec_mult", params={"multiple": float(match[1])})
    if match := re.fullmatch(r"11pt_avg_([\d.,]+)", name):
        return Spec("11pt_avg", params={"points": [float(x) for x in match[1].split(",")]})
    if match := re.fullmatch(r"utility_([-\d.,]+)", name):
        return Spec(
            "utility", params=dict(zip("abcd", map(float, match[1].split(",")), strict=True))
        )
    if match := re.fullmatch(r"set_F_([\d.]+)", name):
        return Spec("SetF", params={"beta": float(match[1])})
    if match := re.fullmatch(r"ndcg_(-?\d+=.+)", name):
        pairs = dict(pair.split("=") for pair in match[1].split(","))
        return Spec("nDCG", params={"gains": _gains({k: float(v) for k, v in pairs.items()})})
    return None


def parse(name: str) -> Spec:
    """What a measure's name asks for; ValueError if it asks for nothing known."""
    if (spec := _trec_eval(name)) is not None:
        return spec
    match = re.fullmatch(r"(\w+)(?:\((.*?)\))?(?:@([\d.]+))?(?:\((.*?)\))?", name)
    base = match[1] if match else ""
    if match is None or base.lower() not in BY_NAME:
        raise ValueError(f"unknown measure {name!r}")
    kind = BY_NAME[base.lower()]
    params = _arguments(match[2] or "") | _arguments(match[4] or "")
    rel = params.pop("rel", None)
    if kind == "nDCG" and {params.pop("dcg", None), params.pop("gain", None)} & {"exp", "exp-log2"}:
        kind = "nDCG_exp"
    if "gains" in params:
        params["gains"] = _gains(params["gains"])
    cut = match[3]
    if kind == "IPrec":
        return Spec(kind, None, rel, params | {"recall_level": float(cut or 0)})
    if cut is not None and int(cut) < 1:
        raise ValueError(f"cut-off of {name!r} must be 1 or more")
    return Spec(kind, int(cut) if cut else None, rel, params, base in GEOMETRIC)
