"""Analyzers by name: words, then stop words and stems of tantivy's; one spec for both sides.

An analyzer is a few settings. Its spec names them all and goes into the manifest of an index, so
that a question is analysed as the passages were. Stemming and stop words are those of tantivy
(Snowball stemmers, Lucene's short English list); stop words go first. Note that the English list
holds `no` and `not`.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib import metadata

from ragcore import text as texts
from ragcore.errors import UsageError

VERSION = 1
SEGMENTERS = ("bigram", "jieba", "none")
MAX_TOKEN_BYTES = 65_530  # the longest term of tantivy; longer ones it drops silently

# Languages that tantivy can stem.
LANGUAGES = {
    "ar": "arabic", "da": "danish", "nl": "dutch", "en": "english", "fi": "finnish",
    "fr": "french", "de": "german", "el": "greek", "hu": "hungarian", "it": "italian",
    "no": "norwegian", "pt": "portuguese", "ro": "romanian", "ru": "russian", "es": "spanish",
    "sv": "swedish", "ta": "tamil", "tr": "turkish",
}  # fmt: skip
# Those of them that it has no stop words for.
_UNSTOPPED = ("arabic", "greek", "romanian", "tamil", "turkish")
_UNSPACED = ("zh", "ja", "ko", "th", "lo", "km", "my")


@dataclass(frozen=True)
class Analyzer:
    """Settings that turn text into tokens.

    Parameters
    ----------
    segmenter : how runs of unspaced scripts are cut: "bigram"; "jieba" (Chinese words, by the
        package rjieba; other unspaced scripts as bigrams); "none" (left whole).
    stem, stop : language of the stemmer and of the stop words, or None for neither.
    version : of the rules in `ragcore.text`; another number gives other tokens.
    """

    segmenter: str = "bigram"
    stem: str | None = None
    stop: str | None = None
    version: int = VERSION

    def __post_init__(self) -> None:
        if self.version != VERSION:
            raise UsageError(
                f"text was analysed by rules of version {self.version}; this ragcore knows "
                f"{VERSION}", "build the index again",
            )  # fmt: skip
        if self.segmenter not in SEGMENTERS:
            raise UsageError(f"no segmenter {self.segmenter!r}", f"one of {', '.join(SEGMENTERS)}")
        for what, name, known in (
            ("stemmer", self.stem, _stemmed()), ("list of stop words", self.stop, _stopped())
        ):  # fmt: skip
            if name is not None and name not in known:
                raise UsageError(f"no {what} for {name!r}", f"one of {', '.join(known)}")

    def spec(self) -> str:
        """The settings as one canonical string; `Analyzer.parse` reads it."""
        parts = [f"words:{self.version}", "nfkc", "casefold", self.segmenter]
        parts += [f"stop:{self.stop}"] if self.stop else []
        parts += [f"stem:{self.stem}"] if self.stem else []
        return "+".join(parts)

    @classmethod
    def parse(cls, spec: str) -> Analyzer:
        """The analyzer of a spec.

        Raises
        ------
        UsageError
            If the spec is not one that `spec` writes.
        """
        found: dict[str, str] = {}
        plain: list[str] = []
        for part in spec.split("+"):
            key, colon, value = part.partition(":")
            if colon:
                found[key] = value
            else:
                plain.append(part)
        version = found.get("words", "")
        if plain[:2] == ["nfkc", "casefold"] and len(plain) == 3 and version.isdecimal():
            made = cls(plain[2], found.get("stem"), found.get("stop"), int(version))
            if made.spec() == spec:
                return made
        raise UsageError(f"{spec!r} is no spec of an analyzer", f"such as {Analyzer().spec()!r}")

    def tokens(self, text: str) -> list[str]:
        """The tokens of one text, in order, repeated ones as often as they occur."""
        return self.batch([text])[0].split()

    def batch(
        self, passages: Iterable[str | None], counts: Counter[str] | None = None
    ) -> list[str]:
        """The tokens of each text, joined by single spaces; "" for None and for no tokens.

        This is what a white-space tokeniser indexes. A token longer than `MAX_TOKEN_BYTES` in
        UTF-8 is cut there, in passages and in questions alike.

        Parameters
        ----------
        counts : gains, if given, "texts", "empty" (no token left) and "cut" (tokens cut).
        """
        unspaced, segment = self.segmenter != "none", _segmenter(self.segmenter)
        native, words, join = _native(self.stem, self.stop), texts.words, " ".join
        tally: Counter[str] = Counter()
        out: list[str] = []
        for passage in passages:
            found = words(passage, segment, unspaced=unspaced) if passage else []
            if native is not None:
                found = native(join(found))
            line = join(found)
            if len(line) > MAX_TOKEN_BYTES // 4:
                line = join(_cut(line.split(" "), tally))
            out.append(line)
        if counts is not None:
            counts.update(tally, texts=len(out), empty=out.count(""))
        return out

    def environment(self) -> dict[str, str]:
        """Versions that the tokens rest on, for the manifest: Unicode, tantivy, rjieba."""
        out = {"unicode": unicodedata.unidata_version}
        if self.stem or self.stop:
            out["tantivy"] = metadata.version("tantivy")
        if self.segmenter == "jieba":
            out["rjieba"] = metadata.version("rjieba")
        return out


def analyzer_for(
    lang: str, *, stem: str | None = None, stop: str | None = None, segmenter: str = "bigram"
) -> Analyzer:
    """The analyzer of a name.

    Parameters
    ----------
    lang : "default" (no stems, no stop words; English and Chinese mixed); "zh" and other unspaced
        languages (the same); the code of a language that has a stemmer, such as "en" (its stems
        and stop words).
    stem, stop : another language for either, or "none" for none.
    segmenter : as in `Analyzer`.

    Raises
    ------
    UsageError
        If there is no such analyzer, stemmer or list of stop words.
    """
    if lang not in LANGUAGES and lang not in ("default", *_UNSPACED):
        known = ", ".join(("default", *_UNSPACED, *LANGUAGES))
        raise UsageError(f"no analyzer {lang!r}", f'one of {known}; "default" fits any language')
    own = LANGUAGES.get(lang)
    stem, stop = stem or own, stop or (None if own in _UNSTOPPED else own)
    return Analyzer(segmenter, _chosen(stem), _chosen(stop))


def _chosen(name: str | None) -> str | None:
    """The language that a name or a code stands for; None for none."""
    return None if name in (None, "none") else LANGUAGES.get(name, name)


def _stemmed() -> list[str]:
    return list(LANGUAGES.values())


def _stopped() -> list[str]:
    return [name for name in LANGUAGES.values() if name not in _UNSTOPPED]


def _cut(tokens: list[str], tally: Counter[str]) -> list[str]:
    """`tokens`, those beyond the longest term cut."""
    for i, token in enumerate(tokens):
        if len(token) * 4 > MAX_TOKEN_BYTES and len(raw := token.encode()) > MAX_TOKEN_BYTES:
            tokens[i] = raw[:MAX_TOKEN_BYTES].decode(errors="ignore")
            tally["cut"] += 1
    return tokens


@cache
def _native(stem: str | None, stop: str | None) -> Callable[[str], list[str]] | None:
    """Stop words and stems of a text whose words are parted by spaces; None for neither."""
    if stem is None and stop is None:
        return None
    from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

    builder = TextAnalyzerBuilder(Tokenizer.whitespace())
    if stop is not None:
        builder = builder.filter(Filter.stopword(stop))
    if stem is not None:
        builder = builder.filter(Filter.stemmer(stem))
    return builder.build().analyze


@cache
def _segmenter(name: str) -> texts.Segment | None:
    """What cuts a run of Han characters, or None for bigrams."""
    if name != "jieba":
        return None
    try:
        from rjieba import Jieba
    except ImportError:
        raise UsageError(
            "the segmenter jieba needs the package rjieba", "pip install rjieba"
        ) from None
    return Jieba().cut_for_search
