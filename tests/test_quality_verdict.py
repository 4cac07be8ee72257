"""The verdict names the best native objective and all of ours, and corrects for their number."""

import numpy as np
import pytest
from scipy import stats

from benchmarks import pooled, verdict


@pytest.fixture
def values():
    rng = np.random.default_rng(0)
    base = rng.random(200)
    found = {("one", "", "constant", "map"): base - 0.5}
    for data, n in (("one", 200), (pooled.POOLED, 300)):
        base = rng.random(n)
        for label, shift in (("lambdarank", 0.0), ("rank_xendcg", -0.05), ("a", 0.02), ("b", 0.03), ("c", -0.04)):
            found[data, "lightgbm", label, "map"] = base + shift + 0.1 * rng.standard_normal(n)
        found[data, "xgboost", "rank:ndcg", "map"] = base
    return found


def test_all_of_ours_stand_against_the_best_native_with_holms_correction(values):
    table = verdict.verdict(values)
    assert table["objective"].tolist() == ["a", "b", "c"]  # neither natives nor libraries without ours
    assert set(table["data"]) == {pooled.POOLED}
    assert set(table["native"]) == {"lambdarank"}
    assert table["best"].tolist() == [False, True, False]
    base = values[pooled.POOLED, "lightgbm", "lambdarank", "map"]
    raw = {}
    for _, row in table.iterrows():
        own = values[pooled.POOLED, "lightgbm", row["objective"], "map"]
        assert row["difference"] == pytest.approx(own.mean() - base.mean())
        assert row["se"] == pytest.approx(stats.sem(own - base))
        raw[row["objective"]] = stats.ttest_rel(own, base).pvalue
    smallest, middle, largest = sorted(raw, key=raw.get)
    p = table.set_index("objective")["p"]
    assert p[smallest] == pytest.approx(3 * raw[smallest])
    assert p[middle] == pytest.approx(max(3 * raw[smallest], 2 * raw[middle]))
    assert p[largest] == pytest.approx(max(2 * raw[middle], raw[largest]))


def test_the_text_has_the_best_first_and_then_all(values):
    table = verdict.verdict(values)
    text = verdict.markdown(table, 0.05)
    best, every = text.split("**All of ours")
    row = table.set_index("objective").loc["b"]
    mean, native = (f"{row[name]:.4f}"[1:] for name in ("mean", "native_mean"))
    assert f"| lightgbm | map | lambdarank | {native} | b | {mean} | +{row['difference']:.4f}"[:-6] in best
    assert best.count("\n| lightgbm") == 1
    [line] = verdict.sentences(table, 0.05)
    assert line.startswith(f"lightgbm, map: b {mean}, lambdarank {native}, difference +.")
    assert every.count("\n| lightgbm") == 3
    assert "The choice among 3 of ours" in text
    worse = table.set_index("objective").loc["c"]
    assert worse["p"] < 0.05
    assert f"| lightgbm | c | -{-worse['difference']:.4f}".replace("-0.", "-.") in every
    assert "▼" in every


def test_without_natives_or_without_ours_there_is_no_verdict(values):
    ours = {k: v for k, v in values.items() if k[2] in "abc"}
    assert verdict.markdown(verdict.verdict(ours), 0.05) == ""
    natives = {k: v for k, v in values.items() if k[2] not in "abc"}
    assert verdict.verdict(natives).empty
    assert verdict.sentences(verdict.verdict(natives), 0.05) == []
    assert verdict.verdict({}).empty
