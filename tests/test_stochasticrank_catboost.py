"""CatBoost's StochasticRank and ours: equal at sigma 1, and where CatBoost's expectation differs."""

import numpy as np
import pytest
from generated import graded
from scipy.stats import norm

from ltr_objectives import Metric, StochasticRank
from ltr_objectives.queries import Queries

catboost = pytest.importorskip("catboost")


def native_gradient(loss, X, labels, group, scores, estimations=5000):
    """The mean of many estimates, from the leaf values of a tree with a leaf for each row."""
    pool = catboost.Pool(X, labels, group_id=np.repeat(np.arange(len(group)), group), baseline=scores)
    model = catboost.CatBoost({
        "loss_function": f"StochasticRank:{loss};lambda=0;num_estimations={estimations}",
        "iterations": 1, "depth": X.shape[1], "learning_rate": 1, "l2_leaf_reg": 0, "random_strength": 0, "verbose": 0,
        "bootstrap_type": "No", "allow_writing_files": False, "thread_count": 1, "leaf_estimation_iterations": 1,
    })  # fmt: skip
    try:
        model.fit(pool)
    except catboost.CatBoostError as error:
        if "does not support target_metric" in str(error):
            pytest.skip("CatBoost 1.2.0 has no StochasticRank for this metric")
        raise
    assert len(np.unique(model.calc_leaf_indexes(catboost.Pool(X)))) == len(X)
    return model.predict(X)


NATIVE = [
    ("DCG", Metric.named["dcg"](gain_type="linear")),
    ("NDCG", Metric.named["ndcg"](gain_type="linear")),
    ("NDCG;top=3", Metric.named["ndcg"](k=3, gain_type="linear")),
    ("DCG;type=Exp;top=2", Metric.named["dcg"](k=2)),
    ("MRR", Metric.named["mrr"]()),
    ("PFound", Metric.named["pfound"]()),
    ("ERR", Metric.named["err"](grades="identity")),
]


@pytest.mark.parametrize(("native", "metric"), NATIVE, ids=[n for n, _ in NATIVE])
def test_catboost_has_the_same_gradient_at_sigma_1(native, metric):
    """For ERR only with labels 0 and 1: with grades, and with other sigma, CatBoost's expectation differs."""
    rng = np.random.default_rng(2)
    group = np.array([5, 8, 6, 4, 7, 3, 2, 6, 5, 4, 4, 10])
    n = 64
    X = ((np.arange(n)[:, None] >> np.arange(6)) & 1).astype(float)
    binary = metric.name in ("mrr", "err")
    labels = rng.integers(0, 2, n).astype(float) if binary else graded(metric, rng.integers(0, 5, n))
    scores = np.float32(rng.normal(size=n)).astype(float)
    theirs = native_gradient(f"metric={native};sigma=1", X, labels, group, scores)
    objective, queries = StochasticRank(metric, sfa=0.0, samples=500), Queries(labels, group)
    runs = np.array([-objective.compute(queries, scores, iteration=i)[0] for i in range(40)])
    for a, b in zip(queries.ptr[:-1], queries.ptr[1:], strict=True):
        runs[:, a:b] -= runs[:, a:b].mean(axis=1, keepdims=True)  # CatBoost centres
    error = runs.std(axis=0, ddof=1) * np.sqrt(1 / 10 + 1 / 40)
    deviation = (theirs - runs.mean(axis=0)) / (error + 1e-9)
    assert np.abs(deviation).max() < 4.5
    assert np.sqrt(np.mean(deviation**2)) < 1.4
    assert np.abs(runs.mean(axis=0)).max() > 10 * error.max()


@pytest.mark.parametrize(
    ("sigma", "catboosts"), [(0.1, 0.1574), (0.2, 0.1716), (0.5, 0.1985), (1.0, 0.1407), (2.0, 0.0630)]
)
def test_with_other_sigma_only_ours_is_the_derivative(sigma, catboosts):
    """Two documents, scores 0.1 and 0, the second relevant: the derivative of the expected RR has a closed form."""
    scores, labels = np.array([0.1, 0.0]), np.array([0.0, 1.0])
    exact = 0.5 * norm.pdf(0.1, scale=sigma * np.sqrt(2.0))
    ours, _ = StochasticRank("mrr", sigma=sigma).gradient_hessian(scores, labels, [2])
    np.testing.assert_allclose(-ours, [-exact, exact], rtol=1e-12)
    theirs = native_gradient(f"metric=MRR;sigma={sigma}", np.array([[0.0], [1.0]]), labels, [2], scores, 100_000)
    np.testing.assert_allclose(theirs, [-catboosts, catboosts], rtol=0.015)
    assert (abs(catboosts / exact - 1.0) < 0.05) == (sigma == 1.0)
