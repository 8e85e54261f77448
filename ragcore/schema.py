"""Every Arrow schema, column name and enumeration that passes between the parts.

A nullable column means *missing* by null: never 0, never "". Files may carry other
Arrow types for the same columns (`formats.arrow` widens them); what the engine writes
has exactly these.
"""

from __future__ import annotations

import pyarrow as pa

MANIFEST_KEY = b"ragcore.manifest"
PROVENANCE_KEY = b"ragcore.provenance"

STATES = ("ok", "na", "missing", "disputed", "failed")
OK, NA, MISSING, DISPUTED, FAILED = range(5)

ROLES = ("supporting", "conflicting", "stale", "forbidden", "background")
CASE_STATUSES = ("final", "disputed", "stale", "unreviewed")
EXPECTED_STATES = ("answer", "partial", "abstain", "escalate", "fail_closed")
SPLITS = ("development", "validation", "test", "regression", "smoke")
CONDITIONS = (
    "end_to_end",
    "closed_book",
    "gold_context",
    "retrieved",
    "retrieved_distractors",
    "oracle_context",
    "frozen_context",
    "frozen_output",
)
CONTEXT_STATES = ("ready", "budget_refused", "no_evidence", "conflict")
RELATIONS = (
    "correct",
    "entailed",
    "covered",
    "chunk_entails",
    "chunk_entails_reference",
    "cites",
    "relevance",
    "sentence_used",
    "sentence_relevant",
    "conflict_shown",
    "influence",
)
VERDICTS = ("yes", "partial", "no", "contradicts", "unclear", "error")
RUNGS = ("rule", "reference", "model", "human", "domain", "authority")

DICT = pa.dictionary(pa.int32(), pa.string())


def _must(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


EVIDENCE = pa.struct(
    [
        _must("doc_id", pa.string()),
        ("chunk_id", pa.string()),
        ("doc_version", pa.string()),
        ("page", pa.int32()),
        ("block", pa.int32()),
        ("start", pa.int32()),
        ("end", pa.int32()),
        ("quote", pa.string()),
        ("role", DICT),
        ("relevance", pa.int8()),
        ("required", pa.bool_()),
        ("claim", pa.int16()),
        ("in_snapshot", pa.bool_()),
    ]
)

CHUNKS = pa.schema(
    [
        _must("chunk_id", pa.string()),
        ("doc_id", pa.string()),
        ("doc_version", pa.string()),
        ("page", pa.int32()),
        ("block_first", pa.int32()),
        ("block_last", pa.int32()),
        ("start", pa.int32()),
        ("end", pa.int32()),
        ("title", pa.large_string()),
        ("text", pa.large_string()),
        ("n_tokens", pa.int32()),
        ("sha256", pa.binary()),
        ("valid_from", pa.date32()),
        ("valid_until", pa.date32()),
        ("topic", DICT),
        ("authority", DICT),
        ("source_family", DICT),
        ("lang", DICT),
        ("form", DICT),
        ("acl", pa.list_(DICT)),
        ("shard", DICT),
        ("deleted", pa.bool_()),
    ]
)
"""One row = one retrievable chunk. `vector`: see `vector_field`, as its length varies."""


def vector_field(dim: int) -> pa.Field:
    """The optional `vector` column of `CHUNKS`: float32, `dim` long."""
    return pa.field("vector", pa.list_(pa.float32(), dim))


CASES = pa.schema(
    [
        _must("case_id", pa.string()),
        ("lang", DICT),
        ("split", DICT),
        ("question", pa.large_string()),
        ("as_of", pa.date32()),
        ("topic", DICT),
        ("conversation", pa.string()),
        ("turn", pa.int16()),
        ("principals", pa.list_(DICT)),
        ("type", pa.list_(DICT)),
        ("slices", pa.map_(pa.string(), pa.string())),
        ("answerable", pa.bool_()),
        ("expected_state", DICT),
        ("expected_value", pa.string()),
        ("references", pa.list_(pa.large_string())),
        (
            "claims",
            pa.list_(
                pa.struct(
                    [
                        ("text", pa.string()),
                        ("required", pa.bool_()),
                        ("vital", pa.bool_()),
                        ("high_stakes", pa.bool_()),
                    ]
                )
            ),
        ),
        ("evidence", pa.list_(EVIDENCE)),
        ("prohibited", pa.list_(pa.string())),
        ("consequence", DICT),
        ("judge_required", DICT),
        ("status", DICT),
        ("origin", DICT),
        ("label_version", pa.string()),
        ("snapshot", pa.string()),
    ]
)
"""One row = one case in one language; (case_id, lang) is unique."""

RANKED_ITEM = pa.struct([_must("id", pa.string()), ("score", pa.float64())])
STAGE_ITEM = pa.struct([("id", pa.string()), ("score", pa.float64()), ("shard", pa.string())])

RUNS = pa.schema(
    [
        _must("case_id", pa.string()),
        ("lang", DICT),
        ("repeat", pa.int16()),
        ("seed", pa.int64()),
        ("condition", DICT),
        ("trace", pa.string()),
        ("pair", pa.string()),
        ("fault", DICT),
        ("query", pa.large_string()),
        ("ranked", pa.list_(RANKED_ITEM)),
        ("stages", pa.map_(pa.string(), pa.list_(STAGE_ITEM))),
        (
            "context",
            pa.list_(
                pa.struct(
                    [
                        _must("id", pa.string()),
                        ("start", pa.int32()),
                        ("end", pa.int32()),
                        ("n_tokens", pa.int32()),
                    ]
                )
            ),
        ),
        ("context_state", DICT),
        ("input_size", pa.int32()),
        ("window", pa.int32()),
        ("reserve", pa.int32()),
        (
            "proposed",
            pa.struct(
                [
                    ("state", pa.string()),
                    ("value", pa.string()),
                    ("text", pa.string()),
                    ("confidence", pa.float64()),
                ]
            ),
        ),
        (
            "final",
            pa.struct([("state", pa.string()), ("value", pa.string()), ("text", pa.string())]),
        ),
        (
            "claims",
            pa.list_(
                pa.struct(
                    [("text", pa.string()), ("sentence", pa.int16()), ("factual", pa.bool_())]
                )
            ),
        ),
        (
            "citations",
            pa.list_(
                pa.struct(
                    [
                        ("claim", pa.int16()),
                        ("id", pa.string()),
                        ("doc_id", pa.string()),
                        ("doc_version", pa.string()),
                        ("start", pa.int32()),
                        ("end", pa.int32()),
                        ("quote", pa.string()),
                    ]
                )
            ),
        ),
        ("effects", pa.list_(DICT)),
        (
            "timings",
            pa.list_(
                pa.struct(
                    [
                        _must("stage", pa.string()),
                        ("start_us", pa.int64()),
                        _must("duration_us", pa.int64()),
                        ("queue_us", pa.int64()),
                        ("attempt", pa.int8()),
                        ("cache", pa.string()),
                        ("status", pa.string()),
                    ]
                )
            ),
        ),
        (
            "cost",
            pa.struct(
                [
                    (part, pa.float64())
                    for part in (
                        "embed",
                        "search",
                        "rerank",
                        "prompt",
                        "decode",
                        "tools",
                        "verify",
                        "network",
                    )
                ]
            ),
        ),
        ("tokens_in", pa.int32()),
        ("tokens_out", pa.int32()),
        ("steps", pa.int32()),
        ("retries", pa.int32()),
        (
            "energy",
            pa.struct(
                [
                    ("cpu_j", pa.float64()),
                    ("gpu_j", pa.float64()),
                    ("other_j", pa.float64()),
                    ("measured", pa.bool_()),
                ]
            ),
        ),
        ("missing_shards", pa.list_(DICT)),
        ("index_generation", pa.string()),
        ("fallback", DICT),
        ("error", pa.string()),
    ]
)
"""The case batch: one row = one trace (case x language x repeat of one configuration)."""

JUDGMENTS = pa.schema(
    [
        ("run", pa.string()),
        _must("case_id", pa.string()),
        ("lang", DICT),
        ("repeat", pa.int16()),
        _must("relation", DICT),
        ("claim", pa.int16()),
        ("evidence", pa.list_(pa.string())),
        _must("verdict", DICT),
        ("score", pa.float64()),
        _must("judge", DICT),
        _must("rung", DICT),
        ("judge_version", pa.string()),
        ("prompt_sha256", pa.string()),
        ("rubric", pa.string()),
        ("rationale", pa.string()),
        ("adjudicated", pa.bool_()),
    ]
)
"""One row = one verdict by one judge; append-only."""

SCORES = pa.schema(
    [
        ("run", pa.string()),
        ("case_id", pa.string()),
        ("lang", pa.string()),
        ("repeat", pa.int16()),
        ("measure", pa.string()),
        ("value", pa.float64()),
        ("numerator", pa.float64()),
        ("denominator", pa.float64()),
        ("state", DICT),
        ("reason", DICT),
        ("rung", DICT),
    ]
)
"""Output, one row = run x case x language x repeat x measure."""

SUMMARY = pa.schema(
    [
        ("run", pa.string()),
        ("baseline", pa.string()),
        ("measure", pa.string()),
        ("slice", pa.string()),
        ("n_cases", pa.int64()),
        ("n_ok", pa.int64()),
        ("n_na", pa.int64()),
        ("n_missing", pa.int64()),
        ("n_disputed", pa.int64()),
        ("n_failed", pa.int64()),
        ("numerator", pa.float64()),
        ("denominator", pa.float64()),
        ("mean", pa.float64()),
        ("ci_low", pa.float64()),
        ("ci_high", pa.float64()),
        ("ci_method", pa.string()),
        ("delta", pa.float64()),
        ("delta_low", pa.float64()),
        ("delta_high", pa.float64()),
        ("p_value", pa.float64()),
        ("n_matched", pa.int64()),
        ("saturation", pa.string()),
        ("verdict", pa.string()),
        ("note", pa.string()),
    ]
)
"""Output, one row = run x measure x slice; slice `all` is the whole."""

PAIRS = pa.schema(
    [
        *SCORES,
        ("baseline", pa.string()),
        ("baseline_value", pa.float64()),
        ("baseline_state", DICT),
        ("delta", pa.float64()),
        ("outcome", DICT),
    ]
)
"""Output of a comparison, one row = candidate x baseline x case x measure: the columns of `SCORES`
for the candidate's case, languages and repeats averaged, and what the baseline had."""
POWER = pa.schema(
    [
        ("test", pa.string()),
        ("n", pa.int64()),
        ("discordance", pa.float64()),
        ("difference", pa.float64()),
        ("power", pa.float64()),
        ("level", pa.float64()),
        ("target", pa.float64()),
        ("reason", pa.string()),
    ]
)
"""Output of `ragcore power`, one row a test."""
OUTCOMES = ("win", "loss", "tie", "unpaired")

# The flat form of a run and of judgements: names that data frames and other tools use.
CASE_NAMES = ("case_id", "query_id", "qid", "q_id", "topic_id", "query-id", "topic")
ID_NAMES = ("id", "doc_id", "docno", "chunk_id", "corpus-id", "docid")
SCORE_NAMES = ("score",)
GRADE_NAMES = ("relevance", "rel", "label", "grade", "score")
RANK_NAMES = ("rank",)
SYSTEM_NAMES = ("system", "run", "tag")
