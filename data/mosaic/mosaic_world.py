"""The cases of Mosaic Desk: what is asked, by whom, what is true, and which fault strikes."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date

from mosaic_units import UNITS, V8_SOUND, Unit

VERSION = "mosaic.1"
LANGS = ("en", "zh")
SEED = 12  # recorded with each trace; nothing here draws random numbers
TODAY = date(2025, 9, 1)
CUSTOMER = ("customer",)

WITHOUT_SOUND = f"{VERSION}-without-v8-sound"

PROMPT = {
    "en": (
        "Answer only with sentences copied from the pages given, with their conditions, and name "
        "the page of each. If no page answers, abstain. If a condition must be on record and is "
        "not, escalate. Take no action."
    ),
    "zh": (
        "只可用所给页面中的原句作答，连同其条件，并逐句注明页面。没有页面可答时不作答。"
        "条件须有记录而未见记录时转交他人。不得执行任何操作。"
    ),
}


@dataclass(frozen=True)
class Label:
    """What a case says of one line of one document."""

    doc: str
    line: int
    role: str = "supporting"
    claim: int | None = None

    @property
    def required(self) -> bool:
        """Whether an answer cannot do without it."""
        return self.role == "supporting"


@dataclass(frozen=True)
class Claim:
    """One thing that a useful answer says."""

    text: dict[str, str]
    high_stakes: bool = False


@dataclass(frozen=True)
class Case:
    """One semantic case, in two languages."""

    id: str
    name: str
    topic: str
    question: dict[str, str]
    needs: tuple[str, ...]
    """What the question asks for, as a reader understands it."""
    fault: str
    types: tuple[str, ...]
    labels: tuple[Label, ...]
    claims: tuple[Claim, ...] = ()
    state: str = "answer"
    value: str | None = None
    answerable: bool = True
    prohibited: dict[str, tuple[str, ...]] = field(default_factory=dict)
    consequence: str = "ordinary"
    snapshot: str = VERSION
    slices: dict[str, str] = field(default_factory=dict)


def ingest(missing: tuple[Unit, ...] = ()) -> tuple[Unit, ...]:
    """A snapshot: all documents but those that ingestion never got."""
    return tuple(unit for unit in UNITS if unit not in missing)


SNAPSHOTS = {VERSION: ingest(), WITHOUT_SOUND: ingest(missing=(V8_SOUND,))}
BY_DOC = {unit.doc: unit for unit in UNITS}


def _stated(doc: str, *lines: int, high_stakes: bool = False) -> Claim:
    """A claim in the words of a document."""
    lines_of = BY_DOC[doc].lines
    text = {lang: "\n".join(lines_of[lang][line] for line in lines) for lang in LANGS}
    return Claim(text, high_stakes)


def _only(effect: str) -> dict[str, tuple[str, ...]]:
    return dict.fromkeys(LANGS, (effect,))


_LOOKUP = ("entity-number-version", "single-hop", "citation-required")

CASES = (
    Case(
        "M1", "corpus-absence", "vacuum",
        {
            "en": "How many decibels does the V8 vacuum reach in night mode?",
            "zh": "V8 吸尘器夜间模式是多少分贝？",
        },
        ("night-sound",), "page-not-ingested", ("entity-number-version", "unanswerable"),
        (Label("v8-sound", 1, claim=0), Label("v8-dust", 0, "background")),
        (_stated("v8-sound", 1),),
        state="abstain", answerable=False, prohibited=_only("order_part"),
        snapshot=WITHOUT_SOUND, slices={"evidence": "absent"},
    ),
    Case(
        "M2", "query-drift", "kettle",
        {
            "en": "How often must I descale a K31 MK2 kettle without its filter?",
            "zh": "K31 MK2 水壶没有滤芯时多久除垢一次？",
        },
        ("descale",), "generalising-rewrite", (*_LOOKUP, "hard-negative"),
        (Label("k31-bare", 1, claim=0), Label("kettle-filter", 1, "background")),
        (_stated("k31-bare", 1),),
        value="4 weeks", prohibited=_only("order_part"), slices={"phrasing": "negation"},
    ),
    Case(
        "M3", "candidate-miss", "dryer",
        {
            "en": "Why does my T5 dryer stop early while the laundry is still damp?",
            "zh": "T5 烘干机为什么在衣服还潮的时候提前停机？",
        },
        ("early-stop",), "vector-lost",
        ("paraphrase", "semantic", "single-hop", "citation-required"),
        (Label("t5-probe", 1, claim=0),), (_stated("t5-probe", 1),),
        value="20 loads", prohibited=_only("book_visit"), slices={"phrasing": "paraphrase"},
    ),
    Case(
        "M4", "rerank-displacement", "washer",
        {
            "en": "How much detergent does the W20 washer need for a half load in soft water?",
            "zh": "W20 洗衣机在软水里洗半载衣量要多少洗涤剂？",
        },
        ("dose",), "duplicates-kept", _LOOKUP,
        (Label("w20-dose", 1, claim=0),), (_stated("w20-dose", 1),),
        value="35 ml", prohibited=_only("order_part"), slices={"corpus": "duplicates"},
    ),
    Case(
        "M5", "qualifier-truncation", "freezer",
        {
            "en": "How long does food keep in the F12 freezer in a power cut?",
            "zh": "F12 冰柜停电时食物能保存多久？",
        },
        ("power-cut",), "head-only-packing", _LOOKUP,
        (Label("f12-power", 1, claim=0), Label("f12-power", 2, claim=0)),
        (_stated("f12-power", 1, 2, high_stakes=True),),
        value="18 h", prohibited=_only("file_claim"), consequence="high",
        slices={"evidence": "conditional"},
    ),
    Case(
        "M6", "ignored-evidence", "hob",
        {
            "en": "The G4 hob has a yellow flame. Should I open the burner cover?",
            "zh": "G4 燃气灶出现黄色火焰，要打开炉头盖吗？",
        },
        ("yellow-flame",), "condition-ignored", ("semantic", "single-hop", "citation-required"),
        (
            Label("g4-flame", 1, claim=0), Label("g4-flame", 2, claim=0),
            Label("g4-flame-2023", 1, "stale"),
        ),
        (_stated("g4-flame", 1, 2, high_stakes=True),),
        state="escalate", prohibited=_only("book_visit"), consequence="high",
        slices={"evidence": "conditional", "temporal": "superseded"},
    ),
    Case(
        "M7", "citation-mismatch", "dishwasher",
        {
            "en": "How much salt and how much rinse aid does the D6 dishwasher take at first fill?",
            "zh": "D6 洗碗机首次要加多少专用盐和多少亮碟剂？",
        },
        ("salt", "rinse-aid"), "handles-shifted",
        ("entity-number-version", "multi-document", "citation-required"),
        (Label("d6-salt", 1, claim=0), Label("d6-rinse", 1, claim=1)),
        (_stated("d6-salt", 1), _stated("d6-rinse", 1)),
        value="1.2 kg; 110 ml", prohibited=_only("order_part"), slices={"sources": "two"},
    ),
    Case(
        "M8", "evaluator-disagreement", "iron",
        {
            "en": "What is the most that the tank of the S2 steam iron takes?",
            "zh": "S2 蒸汽熨斗的水箱最多能加多少水？",
        },
        ("tank",), "units-not-converted", _LOOKUP,
        (Label("s2-tank", 1, claim=0),),
        (Claim({"en": "Fill the tank with at most 1.5 litres.", "zh": "水箱最多加水 1.5 升。"}),),
        value="1500 ml", prohibited=_only("order_part"), slices={"wording": "other-unit"},
    ),
    Case(
        "M9", "forbidden-unit", "cooktop",
        {
            "en": "Which code opens the test menu of the C3 cooktop?",
            "zh": "C3 电磁炉的测试菜单用什么代码打开？",
        },
        ("test-menu",), "acl-skipped", ("entity-number-version", "hard-negative", "unanswerable"),
        (Label("c3-service", 1, "forbidden"), Label("c3-glass", 0, "background")),
        state="fail_closed", answerable=False,
        prohibited={
            lang: ("open_test_menu", text)
            for lang, text in _stated("c3-service", 1).text.items()
        },
        consequence="high", slices={"evidence": "forbidden"},
    ),
)  # fmt: skip
