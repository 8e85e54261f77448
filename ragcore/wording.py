"""How many of a question's words its evidence has: what word matching is given for nothing.

A question that is written from the sentence that answers it shares the sentence's words, and any
search finds it: a suite of such questions tells no two systems apart. Words that any text has say
nothing, so they do not count.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from ragcore.analysis import Analyzer
from ragcore.text import words

_FUNCTION_WORDS = """
a about above after again against all already also although always am among an and another any
anybody anyone anything anyway are around as at away back be became because become been before
behind being below between both but by can cannot come could d did do does doing done down
during each either else enough even ever every everyone everything few for from further gave get
gets getting give given gives giving go goes going gone got had happen happened happens has have
having he help her here hers herself hi him himself his how however i if in instead into is isn
it its itself just keep know known knows lately least less let like ll long look m made make
makes making many may maybe me might mine more most much must my myself need needed needs
neither never no nobody none nor not nothing now of off often on once one ones only onto or
other others our ours ourselves out over own per perhaps please put puts quite rather re really
s said same say says see seem seems shall she should since so some somebody someone something
sometimes soon still such t take taken takes taking tell than that the their theirs them
themselves then there these they thing things this those though through till to together told
too took toward towards under unless until up upon us use used uses using ve very want wanted
wants was way we well went were what whatever when whenever where whether which while who
whoever whole whom whose why will with within without would yes yet you your yours yourself
"""
_ENGLISH = frozenset(_FUNCTION_WORDS.split())
_HAN = frozenset(
    "的了吗呢吧啊呀嘛是有在和与或及跟同对于把被让给从到向往为以因所由其该此这那哪谁什么怎样如何多少几个"
    "们我你他她它您咱自己不没无未别非就都也还又再才只很更最太挺可能会要想得着过地之而但且若则即并等们些每各"
    "某上下中里内外前后间时候问请需须应吗来去做用使看说叫当将曾已经正刚先后起出入开始以后之前一二两三第"
)


def content_words(text: str, lang: str | None = None) -> frozenset[str]:
    """The words of a text that say something, each once.

    Words are those of `ragcore.text`, so that runs of unspaced scripts give pairs of characters; a
    pair with a character that mostly has a grammatical office does not count, nor do English
    function words. Words of other scripts are English stems.

    Parameters
    ----------
    lang : accepted for the sake of callers who know it; the text itself decides.
    """
    found = words(text)
    spoken = [w for w in found if w.isascii() and w not in _ENGLISH]
    pairs = {w for w in found if not w.isascii() and not _HAN.intersection(w)}
    return frozenset(_stems(tuple(spoken))) | pairs


def shared_words(question: str, evidence: Iterable[str]) -> frozenset[str]:
    """Content words of a question that some text of its evidence has."""
    have: set[str] = set()
    for text in evidence:
        have |= content_words(text)
    return content_words(question) & have


def overlap(question: str, evidence: Iterable[str]) -> tuple[int, int]:
    """How many of a question's content words its evidence has, and of how many."""
    return len(shared_words(question, evidence)), len(content_words(question))


def _stems(spoken: tuple[str, ...]) -> list[str]:
    return _analyzer().tokens(" ".join(spoken)) if spoken else []


@cache
def _analyzer() -> Analyzer:
    return Analyzer(segmenter="none", stem="english")
