"""The callables: every entry of XGBoost and LightGBM gives the same model, metrics have the right sign, threads."""

import inspect
import itertools
import pickle
import sys

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from catalog import PATHS
from catboost import CatBoost, Pool
from rankers import LIBRARIES, ranker_class
from recording import Recording, threads_of
from sklearn.model_selection import GroupKFold
from trainings import data_of

from ltr_objectives import LTRError, LTRWarning, Metric, adapters, evaluate
from ltr_objectives.adapters import lightgbm_metric, lightgbm_objective, xgboost_metric, xgboost_objective
from ltr_objectives.kernels import threads
from ltr_objectives.libraries import LIGHTGBM
from ltr_objectives.metrics import base
from ltr_objectives.objectives.around import Langevin

XGB = {"max_depth": 3, "nthread": 1, "base_score": 0, "disable_default_eval_metric": 1}
LGB = {"num_leaves": 7, "verbose": -1, "num_threads": 1, "deterministic": True, "seed": 0, "metric": "None"}
OURS, RANDOM = PATHS["own Hessian"], PATHS["random"]


@pytest.fixture
def data():
    return data_of("any", seed=11)[0]


def dmatrix(X, labels, group, weight=None):
    return xgb.DMatrix(X, labels, group=group, weight=weight)


# ways into the libraries


def test_three_ways_into_lightgbm_give_one_model(data):
    X, labels, group = data
    train = lgb.train({**LGB, "objective": lightgbm_objective(OURS)}, lgb.Dataset(X, labels, group=group), 8)
    booster = lgb.Booster({**LGB, "objective": "none"}, lgb.Dataset(X, labels, group=group))
    for _ in range(8):
        booster.update(fobj=lightgbm_objective(OURS))
    ranker = lgb.LGBMRanker(
        objective=lightgbm_objective(OURS), n_estimators=8, num_leaves=7, verbose=-1, n_jobs=1,
        deterministic=True, random_state=0,
    ).fit(X, labels, group=group)  # fmt: skip
    assert np.array_equal(train.predict(X), booster.predict(X))
    assert np.array_equal(train.predict(X), ranker.predict(X))


def test_a_used_or_pickled_or_threaded_callable_gives_the_same_model(data):
    X, labels, group = data
    ours, light = xgboost_objective(RANDOM), lightgbm_objective(RANDOM)
    copies = [ours, ours, pickle.loads(pickle.dumps(ours)), xgboost_objective(RANDOM, n_threads=1)]
    assert len({bytes(xgb.train(XGB, dmatrix(*data), 8, obj=each).save_raw("ubj")) for each in copies}) == 1
    texts = {
        lgb.train({**LGB, "objective": light}, lgb.Dataset(X, labels, group=group), 8).model_to_string()
        for _ in range(2)
    }
    assert len(texts) == 1


def test_lgbmranker_stops_early_on_our_metric(data):
    X, labels, group = data
    named = "eval_X" in inspect.signature(lgb.LGBMRanker.fit).parameters  # newer versions deprecate eval_set
    reverse = X[::-1], labels[::-1]
    valid = {"eval_X": reverse[:1], "eval_y": reverse[1:]} if named else {"eval_set": [reverse]}
    ranker = lgb.LGBMRanker(
        objective=lightgbm_objective(OURS), metric="None", n_estimators=60, learning_rate=1.0, num_leaves=7,
        verbose=-1, n_jobs=1,
    ).fit(
        X, labels, group=group, eval_group=[group[::-1]], **valid,
        eval_metric=lightgbm_metric("map"), callbacks=[lgb.early_stopping(5, verbose=False)],
    )  # fmt: skip
    values = ranker.evals_result_["valid_0"]["map"]
    assert ranker.best_iteration_ - 1 == np.argmax(values) < 59


def test_xgboost_stops_on_the_last_metric_or_on_the_one_that_a_callback_names(data):
    valid = dmatrix(*data)
    how = {"obj": xgboost_objective("lambdamart"), "custom_metric": xgboost_metric("map", "ndcg@3")}
    how |= {"evals": [(valid, "valid")], "verbose_eval": False}
    params = {**XGB, "eta": 1.0, "subsample": 0.3}
    for name, stop in (
        ("ndcg@3", {"early_stopping_rounds": 4}),
        ("map", {"callbacks": [xgb.callback.EarlyStopping(rounds=4, metric_name="map", data_name="valid")]}),
    ):
        record = {}
        booster = xgb.train(params, dmatrix(*data), 200, evals_result=record, **how, **stop)
        values = record["valid"][name]
        assert booster.best_iteration == np.argmax(values) == len(values) - 5


def test_metrics_of_several_data_sets_and_weights(data):
    X, labels, group = data
    weight = np.random.default_rng(1).uniform(0.5, 2, len(group))
    scores = X[:, 0]
    expected = evaluate("map", scores, labels, group, weight)
    assert xgboost_metric("map", "mrr")(scores, dmatrix(*data, weight))[0] == ("map", pytest.approx(expected))
    assert xgboost_metric("mrr")(scores, dmatrix(*data))[0] == ("1-mrr", 1 - evaluate("mrr", scores, labels, group))
    assert xgboost_metric("dcg@3")(scores, dmatrix(*data))[0] == ("-dcg@3", -evaluate("dcg@3", scores, labels, group))
    by_row = np.repeat(weight, group)
    adapter = lightgbm_metric("map")
    light = lgb.Dataset(X, labels, group=group, weight=by_row).construct()
    assert adapter(scores, light)[0] == ("map", pytest.approx(expected), True)
    assert adapter(labels, scores, by_row, group)[0][1] == pytest.approx(expected)
    assert adapter(labels[: group[0]], scores[: group[0]], None, group[:1])[0][1] == evaluate(
        "map", scores[: group[0]], labels[: group[0]], group[:1]
    )


def test_a_metric_may_define_its_own_mean(data):
    class Best(Metric.named["map"]):
        def mean(self, queries, scores, *, n_threads=None):
            return self.values(queries, scores, n_threads=n_threads).max()

    X, labels, group = data
    best = Best().per_query(X[:, 0], labels, group).max()
    assert xgboost_metric(Best())(X[:, 0], dmatrix(*data)) == [("map", best)]
    assert lightgbm_metric(Best())(labels, X[:, 0], None, group) == [("map", best, True)]
    assert best > evaluate("map", X[:, 0], labels, group)


def test_data_that_changes_between_trainings_is_seen(data):
    X, labels, group = data
    ours, d = xgboost_objective(OURS), dmatrix(*data)
    before = ours(X[:, 0], d)
    d.set_label(labels[::-1].copy())
    after = ours(X[:, 0], d)
    assert not np.array_equal(before[0], after[0])
    assert np.array_equal(after[0], xgboost_objective(OURS)(X[:, 0], dmatrix(X, labels[::-1], group))[0])


def test_callables_print_what_they_hold():
    assert repr(xgboost_objective(RANDOM)).startswith("xgboost_objective(YetiLoss(")
    assert repr(lightgbm_metric("map@3")).startswith("lightgbm_metric(MAP(k=3, ties='average', empty=0.0")


# what would abort the process, or mislead


def test_weights_by_query_beside_metrics_by_row(data):
    plain, heavy = dmatrix(*data), dmatrix(*data, np.ones(len(data[2])))
    ours, off = xgboost_objective(OURS), {"disable_default_eval_metric": 1}

    def train(evaluated, params, data=heavy, **how):
        evals = [(each, f"set{i}") for i, each in enumerate(evaluated)]
        params = {"max_depth": 2, **params}
        return xgb.train(params, data, 1, obj=ours, evals=evals, verbose_eval=False, **how).num_boosted_rounds()

    with pytest.raises(LTRError, match="disable_default_eval_metric"):  # a user's loop may evaluate any metric
        xgb.Booster({"max_depth": 2}, [heavy]).update(heavy, 0, fobj=ours)
    first, silent = (xgb.train(params, heavy, 1, obj=ours) for params in ({}, off))
    for how in ({"data": plain}, {"xgb_model": first}, {}):
        with pytest.raises(LTRError, match="disable_default_eval_metric"):
            train([heavy], {}, **how)
    for metrics in ("rmse", ["ndcg", "mae"], ["mphe", "auc"]):
        for more in ({}, {"objective": "rank:ndcg"}, off):
            with pytest.raises(LTRError, match="custom_metric"):
                train([plain, heavy], {"eval_metric": metrics, **more}, plain)
        assert train([], {"eval_metric": metrics}) == train([plain], {"eval_metric": metrics}, plain) == 1
    for params in (off, {"objective": "rank:ndcg"}, {"eval_metric": "ndcg"}):
        assert train([heavy], params) == 1
    assert train([], {}) == train([plain], {}) == 1
    assert train([heavy], off, xgb_model=silent) == 2


@pytest.mark.parametrize("dtype", [">f4", ">f8"])
def test_byte_order_that_can_be_seen_makes_no_difference(data, dtype):
    X, labels, group = data
    weight = np.random.default_rng(0).uniform(1, 2, len(labels)).astype(np.float32)
    position = (np.arange(len(labels)) % 7).astype(">i4")
    scores = X[:, 0].astype(dtype)
    clicks = (labels > 1).astype(dtype)
    ours = lightgbm_objective(PATHS["clicks"], position=position)
    found = ours(clicks, scores, weight.astype(dtype), group.astype(">i4"))
    native = clicks.astype(float), X[:, 0].astype(dtype).astype(float), weight, group
    expected = lightgbm_objective(PATHS["clicks"], position=position.astype(int))(*native)
    np.testing.assert_array_equal(found, expected)
    train = lgb.Dataset(X.astype(dtype), labels.astype(dtype), group=group.astype(">i4"), weight=weight.astype(dtype))
    same = lgb.Dataset(X.astype(dtype[1:]), labels, group=group, weight=weight)
    params = {**LGB, "objective": lightgbm_objective(PATHS["clicks"])}
    assert np.array_equal(lgb.train(params, train, 3).predict(X), lgb.train(params, same, 3).predict(X))


class OtherMatrix:
    """The DMatrix of a library with XGBoost's interface, which has `get_group` but not `get_uint_info`."""

    def __init__(self, labels, group, weight=()):
        self.num_row = lambda: len(labels)
        self.get_label, self.get_group, self.get_weight = (lambda a=a: np.array(a) for a in (labels, group, weight))


def test_a_library_with_the_interface_of_xgboost(data, monkeypatch):
    X, labels, group = data
    scores, weight = X[:, 0].astype(np.float32), np.linspace(1, 2, len(group))
    makers = (lambda: xgboost_objective(OURS)), (lambda: xgboost_metric("map", "mrr"))
    expected = [make()(scores, dmatrix(X, labels, group, weight)) for make in makers]
    monkeypatch.setitem(sys.modules, "xgboost", None)  # not installed
    for given in (weight, np.repeat(weight, group)):
        for make, of_xgboost in zip(makers, expected, strict=True):
            found = make()(scores, OtherMatrix(labels, group, given.astype(np.float32)))
            assert np.array_equal(np.array(found, object), np.array(of_xgboost, object))
    for make in makers:
        with pytest.raises(LTRError, match="has no queries"):
            make()(scores, OtherMatrix(labels, []))


def test_a_callable_of_another_library_is_refused(data):
    X, labels, group = data
    pool, d = Pool(X, labels, group_id=np.repeat(np.arange(len(group)), group)), dmatrix(*data)
    rows = lgb.Dataset(X, labels, group=group, weight=np.ones(len(labels)))
    of_catboost = adapters.catboost_objective(OURS, pool), adapters.catboost_metric("map", pool)
    made = {"xgboost": (xgboost_objective(OURS), xgboost_metric("map")),
            "lightgbm": (lightgbm_objective(OURS), lightgbm_metric("map")), "catboost": of_catboost}  # fmt: skip
    quiet = {"iterations": 1, "verbose": False, "allow_writing_files": False}
    train = {
        "xgboost": lambda objective, metric: xgb.train(
            XGB, d, 1, obj=objective, evals=[(d, "d")], custom_metric=metric, verbose_eval=False
        ),
        "lightgbm": lambda objective, metric: lgb.train(
            {**LGB, "objective": objective}, rows, 1, valid_sets=[rows], feval=metric
        ),
        "catboost": lambda objective, metric: CatBoost(
            {**quiet, "loss_function": objective, "eval_metric": metric or "NDCG"}
        ).fit(pool),
    }
    for library, other in itertools.permutations(made, 2):
        for given in ((made[other][0], None), (made[library][0], made[other][1])):
            with pytest.raises(Exception, match=r"no attribute|no queries|not callable|Unknown type|CatBoost alone"):
                train[library](*given)
    for objective, metric in made.values():
        for given in ({"objective": objective}, {"eval_metric": metric}):
            with pytest.raises(LTRError, match="must be a string such as"):
                adapters.LGBMRanker(**given).fit(X, labels, group=group)
    assert callable(of_catboost[1])  # LightGBM's rankers silently leave out what is neither that nor a known name


# threads: as many as the training was given, counted where they run


RNG = np.random.default_rng(3)
X, Y, GROUP = RNG.normal(size=(400, 3)), RNG.integers(0, 3, 400).astype(float), np.full(40, 10)
QID = np.repeat(np.arange(40), 10)
NAMES = {"xgboost": "nthread", "lightgbm": "num_threads", "lightgbm.sklearn": "n_jobs", "catboost": "thread_count"}


@pytest.fixture
def five_processors(monkeypatch):
    monkeypatch.setattr(threads, "available_threads", lambda: 5)


@pytest.fixture
def asked(monkeypatch):
    """The numbers of threads that metrics ask for."""
    numbers = []
    monkeypatch.setattr(base, "run", lambda *a: numbers.append(a[3]) or threads.run(*a))
    return numbers


threads_given = pytest.mark.usefixtures("five_processors")


def train(library, count=None, of_objective=None, of_metric=None, name=None):
    """Train two rounds on ``count`` threads, or say nothing, and choose those of our callables."""
    params = {} if count is None else {name or NAMES[library]: count}
    if library == "xgboost":
        obj = xgboost_objective(Recording(), n_threads=of_objective)
        metric = xgboost_metric("map", n_threads=of_metric)
        data = xgb.DMatrix(X, Y, group=GROUP)
        params |= {"max_depth": 2, "disable_default_eval_metric": 1}
        xgb.train(params, data, 2, obj=obj, custom_metric=metric, evals=[(data, "learn")], verbose_eval=False)
    elif library == "lightgbm":
        obj = lightgbm_objective(Recording(), n_threads=of_objective)
        data = lgb.Dataset(X, Y, group=GROUP)
        params |= {"objective": obj, "metric": "None", "verbose": -1}
        lgb.train(params, data, 2, valid_sets=[data], feval=lightgbm_metric("map", n_threads=of_metric))
    elif library == "lightgbm.sklearn":
        obj = lightgbm_objective(Recording(), n_threads=of_objective)
        lgb.LGBMRanker(objective=obj, metric="None", n_estimators=2, verbose=-1, **params).fit(X, Y, group=GROUP)
    else:
        pool = Pool(X, Y, group_id=QID)
        params |= {"loss_function": adapters.catboost_objective(Recording(), pool, n_threads=of_objective)}
        params |= {"eval_metric": adapters.catboost_metric("map", pool, n_threads=of_metric)}
        CatBoost({"iterations": 2, "verbose": False, "allow_writing_files": False, "depth": 2, **params}).fit(pool)


@threads_given
@pytest.mark.parametrize("library", NAMES)
def test_the_objective_uses_the_training_s_threads(library):
    for count, used in ((1, 1), (3, 3), (64, 5), *(() if "." in library else ((None, 5), (-1, 5)))):
        assert threads_of(lambda count=count: train(library, count)) == used
    assert threads_of(lambda: train(library, 1, 4)) == 4  # our argument comes first
    assert threads_of(lambda: train(library, 3, 1)) == 1


@threads_given
def test_every_name_that_lightgbm_has_for_it():
    for name in lgb.basic._ConfigAliases.get("num_threads"):
        assert threads_of(lambda name=name: train("lightgbm", 2, name=name)) == 2


@threads_given
@pytest.mark.parametrize("library", LIBRARIES)
def test_the_metric_uses_the_training_s_threads_or_its_own(library, asked):
    train(library, 3, 1)
    assert set(asked) == {3}  # not those of the objective
    asked.clear()
    train(library, 3, of_metric=2)
    assert set(asked) == {2}


@threads_given
@pytest.mark.parametrize(("library", "name"), [
    ("xgboost", "n_jobs"), ("xgboost", "nthread"), ("catboost", "thread_count"),
    *(("lightgbm", name) for name in LIGHTGBM.names("num_threads")),
])  # fmt: skip
def test_the_rankers_use_the_training_s_threads_also_where_they_try_the_objective_first(library, name):
    rounds = {"iterations" if library == "catboost" else "n_estimators": 2}
    for count, used in ((1, 1), (3, 3), (64, 5), (None, 5)):
        params = {} if count is None else {name: count}
        made = ranker_class(library)(objective=Recording(), eval_metric="map", **rounds, **params)
        assert threads_of(lambda made=made: made.fit(X, Y, qid=QID)) == used


@threads_given
@pytest.mark.parametrize("objective", [Recording(0.0), Langevin(Recording(0.0))], ids=["plain", "wrapped"])
def test_warnings_take_no_more_threads_than_the_training(objective):
    data = lgb.Dataset(X, np.zeros(400), group=GROUP).construct()
    ours = lightgbm_objective(objective, n_threads=1)
    with pytest.warns(LTRWarning, match="zero gradient"):
        assert threads_of(lambda: ours(np.zeros(400), data)) == 1


@threads_given
def test_other_ways_to_train():
    data, ours, light = xgb.DMatrix(X, Y, qid=QID), xgboost_objective(Recording()), lightgbm_objective(Recording())
    params = {"nthread": 2, "max_depth": 2, "disable_default_eval_metric": 1}
    quiet = {"objective": light, "num_threads": 2, "verbose": -1, "metric": "None"}
    booster = xgb.Booster(params, [data])
    of_light = lgb.Booster({**quiet, "objective": "none"}, lgb.Dataset(X, Y, group=GROUP))
    in_function = {**quiet, "objective": lambda s, d: light(s, d)}
    folds = {"feval": lightgbm_metric("map"), "folds": GroupKFold(2).split(X, groups=QID)}
    for work in (
        lambda: xgb.cv(params, data, 2, nfold=2, obj=ours),
        lambda: booster.update(data, 0, fobj=ours),
        lambda: xgb.train(params, data, 2, obj=lambda s, d: ours(s, d)),
        lambda: of_light.update(fobj=light),
        lambda: lgb.train(in_function, lgb.Dataset(X, Y, group=GROUP), 2),
        lambda: lgb.cv(quiet, lgb.Dataset(X, Y, group=GROUP), 2, **folds),
    ):
        assert threads_of(work) == 2
    if "nthread" in xgb.get_config():
        with xgb.config_context(nthread=2):
            assert threads_of(lambda: train("xgboost")) == 2


def test_the_configuration_of_xgboost_is_read_once_a_round(monkeypatch):
    read, save_config = [], xgb.Booster.save_config
    monkeypatch.setattr(xgb.Booster, "save_config", lambda self: read.append(self) or save_config(self))
    data = xgb.DMatrix(X, Y, qid=QID)
    params = {"max_depth": 2, "disable_default_eval_metric": 1, "nthread": 2}
    how = {"obj": xgboost_objective(Recording()), "custom_metric": xgboost_metric("map")}
    xgb.train(params, data, 10, **how, evals=[(data, "a"), (data, "b")], verbose_eval=False)
    assert len(read) <= 10 + 2  # in the first round also for the limits of leaves, and for metrics that would abort
