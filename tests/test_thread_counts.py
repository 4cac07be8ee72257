"""The objective and the metric run on as many threads as the training was given, counted where they run."""

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from catboost import CatBoost, Pool
from rankers import ranker_class
from recording import Recording, threads_of
from sklearn.model_selection import GroupKFold

from ltr_objectives import LTRError, LTRWarning, adapters
from ltr_objectives.kernels import threads
from ltr_objectives.libraries import LIGHTGBM
from ltr_objectives.metrics import base
from ltr_objectives.objectives.around import Langevin

RNG = np.random.default_rng(3)
X, Y, GROUP = RNG.normal(size=(400, 3)), RNG.integers(0, 3, 400).astype(float), np.full(40, 10)
QID = np.repeat(np.arange(40), 10)


@pytest.fixture(autouse=True)
def five_processors(monkeypatch):
    monkeypatch.setattr(threads, "available_threads", lambda: 5)


def train_xgboost(count, chosen=None):
    obj = adapters.xgboost_objective(Recording(), n_threads=chosen)
    metric = adapters.xgboost_metric("map", n_threads=chosen)
    data = xgb.DMatrix(X, Y, qid=QID)
    params = {"max_depth": 2, "disable_default_eval_metric": 1} | ({} if count is None else {"nthread": count})
    xgb.train(params, data, 2, obj=obj, custom_metric=metric, evals=[(data, "learn")], verbose_eval=False)


def train_lightgbm(count, chosen=None, name="num_threads"):
    obj = adapters.lightgbm_objective(Recording(), n_threads=chosen)
    metric = adapters.lightgbm_metric("map", n_threads=chosen)
    params = {"objective": obj, "metric": "None", "verbose": -1} | ({} if count is None else {name: count})
    data = lgb.Dataset(X, Y, group=GROUP)
    lgb.train(params, data, 2, valid_sets=[data], feval=metric)


def train_lgbmranker(count, chosen=None):
    obj = adapters.lightgbm_objective(Recording(), n_threads=chosen)
    lgb.LGBMRanker(objective=obj, metric="None", n_estimators=2, n_jobs=count, verbose=-1).fit(X, Y, group=GROUP)


def train_catboost(count, chosen=None):
    pool = Pool(X, Y, group_id=QID)
    loss = adapters.catboost_objective(Recording(), pool, n_threads=chosen)
    metric = adapters.catboost_metric("map", pool, n_threads=chosen)
    params = {"iterations": 2, "verbose": False, "allow_writing_files": False, "depth": 2}
    params |= {} if count is None else {"thread_count": count}
    CatBoost({"loss_function": loss, "eval_metric": metric, **params}).fit(pool)


def train_ranker(library, count, name):
    params = {} if count is None else {name: count}
    rounds = "iterations" if library == "catboost" else "n_estimators"
    ranker_class(library)(objective=Recording(), eval_metric="map", **{rounds: 2}, **params).fit(X, Y, qid=QID)


TRAINERS = (train_xgboost, train_lightgbm, train_catboost)


@pytest.mark.parametrize("train", [*TRAINERS, train_lgbmranker])
def test_the_objective_uses_the_training_s_threads(train):
    for asked, used in ((1, 1), (3, 3), (64, 5)):
        assert threads_of(lambda asked=asked: train(asked)) == used
    assert threads_of(lambda: train(1, 4)) == 4  # our argument comes first
    assert threads_of(lambda: train(3, 1)) == 1


@pytest.mark.parametrize("train", TRAINERS)
def test_a_training_that_says_nothing_leaves_all_processors(train):
    for asked in (None, -1):
        assert threads_of(lambda asked=asked: train(asked)) == 5


@pytest.mark.parametrize("name", sorted(lgb.basic._ConfigAliases.get("num_threads")))
def test_every_name_that_lightgbm_has_for_it(name):
    assert threads_of(lambda: train_lightgbm(2, name=name)) == 2


NAMES = [("xgboost", "n_jobs"), ("xgboost", "nthread"), ("catboost", "thread_count")]


@pytest.mark.parametrize(("library", "name"), [*NAMES, *(("lightgbm", name) for name in LIGHTGBM.names("num_threads"))])
def test_the_rankers_use_the_training_s_threads_also_where_they_try_the_objective_first(library, name):
    for asked, used in ((1, 1), (3, 3), (64, 5)):
        assert threads_of(lambda asked=asked: train_ranker(library, asked, name)) == used
    assert threads_of(lambda: train_ranker(library, None, name)) == 5


@pytest.mark.parametrize("objective", [Recording(0.0), Langevin(Recording(0.0))], ids=["plain", "wrapped"])
def test_warnings_take_no_more_threads_than_the_training(objective):
    data = lgb.Dataset(X, np.zeros(400), group=GROUP).construct()
    ours = adapters.lightgbm_objective(objective, n_threads=1)
    with pytest.warns(LTRWarning, match="40 of 40 queries have zero gradient"):
        assert threads_of(lambda: ours(np.zeros(400), data)) == 1


def test_our_objective_in_a_function_of_the_user_s():
    data = xgb.DMatrix(X, Y, qid=QID)
    ours = adapters.xgboost_objective(Recording())
    params = {"max_depth": 2, "disable_default_eval_metric": 1, "nthread": 2}
    assert threads_of(lambda: xgb.train(params, data, 2, obj=lambda s, d: ours(s, d))) == 2
    light = adapters.lightgbm_objective(Recording())
    params = {"objective": lambda s, d: light(s, d), "num_threads": 2, "verbose": -1, "metric": "None"}
    assert threads_of(lambda: lgb.train(params, lgb.Dataset(X, Y, group=GROUP), 2)) == 2


def test_the_configuration_of_xgboost_is_read_once_a_round(monkeypatch):
    read, save_config = [], xgb.Booster.save_config
    monkeypatch.setattr(xgb.Booster, "save_config", lambda self: read.append(self) or save_config(self))
    data = xgb.DMatrix(X, Y, qid=QID)
    params = {"max_depth": 2, "disable_default_eval_metric": 1, "nthread": 2}
    kwargs = {"obj": adapters.xgboost_objective(Recording()), "custom_metric": adapters.xgboost_metric("map")}
    evals = [(data, "a"), (data, "b")]
    xgb.train(params, data, 10, **kwargs, evals=evals, verbose_eval=False)
    assert len(read) <= 10 + 2  # in the first round also for the limits of leaves, and for metrics that would abort


def test_other_ways_to_train():
    data = xgb.DMatrix(X, Y, qid=QID)
    obj = adapters.xgboost_objective(Recording())
    params = {"nthread": 2, "max_depth": 2, "disable_default_eval_metric": 1}
    assert threads_of(lambda: xgb.cv(params, data, 2, nfold=2, obj=obj)) == 2
    booster = xgb.Booster(params, [data])
    assert threads_of(lambda: booster.update(data, 0, fobj=obj)) == 2
    light = lgb.Booster({"objective": "none", "num_threads": 3, "verbose": -1}, lgb.Dataset(X, Y, group=GROUP))
    assert threads_of(lambda: light.update(fobj=adapters.lightgbm_objective(Recording()))) == 3
    params = {"objective": adapters.lightgbm_objective(Recording()), "num_threads": 2, "verbose": -1, "metric": "None"}
    folds = lgb.Dataset(X, Y, group=GROUP)
    cv = {"feval": adapters.lightgbm_metric("map"), "folds": GroupKFold(2).split(X, groups=QID)}
    assert threads_of(lambda: lgb.cv(params, folds, 2, **cv)) == 2


def test_xgboost_s_global_setting():
    if "nthread" not in xgb.get_config():
        pytest.skip("this version has none")
    with xgb.config_context(nthread=2):
        assert threads_of(lambda: train_xgboost(None)) == 2


@pytest.mark.parametrize("train", TRAINERS)
def test_the_metric_uses_them_too(train, monkeypatch):
    asked = []
    monkeypatch.setattr(base, "run", lambda *a: asked.append(a[3]) or threads.run(*a))
    train(3)
    train(3, 2)
    assert set(asked[: len(asked) // 2]) == {3}
    assert set(asked[len(asked) // 2 :]) == {2}


def test_the_threads_of_the_objective_are_not_the_metric_s(monkeypatch):
    asked = []
    monkeypatch.setattr(base, "run", lambda *a: asked.append(a[3]) or threads.run(*a))
    data = xgb.DMatrix(X, Y, qid=QID)
    params = {"max_depth": 2, "disable_default_eval_metric": 1, "nthread": 2}
    ours = {
        "obj": adapters.xgboost_objective(Recording(), n_threads=4),
        "custom_metric": adapters.xgboost_metric("map"),
    }
    xgb.train(params, data, 2, **ours, evals=[(data, "learn")], verbose_eval=False)
    assert set(asked) == {2}


@pytest.mark.parametrize(
    ("library", "name"), [("xgboost", "n_jobs"), ("lightgbm", "nthread"), ("catboost", "thread_count")]
)
def test_a_million_threads_are_refused_before_a_library_starts_them(library, name):
    with pytest.raises(LTRError, match=f"{name}=1000000 must be a whole number of at least 1 and at most 10,000"):
        train_ranker(library, 1_000_000, name)
