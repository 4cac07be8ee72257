"""Random numbers over a training: others for each tree, alike for the same training, independent where nested."""

import pickle
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from catalog import KINDS, OBJECTIVES
from rankers import ranker
from trainings import LIBRARIES, release, small_data, train

from ltr_objectives import (
    Langevin,
    Mixture,
    Objective,
    Queries,
    StochasticLabels,
    Subsample,
    UnitHessian,
    get_objective,
)
from ltr_objectives.adapters import lightgbm_objective
from ltr_objectives.adapters._callables import ObjectiveCallable
from ltr_objectives.libraries import CATBOOST
from ltr_objectives.objectives.base import Facts

SEEN: list[int] = []
everywhere = pytest.mark.parametrize("library", LIBRARIES)


@dataclass(frozen=True)
class Still(Objective):
    """Gradients of zero, from which no tree splits; ``SEEN`` holds what selected the random numbers."""

    name: ClassVar[str] = "still"
    facts = Facts(random=True)
    hessian: ClassVar[str] = "ones"

    def fill(self, call):
        SEEN.append(call.iteration)

    def reference(self, scores, labels):
        return np.zeros(len(scores)), np.ones(len(scores))


class AnyHessian(ObjectiveCallable):
    """A callable for objectives that some libraries refuse."""

    library = CATBOOST


def seen_in(work) -> list[int]:
    """Selectors of the random numbers of each gradient, but for those that `warn_if_useless` asks for."""
    SEEN.clear()
    work()
    return [iteration for iteration in SEEN if iteration != 0]


@pytest.mark.filterwarnings("ignore:.*zero gradient", "ignore:.*every gradient is zero", "ignore:.*have a split")
@everywhere
def test_every_round_draws_anew_even_if_no_score_changes(library):
    rounds = 7
    first = seen_in(lambda: train(library, Still(), rounds=rounds))
    assert len(first) == len(set(first)) == rounds
    assert seen_in(lambda: train(library, Still(), rounds=rounds)) == first
    X, y, qid = small_data()
    params = {"bootstrap_type": "Bernoulli"} if library == "catboost" else {}
    estimator = ranker(library, Still(), **{**params, "n_estimators": rounds})
    for _ in range(2):
        found = seen_in(lambda: estimator.fit(X, y, qid=qid))
        assert len(set(found)) == rounds


@pytest.mark.filterwarnings("ignore:.*zero gradient")
@everywhere
def test_rare_clicks_are_learned_from_small_shares_of_the_queries(library):
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(2000, 3)), np.repeat(np.arange(400), 5)
    clicked = (X[:, 0] == np.repeat(X[:, 0].reshape(400, 5).max(1), 5)) & (qid % 10 == 0)
    objective = Subsample("lambdamart", 0.01)
    scores = np.frombuffer(train(library, objective, rounds=40, data=(X, clicked.astype(float), qid)))
    assert len(np.unique(scores)) > 10


@pytest.mark.filterwarnings("ignore:.*zero gradient")
@pytest.mark.parametrize("objective", [KINDS["yetiloss"], *release(o for o in OBJECTIVES.values() if o.facts.random)])
def test_the_same_scores_again_draw_anew_and_copies_begin_anew(objective):
    X, y, qid = small_data(60)
    y = np.minimum(y, objective.label_limit or 3)
    queries, scores = Queries(y, np.unique(qid, return_counts=True)[1]), X[:, 1].copy()
    used, of = AnyHessian(objective), lambda made, s: made.gradients(queries, s)[0].tobytes()
    first, again, other = of(used, scores), of(used, scores), of(used, scores + X[:, 2])
    assert len({first, again, other}) == 3
    assert of(used, scores) == of(pickle.loads(pickle.dumps(used)), scores) == first
    assert of(used, scores) == again


def test_scores_that_change_by_less_than_rounding_draw_anew():
    objective = lightgbm_objective(Subsample("ranknet"))
    queries, scores = Queries(np.tile([0.0, 1.0], 50), np.full(50, 2)), np.zeros(100)
    scores[0] = 1e7
    drawn = {objective.gradients(queries, scores + step)[0].tobytes() for step in np.linspace(0, 1, 20)}
    assert len(drawn) == 20


@pytest.mark.filterwarnings("ignore:.*zero gradient", "ignore:.*every gradient is zero", "ignore:.*have a split")
def test_the_leaf_steps_of_catboost_have_the_draw_of_their_tree():
    from catboost import CatBoost, Pool

    from ltr_objectives.adapters import catboost_objective

    X, y, qid = small_data()
    pool = Pool(X, y, group_id=qid)
    params = {"iterations": 4, "leaf_estimation_iterations": 3, "bootstrap_type": "Bernoulli", "verbose": False,
              "eval_metric": "NDCG", "allow_writing_files": False}  # fmt: skip
    found = seen_in(lambda: CatBoost({**params, "loss_function": catboost_objective(Still(), pool)}).fit(pool))
    assert [found.count(iteration) for iteration in dict.fromkeys(found)] == [3, 3, 3, 3]


def test_nested_wrappers_of_one_seed_draw_independently():
    queries = Queries(np.tile([0.0, 1.0], 4000), np.full(4000, 2))
    scores = np.zeros(8000)
    half = Subsample("ranknet", 0.5)
    for outer in (Subsample(half, 0.5), Subsample(UnitHessian(half), 0.5)):
        drawn = outer.compute(queries, scores)[0][::2] != 0
        assert abs(drawn.mean() - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 4000)
    noise = Langevin(Langevin("rmse", 0.5, 1.0), 0.5, 1.0).compute(queries, scores)[0] + queries.labels
    assert abs(noise.std() - np.sqrt(2)) < 4 * np.sqrt(2) / np.sqrt(2 * 8000)
    either = StochasticLabels("rmse", [None, "b"])
    both = Queries({"a": np.ones(8000), "b": np.full(8000, 3.0)}, np.full(4000, 2))
    found = Subsample(either, 0.5).compute(both, scores)[0][::2]
    assert abs((found == -6).sum() / (found != 0).sum() - 0.5) < 4 * np.sqrt(0.25 / 2000)


def test_parts_of_one_seed_draw_independently():
    queries, scores = Queries(np.zeros(8000), np.full(4000, 2)), np.zeros(8000)
    noisy, rmse = Langevin("rmse", 0.2, 0.1), get_objective("rmse")  # noise of deviation 2

    def total(*parts):
        return Mixture(parts, normalize=False)

    mixed = total(total(rmse, noisy), total(noisy, rmse))
    for parts, objective in (
        (2, total(noisy, noisy)),
        (2, mixed),
        (2, total(total(noisy, noisy))),
        (3, total(*3 * [noisy])),
    ):
        noise = objective.compute(queries, scores)[0]
        assert abs(noise.std() - np.sqrt(4 * parts)) < 4 * np.sqrt(4 * parts) / np.sqrt(2 * 8000)
    half = Subsample("rmse", 0.5)
    drawn = total(half, half).compute(queries, scores)[1][::2] / 2
    for parts in range(3):
        assert abs((drawn == parts).mean() - (0.25, 0.5, 0.25)[parts]) < 4 * np.sqrt(0.25 / 4000)
