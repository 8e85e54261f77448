"""The world of KA-4: its documents, search cards, questions and what each case must give.

Everything here was written for this suite. Numbers that other files rely on (which unit
wins a query, how long a payload is) follow from these texts: change a word and
`tests/golden/test_ka4.py` says which promise broke.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date

VERSION = "ka4.1"
LANGS = ("en", "zh")
REPEATS = 3
SEED = 46  # recorded with each trace; nothing here draws random numbers
AUTHORITY = "finance-desk"


@dataclass(frozen=True)
class Unit:
    """One document, which is also one retrievable unit; lines are what may be quoted."""

    id: str
    version: str
    topic: str
    family: str
    valid_from: date
    valid_until: date | None
    card: dict[str, str]
    lines: dict[str, tuple[str, ...]]
    support: int
    """The first `support` lines back an answer: what is said, where and when it holds."""
    decides: int
    """The line, from 0, that holds the answer itself."""

    def text(self, lang: str) -> str:
        """The whole document."""
        return "\n".join(self.lines[lang])

    def span(self, lang: str, first: int, stop: int) -> tuple[int, int]:
        """Code points, end exclusive, of lines `first` to `stop` (exclusive)."""
        start = sum(len(line) + 1 for line in self.lines[lang][:first])
        return start, start + len("\n".join(self.lines[lang][first:stop]))

    def applies(self, topic: str, as_of: date) -> bool:
        """Whether the document speaks of the topic on that day (validity is half-open)."""
        begun = self.valid_from <= as_of
        ended = self.valid_until is not None and self.valid_until <= as_of
        return self.topic == topic and begun and not ended


_ROOMS = {
    "en": "Staff trips to Beijing: what the firm pays for rooms, per night.",
    "zh": "员工赴北京出差：公司承担的每晚房费。",
}

TRAVEL_V1 = Unit(
    id="travel-v1",
    version="v1",
    topic="travel",
    family="travel-rules",
    valid_from=date(2024, 1, 1),
    valid_until=date(2025, 1, 1),
    card={"en": "Beijing lodging limit 600 superseded", "zh": "北京 住宿 上限 600 废止"},
    lines={
        "en": (
            _ROOMS["en"],
            "Applies from January to December 2024 only.",
            "At most 600 yuan.",
        ),
        "zh": (_ROOMS["zh"], "仅适用于二〇二四年全年。", "不超过 600 元。"),
    },
    support=3,
    decides=2,
)

TRAVEL_V2 = Unit(
    id="travel-v2",
    version="v2",
    topic="travel",
    family="travel-rules",
    valid_from=date(2025, 1, 1),
    valid_until=None,
    card={"en": "lodging Beijing lodging limit 750", "zh": "住宿 北京 住宿 上限 750"},
    lines={
        "en": (
            _ROOMS["en"],
            "Applies from January 2025 until it is replaced.",
            "At most 750 yuan.",
        ),
        "zh": (_ROOMS["zh"], "自二〇二五年一月起适用，直至被替换。", "不超过 750 元。"),
    },
    support=3,
    decides=2,
)

PARKING_V1 = Unit(
    id="parking-v1",
    version="v1",
    topic="parking",
    family="parking-notes",
    valid_from=date(2025, 1, 1),
    valid_until=None,
    card={"en": "Beijing airport parking", "zh": "北京 机场 停车"},
    lines={
        "en": (
            "Parking at Beijing airport: take a ticket at the gate.",
            "Hand the ticket to the front desk; rooms are not treated here.",
        ),
        "zh": ("北京机场停车：请在入口取票。", "停车票交前台；此处不谈房费。"),
    },
    support=2,
    decides=0,
)

CANCEL_V1 = Unit(
    id="cancel-v1",
    version="v1",
    topic="cancellation",
    family="booking-rules",
    valid_from=date(2025, 1, 1),
    valid_until=None,
    card={"en": "cancel booking approval manager", "zh": "取消 预订 审批 主管"},
    lines={
        "en": (
            "A booking may be cancelled once a manager has approved it.",
            "This page approves nothing and cancels nothing.",
        ),
        "zh": ("经主管审批后方可取消预订。", "本页不批准也不取消任何预订。"),
    },
    support=2,
    decides=0,
)

# Equal authority, topic and first day, another amount: neither document outranks the other.
TRAVEL_V2B = replace(
    TRAVEL_V2,
    id="travel-v2b",
    version="v2b",
    lines={
        lang: tuple(line.replace("750", "800") for line in lines)
        for lang, lines in TRAVEL_V2.lines.items()
    },
)

UNITS = (TRAVEL_V1, TRAVEL_V2, TRAVEL_V2B, PARKING_V1, CANCEL_V1)

NOTE = "Administrative filing note. "
NOTE_TIMES = 20

# The trailing space of the last repetition stays: the payload sizes count it.
TRAVEL_V2_NOTED = replace(
    TRAVEL_V2,
    lines={lang: (*lines, NOTE * NOTE_TIMES) for lang, lines in TRAVEL_V2.lines.items()},
)

BASE = f"{VERSION}-base"
WITHOUT_V2 = f"{VERSION}-without-travel-v2"
WITH_V2B = f"{VERSION}-with-travel-v2b"
WITH_NOTE = f"{VERSION}-with-note"  # ablations only; not in `chunks.arrow`

SNAPSHOTS: dict[str, tuple[Unit, ...]] = {
    BASE: (TRAVEL_V1, TRAVEL_V2, PARKING_V1, CANCEL_V1),
    WITHOUT_V2: (TRAVEL_V1, PARKING_V1, CANCEL_V1),
    WITH_V2B: UNITS,
    WITH_NOTE: (TRAVEL_V1, TRAVEL_V2_NOTED, PARKING_V1, CANCEL_V1),
}

# The English wording is as long as it is so that the payload of `current` has 591 code points.
PROMPT = {
    "en": (
        "Answer only with sentences copied from the documents given, and name the document of "
        "each. A document counts only if it is about the topic asked for and its dates cover the "
        "day asked for. If none counts, if two that count disagree, or if one was cut short, do "
        "not answer. Take no action of any kind."
    ),
    "zh": (
        "只可用所给文件中的原句作答，并逐句注明出处。只有事项相符、日期在有效期内的文件才算数。"
        "没有可用文件、可用文件互相矛盾或文件被截断时，不要作答。不得执行任何操作。"
    ),
}

PLAIN = {"en": "What may I spend on Beijing lodging?", "zh": "北京住宿能报多少？"}
STALE = {"en": "Is 600 still the Beijing lodging limit?", "zh": "北京住宿还是600元吗？"}
HISTORICAL = {
    "en": "Which Beijing lodging limit was 600?",
    "zh": "北京住宿上限为600元的是哪份规定？",
}
SYNONYM = {"en": "How much is the hotel allowance?", "zh": "酒店补助是多少？"}
PASSPORT = {"en": "How do I renew a passport?", "zh": "护照怎么换发？"}
CANCELLATION = {"en": "What is needed to cancel a booking?", "zh": "取消预订需要什么？"}

REWRITE = {"en": ("hotel allowance", "lodging"), "zh": ("酒店补助", "住宿")}

NOW = date(2025, 7, 1)
THEN = date(2024, 7, 1)


@dataclass(frozen=True)
class Case:
    """One semantic case: what is asked, of which world, and what must come out."""

    id: str
    question: dict[str, str]
    types: tuple[str, ...]
    state: str
    value: str | None = None
    roles: dict[str, str] = field(default_factory=dict)
    """Unit id to role; the required units are those whose role is not `stale`."""
    topic: str = "travel"
    as_of: date = NOW
    snapshot: str = BASE
    fault: str | None = None
    answerable: bool = True
    """Whether the snapshot settles the question, however much of it the system can hold."""
    prohibited: tuple[str, ...] = ()
    slices: dict[str, str] = field(default_factory=dict)

    def required(self) -> tuple[str, ...]:
        """Ids of the units an answer, or the sight of a conflict, cannot do without."""
        return tuple(unit for unit, role in self.roles.items() if role != "stale")


_CURRENT = {"travel-v2": "supporting", "travel-v1": "stale"}
_LOOKUP = ("exact-keyword", "single-hop")

CASES = (
    Case("current", PLAIN, (*_LOOKUP, "citation-required"), "answer", "750", _CURRENT),
    Case(
        "stale-premise",
        STALE,
        ("entity-number-version", "hard-negative", "single-hop", "citation-required"),
        "answer",
        "750",
        _CURRENT,
        slices={"phrasing": "exact-identifier"},
    ),
    Case(
        "historical",
        HISTORICAL,
        ("entity-number-version", "source-scoped", "single-hop", "citation-required"),
        "answer",
        "600",
        {"travel-v1": "supporting"},
        as_of=THEN,
        slices={"temporal": "historical", "phrasing": "exact-identifier"},
    ),
    Case(
        "synonym",
        SYNONYM,
        ("paraphrase", "semantic", "single-hop", "citation-required"),
        "answer",
        "750",
        _CURRENT,
        slices={"phrasing": "paraphrase"},
    ),
    Case("passport", PASSPORT, ("unanswerable",), "abstain", topic="passport", answerable=False),
    Case(
        "expired-only",
        PLAIN,
        ("unanswerable", "hard-negative"),
        "abstain",
        roles={"travel-v1": "stale"},
        snapshot=WITHOUT_V2,
        answerable=False,
        slices={"temporal": "stale-only"},
    ),
    Case(
        "conflict",
        PLAIN,
        ("exact-keyword", "multi-document", "unanswerable"),
        "abstain",
        roles={"travel-v2": "supporting", "travel-v2b": "conflicting", "travel-v1": "stale"},
        snapshot=WITH_V2B,
        answerable=False,
        slices={"sources": "conflict"},
    ),
    Case("low-budget", PLAIN, _LOOKUP, "abstain", roles=_CURRENT, fault="low-budget"),
    Case(
        "drop-context",
        PLAIN,
        (*_LOOKUP, "citation-required"),
        "answer",
        "750",
        _CURRENT,
        fault="drop-context",
    ),
    Case(
        "wrong-amount",
        PLAIN,
        (*_LOOKUP, "citation-required"),
        "answer",
        "750",
        _CURRENT,
        fault="amount-600",
    ),
    Case(
        "wrong-citation",
        PLAIN,
        (*_LOOKUP, "citation-required"),
        "answer",
        "750",
        _CURRENT,
        fault="citation-v1",
    ),
    Case(
        "cancellation",
        CANCELLATION,
        (*_LOOKUP, "source-scoped", "citation-required"),
        "answer",
        roles={"cancel-v1": "supporting"},
        topic="cancellation",
        prohibited=("cancel_booking",),
    ),
)
