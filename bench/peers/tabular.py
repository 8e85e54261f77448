"""The 13 measures as expressions of polars and of duckdb, as quick as we could write them.

Both find the ranks of the judged documents, then share the arithmetic on these few rows. There
are two ways to a rank. Sorting every ranking costs the same for any judgements; counting the rows
above each hit needs no sort, and wins while a query has few judged documents. Each tool takes
what is quicker for it; ``polars-sort`` is the textbook way, one sort of the whole run.
"""

from __future__ import annotations

from typing import Any

from base import MEASURES, Files, Tool

FEW_JUDGED = 8  # judged documents a query, up to which counting beats sorting


class Polars(Tool):
    """A lazy query; the argument "sort" asks for one sort of the whole run."""

    package = "polars"
    imports = ("polars",)
    reads = ("arrow", "parquet", "dict")
    note = "all threads"

    def job(self, files: Files) -> Any:
        pl = self.modules[0]

        def scan(path: str) -> Any:
            return pl.scan_parquet(path) if path.endswith(".parquet") else pl.scan_ipc(path)

        qrels = scan(files["qrels"]).collect()
        judged = len(qrels) / max(1, qrels["query_id"].n_unique())
        run = scan(files["run"])
        if self.argument == "sort":
            hits = self._sorted(pl, run, qrels.lazy())
        elif judged <= FEW_JUDGED:
            hits = self._counted(pl, run, qrels.lazy())
        else:
            hits = self._grouped(pl, run, qrels.lazy())
        values = self._measures(pl, hits, qrels.lazy())
        return values.select(MEASURES).mean().row(0), values

    @staticmethod
    def _sorted(pl: Any, run: Any, qrels: Any) -> Any:
        order = run.sort("query_id", "score", "doc_id", descending=[False, True, True])
        ranked = order.with_columns(rank=pl.int_range(1, pl.len() + 1).over("query_id"))
        return ranked.join(qrels, on=["query_id", "doc_id"])

    @staticmethod
    def _grouped(pl: Any, run: Any, qrels: Any) -> Any:
        ids = pl.col("doc_id").sort_by("score", "doc_id", descending=[True, True])
        ranked = run.group_by("query_id").agg(ids, rank=pl.int_range(1, pl.len() + 1))
        return ranked.explode("doc_id", "rank").join(qrels, on=["query_id", "doc_id"])

    @staticmethod
    def _counted(pl: Any, run: Any, qrels: Any) -> Any:
        hits = run.join(qrels, on=["query_id", "doc_id"]).collect().lazy()
        mine = hits.select("query_id", mine="doc_id", own="score")
        higher = pl.col("score") > pl.col("own")
        tied = (pl.col("score") == pl.col("own")) & (pl.col("doc_id") > pl.col("mine"))
        above = (
            run.join(mine, on="query_id")
            .filter(higher | tied)
            .group_by("query_id", "mine")
            .agg(above=pl.len())
        )
        joined = hits.join(
            above, left_on=["query_id", "doc_id"], right_on=["query_id", "mine"], how="left"
        )
        return joined.with_columns(rank=pl.col("above").fill_null(0) + 1)

    @staticmethod
    def _measures(pl: Any, hits: Any, qrels: Any) -> Any:
        rank, grade = pl.col("rank").cast(pl.Int64), pl.col("relevance")
        gain = grade / (rank + 1).log(2)
        found = pl.col("doc_id").len()  # relevant documents retrieved

        def within(k: int) -> Any:
            return (rank <= k).sum()

        ideal = (
            qrels.filter(grade > 0)
            .sort("relevance", descending=True)
            .with_columns(rank=pl.int_range(1, pl.len() + 1).over("query_id"))
            .group_by("query_id")
            .agg(ideal=gain.sum(), ideal10=gain.filter(rank <= 10).sum(), relevant=pl.len())
        )
        sums = (
            hits.filter(grade > 0)
            .group_by("query_id")
            .agg(
                gain.sum().alias("nDCG"),
                gain.filter(rank <= 10).sum().alias("nDCG@10"),
                (pl.int_range(1, found + 1) / rank.sort()).sum().alias("AP"),
                rank.min().alias("first"),
                *(within(k).alias(f"n{k}") for k in (1, 5, 10, 100, 1000)),
            )
        )
        count = pl.col("relevant")
        columns = {
            "nDCG@10": pl.col("nDCG@10") / pl.col("ideal10"),
            "nDCG": pl.col("nDCG") / pl.col("ideal"),
            "AP": pl.col("AP") / count,
            "RR@10": pl.when(pl.col("first") <= 10).then(1 / pl.col("first")),
            **{f"R@{k}": pl.col(f"n{k}") / count for k in (5, 10, 100, 1000)},
            **{f"P@{k}": pl.col(f"n{k}") / k for k in (5, 10)},
            **{f"Success@{k}": (pl.col(f"n{k}") > 0).cast(pl.Float64) for k in (1, 5, 10)},
        }
        return (
            qrels.select(pl.col("query_id").unique())
            .join(ideal, on="query_id", how="left")
            .join(sums, on="query_id", how="left")
            .select("query_id", *(expr.fill_null(0.0).alias(n) for n, expr in columns.items()))
            .collect()
        )


SORTED = """
    select r.query_id, r.rank, q.relevance from (
        select query_id, doc_id, row_number() over (
            partition by query_id order by score desc, doc_id desc) as rank
        from run) r
    join qrels q using (query_id, doc_id)"""

COUNTED = """
    with found as (
        select query_id, doc_id, score, relevance from run join qrels using (query_id, doc_id)),
    higher as (
        select f.query_id, f.doc_id, count(*) as above from found f join run r
        on r.query_id = f.query_id
            and (r.score > f.score or (r.score = f.score and r.doc_id > f.doc_id))
        group by all)
    select query_id, coalesce(above, 0) + 1 as rank, relevance
    from found left join higher using (query_id, doc_id)"""

VALUES = """
with hits as ({hits}),
ideal as (
    select query_id, sum(gain) as ideal, sum(gain) filter (rank <= 10) as ideal10,
        count(*) as relevant
    from (select query_id, rank, relevance / log2(rank + 1) as gain
          from (select query_id, relevance, row_number() over (
                    partition by query_id order by relevance desc) as rank
                from qrels where relevance > 0))
    group by query_id),
sums as (
    select query_id, sum(relevance / log2(rank + 1)) as dcg,
        sum(relevance / log2(rank + 1)) filter (rank <= 10) as dcg10,
        sum(place / rank) as precisions, min(rank) as first,
        count(*) filter (rank <= 1) as n1, count(*) filter (rank <= 5) as n5,
        count(*) filter (rank <= 10) as n10, count(*) filter (rank <= 100) as n100,
        count(*) filter (rank <= 1000) as n1000
    from (select *, row_number() over (partition by query_id order by rank) as place
          from hits where relevance > 0)
    group by query_id)
select query_id, {columns}
from (select distinct query_id from qrels)
left join ideal using (query_id) left join sums using (query_id)"""

COLUMNS = {
    "nDCG@10": "dcg10 / ideal10", "nDCG": "dcg / ideal", "AP": "precisions / relevant",
    "RR@10": "case when first <= 10 then 1 / first end",
    **{f"R@{k}": f"n{k} / relevant" for k in (5, 10, 100, 1000)},
    **{f"P@{k}": f"n{k} / {k}" for k in (5, 10)},
    **{f"Success@{k}": f"(n{k} > 0)::double" for k in (1, 5, 10)},
}  # fmt: skip


class Duckdb(Tool):
    """One SQL statement over Parquet files."""

    package = "duckdb"
    imports = ("duckdb", "pyarrow")
    reads = ("parquet",)
    note = "all threads"

    def job(self, files: Files) -> Any:
        with self.modules[0].connect() as base:
            for name, path in files.items():
                base.sql(f"create view {name} as select * from read_parquet('{path}')")
            sql = "select count(*) / count(distinct query_id) from qrels"
            (judged,) = base.sql(sql).fetchall()[0]
            hits = COUNTED if judged <= FEW_JUDGED else SORTED
            columns = ", ".join(f'coalesce({COLUMNS[m]}, 0) as "{m}"' for m in MEASURES)
            sql = VALUES.format(hits=hits, columns=columns)
            per_query = base.sql(sql).to_arrow_table()  # which the next statement reads
            means = ", ".join(f'avg("{m}")' for m in MEASURES)
            return base.sql(f"select {means} from per_query").fetchall()[0], per_query
