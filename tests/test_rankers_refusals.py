"""Refusals of the estimators beside the rows of refusals.toml; what they accept."""

import warnings

import numpy as np
import pytest
from rankers import LIBRARIES, NATIVE, fold, ranker, ranker_class

from ltr_objectives import LTRError, LTRWarning, Metric, get_metric, objective_for, registry
from ltr_objectives.adapters._run import read_metrics

for name in LIBRARIES:
    pytest.importorskip(name)
everywhere = pytest.mark.parametrize("library", LIBRARIES)
DATA = fold().train
FIT = {"X": DATA.X, "y": DATA.y, "qid": DATA.qid}
EVAL = {**FIT, "eval_set": [(DATA.X, DATA.y)], "eval_qid": [DATA.qid]}


def fit(library, *objective, data=FIT, of_fit=None, **params):
    return ranker(library, *objective, **params).fit(**data, **(of_fit or {}))


@everywhere
def test_nothing_is_trained_by_what_is_refused(library):
    untrained = ranker(library)
    with pytest.raises(LTRError, match="labels must be finite, but row 3 is nan"):
        untrained.fit(DATA.X, np.where(np.arange(len(DATA.y)) == 3, np.nan, DATA.y), qid=DATA.qid)
    assert not hasattr(untrained, "booster_")
    trained = fit(library)
    for call in (untrained.fit, trained.score):
        for more in ((DATA.group,), (None, DATA.group)):  # in LightGBM's and XGBoost's order, and in CatBoost's
            with pytest.raises(TypeError, match="positional arguments"):
                call(DATA.X, DATA.y, *more)
    with pytest.raises(LTRError, match=r"eval_set\[0\] has 9 columns, and X has 10"):
        ranker(library).fit(**{**EVAL, "eval_set": [(DATA.X[:, 1:], DATA.y)]})


def test_misspelt_parameters_are_refused_where_the_library_ignores_them():
    for name, end in (("num_leafs", "; did you mean 'num_leaf'[?]$"), ("qwxz", "$")):
        with pytest.raises(LTRError, match=f"knows no parameter {name!r}{end}"):
            fit("lightgbm", **{name: 2})


def test_every_parameter_that_lightgbm_knows_is_taken(monkeypatch):
    lightgbm = pytest.importorskip("lightgbm")
    everything = lightgbm.LGBMRanker(objective="lambdarank", num_leaves=7, n_estimators=1, verbose=-1).get_params()
    assert ranker_class("lightgbm")(**everything).fit(**FIT).best_iteration_ == 1
    library = ranker_class("lightgbm").library._replace(aliases=tuple)  # its table is private, and may disappear
    for module in ("libraries", "adapters._lightgbm_ranker"):
        monkeypatch.setattr(f"ltr_objectives.{module}.LIGHTGBM", library)
    monkeypatch.setattr(ranker_class("lightgbm"), "library", library)
    assert fit("lightgbm", num_leafs=31).best_iteration_ == 8


def test_every_parameter_that_xgboost_knows_is_taken():
    xgboost = pytest.importorskip("xgboost")
    everything = xgboost.XGBRanker(objective="rank:ndcg", n_estimators=1).get_params()
    known = {"eta": 0.1, "alpha": 0, "seed": 3, "rate_drop": 0.1, "booster": "dart", "use_rmm": False, "nthread": 1}
    for given in (everything, known, {"tree_method": "exact", "opt_dense_col": 1.0}):
        assert ranker_class("xgboost")(**{"n_estimators": 1, **given}).fit(**FIT).booster_
    warned = pytest.warns(UserWarning, match=r"(?s)max_deph.*not used")  # XGBoost's own message
    with warned:
        fit("xgboost", max_deph=3)


@pytest.mark.parametrize(("library", "dart"), [
    ("xgboost", {"booster": "dart", "rate_drop": 0.5}), ("lightgbm", {"boosting_type": "dart"}),
    ("lightgbm", {"boost": "DART"}),
])  # fmt: skip
@pytest.mark.parametrize("objective", ["yetiloss:map", "native"])
def test_dart_has_no_best_round(library, dart, objective):
    objective = NATIVE[library] if objective == "native" else objective
    going_on = fit(library, objective, data=EVAL, **dart)
    assert going_on.best_iteration_ == 8
    told = pytest.raises(LTRError, match=r"changes earlier rounds in later ones, .* cannot be kept; leave early")
    with told:
        fit(library, objective, data=EVAL, of_fit={"early_stopping_rounds": 3}, **dart)
    if library == "xgboost":
        stop = pytest.importorskip("xgboost").callback.EarlyStopping(rounds=3)
        from_dart = {"early_stopping_rounds": 3, "init_model": going_on}
        for params, given in ((dart, {"callbacks": [stop]}), ({}, from_dart)):
            with told:
                fit(library, objective, data=EVAL, of_fit=given, **params)


def test_lightgbm_s_random_forests_stop_early():
    forest = {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5, "eval_metric": "map"}
    fitted = fit("lightgbm", "lambdarank", data=EVAL, of_fit={"early_stopping_rounds": 2}, **forest)
    kept = fitted.best_score_["validation_0"]["map"]  # unlike dart, a forest does not change earlier trees
    assert fitted.score(**FIT) == pytest.approx(kept, abs=1e-12)


def test_xgboost_s_own_arguments_of_fit():
    weight = [np.random.default_rng(0).uniform(1, 2, 40)]
    names = ("eval_sample_weight", "sample_weight_eval_set")
    one, two = (fit("xgboost", data=EVAL, of_fit={name: weight}).evals_result_ for name in names)
    assert one == two != fit("xgboost", data=EVAL).evals_result_
    first, few = fit("xgboost"), np.eye(10)[0]
    assert fit("xgboost", of_fit={"xgb_model": first}).best_iteration_ == 16
    alone = fit("xgboost", of_fit={"feature_weights": few}, colsample_bytree=0.1)
    assert set(alone.booster_.get_score()) == {"f0"}


def test_lightgbm_s_own_arguments_of_fit():
    expected = fit("lightgbm", data=EVAL).evals_result_
    for X, y in ((DATA.X, DATA.y), ((DATA.X,), (DATA.y,))):
        given = {"eval_X": X, "eval_y": y, "eval_qid": [DATA.qid]}
        assert fit("lightgbm", of_fit=given).evals_result_ == expected
    for given, message in (
        ({"eval_X": DATA.X, "eval_qid": [DATA.qid]}, r"eval_set\[0\]: .* y is None"),
        ({"eval_y": DATA.y, "eval_qid": [DATA.qid]}, "Expected 2D array"),
        ({"eval_X": (DATA.X,) * 2, "eval_y": DATA.y, "eval_qid": [DATA.qid]}, "is shorter"),
        ({**EVAL, "eval_X": DATA.X, "eval_y": DATA.y}, "eval_set= is given under two names"),
    ):
        with pytest.raises(ValueError, match=message):
            fit("lightgbm", of_fit={**given, **FIT}, data={})
    names = [f"x{i}" for i in range(10)]
    named = fit("lightgbm", "lambdarank", data=EVAL, of_fit={"feature_name": names, "eval_at": [3]})
    assert named.booster_.feature_name() == names
    assert list(named.evals_result_["validation_0"]) == ["ndcg@3"]


def test_catboost_s_own_arguments_of_fit():
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(DATA.X).assign(kind=DATA.qid.astype(str))
    fitted = fit("catboost", data={**FIT, "X": X.rename(columns=str)}, of_fit={"cat_features": ["kind"]})
    assert list(fitted.booster_.get_cat_feature_indices()) == [10]


@everywhere
def test_each_takes_the_arguments_of_its_own_library(library):
    own = {"xgboost": "sample_weight_eval_set", "lightgbm": "eval_X", "catboost": "text_features"}
    for name in (*own.values(), "foo"):
        if name != own[library]:
            with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
                fit(library, of_fit={name: None})


@pytest.mark.filterwarnings("ignore:40 of 40 queries have zero gradient")  # as it has to be
def test_catboost_trains_on_when_there_is_nothing_left_to_learn():
    fitted = ranker("catboost").fit(DATA.X, DATA.qid % 2, qid=DATA.qid)  # equal labels in a query
    assert np.array_equal(fitted.predict(DATA.X), np.zeros(len(DATA.y)))


@everywhere
@pytest.mark.parametrize(
    "text", ["yetilos:map", "yetilos:map;seed=1", "lambdamrt", "rank:foo", "lambdarank:sigma=2", "MAP"]
)
def test_text_that_is_no_objective_is_refused(library, text):
    with pytest.raises((LTRError, ranker_class(library).library.exception())):
        fit(library, text)


@everywhere
@pytest.mark.parametrize(
    "text",
    ["ndcg10", "p@5", "map5[revenue]", "mpa", "map@2.5", "ndcg@2.5", "ndcg@-1", "ndcg @ 10", "PFuond", "ndcg@5,map"],
)
def test_a_metric_that_is_neither_ours_nor_the_library_s_is_refused(library, text):
    with pytest.raises((LTRError, ranker_class(library).library.exception())):
        fit(library, eval_metric=["map", text])


@everywhere
def test_objectives_of_ours_are_read_in_any_case(library):
    for written in ("YETILOSS:map", "ListNet"):
        assert str(fit(library, written, n_estimators=1).objective_.inner) == written.lower()


@everywhere
def test_metrics_of_ours_are_read_in_any_case(library):
    for name in registry.metrics():
        ours = name if Metric.named[name].cutoff == "none" else f"{name}@5"
        native = "@" not in ours and library == "catboost"  # such as AUC
        read = read_metrics([ours.upper(), f"{ours.upper()}[Revenue]"], ranker_class(library).library)
        assert [str(metric) for metric in read] == [ours.upper() if native else ours, f"{ours}[Revenue]"]


ENDS = [
    "x",
    ";ties=worst",
    "(gain_type=linear)",
    "@5x",
    "@5;ties=worst",
    "@5(gain_type=linear)",
    "@2.5",
    "@5@3",
    "@-",
    "@",
    " ",
    "\n",
    ",",
    ",map",
]


@everywhere
def test_a_name_of_a_metric_counts_to_its_last_letter(library):
    """The library would read the beginning of a text that is neither of our grammar nor in its own table."""
    facts = ranker_class(library).library
    for name in {*registry.metrics(), *KNOWN[library].split()}:
        for text in (name + end for end in ENDS):
            try:
                (read,) = read_metrics(text, facts)
            except LTRError:
                continue
            if not isinstance(read, str):  # as ndcg(gain_type=linear)
                assert read == get_metric(text)
            elif text != "error@2.5" and ":" not in text:  # CatBoost itself checks what follows ":"
                with pytest.raises((LTRError, facts.exception())):
                    fit(library, eval_metric=text, n_estimators=1)


KNOWN = {
    "xgboost": "rmse mae mape error error@0.7 merror auc aucpr pre pre@5 ndcg@10- map- tweedie-nloglik@1.5 quantile",
    "lightgbm": "l2 mean_absolute_error auc auc_mu average_precision mean_average_precision multi_error quantile",
    "catboost": "NDCG:top=10 MAP PFound RMSE QueryRMSE AverageGain:top=3 FilteredDCG",
}


@everywhere
def test_metrics_of_the_library_are_known_by_its_names(library):
    names = KNOWN[library].split()
    assert [str(metric) for metric in read_metrics(names, ranker_class(library).library)] == names
    theirs, small = names[0], {"n_estimators": 1}
    assert fit(library, None, eval_metric=theirs, **small).objective_ == objective_for("ndcg@10")
    fitted = fit(library, NATIVE[library], eval_metric=[theirs], **small)
    with pytest.warns(LTRWarning, match=f"score is the mean ndcg@10, because eval_metric='{theirs}' is the library's"):
        found = fitted.score(**FIT)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fitted.set_params(eval_metric=["ndcg@10", theirs]).score(**FIT) == found
        assert fitted.set_params(eval_metric=None).score(**FIT) == found


def test_a_training_of_catboost_that_ends_before_its_first_tree():
    with pytest.raises(LTRError, match="stopped QuerySoftMax before its first tree"):
        ranker("catboost", "QuerySoftMax", bootstrap_type="No").fit(DATA.X, 8e37 * DATA.y.astype(float), qid=DATA.qid)
