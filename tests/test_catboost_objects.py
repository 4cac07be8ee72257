"""One CatBoost objective in many trainings: in parallel, again, pickled."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from catalog import EXAMPLES
from catboost_fits import fit, make_pool, raw

from ltr_objectives.adapters import catboost_objective
from ltr_objectives.adapters._callables import ObjectiveCallable


def test_several_trainings_in_parallel():
    pools = [make_pool(1200 + 700 * i, seed=i) for i in range(4)]
    losses = [catboost_objective("queryrmse", pool) for pool in pools]
    alone = [raw(fit("QueryRMSE", pool), pool) for pool in pools]

    def train(i):
        return raw(fit(losses[i], pools[i]), pools[i])

    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(train, [*range(4), *range(4)]))  # each object twice, at the same time
    for i in range(8):
        np.testing.assert_allclose(together[i], alone[i % 4], rtol=0, atol=1e-8)


def test_same_bytes_for_any_number_of_threads_again_and_after_pickle():
    pool = make_pool(5000)
    noisy = next(o for examples in EXAMPLES.values() for o in examples if o.facts.random)
    loss = catboost_objective(noisy, pool)
    params = {"iterations": 15, "thread_count": 1}
    expected = raw(fit(loss, pool, params=params), pool).tobytes()
    for threads in (1, 2, 4):
        again = fit(loss, pool, params={**params, "thread_count": threads})
        assert raw(again, pool).tobytes() == expected
        limited = catboost_objective(noisy, pool, n_threads=threads)
        assert raw(fit(limited, pool, params=params), pool).tobytes() == expected
    loaded = pickle.loads(pickle.dumps(loss))
    assert raw(fit(loaded, pool, params=params), pool).tobytes() == expected


def test_an_object_that_fits_is_not_changed():
    pool = make_pool(700)
    loss = catboost_objective("queryrmse", pool)
    before = pickle.dumps(loss)
    model = fit(loss, pool)
    assert pickle.dumps(loss) == before
    first = raw(model, pool)
    np.testing.assert_array_equal(raw(model.fit(pool), pool), first)
    assert isinstance(model.get_params()["loss_function"], type(loss))


def test_objectives_compute_once_a_pass(monkeypatch):
    scores = []

    def counted(made, queries, given, *how, compute=ObjectiveCallable.gradients, **named):
        scores.append(given.copy())
        return compute(made, queries, given, *how, **named)

    monkeypatch.setattr(ObjectiveCallable, "gradients", counted)
    pool = make_pool(3000)
    fit(catboost_objective("queryrmse", pool), pool, params={"iterations": 10, "leaf_estimation_iterations": 3})
    assert len(scores) == 10 * 3, "the first pass over the leaves uses the gradients of the structure"
    assert len({s.tobytes() for s in scores}) == len(scores)
