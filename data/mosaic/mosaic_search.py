"""Query, candidates and reranking: the part of the assistant that finds pages.

Two channels, BM25 and a small thesaurus in place of an embedding, joined by reciprocal ranks.
No model and no random number; every list is ordered by score, then by id.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mosaic_units import Unit
from mosaic_world import CUSTOMER, SNAPSHOTS, TODAY, Case

K1, B, RRF_K = 1.2, 0.75, 60
CANDIDATE_K, DEPTH = 10, 40
PLACES = 12  # keeps the last bit of the platform's logarithm out of the files

Scored = list[tuple[Unit, float]]

_RUN = re.compile(r"[a-z]+[0-9]+|[a-z]+|[0-9]+|[\u4e00-\u9fff]+")
_WORD = re.compile(r"[A-Za-z0-9-]+")
MODEL = re.compile(r"\b[A-Z]+[0-9]+\b", re.ASCII)

STOPS = {
    "en": (
        "a", "and", "at", "does", "for", "how", "i", "in", "is", "it", "its", "many",
        "most", "much", "must", "my", "need", "of", "often", "reach", "should",
        "still", "take", "takes", "that", "the", "to", "what", "which", "while", "why",
    ),
    "zh": (
        "为什么", "的时候", "用什么", "多少", "多久", "一次", "最多", "能加", "要加",
        "里洗", "出现", "是", "时", "在", "还", "要", "和", "能", "的", "吗",
    ),
}  # fmt: skip
NEGATORS = {
    "en": ("no", "not", "without", "never", "none", "cannot"),
    "zh": ("没有", "不", "无", "未", "勿"),
}

# What the thesaurus knows: words of one concept, in both languages. Models are not in it.
CONCEPTS = (
    ("vacuum", "吸尘"), ("sound", "decibels", "声音", "分贝"), ("night", "夜间"), ("dust", "尘盒"),
    ("kettle", "水壶"), ("filter", "滤芯"), ("descale", "除垢"),
    ("dryer", "烘干"), ("stop", "ends", "early", "soon", "停机", "结束", "提前", "过早"),
    ("damp", "wet", "潮", "湿"), ("laundry", "washing", "衣服", "洗涤物"),
    ("washer", "洗衣机"), ("detergent", "洗涤剂"), ("half", "半载"), ("load", "衣量"),
    ("soft", "软水"), ("home", "children", "shop", "家用", "儿童", "门店"),
    ("leaflet", "receipt", "guarantee", "须知", "收据", "保修"),
    ("freezer", "冰柜"), ("power", "停电"), ("food", "食物"), ("frost", "霜"),
    ("hob", "燃气灶"), ("flame", "火焰"), ("burner", "炉头"),
    ("dishwasher", "洗碗机"), ("salt", "专用盐"), ("rinse", "亮碟"),
    ("iron", "熨斗"), ("tank", "水箱"), ("sole", "底板"),
    ("cooktop", "电磁炉"), ("menu", "菜单"), ("code", "代码"), ("glass", "玻璃"),
)  # fmt: skip


@dataclass(frozen=True)
class Found:
    """What search leaves behind, list by list."""

    query: str
    dense: Scored
    bm25: Scored
    fused: Scored
    reranked: Scored
    withheld: bool
    """The page that answers best is one that the asker may not see."""


def rewrite(case: Case, lang: str) -> str:
    """The question without its small words; negations and model names stay.

    Under `generalising-rewrite` they go as well, and the query asks about any appliance.
    """
    question, general = case.question[lang], case.fault == "generalising-rewrite"
    if general:
        question = MODEL.sub(" ", question)
    if lang == "en":
        gone = {*STOPS["en"], *(NEGATORS["en"] if general else ())}
        return " ".join(w for w in _WORD.findall(question) if w.lower() not in gone)
    for word in NEGATORS["zh"]:
        question = question.replace(word, " " if general else f" {word} ")
    for word in STOPS["zh"]:
        question = question.replace(word, " ")
    return " ".join(re.findall(r"[A-Za-z0-9\u4e00-\u9fff]+", question))


def tokens(text: str) -> list[str]:
    """Lower-case names, words and numbers, and bigrams inside each run of CJK."""
    out: list[str] = []
    for run in _RUN.findall(text.lower()):
        if run.isascii() or len(run) == 1:
            out.append(run)
        else:
            out.extend(run[i : i + 2] for i in range(len(run) - 1))
    return out


def indexed(unit: Unit, lang: str) -> str:
    """What of a page is searched: its card and its lines."""
    return f"{unit.card[lang]}\n{unit.text(lang)}"


def concepts(text: str) -> Counter[int]:
    """How often each concept is named: English by word, Chinese by substring."""
    words = Counter(re.findall(r"[a-z]+", text.lower()))
    counts = {
        i: sum(words[w] if w.isascii() else text.count(w) for w in group)
        for i, group in enumerate(CONCEPTS)
    }
    return Counter({i: n for i, n in counts.items() if n})


def _ordered(units: Sequence[Unit], score: Callable[[Unit], float]) -> Scored:
    """Units of a positive score, best first, ties by id."""
    pairs = [(unit, round(score(unit), PLACES)) for unit in units]
    return sorted([p for p in pairs if p[1] > 0], key=lambda p: (-p[1], p[0].id))


def bm25(query: str, snapshot: Sequence[Unit], eligible: Sequence[Unit], lang: str) -> Scored:
    """Distinct query terms against card and lines; statistics of the whole snapshot."""
    bags = {unit: Counter(tokens(indexed(unit, lang))) for unit in dict.fromkeys(snapshot)}
    mean = sum(bag.total() for bag in bags.values()) / len(bags)
    terms = dict.fromkeys(tokens(query))
    df = {term: sum(term in bag for bag in bags.values()) for term in terms}

    def score(unit: Unit) -> float:
        bag = bags[unit]
        norm = K1 * (1 - B + B * bag.total() / mean)
        return math.fsum(
            math.log(1 + (len(bags) - df[t] + 0.5) / (df[t] + 0.5)) * bag[t] * (K1 + 1)
            / (bag[t] + norm)
            for t in terms
        )  # fmt: skip

    return _ordered(eligible, score)


def dense(query: str, eligible: Sequence[Unit], lang: str) -> Scored:
    """Cosine between counts of concepts."""
    asked = concepts(query)

    def score(unit: Unit) -> float:
        has = concepts(indexed(unit, lang))
        dot = sum(n * has[i] for i, n in asked.items())
        sizes = sum(n * n for n in asked.values()) * sum(n * n for n in has.values())
        return dot / math.sqrt(sizes) if dot else 0.0

    return _ordered(eligible, score)


def fuse(*channels: Scored) -> Scored:
    """Reciprocal rank fusion."""
    total: dict[Unit, float] = {}
    for channel in channels:
        for rank, (unit, _) in enumerate(channel, start=1):
            total[unit] = total.get(unit, 0.0) + 1 / (RRF_K + rank)
    return _ordered(list(total), total.__getitem__)


def rerank(query: str, lang: str, candidates: Scored, *, keep_duplicates: bool) -> Scored:
    """By the share of query terms that a page has, itself or by its concept; ties as fused.

    Of pages with one text the first alone stays, unless duplicates are kept.
    """
    terms = list(dict.fromkeys(tokens(query)))
    kept: dict[str, tuple[Unit, float]] = {}
    for unit, _ in candidates:
        text = indexed(unit, lang)
        held, ideas = set(tokens(text)), concepts(text)
        share = sum(t in held or bool(concepts(t).keys() & ideas) for t in terms) / len(terms)
        key = unit.id if keep_duplicates else unit.text(lang)
        kept.setdefault(key, (unit, round(share, PLACES)))
    return sorted(kept.values(), key=lambda pair: -pair[1])


def search(case: Case, lang: str) -> Found:
    """Rewrite, retrieve what the asker may see and what is in force, fuse, cut, rerank."""
    query, snapshot = rewrite(case, lang), SNAPSHOTS[case.snapshot]
    current = [unit for unit in snapshot if unit.holds(TODAY)]
    open_to_all = case.fault == "acl-skipped"
    allowed = [unit for unit in current if open_to_all or unit.seen_by(CUSTOMER)]
    lost = {label.doc for label in case.labels if label.required}
    if case.fault != "vector-lost":
        lost = set()
    by_sense = dense(query, [unit for unit in allowed if unit.doc not in lost], lang)[:DEPTH]
    by_word = bm25(query, snapshot, allowed, lang)[:DEPTH]
    fused = fuse(by_sense, by_word)
    reranked = rerank(
        query, lang, fused[:CANDIDATE_K], keep_duplicates=case.fault == "duplicates-kept"
    )
    best = bm25(query, snapshot, current, lang)[:1]
    withheld = not open_to_all and any(not unit.seen_by(CUSTOMER) for unit, _ in best)
    return Found(query, by_sense, by_word, fused, reranked, withheld)
