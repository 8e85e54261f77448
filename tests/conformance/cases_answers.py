"""Cases about answers as texts: matching, citation markers and support, references, QASPER."""

from __future__ import annotations

from pathlib import Path

from conformance import shapes
from conformance.registry import handles
from conformance.shapes import Case
from ragcore.answers import markers, matching, qasper, support, track
from ragcore.answers.qasper import Prediction, Reference

# --- matching


@handles("RC-115")
def answers_that_normalise_to_nothing(case: Case, folder: Path) -> None:
    items, expected = case["input"]["items"], case["expected"]
    predictions = [item["pred"] for item in items]
    references = [item["gold"] for item in items]
    assert matching.exact_batch(predictions, references).tolist() == expected["em"]
    contained = matching.contains_batch(predictions, references)
    assert contained.tolist() == expected["contains_gold"]
    for (top, bottom), value in zip(
        matching.best_batch(predictions, references).tolist(), expected["f1"], strict=True
    ):
        assert shapes.near(top / bottom, value)


@handles("RC-116")
def containment_is_of_whole_tokens(case: Case, folder: Path) -> None:
    given, expected = case["input"], case["expected"]
    assert matching.contains(given["passage"], given["gold"])
    # Without the token 'us', 'museum' and 'because' remain.
    assert not matching.contains(given["passage"].replace(" us ", " "), given["gold"])
    assert matching.contains(expected["passage2"], given["gold"]) is expected["contains_answer2"]


@handles("RC-118")
def strict_and_normalised_match_are_both_offered(case: Case, folder: Path) -> None:
    given, expected = case["input"], case["expected"]
    assert matching.exact(given["pred"], [given["gold"]]) == expected["em_strict"]
    assert matching.exact_normalised(given["pred"], [given["gold"]]) == expected["em_normalised"]


# --- support by citations


@handles("RC-124")
def a_redundant_citation_is_not_precise(case: Case, folder: Path) -> None:
    given, expected = case["input"], case["expected"]
    names = given["citations"]
    wanted = expected["citation_precision_per_citation"]
    alone = [int(given["alone"][name]) for name in names]
    without = [int(given["without"][name]) for name in names]
    # A second answer has a sentence without citations, and nothing else.
    rows = ([0, 1, 2], [0, len(names), len(names)], [int(given["joint_entails"]), 0])
    for official in (False, True):
        found = support.alce(*rows, alone, without, official=official)
        assert found.recalls().tolist() == [expected["citation_recall"], 0.0]
        assert dict(zip(names, found.precise.tolist(), strict=True)) == wanted
        assert found.precisions()[0] == sum(wanted.values()) / len(names)
        assert found.precision[1].tolist() == [0, 0]
        assert shapes.near(found.precisions()[1], 0.0) is official


@handles("RC-131")
def one_bad_marker_leaves_the_good_ones(case: Case, folder: Path) -> None:
    given, expected = case["input"], case["expected"]
    (sentence,) = markers.parse(given["sentence"], given["n_passages"])
    assert len(sentence.unresolved) == expected["dangling"]
    supported = {int(name): value for name, value in given["support"].items()}
    alone = [
        supported[n] if n in sentence.valid else support.DANGLING for n in sentence.emitted
    ]  # fmt: skip
    joint = [max(supported[n] for n in sentence.valid)]
    rows = ([0, 1], [0, len(alone)], joint, alone, [-1] * len(alone))
    found = support.alce(*rows)
    assert found.recalls().tolist() == [expected["citation_recall"]]
    assert found.precisions().tolist() == [expected["citation_precision"]]
    assert found.dangling.tolist() == [expected["dangling"]]
    script = support.alce(*rows, official=True)
    seen = case["wrong_answers_seen"]["ALCE"]
    assert script.recalls().tolist() == [seen["recall"]]
    assert script.precision[:, 1].tolist() == [seen["citations_counted"]]


# --- markers and references


@handles("RC-125")
def numbers_in_brackets_need_not_be_citations(case: Case, folder: Path) -> None:
    given, expected = case["input"], case["expected"]["citations"]
    found = markers.citations(given["text"], given["n_passages"])
    assert list(found.valid) == expected["valid"]
    assert list(found.unresolved) == expected["unresolved"]
    by_sentence = markers.parse(given["text"], given["n_passages"])
    assert [n for each in by_sentence for n in each.unresolved] == expected["unresolved"]


@handles("RC-127")
def length_is_in_white_space_tokens(case: Case, folder: Path) -> None:
    expected = case["expected"]
    assert track.length(case["input"]["answer"]) == expected["whitespace_tokens_after_NFKC"]
    assert expected["limit"] == track.LIMIT


@handles("RC-128")
def references_are_merged_with_their_citations(case: Case, folder: Path) -> None:
    given, expected = case["input"], case["expected"]
    found = track.resolve(given["references"], [each["citations"] for each in given["answer"]])
    assert found.cited(0) == expected["resolved"]
    assert list(found.references) == expected["after_dedup_references"]
    assert list(found.citations[0]) == expected["after_dedup_citations"]
    assert found.unresolved == ()


@handles("RC-129")
def grouped_markers_are_read_whole(case: Case, folder: Path) -> None:
    given = case["input"]
    found = markers.parse(given["text"], given["n_passages"])
    assert [list(each.valid) for each in found] == case["expected"]["citations"]
    for form in ("[n]", "[n, m]", "[n][m]", "[n-m]"):
        assert form in markers.GRAMMAR


# --- QASPER


@handles("RC-135")
def figures_and_tables_are_no_text_evidence(case: Case, folder: Path) -> None:
    given, expected = case["input"], case["expected"]
    gold = given["gold_evidence"]
    assert list(qasper.text_only(gold)) == expected["gold_used"]
    only_float = [item for item in gold if item not in expected["gold_used"]]
    references = {
        "both": [Reference("x", "extractive", tuple(gold))],
        "float": [Reference("x", "extractive", tuple(only_float))],
    }
    predictions = {"both": Prediction("x", expected["gold_used"]), "float": Prediction("x", [])}
    found = qasper.score(
        references, predictions, text_evidence_only=given["text_evidence_only"]
    )  # fmt: skip
    assert found.evidence == {"both": 1.0, "float": 1.0}
    assert found.emptied == found.empty_both == ["float"]
    # The hidden ceiling below 1, had the items stayed.
    assert qasper.score(references, predictions).evidence_f1 == qasper.ceiling(references) < 1
    assert expected["ceiling_reported"]
    assert qasper.ceiling(references, text_evidence_only=True) == 1.0
