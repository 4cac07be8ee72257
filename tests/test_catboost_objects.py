"""One CatBoost objective in many trainings: in parallel, again, pickled; and what each training computes."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from catalog import EXAMPLES
from catboost import Pool
from catboost_fits import NEWTON, arrays, fit, make_pool, raw

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


def noisy():
    """The registered objective that is most sensitive to how scores are rounded and how often it is called."""
    return next(o for examples in EXAMPLES.values() for o in examples if o.facts.random)


def test_same_bytes_for_any_number_of_threads_again_and_after_pickle():
    pool = make_pool(5000)
    loss = catboost_objective(noisy(), pool)
    params = {"iterations": 15, "thread_count": 1}
    expected = raw(fit(loss, pool, params=params), pool).tobytes()
    for threads in (1, 2, 4):
        again = fit(loss, pool, params={**params, "thread_count": threads})
        assert raw(again, pool).tobytes() == expected
        limited = catboost_objective(noisy(), pool, n_threads=threads)
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


def test_every_objective_trains(any_objective):
    rows = 800
    rng = np.random.default_rng(0)
    X, y, qid = arrays(rows)
    limit = any_objective.label_limit
    y = y if limit is None or limit >= 4 else rng.choice([0.0, limit], rows)
    grad, _ = any_objective.gradient_hessian(np.zeros(rows), y, qid=qid)
    if np.count_nonzero(np.bincount(qid, np.abs(grad))) < qid[-1] / 2:  # such as a hit that is certain
        y = y * (rng.random(rows) < 0.3)
    pool = Pool(X, y, group_id=qid)
    loss = catboost_objective(any_objective, pool)
    model = fit(loss, pool, params={"iterations": 5, "bootstrap_type": "Bernoulli", **NEWTON})
    assert np.isfinite(raw(model, pool)).all()
    assert np.ptp(raw(model, pool)) > 0


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
