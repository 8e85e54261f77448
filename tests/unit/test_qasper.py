"""QASPER's official scores, against the rules told in fractions, on the real labels."""

from __future__ import annotations

import math
import re
import string
from collections import defaultdict
from fractions import Fraction

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcore.answers import qasper
from ragcore.answers.qasper import Prediction, Reference

# --- the rules, told plainly


def plain_tokens(text):
    text = "".join(c for c in text.lower() if c not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", text).split()


def plain_f1(common, predicted, expected):
    if not common:
        return Fraction(0)
    precision, recall = Fraction(common, predicted), Fraction(common, expected)
    return 2 * precision * recall / (precision + recall)


def plain_answer(prediction, answer):
    left, right = plain_tokens(prediction), plain_tokens(answer)
    rest, common = list(right), 0
    for token in left:  # cross out, one by one
        if token in rest:
            rest.remove(token)
            common += 1
    return plain_f1(common, len(left), len(right))


def plain_evidence(prediction, gold):
    if len(prediction) == len(gold) == 0:
        return Fraction(1)
    common = sum(1 for each in set(gold) if each in prediction)
    return plain_f1(common, len(prediction), len(gold))


@pytest.fixture(scope="module")
def labels(shared_data):
    """Question -> its annotators' labels, as the files say."""
    folder = shared_data / "qasper"
    evidence = defaultdict(list)
    for row in pq.read_table(folder / "evidence.parquet").to_pylist():
        if row["kind"] == "evidence":
            evidence[row["query_id"], row["annotation_id"]].append(row["quote"])
    found = defaultdict(list)
    for row in pq.read_table(folder / "answers.parquet").to_pylist():
        kind, text = row["type"], row["text"]
        label = qasper.reference(
            spans=row["spans"] or [],
            # Annotators were merged in a part of the set, where spans came as one text.
            free_form=text if kind in ("free_form", "extractive") else "",
            yes_no=row["yes_no"] if kind == "yes_no" else None,
            unanswerable=kind == "unanswerable",
            evidence=evidence[row["query_id"], row["annotation_id"]],
        )
        found[row["query_id"]].append(label)
    return dict(found)


def predictions_of(labels):
    """Every third question missing, every fourth without evidence; else of the next question."""
    names = list(labels)
    out = {}
    for i, name in enumerate(names):
        own = labels[name][0]
        other = labels[names[(i + 1) % len(names)]][-1]
        if i % 3 == 2:
            continue
        evidence = [] if i % 4 == 0 else [*own.evidence[:1], *other.evidence, *own.evidence[:1]]
        out[name] = Prediction(f"{own.answer} {other.answer}" if i % 2 else other.answer, evidence)
    return out


@pytest.mark.parametrize("text_evidence_only", [False, True])
def test_score__of_the_real_labels_equals_the_plain_rules(labels, text_evidence_only):
    predictions = predictions_of(labels)
    scores = qasper.score(labels, predictions, text_evidence_only=text_evidence_only)
    assert len(labels) == 184
    assert sum(map(len, labels.values())) == 204
    answers, paragraphs, missing = [], [], []
    for name, references in labels.items():
        found = predictions.get(name)
        if found is None:
            missing.append(name)
            answers.append(Fraction(0))
            paragraphs.append(Fraction(0))
            continue
        gold = [
            [x for x in each.evidence if not (text_evidence_only and "FLOAT SELECTED" in x)]
            for each in references
        ]
        answers.append(max(plain_answer(found.answer, each.answer) for each in references))
        paragraphs.append(max(plain_evidence(found.evidence, each) for each in gold))
        assert scores.answer[name] == float(answers[-1])
        assert scores.evidence[name] == float(paragraphs[-1])
        assert (name in scores.empty_both) == (not found.evidence and any(not g for g in gold))
    assert scores.missing == missing
    assert len(missing) == 61
    assert scores.answer_f1 == pytest.approx(float(sum(answers) / 184), rel=1e-15)
    assert scores.evidence_f1 == pytest.approx(float(sum(paragraphs) / 184), rel=1e-15)
    assert 0 < scores.answer_f1 < 1
    only_floats = [
        name for name, references in labels.items()
        if any({x[:14] for x in each.evidence} == {"FLOAT SELECTED"} for each in references)
    ]  # fmt: skip
    assert len(only_floats) == 7
    assert scores.emptied == (only_floats if text_evidence_only else [])
    by_kind = scores.by_kind()
    counted = sum(by_kind[k] * list(scores.kinds.values()).count(k) for k in by_kind)
    assert counted == pytest.approx(math.fsum(scores.answer.values()))


@pytest.mark.parametrize("text_evidence_only", [False, True])
def test_ceiling__is_reached_by_the_labels_text(labels, text_evidence_only):
    """Each annotator's text as the prediction, the best of them a question."""
    best = defaultdict(float)
    for i in range(max(map(len, labels.values()))):
        predictions = {
            name: Prediction("", tuple(dict.fromkeys(qasper.text_only(each[i].evidence))))
            for name, each in labels.items() if i < len(each)
        }  # fmt: skip
        found = qasper.score(labels, predictions, text_evidence_only=text_evidence_only)
        for name, value in found.evidence.items():
            best[name] = max(best[name], value)
    ceiling = qasper.ceiling(labels, text_evidence_only=text_evidence_only)
    assert ceiling == pytest.approx(math.fsum(best.values()) / len(best))
    assert (ceiling > 0.98) if text_evidence_only else (ceiling < 0.98)


def test_score__of_perfect_predictions_is_1(labels):
    predictions = {
        name: Prediction(each[0].answer, each[0].evidence) for name, each in labels.items()
    }
    scores = qasper.score(labels, predictions)
    assert scores.answer_f1 == 1.0
    assert all(v == 1.0 for n, v in scores.evidence.items() if len(set(labels[n][0].evidence))
               == len(labels[n][0].evidence))  # fmt: skip


# --- single rules


def test_reference__takes_spans_then_free_form_then_yes_or_no():
    assert qasper.reference(spans=["a b", "c"], free_form="x") == ("a b, c", "extractive", ())
    assert qasper.reference(free_form="x", yes_no=True) == ("x", "abstractive", ())
    assert qasper.reference(yes_no=False) == ("No", "boolean", ())
    assert qasper.reference(unanswerable=True, evidence=["p"]) == ("Unanswerable", "none", ())
    assert qasper.reference() is None


def test_answer_f1__of_answers_without_tokens_is_0():
    assert qasper.answer_f1("the", "a") == (0, 1)
    assert qasper.answer_f1("", "") == (0, 1)
    assert qasper.answer_f1("The cat", "a cat!") == (2, 2)


def test_evidence_f1__of_empty_and_repeated_paragraphs():
    assert qasper.evidence_f1([], []) == (1, 1)
    assert qasper.evidence_f1(["p"], []).value == 0.0
    assert qasper.evidence_f1([], ["p"]).value == 0.0
    assert qasper.evidence_f1(["p", "p"], ["p"]).value == pytest.approx(2 / 3)


def test_score__counts_what_is_missing_and_empty():
    gold = {
        "q1": [Reference("x", "abstractive", ("FLOAT SELECTED: Table 1", ))],
        "q2": [Reference("Unanswerable", "none", ())],
        "q3": [Reference("y", "extractive", ("p",))],
    }  # fmt: skip
    found = {"q1": Prediction("x", ()), "q2": Prediction("x", ()), "other": Prediction("x", ())}
    scores = qasper.score(gold, found, text_evidence_only=True)
    assert scores.answer == {"q1": 1.0, "q2": 0.0, "q3": 0.0}
    assert scores.evidence == {"q1": 1.0, "q2": 1.0, "q3": 0.0}
    assert scores.missing == ["q3"]
    assert scores.emptied == ["q1"]
    assert scores.empty_both == scores.empty_gold == ["q1", "q2"]
    plain = qasper.score(gold, found)
    assert plain.evidence["q1"] == 0.0
    assert plain.empty_both == ["q2"]
    assert qasper.ceiling(gold) == pytest.approx(2 / 3)
    assert qasper.ceiling(gold, text_evidence_only=True) == 1.0
    assert math.isnan(qasper.score({}, {}).answer_f1)
    assert math.isnan(scores.by_kind()["boolean"])
    with pytest.raises(ValueError, match="'q' has no reference"):
        qasper.score({"q": []}, {})


lists = st.lists(st.sampled_from("pqrs"), max_size=5)


@given(lists, lists)
def test_evidence_f1__equals_precision_and_recall(prediction, gold):
    assert Fraction(*qasper.evidence_f1(prediction, gold)) == plain_evidence(prediction, gold)
