"""Words that negate, English and Chinese, and the ones that only look like it.

Counted: not, n't, cannot, no, never, without, none, nor, neither, nobody, nothing, nowhere, non-,
forbid, prohibit; 不, 没, 没有, 未, 无, 非, 勿, 禁止 and their compounds (不得, 不能, 从未, 严禁),
each compound once. Left out: fixed words in which the character does not negate (不过, 不仅,
非常, 无论, 未来, 是非, 淹没), questions of the form 是不是 and 有没有, 不得不, and in English not
only, no matter, no doubt, whether or not, yes or no, and No. before a number. Which negator stands
there does not matter, so all have the value `not`.
"""

from __future__ import annotations

import re

from ragcore.answers.prepared import Fact

VALUE = "not"
"""Value of every negator."""

_NOT_ENGLISH = (
    r"not (?:only|just|merely|simply|solely|least|to mention)\b|no (?:matter|doubt|wonder)\b"
    r"|(?:whether|or) not\b|yes (?:or|and) no\b|yes/no\b|nos?\.\s*(?=[\d\x00])"
    r"|(?:nothing|none) (?:but|other than)\b"
)
_ENGLISH = (
    r"cannot|not|no|never|without|none|nor|neither|nobody|nothing|nowhere|no-one|[a-z]+n't"
    r"|forbid(?:s|den|ding)?|forbade|prohibit(?:s|ed|ing)?"
)
_EN = re.compile(
    rf"(?<![\w'-])(?:{_NOT_ENGLISH}|(?P<word>{_ENGLISH})(?![\w-])|(?P<prefix>non)(?=-[a-z]))",
    re.IGNORECASE,
)

_FIXED = """
    不过 不仅 不但 不光 不只 不单 不论 不管 不断 不少 不久 不错 不妨 不愧 不禁 不如 不然 不幸 不由得
    不得不 不得了 不得已 不胜 不惜 不日 不时 不料 不约而同 不可思议 不锈钢 不动产 不丹 不列颠 不等式
    不已 不休 不远 不免 不外乎 不亚于 不啻 不亦乐乎 不知不觉 不知所措 不屈不挠 不由 不同(?!意)
    不含糊 对不起 差不多 了不起 动不动 来不及 要不然 要不是 莫不 无不 免不了 少不了 巴不得 恨不得
    忍不住 无论 无线 无锡 无人机 无人驾驶 无人车 无限 无疑 无比 无数 无穷 无聊 无辜 无奈 无花果 无非
    无机 无产阶级 无形 无量 无独有偶 无微不至 无所谓 南无 虚无 无烟煤 无缝 无国界
    非常 非洲 非凡 非法 非得 非要 非但 非典 非遗 非物质文化遗产 非裔 是非 除非 南非 北非 东非 西非
    中非 亚非 莫非 若非 想入非非 韩非
    未来 未免 未央 未时 乙未 丁未 己未 辛未 癸未
    解决 淹没 沉没 出没 没收 没落 埋没 吞没 覆没 没药 没食子 隐没 湮没 泯没 神出鬼没
"""
_NEGATORS = """
    不得 不能 不可 不准 不许 不会 不应 不该 不必 不再 不曾 不是 不要 不用 不宜 不足 不予 不含 不包括
    不 没有 没 从未 尚未 未曾 未必 未能 未经 未 从不 决不 绝不 毫不 并不 并未 并非 绝非 决非 而非 非
    无法 无需 无须 无权 毫无 并无 尚无 无 切勿 请勿 勿 严禁 禁止 不准许 千万别 请别 切莫
"""


def _longest(words: str) -> str:
    return "|".join(sorted(words.split(), key=len, reverse=True))


_ZH = re.compile(
    rf"(?P<skip>{_longest(_FIXED)}|(?P<v>[\u4e00-\u9fff])[不没](?P=v)|有没有"
    r"|(?<=[了过])(?:没有?)(?=[?？。\s]|$))"
    rf"|(?P<word>{_longest(_NEGATORS)})"
)


def negators(text: str) -> list[Fact]:
    """The negators of a prepared text, in order."""
    out = []
    for pattern in (_EN,) if text.isascii() else (_EN, _ZH):
        for match in pattern.finditer(text):
            if match.lastgroup in ("word", "prefix"):
                out.append(Fact("negator", VALUE, "", match[0], match.start()))
    return sorted(out, key=lambda fact: fact.start)
