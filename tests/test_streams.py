"""Random numbers over a training: others for each tree, alike for the same training, independent where nested."""

import pickle
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from catalog import KINDS, OBJECTIVES
from catboost import CatBoost, Pool
from rankers import ranker
from trainings import LIBRARIES, release, small_data, train

from ltr_objectives import Langevin, Mixture, Objective, Queries, Subsample, UnitHessian
from ltr_objectives.adapters import catboost_objective, lightgbm_objective
from ltr_objectives.adapters._callables import ObjectiveCallable
from ltr_objectives.objectives.base import Facts

SEEN: list[int] = []


@dataclass(frozen=True)
class Still(Objective):
    """Gradients of zero, from which no tree splits; ``SEEN`` holds what selected the random numbers."""

    name: ClassVar[str] = "still"
    facts = Facts(random=True)
    hessian: ClassVar[str] = "ones"

    def fill(self, call):
        SEEN.append(call.iteration)


class AnyHessian(ObjectiveCallable):
    """A callable for objectives that some libraries refuse."""

    of = "catboost"


def seen_in(work) -> list[int]:
    """Return selectors of the random numbers of each gradient, but for those that `warn_if_useless` asks for."""
    SEEN.clear()
    work()
    return [iteration for iteration in SEEN if iteration != 0]


@pytest.mark.filterwarnings("ignore:.*zero gradient", "ignore:.*every gradient is zero", "ignore:.*have a split")
@pytest.mark.parametrize("library", LIBRARIES)
def test_every_round_draws_anew_even_if_no_score_changes(library):
    first, again = (seen_in(lambda: train(library, Still(), rounds=7)) for _ in range(2))
    assert len(first) == len(set(first)) == 7
    assert again == first
    X, y, qid = small_data()
    params = {"bootstrap_type": "Bernoulli"} if library == "catboost" else {}
    estimator = ranker(library, Still(), n_estimators=7, **params)
    for _ in range(2):
        assert len(set(seen_in(lambda: estimator.fit(X, y, qid=qid)))) == 7


@pytest.mark.parametrize("objective", [KINDS["yetiloss"], *release(o for o in OBJECTIVES.values() if o.facts.random)])
def test_the_same_scores_again_draw_anew_and_copies_begin_anew(objective):
    X, y, qid = small_data(60)
    queries = Queries(np.minimum(y, objective.label_limit or 3), np.unique(qid, return_counts=True)[1])
    scores, used, same = X[:, 1].copy(), AnyHessian(objective), AnyHessian(objective)
    first, again, other = (used.gradients(queries, s)[0].tobytes() for s in (scores, scores, scores + X[:, 2]))
    assert len({first, again, other}) == 3
    copy = pickle.loads(pickle.dumps(used))
    for callable_ in (used, copy, same):
        assert [callable_.gradients(queries, scores)[0].tobytes() for _ in range(2)] == [first, again]


def test_scores_that_change_by_less_than_rounding_draw_anew():
    objective = lightgbm_objective(Subsample("ranknet"))
    queries, scores = Queries(np.tile([0.0, 1.0], 50), np.full(50, 2)), np.zeros(100)
    scores[0] = 1e7
    drawn = {objective.gradients(queries, scores + step)[0].tobytes() for step in np.linspace(0, 1, 20)}
    assert len(drawn) == 20


@pytest.mark.filterwarnings("ignore:.*zero gradient", "ignore:.*every gradient is zero", "ignore:.*have a split")
def test_the_leaf_steps_of_catboost_have_the_draw_of_their_tree():
    X, y, qid = small_data()
    pool = Pool(X, y, group_id=qid)
    params = {"iterations": 4, "leaf_estimation_iterations": 3, "bootstrap_type": "Bernoulli", "verbose": False,
              "eval_metric": "NDCG", "allow_writing_files": False}  # fmt: skip
    found = seen_in(lambda: CatBoost({**params, "loss_function": catboost_objective(Still(), pool)}).fit(pool))
    assert [found.count(iteration) for iteration in dict.fromkeys(found)] == [3, 3, 3, 3]


HALF, NOISY = Subsample("rmse", 0.5), Langevin("rmse", 0.2, 0.1)  # noise of deviation 2
QUERIES, SCORES = Queries({"a": np.zeros(8000), "b": np.full(8000, 3.0)}, [2] * 4000), np.zeros(8000)


def total(*parts):
    return Mixture(parts, normalize=False)


@pytest.mark.parametrize(
    "objective",
    [
        Subsample(HALF, 0.5),
        Subsample(UnitHessian(HALF), 0.5),
        total(HALF, HALF),
    ],
    ids=str,
)
def test_two_draws_of_one_seed_are_independent(objective):
    grad, hess = objective.compute(QUERIES, SCORES)
    size = (np.abs(grad) + hess)[::2]  # largest if both were drawn
    assert abs((size == size.max()).mean() - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 4000)


@pytest.mark.parametrize(
    ("noises", "objective"),
    [
        (2, Langevin(NOISY, 0.2, 0.1)),
        (2, total(total("rmse", NOISY), total(NOISY, "rmse"))),
        (2, total(total(NOISY, NOISY))),
        (3, total(NOISY, NOISY, NOISY)),
    ],
    ids=str,
)
def test_noises_of_one_seed_are_independent(noises, objective):
    noise = objective.compute(QUERIES, SCORES)[0]
    assert abs(noise.std() - np.sqrt(4 * noises)) < 4 * np.sqrt(4 * noises) / np.sqrt(2 * 8000)
