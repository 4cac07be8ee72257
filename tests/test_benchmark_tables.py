"""Tables of studies: choices on validation, pooling, leads, and those that are published."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmarks import lead, publish, summary

SETS = "MQ2008", "OHSUMED", "generated-calibrated 5,5,100"


def record(label, values, *, fold="Fold1", seed=0, rate=0.1, vali=0.5, data="set"):
    return {"fold": [data, fold, seed], "library": "lightgbm", "label": label, "seconds": 1.0, "trees": {"map": 3},
            "vali": {"map": vali}, "budget": {"learning_rate": rate},
            "test": {"map": values}}  # fmt: skip


def test_the_budget_is_chosen_on_vali_in_each_fold_and_seeds_on_the_same_rows_are_averaged():
    frame = summary.chosen([
        record("a", [0.1], rate=0.1, vali=0.5), record("a", [0.2], rate=0.3, vali=0.6),
        record("a", [0.3], rate=0.1, vali=0.7, fold="Fold2"), record("a", [0.4], rate=0.3, vali=0.6, fold="Fold2"),
    ])  # fmt: skip
    assert frame["learning_rate"].tolist() == [0.3, 0.1]
    assert summary.by_query(frame)["set", "lightgbm", "a", "map"].tolist() == [0.2, 0.3]
    frame = summary.chosen([record("a", [0.1, 0.2]), record("a", [0.3, 0.6], seed=1)])
    np.testing.assert_allclose(summary.by_query(frame)["set", "lightgbm", "a", "map"], [0.2, 0.4])
    frame = summary.chosen([record("a", [0.1, 0.2], data="generated"), record("a", [0.3], seed=1, data="generated")])
    np.testing.assert_allclose(summary.by_query(frame)["generated", "lightgbm", "a", "map"], [0.1, 0.2, 0.3])


def test_incomplete_sets_are_left_out_and_pooling_takes_objectives_of_all_sets():
    values = summary.by_query(summary.chosen([
        record("a", [0.1]), record("a", [0.2], fold="Fold2"), record("b", [0.3]),
        record("a", [0.5], data="other"), record("b", [0.6], data="other"),
    ]))  # fmt: skip
    assert ("set", "lightgbm", "b", "map") not in values
    assert values[summary.POOLED, "lightgbm", "a", "map"].tolist() == [0.1, 0.2, 0.5]
    assert (summary.POOLED, "lightgbm", "b", "map") not in values


def named_values(metrics=("map", "auc")):
    rng, found = np.random.default_rng(0), {}
    shifts = {"lambdarank": 0.0, "rank_xendcg": 0.1, lead.ON_VALI: 0.05, "yetiloss:ndcg": 0.15,
              "yetiloss:{metric}": 0.2, "queryrmse": -0.1}  # fmt: skip
    for data, n in zip(SETS, (50, 30, 100), strict=True):
        base = rng.random(n)
        for label, shift in shifts.items():
            for metric in metrics:
                found[data, "lightgbm", label, metric] = base + shift + 0.05 * rng.standard_normal(n)
        found[data, "xgboost", "rank:ndcg", "map"] = base
    return found


def pooled(values, *labels, sets=SETS):
    return [np.concatenate([values[data, "lightgbm", label, "map"] for data in sets]) for label in labels]


def test_objectives_by_our_names_are_compared_with_the_native_ones_on_each_kind_of_data():
    values = named_values()
    with_threshold = {"yetiloss:{metric}": "yetiloss:ndcg+yetiloss:{metric}"}
    mixed = {key if key[0] == "MQ2008" else (*key[:2], with_threshold.get(key[2], key[2]), "map(threshold=2)"): v
             for key, v in values.items() if key[0] in SETS[:2] and key[3] == "map"}  # fmt: skip
    assert lead.lead(mixed)["queries"].tolist() == [80]  # metrics that differ in the threshold are pooled
    names = [f"map(threshold={threshold})" for threshold in (1, 2)]
    several = {(*key[:2], with_threshold.get(key[2], key[2]), name): v for name in names
               for key, v in values.items() if key[0] == SETS[0] and key[3] == "map"}  # fmt: skip
    assert lead.lead(several)["metric"].tolist() == names  # unless one data set has several
    table = lead.lead(values).set_index(["data", "metric"])
    row = table.loc["real data", "map"]
    ours, chosen = pooled(values, "yetiloss:ndcg", lead.ON_VALI, sets=SETS[:2])
    assert row[["ours", "queries"]].tolist() == ["yetiloss:ndcg", 80]
    assert (row["difference"], row["se"]) == pytest.approx(((ours - chosen).mean(), stats.sem(ours - chosen)))
    first, second = (ours - chosen)[:50], (ours - chosen)[50:]
    assert row["by_set"] == pytest.approx((first.mean() + second.mean()) / 2)
    assert row["by_set_se"] == pytest.approx(np.hypot(stats.sem(first), stats.sem(second)) / 2)
    assert table.loc[(summary.POOLED, "map"), "queries"] == 180
    assert table.loc[("generated data", "auc"), "ours"] == "yetiloss:auc"
    real = {key: v for key, v in values.items() if key[0] in SETS[:2]}
    read = lead.lead(real, dict(zip(SETS, ("search", "medicine"), strict=False)))
    p = [stats.ttest_1samp(sets_gap, 0).pvalue for sets_gap in gaps(real)]
    assert read["p"][read["data"] == summary.POOLED].tolist() == pytest.approx([2 * min(p), max(*p, 2 * min(p))])


def gaps(values):
    for metric, ours in (("map", "yetiloss:ndcg"), ("auc", "yetiloss:{metric}")):
        found = [[values[data, "lightgbm", label, metric] for data in SETS[:2]] for label in (ours, lead.ON_VALI)]
        yield np.concatenate(found[0]) - np.concatenate(found[1])


def test_seeds_have_a_standard_error_of_their_own():
    lines = []
    for fold, seed in itertools.product((0, 1), repeat=2):
        ours = np.array(([0.5, 0.7], [0.6 - 0.1 * fold] * 2)[seed])
        native = np.array(([0.4, 0.4], [0.1, 0.1])[seed])
        lines += [("set", fold, seed, "lightgbm", label, "map", 0.5, values)
                  for label, values in (("yetiloss:ndcg", ours), ("lambdarank", native))]  # fmt: skip
    frame = pd.DataFrame(lines, columns=["data", "fold", "seed", "library", "label", "metric", "vali", "values"])
    [row] = lead.over_seeds(frame).to_dict("records")
    by_seed = np.array([[0.2, 0.5], [0.2, 0.4]])  # mean gaps, by fold
    assert row["over_seeds"] == pytest.approx(np.sqrt((by_seed.var(axis=1, ddof=1) / 2).sum()) / 2)
    assert row["over_queries"] == pytest.approx(stats.sem([0.3, 0.4, 0.25, 0.35]))
    assert lead.over_seeds(frame[frame["seed"] == 0]).empty
    assert lead.over_seeds(frame.drop(index=0)).empty  # a training failed
    both = pd.concat([frame, frame[frame["label"] == "yetiloss:ndcg"].assign(label="yetiloss:{metric}")])
    [same] = lead.over_seeds(both.assign(metric="ndcg")).to_dict("records")  # for which our names give either
    assert same == row | {"metric": "ndcg"}


def test_objectives_chosen_on_vali_are_compared_on_both_sides_and_each_of_ours_over_the_libraries():
    real = {key: v for key, v in named_values(("map",)).items() if key[1] == "lightgbm" and key[0] in SETS[:2]}
    [chosen], [ours] = (pooled(real, label, sets=SETS[:2]) for label in (lead.ON_VALI, "queryrmse"))
    for data in SETS[:2]:
        real[data, "lightgbm", lead.OURS_ON_VALI, "map"] = real[data, "lightgbm", "queryrmse", "map"]
    assert lead.lead(real).loc[0, "on_vali"] == pytest.approx((ours - chosen).mean())
    for (data, _, label, metric), v in list(real.items()):
        real[data, "xgboost", label, metric] = v + 0.3 * (label == "queryrmse")
    found = lead.by_objective(real, {"MQ2008": "search"}).set_index(["objective", "data"])
    row = found.loc["queryrmse", summary.POOLED]
    assert row["difference"] == pytest.approx((ours - chosen).mean() + 0.15)
    assert (row["queries"], row["se"]) == (80, pytest.approx(stats.sem(ours - chosen)))
    assert found.loc[("queryrmse", "search"), "queries"] == 50
    assert "queryrmse" in lead.objectives_markdown(found.reset_index())


def test_the_native_objective_of_a_fold_is_that_with_the_best_vali_value():
    lines = [("one", "a", 0, "lightgbm", label, "map", vali) for label, vali in
             (("lambdarank", 0.3), ("rank_xendcg", 0.4), ("yetiloss", 0.5))]  # fmt: skip
    lines += [("one", "b", 0, "lightgbm", label, "map", vali) for label, vali in
              (("lambdarank", 0.3), ("rank_xendcg", 0.2))]  # fmt: skip
    frame = pd.DataFrame(lines, columns=["data", "fold", "seed", "library", "label", "metric", "vali"])
    found = lead.on_vali(frame)
    assert found["vali"].tolist() == [0.4, 0.5, 0.3]
    assert found["label"].tolist() == [lead.ON_VALI, lead.OURS_ON_VALI, lead.ON_VALI]


def test_published_tables_are_those_of_the_results_and_a_block_alone_is_replaced():
    for page in publish.PAGES if (publish.ROOT / "README.md").exists() else ():
        text = page.read_text()
        assert publish.published(text, publish.RESULTS) == text, f"{page}: run python -m benchmarks publish"
    found = publish.published("a\n<!-- table: kernels -->\nstale\n<!-- end -->\nb\n", publish.RESULTS)
    assert ("stale" in found, found[:2], found[-3:]) == (False, "a\n", "\nb\n")
