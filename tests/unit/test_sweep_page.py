"""docs/experiments.md: its file runs, and it names every key."""

from __future__ import annotations

import re
from pathlib import Path

import ragcore
import sweep_world
from ragcore.experiments import config, setups
from ragcore.experiments.config import EXPERIMENTS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "experiments.md").read_text("utf-8")


def test_page__its_file_runs(tmp_path):
    sweep_world.suite(tmp_path / "my_suite")
    (block,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "sweep.toml").write_text(block)
    found = ragcore.sweep(tmp_path / "sweep.toml")
    assert list(dict.fromkeys(row["experiment"] for row in found.rows)) == list(EXPERIMENTS)
    states = {row["name"]: row["state"] for row in found.rows}
    assert states["hybrid-exact+reranker"] == "not evaluated"
    assert states["bm25 chunking=sliding"] == states["sharper-fusion"] == "evaluated"
    assert all(row["single_change"] for row in found.rows if row["state"] == "evaluated")


def test_page__names_every_key():
    keys = [*config._KEYS, *config._SWEEP, *config._INDEX, *config.CRITERIA, *EXPERIMENTS]  # pyright: ignore[reportPrivateUsage]
    keys += [*setups._READERS, "merge", "max_tokens", "overlap", "channel", "values", "choose"]  # pyright: ignore[reportPrivateUsage]
    missing = [key for key in keys if not re.search(rf"\b{re.escape(key)}\b", PAGE)]
    assert missing == []
