"""One small training for all libraries and all ways into them, which other processes can import too."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from catalog import EXAMPLES
from rankers import LIBRARIES, ranker

from ltr_objectives import Objective, UnitHessian, adapters, registry
from ltr_objectives.libraries import LIBRARIES as FACTS

WAYS = ("callable", "estimator")  # and "native"
NEWTON = {  # CatBoost without randomness
    "leaf_estimation_method": "Newton", "leaf_estimation_iterations": 1, "learning_rate": 0.1, "random_strength": 0,
    "bootstrap_type": "No", "boost_from_average": False,
}  # fmt: skip
THREADS = {library: next(name for name in FACTS[library].names(FACTS[library].threads) if name in params)
           for library, (_, params) in LIBRARIES.items()}  # fmt: skip


def release(values):
    """Mark cases that run before a release only."""
    return [pytest.param(value, marks=pytest.mark.release, id=str(value)[:30]) for value in values]


def sampled(cases, step=5):
    """Return every ``step``-th case, and all of them before a release."""
    each = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*case, marks=pytest.mark.release if i % step else ()) for i, case in enumerate(each)]


def objectives():
    """Yield each objective of the registry, with settings that take labels up to 3."""
    for name in registry.objective_names():
        examples = Objective.named[name](), *EXAMPLES[name]
        yield next(e for e in examples if e.label_limit is None or e.label_limit >= 3)


class Trained(NamedTuple):
    model: Any  # of the library, or an estimator
    predict: Callable[[Any], np.ndarray]  # scores of the rounds that are kept
    rounds: int  # that are kept
    log: dict[str, list[float]]  # of the eval set, by metric


def small_data(queries: int = 30, size: int = 12, seed: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features, labels 0 to 3 and query ids."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * size, 4)).astype(np.float32)
    y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=len(X)), [0.0, 0.7, 1.4]).astype(float)
    return X, y, np.repeat(np.arange(queries), size)


def data_of(path, seed=7, queries=60):
    """Return features, labels and sizes of queries, and what ``catalog.PATHS[path]`` reads beside them."""
    rng = np.random.default_rng(seed)
    group = rng.integers(1, 25, queries)
    X = rng.normal(size=(group.sum(), 5)).astype(np.float32)
    y = np.digitize(X[:, 0] + 0.5 * X[:, 1] + 0.5 * rng.normal(size=len(X)), [0.5, 1.0, 1.5]).astype(float)
    position = np.concatenate([rng.permutation(size) for size in group])
    clicks = ((y > 0) & (rng.random(len(y)) < 1.0 / (1.0 + 0.3 * position))).astype(float)
    revenue = np.digitize(X[:, 1], [0.3, 1.2]).astype(float)
    given = {
        "goals": {"labels": {"revenue": revenue}},
        "propensity": {"propensity": 1.0 / (1.0 + position)},
    }.get(path, {})
    return (X, clicks if path == "propensity" else y, group), given


def trained(library, way, objective, X, y, group, rounds=8, *, threads=1, params=(), weight=None, start=None,
            valid=None, metric=None, stop=None, before=None, after=None, **given) -> Trained:  # fmt: skip
    """Train by the library's own function or by our estimator.

    ``way`` is "native", where ``objective`` holds the library's parameters, "callable" or "estimator". Weights are by
    query, ``start`` are scores by row, and ``valid`` is an eval set, for ``metric`` and early stopping after ``stop``
    rounds. ``before`` is the training that this one continues. ``after`` is called with the number of each iteration,
    and ``given`` are arguments of the callable or of ``fit``, such as ``labels``.
    """
    if way == "estimator":
        of_valid = {"eval_set": [valid[:2]], "eval_group": [valid[2]]} if valid else {}
        model = ranker(
            library, objective, eval_metric=metric, n_estimators=rounds, **{THREADS[library]: threads, **dict(params)}
        ).fit(
            X, y, group=group, sample_weight=weight, early_stopping_rounds=stop, init_model=before and before.model,
            **of_valid, **given,
        )  # fmt: skip
        return Trained(
            model, model.predict, model.best_iteration_, model.evals_result_["validation_0"] if valid else {}
        )
    native, ours = (objective, None) if way == "native" else ({}, objective)
    how = SimpleNamespace(
        threads=threads, params=dict(params), weight=weight, start=start, valid=valid, metric=metric, stop=stop,
        before=before and before.model, after=after, given=given,
    )  # fmt: skip
    return BY_FUNCTION[library](native, ours, X, y, group, rounds, how)


def by_xgboost(native, ours, X, y, group, rounds, how):
    import xgboost as xgb

    class AfterRound(xgb.callback.TrainingCallback):
        def after_iteration(self, model, epoch, evals_log):
            how.after(epoch)
            return False

    def predict(X):
        return model.predict(xgb.DMatrix(X, nthread=how.threads), output_margin=True, iteration_range=(0, kept))

    data = xgb.DMatrix(X, y, group=group, weight=how.weight, base_margin=how.start, nthread=how.threads)
    log, more = {}, {} if native else {"obj": adapters.xgboost_objective(ours, **how.given)}
    if how.valid:
        evals = [(xgb.DMatrix(*how.valid[:2], group=how.valid[2], nthread=how.threads), "valid")]
        more |= {"evals": evals, "custom_metric": adapters.xgboost_metric(how.metric), "evals_result": log,
                 "early_stopping_rounds": how.stop, "verbose_eval": False}  # fmt: skip
    usual = {"max_depth": 3, "nthread": how.threads, "min_child_weight": 1e-3, "disable_default_eval_metric": 1}
    callbacks = [AfterRound()] if how.after else []
    params = {**usual, **how.params, **native}
    model = xgb.train(params, data, rounds, xgb_model=how.before, callbacks=callbacks, **more)
    kept = model.best_iteration + 1 if how.stop else model.num_boosted_rounds()
    return Trained(model, predict, kept, log.get("valid", {}))


def by_lightgbm(native, ours, X, y, group, rounds, how):
    import lightgbm as lgb

    by_row = None if how.weight is None else np.repeat(how.weight, group)
    data = lgb.Dataset(X, y, weight=by_row, group=group, init_score=how.start)
    log, more = {}, {}
    callbacks = [lambda env: how.after(env.iteration)] if how.after else []
    if how.valid:
        evals = [lgb.Dataset(*how.valid[:2], group=how.valid[2], reference=data)]
        more = {"valid_sets": evals, "feval": adapters.lightgbm_metric(how.metric)}
        callbacks += [lgb.record_evaluation(log)] + ([lgb.early_stopping(how.stop, verbose=False)] if how.stop else [])
    usual = {"num_leaves": 7, "num_threads": how.threads, "verbose": -1, "metric": "None", "deterministic": True,
             "force_col_wise": True, "min_sum_hessian_in_leaf": 1e-3}  # fmt: skip
    params = {**usual, **how.params, **(native or {"objective": adapters.lightgbm_objective(ours, **how.given)})}
    model = lgb.train(params, data, rounds, init_model=how.before, callbacks=callbacks, **more)
    kept = model.best_iteration if how.stop else model.current_iteration()
    return Trained(model, lambda X: model.predict(X, num_threads=how.threads), kept, log.get("valid_0", {}))


def by_catboost(native, ours, X, y, group, rounds, how):
    from catboost import CatBoost, Pool

    class AfterTree:
        def after_iteration(self, info):
            how.after(info.iteration)
            return True

    def pool(X, y, group, **more):
        return Pool(X, y, group_id=np.repeat(np.arange(len(group)), group), thread_count=how.threads, **more)

    by_row = None if how.weight is None else np.repeat(how.weight, group)
    data = pool(X, y, group, weight=by_row, baseline=how.start)
    own, usual, more = dict(native), {}, {}
    if not native:
        own = {"loss_function": adapters.catboost_objective(ours, data, **how.given), "eval_metric": "NDCG"}
        usual = NEWTON
    if how.valid:
        evals = pool(*how.valid)
        more = {"eval_set": evals, "early_stopping_rounds": how.stop}
        own |= {"eval_metric": adapters.catboost_metric(how.metric, data, evals)}
    usual = {**usual, "iterations": rounds, "depth": 3, "thread_count": how.threads, "verbose": False, "random_seed": 0,
             "allow_writing_files": False}  # fmt: skip
    callbacks = [AfterTree()] if how.after else None
    model = CatBoost({**usual, **how.params, **own}).fit(data, init_model=how.before, callbacks=callbacks, **more)
    log = model.get_evals_result().get("validation", {})
    return Trained(model, lambda X: model.predict(X, thread_count=how.threads), model.tree_count_, log)


BY_FUNCTION = {"xgboost": by_xgboost, "lightgbm": by_lightgbm, "catboost": by_catboost}


def train(library: str, objective: Any = "yetiloss:ndcg@10", *, rounds: int = 6, data: Any = None, native: Any = None,
          **how: Any) -> bytes:  # fmt: skip
    """Return the predictions of a training as bytes, on ``data`` (X, y, qid) or on small data."""
    X, y, qid = small_data() if data is None else data
    group = np.unique(qid, return_counts=True)[1]
    way = "native" if native else "callable"
    return trained(library, way, native or objective, X, y, group, rounds, **how).predict(X).tobytes()


SETTINGS = {  # of the estimators, for the libraries' own functions
    "xgboost": {"eta": 0.3, "reg_lambda": 20, "base_score": 0, "min_child_weight": 1},
    "lightgbm": {"learning_rate": 0.3, "lambda_l2": 20},
    "catboost": {"learning_rate": 0.3, "l2_leaf_reg": 20},
}


def through_the_callable(library, objective, data, y, weight=None, **given):
    """Return the scores of a training by the library's own function with the settings of the estimators."""
    how = {"weight": weight, "params": SETTINGS[library], **given}
    return trained(library, "callable", UnitHessian(objective), data.X, y, data.group, **how).predict(data.X)
