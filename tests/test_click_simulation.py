"""Clicks with known propensities: the estimate finds them, and training with positions ranks better than without."""

import numpy as np
import pytest
from clicks import SHARES, click_log, some_queries
from scipy import stats

from ltr_objectives import evaluate
from ltr_objectives.adapters import lightgbm_objective
from ltr_objectives.datasets import make_ranking_fold
from ltr_objectives.propensity import position_propensity

lgb = pytest.importorskip("lightgbm")
pytestmark = pytest.mark.filterwarnings("ignore:.*queries have zero gradient")  # most have no click
TOP = 10
PARAMS = {
    "num_leaves": 7, "max_bin": 63, "verbose": -1, "num_threads": 1, "deterministic": True, "force_col_wise": True,
    "seed": 0, "metric": "None", "min_sum_hessian_in_leaf": 1e-3,
}  # fmt: skip


def error(theta, eta):
    """Mean absolute error over the first ranks, relative to the first."""
    return np.abs(theta[:TOP] / theta[0] - np.arange(1, TOP + 1) ** -eta).mean()


def train(log, objective, rounds=50, **how):
    data = lgb.Dataset(log.data.X, log.clicks, group=log.data.group)
    return lgb.train({**PARAMS, "objective": lightgbm_objective(objective, **how)}, data, rounds)


@pytest.mark.parametrize("eta", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_at_the_true_scores_the_estimate_is_within_its_statistical_error(eta, seed):
    """With n_k clicks at rank k its log has the standard error sqrt(1/n_1 + 1/n_k); 1 in 100,000 is beyond 4.5."""
    log = click_log(some_queries(4000, seed), eta, seed, features=20)
    theta = position_propensity(np.log(log.relevance), log.clicks, log.position, log.data.group)
    clicks = np.bincount(log.position, log.clicks)[:TOP]
    enough = clicks >= 10  # so that the prior of half a click is negligible
    assert enough.sum() >= 5
    off = np.log(theta[:TOP] / theta[0]) + eta * np.log(np.arange(1, TOP + 1))
    assert (np.abs(off) < 4.5 * np.sqrt(1 / clicks[0] + 1 / np.maximum(clicks, 1)))[enough].all()
    assert error(theta, eta) < 0.05


@pytest.mark.parametrize("eta", [0.5, 1.0, 2.0])
def test_training_with_positions_finds_the_propensities(eta):
    """At first the estimate includes the relevance of what a good ranker put on top; trained scores remove it."""
    log = click_log(some_queries(4000, 0), eta, 0, features=20)
    model = train(log, "ranknet", position=log.position)
    know_nothing = position_propensity(np.zeros(len(log.clicks)), log.clicks, log.position, log.data.group)
    theta = position_propensity(model.predict(log.data.X), log.clicks, log.position, log.data.group)
    assert error(theta, eta) < 0.05
    if eta <= 1:  # with a larger one nearly all clicks are at the first rank, whatever is shown there
        assert error(theta, eta) < 0.7 * error(know_nothing, eta)


@pytest.mark.parametrize("objective", ["lambdamart", "yetiloss:ndcg", "ranknet"])
def test_correction_ranks_better(objective):
    train_on, _, test = make_ranking_fold((4000, 1, 1500), 1, features=20, mean_length=10, shares=SHARES)
    log = click_log(train_on, 1.0, 1)

    def values(**how):
        """True NDCG@10 by query."""
        return evaluate("ndcg@10", train(log, objective, **how).predict(test.X), test.y, test.group, per_query=True)

    without = values()
    for how in ({"position": log.position}, {"propensity": log.propensity}):
        difference = values(**how) - without
        assert difference.mean() > 0
        assert stats.ttest_1samp(difference, 0).pvalue < 0.01
