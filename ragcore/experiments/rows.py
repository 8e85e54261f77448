"""The rows of a sweep: each one named deviation from production, or from a named one of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ragcore.errors import InputError
from ragcore.experiments.config import Config, strategies_of
from ragcore.experiments.setups import Setup, changed, changes, shown

PRODUCTION = "production"


@dataclass(frozen=True)
class Row:
    """One row, as it is planned.

    Attributes
    ----------
    experiment, name : what it belongs to; what it is called, once in a sweep.
    setup : what is run.
    anchor : what it is compared with: production, or production with one other strategy.
    before : the setup of that.
    """

    experiment: str
    name: str
    setup: Setup
    anchor: str
    before: Setup

    @property
    def changes(self) -> list[str]:
        """``key: old -> new``, one by intent; none for the anchor itself."""
        return changes(self.before, self.setup)

    @property
    def keys(self) -> list[str]:
        """The keys that differ."""
        return changed(self.before, self.setup)


def rows_of(config: Config, production: Setup) -> list[Row]:
    """All rows but those that a threshold is chosen for, in the order of the experiments.

    Parameters
    ----------
    production : with every setting that an index fills in.

    Notes
    -----
    An experiment over another strategy than production's has production with that strategy as its
    anchor: a deviation that is a row itself. So each row differs from its anchor by one key.
    """
    out: list[Row] = []
    for key, values in (("candidate_k", config.candidate_k), ("context_k", config.context_k)):
        if not values:
            continue
        for strategy in strategies_of(config, key):
            anchor, before = _anchor(production, strategy)
            out += _anchored(config, out, key, anchor, before)
            for value in values:
                name = _named(f"{key}={value}", strategy, production)
                out.append(Row(key, name, replace(before, **{key: value}), anchor, before))
    for strategy in config.ladder:
        setup = replace(production, strategy=strategy)
        out.append(Row("ladder", strategy, setup, PRODUCTION, production))
    for cut in config.cuts:
        for strategy in strategies_of(config, "chunking"):
            anchor, before = _anchor(production, strategy)
            out += _anchored(config, out, "chunking", anchor, before)
            name = _named(f"chunking={cut}", strategy, production)
            out.append(Row("chunking", name, replace(before, chunking=cut), anchor, before))
    for name, settings in config.deviations.items():
        setup = replace(production, **settings)
        out.append(Row("deviation", name, setup, PRODUCTION, production))
    tuned = config.tuning.values if config.tuning else ()
    _check_names(config, [*(chosen_row(config, production, t, "") for t in tuned), *out])
    return out


def _check_names(config: Config, rows: list[Row]) -> None:
    """Refuse a name that stands for two rows: each is looked up, and kept, by its name."""
    met = {PRODUCTION}
    for row in rows:
        if row.name in met or not row.name.strip():
            raise InputError(
                config.where, f"two rows are called {row.name!r}" if row.name.strip()
                else "a row without a name", "each name once, and production for the baseline",
                f"call the {row.experiment} otherwise",
            )  # fmt: skip
        met.add(row.name)


def chosen_row(config: Config, production: Setup, value: float | None, split: str) -> Row:
    """The row of a threshold that was chosen on a split."""
    assert config.tuning is not None
    channel = config.tuning.channel
    setup = production.cut_at(channel, value, split)
    said = "off" if value is None else shown(value)
    return Row("threshold", f"threshold.{channel}={said}", setup, PRODUCTION, production)


def anchor_of(name: str, rows: list[str]) -> str:
    """The row that an anchor is itself, of the names of all rows; "" for production."""
    rung = name.removeprefix(f"{PRODUCTION} with ")
    return next((one for one in (name, rung) if one in rows), "")


def _anchor(production: Setup, strategy: str) -> tuple[str, Setup]:
    if strategy == production.strategy:
        return PRODUCTION, production
    return f"{PRODUCTION} with {strategy}", replace(production, strategy=strategy)


def _anchored(
    config: Config, rows: list[Row], experiment: str, anchor: str, before: Setup
) -> list[Row]:
    """The row that an anchor is itself, unless it is production, or a rung, or there already."""
    there = anchor == PRODUCTION or before.strategy in config.ladder
    if there or any(row.name == anchor for row in rows):
        return []
    production = replace(before, strategy=config.production.strategy)
    return [Row(experiment, anchor, before, PRODUCTION, production)]


def _named(text: str, strategy: str, production: Setup) -> str:
    return text if strategy == production.strategy else f"{strategy} {text}"
