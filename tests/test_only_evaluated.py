"""RMSE, MAE and the rank of the first relevant document: scikit-learn's values, all orders of ties, and refusals."""

from itertools import permutations

import numpy as np
import pytest
from generated import ranking

from ltr_objectives import LTRError, Objective, compare_scores, evaluate, get_metric, objective_for
from ltr_objectives.metrics.base import any_metric
from ltr_objectives.registry import objectives

RNG = np.random.default_rng(0)
X, Y, QID = ranking(0)
SCORES, SIZES = np.round(X[:, 0], 1), np.bincount(QID)


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


def by_definition(scores, labels):
    """The mean over all orders of documents with equal scores."""
    n = len(scores)
    orders = [y for y in permutations(range(n)) if all(scores[y[d]] >= scores[y[d + 1]] for d in range(n - 1))]
    return np.mean([next((d + 1 for d, i in enumerate(y) if labels[i] > 0), np.nan) for y in orders])


def test_first_is_the_expected_rank_of_the_first_relevant_document():
    sizes = RNG.integers(1, 7, 40)
    scores, labels = RNG.integers(0, 3, sizes.sum()), RNG.choice([0, 1, 3], sizes.sum(), p=[0.7, 0.2, 0.1])
    starts = np.cumsum(sizes)[:-1]
    expected = [by_definition(*of) for of in zip(np.split(scores, starts), np.split(labels, starts), strict=True)]
    np.testing.assert_allclose(evaluate("first", scores, labels, sizes, per_query=True), expected, rtol=1e-12)
    assert np.isnan(expected).any()
    weight = RNG.random(40)
    some = ~np.isnan(expected)
    mean = np.average(np.array(expected)[some], weights=weight[some])
    assert evaluate("first", scores, labels, sizes, weight) == pytest.approx(mean)
    filled = evaluate("first(empty=7)", scores, labels, sizes, per_query=True)
    np.testing.assert_allclose(filled, np.nan_to_num(expected, nan=7), rtol=1e-12)
    untied = RNG.random(len(scores))
    ranks, reciprocal = (evaluate(m, untied, labels, sizes, per_query=True) for m in ("first", "mrr(empty=skip)"))
    np.testing.assert_allclose(ranks, 1 / reciprocal, rtol=1e-12)
    made = any_metric("first(threshold=1)")
    assert made.reference(np.array([1.0, 0.0, 3.0])) == made.per_query([3, 2, 1], [1, 0, 3], [3])[0] == 3


def test_weights_by_clicks_make_recall_the_share_of_all_clicks():
    clicks = np.add.reduceat((Y > 0).astype(float), np.cumsum(SIZES) - SIZES)
    untied = X[:, 0]
    top = [(Y[q == QID] > 0)[np.argsort(-untied[q == QID])][:3].sum() for q in range(len(SIZES))]
    assert evaluate("recall@3", untied, Y, SIZES, weight=clicks) == pytest.approx(sum(top) / clicks.sum())


@pytest.mark.parametrize("name", ["rmse", "mae", "first"])
def test_nothing_trains_or_stops_by_them(name):
    told = f"less {name} is better, .* only evaluate computes it; take a ranking metric"
    takes = [Objective.named[each] for each in objectives()]
    takes = [cls for cls in takes if "metric" in cls.parameters()]
    assert takes
    calls = [get_metric, objective_for, *takes, lambda m: compare_scores(m, SCORES, SCORES, Y, SIZES)]
    for call in calls:
        with pytest.raises(LTRError, match=told):
            call(name)
    with pytest.raises(LTRError, match=f"{name} has no cutoff"):
        evaluate(f"{name}@5", SCORES, Y, SIZES)
    with pytest.raises(LTRError, match=f"{name} has no convention 'trec_eval'"):
        evaluate(name, SCORES, Y, SIZES, convention="trec_eval")


def test_the_command_line_computes_them(tmp_path):
    pytest.importorskip("typer")
    from commands import fails, run_json

    given = []
    for option, values in (("labels", Y), ("scores", SCORES), ("qid", QID)):
        np.save(tmp_path / f"{option}.npy", values)
        given += [f"--{option}", tmp_path / f"{option}.npy"]
    names = ["rmse", "mae", "first", "map"]
    found = run_json("evaluate", "--metric", ",".join(names), *given, "--per-query")
    assert found["metrics"] == pytest.approx(evaluate(names, SCORES, Y, SIZES))
    assert found["per_query"]["mae"] == pytest.approx(evaluate("mae", SCORES, Y, SIZES, per_query=True))
    (tmp_path / "run").write_text("1 Q0 a 1 2 t\n")
    (tmp_path / "qrels").write_text("1 0 a 1\n")
    told = "rmse needs the rank of every document"
    assert told in fails("evaluate", "--metric", "rmse", "--run", tmp_path / "run", "--qrels", tmp_path / "qrels")
