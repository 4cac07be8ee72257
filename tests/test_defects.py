"""The defects of the libraries that docs/troubleshooting.md lists, each in a few lines that need nothing of ours.

If one of these tests fails with a new version, the library has repaired the defect: change the row and the refusal.
"""

import subprocess
import sys

import catboost as cb
import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb

RNG = np.random.default_rng(0)
X, QID = RNG.normal(size=(200, 3)), np.repeat(np.arange(20), 10)
Y = (X[:, 0] + RNG.normal(size=200) > 0).astype(float)


def squared(scores, data):
    return scores - data.get_label(), np.ones(len(scores))


def test_xgb_cv_drops_weights_by_query():
    def cv(**weight):
        return xgb.cv({"objective": "rank:ndcg"}, xgb.DMatrix(X, Y, qid=QID, **weight), 3, nfold=2, as_pandas=False)

    assert cv() == cv(weight=np.arange(20.0))


def test_lightgbm_learns_nothing_from_a_custom_objective_with_bagging_by_query():
    params = {"objective": squared, "bagging_by_query": True, "bagging_fraction": 0.5, "bagging_freq": 1, "verbose": -1}
    assert np.ptp(lgb.train(params, lgb.Dataset(X, Y, group=[10] * 20), 5).predict(X)) == 0
    params["bagging_by_query"] = False
    assert np.ptp(lgb.train(params, lgb.Dataset(X, Y, group=[10] * 20), 5).predict(X)) > 0


def test_lgb_cv_cuts_queries_in_two_for_a_custom_objective():
    sizes = []

    def seen(scores, data):
        sizes.extend(data.get_group())
        return squared(scores, data)

    lgb.cv({"objective": seen, "verbose": -1}, lgb.Dataset(X, Y, group=[10] * 20), 1, nfold=3, stratified=False)
    assert set(sizes) - {10}


@pytest.mark.parametrize("params", [{"leaf_estimation_method": "Gradient"}, {"l2_leaf_reg": 1000}])
def test_catboost_trains_lambdamart_in_reverse(params):
    model = cb.CatBoost(
        {"loss_function": "LambdaMart", "iterations": 20, "verbose": False, "allow_writing_files": False, **params}
    )
    model.fit(cb.Pool(X, Y, group_id=QID))
    assert np.corrcoef(model.predict(X), Y)[0, 1] < 0


def test_catboost_counts_other_labels_as_relevant_in_training_than_in_map():
    pool = cb.Pool(X, 0.4 * Y, group_id=QID)
    params = {"loss_function": "LambdaMart:metric=MAP", "leaf_estimation_method": "Newton", "iterations": 5}
    model = cb.CatBoost({**params, "verbose": False, "allow_writing_files": False}).fit(pool)
    assert np.ptp(model.predict(X)) > 0  # labels of 0.4 are relevant
    (values,) = model.eval_metrics(pool, "MAP").values()
    assert set(values) <= {0.0, 1.0}  # they are not


@pytest.mark.skipif(cb.__version__ < "1.2.10", reason="tried with 1.2.10")
def test_the_gradient_of_stochasticrank_in_catboost_is_wrong_unless_sigma_is_1():
    """If scores and noise are multiplied by the same factor, the gradient of the mean metric is divided by it."""
    X, labels, scores = np.arange(3.0)[:, None], [0.2, 1.0, 0.0], np.array([0.3, -0.4, 0.1])
    params = {"iterations": 1, "depth": 2, "learning_rate": 1, "l2_leaf_reg": 0, "bootstrap_type": "No",
              "leaf_estimation_method": "Gradient", "leaf_estimation_iterations": 1, "random_strength": 0}  # fmt: skip

    def gradient(sigma):  # of the second document
        loss = f"StochasticRank:metric=DCG;sigma={sigma};mu=0;nu=1e-6;lambda=0;num_estimations=5000"
        model = cb.CatBoost(
            {"loss_function": loss, "eval_metric": "NDCG", "verbose": False, "allow_writing_files": False, **params}
        )
        return model.fit(cb.Pool(X, labels, group_id=[0] * 3, baseline=sigma * scores)).predict(X)[1]

    assert 0.1 * gradient(0.1) < 0.5 * gradient(1)


def test_catboost_ends_if_timestamps_fall():
    script = """
import catboost, numpy
X = numpy.random.default_rng(0).normal(size=(200, 3))
pool = catboost.Pool(X, X[:, 0] > 0, timestamp=range(200, 0, -1))
catboost.CatBoostClassifier(iterations=2, has_time=True, allow_writing_files=False).fit(pool)
"""
    assert subprocess.run([sys.executable, "-c", script], capture_output=True).returncode
