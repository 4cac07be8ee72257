"""evaluate and evaluate_exposure beside scikit-learn, all orders of ties, and all rankings of short lists."""

import dataclasses
from itertools import pairwise, permutations

import numpy as np
import pytest
from catalog import METRICS as CATALOG
from generated import ranking

from ltr_objectives import (
    LTRError,
    Metric,
    Objective,
    compare_scores,
    evaluate,
    evaluate_exposure,
    get_metric,
    objective_for,
    objective_names,
)
from ltr_objectives.metrics.text import any_metric

RNG = np.random.default_rng(0)
X, Y, QID = ranking(0)
SCORES, SIZES = np.round(X[:, 0], 1), np.bincount(QID)


def orders_of(scores):
    """Return all orders of the rows in which no score rises."""
    return [y for y in permutations(range(len(scores))) if all(scores[a] >= scores[b] for a, b in pairwise(y))]


@pytest.mark.parametrize("name", ["rmse", "mae"])
def test_errors_by_row_are_those_of_scikit_learn(name):
    theirs = pytest.importorskip("sklearn.metrics")
    error, root = (theirs.mean_squared_error, np.sqrt) if name == "rmse" else (theirs.mean_absolute_error, np.abs)
    for weight in (None, RNG.random(len(Y))):
        expected = root(error(Y, SCORES, sample_weight=weight))
        for convention in (None, "lightgbm", "xgboost", "catboost", "sklearn"):
            assert evaluate(name, SCORES, Y, SIZES, weight, convention=convention) == pytest.approx(expected)
    weight = RNG.random(len(SIZES))
    expected = root(error(Y, SCORES, sample_weight=np.repeat(weight, SIZES)))
    labels = {"relevance": 1 - Y, "stars": Y}
    assert evaluate(f"{name}[stars]", SCORES, labels, SIZES, weight) == pytest.approx(expected)
    found = evaluate(name, SCORES, Y - 2, SIZES, weight, per_query=True)
    for q, value in enumerate(found):
        assert value == pytest.approx(root(error(Y[q == QID] - 2, SCORES[q == QID])))
    some = evaluate(name, SCORES, Y, SIZES, (np.arange(len(SIZES)) > 0).astype(float), per_query=True)
    assert np.isnan(some).tolist() == [True] + [False] * (len(SIZES) - 1)


@pytest.mark.parametrize("name", Metric.named)
def test_a_mean_without_any_weight_is_refused(name):
    some = f"{name}@3" if Metric.named[name].cutoff == "required" else name
    with pytest.raises(LTRError, match="weight"):
        evaluate(some, SCORES, np.minimum(Y, 1), SIZES, np.zeros(len(Y)))


def test_first_is_the_expected_rank_of_the_first_relevant_document():
    sizes = RNG.integers(1, 7, 40)
    scores, labels = RNG.integers(0, 3, sizes.sum()), RNG.choice([0, 1, 3], sizes.sum(), p=[0.7, 0.2, 0.1])

    def by_definition(s, y):
        return np.mean([next((d for d, i in enumerate(order, 1) if y[i] > 0), np.nan) for order in orders_of(s)])

    starts = np.cumsum(sizes)[:-1]
    lists = zip(np.split(scores, starts), np.split(labels, starts), strict=True)
    expected = np.array([by_definition(*each) for each in lists])
    np.testing.assert_allclose(evaluate("first", scores, labels, sizes, per_query=True), expected, rtol=1e-12)
    weight, some = RNG.random(40), ~np.isnan(expected)
    assert not some.all()
    mean = np.average(expected[some], weights=weight[some])
    assert evaluate("first", scores, labels, sizes, weight) == pytest.approx(mean)
    filled = evaluate("first(empty=7)", scores, labels, sizes, per_query=True)
    np.testing.assert_allclose(filled, np.nan_to_num(expected, nan=7), rtol=1e-12)


@pytest.mark.parametrize("name", ["rmse", "mae", "first", any_metric("first")])
def test_nothing_trains_or_stops_by_them(name):
    takes = [cls for each in objective_names() if "metric" in (cls := Objective.named[each]).parameters()]
    assert takes
    for call in (get_metric, objective_for, *takes, lambda m: compare_scores(m, SCORES, SCORES, Y, SIZES)):
        with pytest.raises(LTRError, match="evaluate"):
            call(name)
    with pytest.raises(LTRError, match=f"{name} .*cutoff"):
        evaluate(f"{name}@5", SCORES, Y, SIZES)


# documents without a label


GAPS = {"stars": np.where(RNG.random(len(Y)) < 0.4, np.nan, Y), "clicks": np.where(RNG.random(len(Y)) < 0.3, np.nan, Y)}
for labels in GAPS.values():
    labels[QID == 3] = np.nan  # a query without a judged document
WEIGHT = RNG.uniform(0.5, 2, len(Y))
METRICS = ["ndcg@5", "map(empty=skip)", "rmse", "mrr[clicks]"]


def by_hand(name, goal, q):
    kept = (q == QID) & ~np.isnan(GAPS[goal])
    plain = name.partition("[")[0]
    return evaluate(plain, SCORES[kept], GAPS[goal][kept], [kept.sum()], per_query=True)[0] if kept.any() else np.nan


def test_values_are_those_of_the_shorter_lists():
    found = evaluate(METRICS, SCORES, GAPS, SIZES, unjudged="drop", per_query=True)
    means = evaluate(METRICS, SCORES, GAPS, qid=QID, weight=WEIGHT, unjudged="drop")
    for name, values in found.items():
        goal = "clicks" if "[" in name else "stars"
        np.testing.assert_allclose(values, [by_hand(name, goal, q) for q in range(len(SIZES))], rtol=1e-12)
        assert np.isnan(values).any()
        if name == "rmse":
            continue
        kept = ~np.isnan(GAPS[goal])
        weight = np.array([WEIGHT[kept & (q == QID)].mean() if (kept & (q == QID)).any() else 0 for q in range(60)])
        some = ~np.isnan(values)
        assert means[name] == pytest.approx(np.average(values[some], weights=weight[some]))
    kept = ~np.isnan(GAPS["stars"])
    assert means["rmse"] == pytest.approx(evaluate("rmse", SCORES[kept], Y[kept], [kept.sum()], WEIGHT[kept]))
    same = evaluate(METRICS[:3], SCORES, Y, SIZES)
    assert evaluate(METRICS[:3], SCORES, Y, SIZES, unjudged="drop") == pytest.approx(same)


def test_the_command_leaves_them_out_too(tmp_path):
    pytest.importorskip("typer")
    pd = pytest.importorskip("pandas")
    from commands import fails, run_json

    pd.DataFrame({"label": GAPS["stars"], "qid": QID}).to_csv(tmp_path / "all.csv", index=False)
    np.save(tmp_path / "score.npy", SCORES)
    given = "--metric", "map", "--per-query", "--scores", tmp_path / "score.npy", "--data", tmp_path / "all.csv"
    found = run_json("evaluate", "--drop-unjudged", *given)
    expected = evaluate("map", SCORES, GAPS["stars"], SIZES, unjudged="drop", per_query=True)
    kept = ~np.isnan(expected)
    assert found["per_query"]["map"] == pytest.approx(expected[kept])
    assert [int(q) for q in found["per_query"]["qid"]] == np.flatnonzero(kept).tolist()
    assert found["metrics"]["map"] == pytest.approx(evaluate("map", SCORES, GAPS["stars"], SIZES, unjudged="drop"))
    assert "finite" in fails("evaluate", *given)


# exposure


SHORT = np.array([1, 4, 2, 5])
STARTS = np.cumsum(SHORT)[:-1]
N = int(SHORT.sum())
SHOWN, GRADES, OWNER = RNG.integers(0, 3, N), RNG.integers(0, 3, N).astype(float), RNG.choice(list("ab"), N)
P = 0.7


def sorted_exposure(values):
    """Return the mean over all orders of equal values."""
    return np.mean([P ** np.argsort(y) for y in orders_of(values)], axis=0)


def random_exposure(scores):
    """Return the mean over all rankings, each with its probability under Plackett and Luce."""
    total = np.zeros(len(scores))
    for y in permutations(range(len(scores))):
        chances = [np.exp(scores[d]) / np.exp(scores[list(y[i:])]).sum() for i, d in enumerate(y)]
        total += np.prod(chances) * P ** np.argsort(y)
    return total


def exposure_by_definition(exposures):
    lists = list(zip(exposures, map(sorted_exposure, np.split(GRADES, STARTS)), np.split(OWNER, STARTS), strict=True))
    found = {}
    for prefix in ("", "owner_"):
        pairs = [(e, t) for e, t, _ in lists]
        if prefix:
            pairs = [[np.array([x[of == o].sum() for o in set(of)]) for x in (e, t)] for e, t, of in lists]
        found[f"{prefix}ee_d"] = np.mean([(e**2).sum() for e, _ in pairs])
        found[f"{prefix}ee_r"] = np.mean([(e * t).sum() for e, t in pairs])
        found[f"{prefix}ee_l"] = np.mean([(e**2).sum() - 2 * (e * t).sum() + (t**2).sum() for e, t in pairs])
    for name, which in (("exposure", 0), ("target", 1)):
        whole = np.concatenate([each[which] for each in lists])
        found |= {f"{name}[{o}]": whole[o == OWNER].sum() / whole.sum() for o in "ab"}
    return found


def test_sorted_scores_and_draws_are_those_of_the_definition():
    found = evaluate_exposure(SHOWN, GRADES, SHORT, patience=P, owner=OWNER)
    assert found == pytest.approx(exposure_by_definition([sorted_exposure(s) for s in np.split(SHOWN, STARTS)]))
    draws = RNG.normal(size=(N, 3))
    exposures = [np.mean([sorted_exposure(s[:, j]) for j in range(3)], axis=0) for s in np.split(draws, STARTS)]
    found = evaluate_exposure(draws, GRADES, qid=np.repeat(range(4), SHORT), patience=P, owner=OWNER)
    assert found == pytest.approx(exposure_by_definition(exposures))
    assert evaluate_exposure(GRADES, GRADES, SHORT)["ee_l"] == 0


def test_plackett_luce_converges_to_the_definition():
    how = {"patience": P, "owner": OWNER, "policy": "plackett-luce"}
    runs = [evaluate_exposure(SHOWN, GRADES, SHORT, **how, samples=1000, seed=seed) for seed in range(16)]
    expected = exposure_by_definition([random_exposure(s) for s in np.split(SHOWN, STARTS)])
    for name, value in expected.items():
        values = [run[name] for run in runs]
        assert abs(np.mean(values) - value) < 4 * np.std(values, ddof=1) / 4 + 1e-3, name  # 1/samples of ee_d


CUT = [m for of in CATALOG.values() for m in of if m.cutoff != "none"]
PADDING = 40  # documents, more than any cutoff or list


@pytest.mark.filterwarnings("ignore:these labels")
@pytest.mark.parametrize("metric", CUT, ids=repr)
def test_documents_that_were_not_retrieved_are_those_behind_all_cutoffs(metric):
    """Documents without gain before them leave them no rank that counts."""
    metric = metric if metric.cutoff == "query" else dataclasses.replace(metric, k=metric.k or 7)
    rng = np.random.default_rng(5)
    labels, scores = rng.integers(0, 2, 360).astype(float), rng.normal(size=360)
    retrieved = rng.random(360) < 0.6
    retrieved[:12] = False  # a search that found nothing
    between = np.zeros((30, PADDING))
    padded = np.column_stack([labels.reshape(30, 12), between]).ravel()
    ranked = np.column_stack([np.where(retrieved, scores, -9.0).reshape(30, 12), between - 8.0]).ravel()
    given, weight = np.where(retrieved, scores, np.nan), rng.random(30)
    for per_query in (True, False):
        found = evaluate(metric, given, labels, [12] * 30, weight, retrieved=retrieved, per_query=per_query)
        expected = evaluate(metric, ranked, padded, [12 + PADDING] * 30, weight, per_query=per_query)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    everything = evaluate(metric, scores, labels, [12] * 30, retrieved=np.ones(360, bool))
    assert everything == evaluate(metric, scores, labels, [12] * 30)


def test_a_search_that_found_nothing_and_goals_of_what_it_found():
    nothing = evaluate(["recall@10", "map", "ndcg"], [np.nan] * 2, [1, 1], [2], retrieved=[False, False])
    assert set(nothing.values()) == {0.0}
    labels = {"a": [0, 1, np.nan], "b": [1, 0, 1]}
    args = [5.0, 4.0, np.nan], labels, [3]
    how = {"retrieved": [True, True, False], "unjudged": "drop"}
    assert evaluate("recall@10", *args, **how) == 1.0
    assert evaluate("recall@10[b] + recall@10", *args, **how) == 1.5


def test_a_function_of_the_scores_and_labels_of_a_query():
    rng = np.random.default_rng(0)
    group = rng.integers(1, 6, 20)
    a, b, labels = rng.normal(size=group.sum()), rng.normal(size=group.sum()), rng.integers(0, 3, group.sum())
    weight = rng.uniform(0.5, 2, 20)

    def dcg(scores, labels):
        return evaluate("dcg@3", scores, labels, [len(labels)])

    for given in ({}, {"weight": weight}):
        found = evaluate([dcg, "dcg@3"], a, labels, group, **given)
        assert found["dcg"] == pytest.approx(found["dcg@3"])
        ours, theirs = (compare_scores(metric, a, b, labels, group, **given) for metric in (dcg, "dcg@3"))
        assert ours == pytest.approx(theirs)
    goals = {"clicks": labels, "sold": labels}
    assert evaluate(dcg, a, goals, group) == evaluate("dcg@3", a, labels, group)
    some = evaluate(lambda s, y: np.nan if len(s) == 1 else y.max(), a, labels, group, per_query=True)
    assert np.array_equal(np.isnan(some), group == 1)
    for odd in (None, "1", [1.0], 1j):
        with pytest.raises(LTRError, match="must return a number"):
            evaluate(lambda s, y, odd=odd: odd, a, labels, group)
    for refused in ({"convention": "lightgbm"}, {"retrieved": a > 0}):
        with pytest.raises(LTRError, match=next(iter(refused)) if "convention" in refused else "rank"):
            evaluate(dcg, a, labels, group, **refused)
