"""Why BM25 scores chunks for a question as it does, term by term."""

from __future__ import annotations

from ragcore.errors import UsageError
from ragcore.index.opened import Index
from ragcore.questions import Questions
from ragcore.report.table import aligned, plain
from ragcore.search import lexical_of
from ragcore.search_settings import BM25, STRATEGIES, Settings


def explain_case(index: Index, questions: Questions, settings: Settings, case: str) -> str:
    """The best `context_k` chunks of BM25 for a case, each with the arithmetic of its score.

    Raises
    ------
    UsageError
        If there is no such case, or the strategy does not use BM25.
    """
    if BM25 not in STRATEGIES[settings.strategy]:
        raise UsageError(f"{settings.strategy} does not use BM25", "--strategy bm25")
    rows = [row for row, name in enumerate(questions.case_ids) if name == case]
    if not rows:
        raise UsageError(f"no case {case!r} in {questions.where}", "see its column case_id")
    lexical = lexical_of(index, questions, settings)
    out: list[str] = []
    for row in rows:
        first, last = lexical.offsets[row : row + 2].tolist()
        codes, weights = lexical.codes[first:last], lexical.weights[first:last]
        terms = list(dict.fromkeys(lexical.tokens[row]))
        lang = f" [{questions.langs[row]}]" if questions.langs[row] else ""
        asked = questions.texts[row] if questions.texts else ""
        out.append(f"{case}{lang}: {plain(asked)}")
        said = ", ".join(f"{k} {v}" for k, v in lexical.settings.items())
        out.append(f"bm25: {said}; {index.manifest['lexical']['analyzer']}")
        missing = [t for t, code in zip(terms, codes.tolist(), strict=True) if code < 0]
        if missing:
            out.append(f"in no chunk: {', '.join(plain(t) for t in missing)}")
        docs, scores, counts = lexical.search(row, row + 1, settings.context_k, None, 1)
        if not counts[0]:
            out.append("no chunk has any of its terms")
        for rank in range(int(counts[0])):
            doc = int(docs[0, rank])
            found = lexical.scorer.explain(codes, doc, weights)
            assert found.score == float(scores[0, rank])
            name = plain(index.ids[doc].as_py())
            out += ["", f"{rank + 1}. {name}  {found.score:.7g}"]
            body = [
                [
                    plain(term), str(part.tf), f"{part.df}", f"{part.idf:.6f}",
                    f"{part.length} / {part.avgdl:.4g}", f"{part.weight:g}",
                    f"{part.contribution:.6f}",
                ]
                for term, part in zip(terms, found.parts, strict=True) if part.tf
            ]  # fmt: skip
            head = ["term", "tf", "chunks", "idf", "length / average", "weight", "adds"]
            out += [f"   {line.rstrip()}" for line in aligned(head, body)]
    return "\n".join(out)
