"""What the rankers refuse, before any training."""

import warnings

import numpy as np
import pytest
from rankers import LIBRARIES, NATIVE, fold, ranker, ranker_class

from ltr_objectives import LTRError, LTRWarning, registry

for name in LIBRARIES:
    pytest.importorskip(name)
everywhere = pytest.mark.parametrize("library", LIBRARIES)
DATA = fold().train
ROWS = len(DATA.y)


def changed(values, row, value):
    out = np.array(values, float)
    out[row] = value
    return out


TWO = [(DATA.X, DATA.y)] * 2
MISTAKES = {
    "no queries": ({"qid": None}, r"pass group= \(sizes\) or qid="),
    "both": ({"group": DATA.group}, "not both"),
    "unsorted": ({"qid": np.roll(DATA.qid, 5)}, "qid is not sorted: query 40 occurs in several places; sort the rows"),
    "short qid": ({"qid": DATA.qid[:-1]}, "but labels has"),
    "missing qid": ({"qid": changed(DATA.qid, 3, np.nan)}, "qid must be finite"),
    "missing label": ({"y": changed(DATA.y, 3, np.nan)}, "labels must be finite, but row 3 is nan"),
    "words": ({"y": np.repeat("good", ROWS)}, "labels must be numbers"),
    "no labels": ({"y": None}, "requires y to be passed"),
    "rows": ({"X": DATA.X[:-1]}, f"X has {ROWS - 1} rows, but y has {ROWS}"),
    "negative weight": ({"sample_weight": changed(np.ones(ROWS), 3, -1)}, "weight must not be negative"),
    "short weight": ({"sample_weight": np.ones(3)}, "weight has 3 entries; pass one per query"),
    "no weight": ({"sample_weight": np.zeros(ROWS)}, "weight is zero everywhere"),
    "label in float32": ({"y": changed(DATA.y, 3, 1e39)}, "labels are beyond float32, .* scale them down"),
    "weight in float32": ({"sample_weight": changed(np.ones(ROWS), 3, 1e39)}, "weights are beyond float32"),
    "short propensity": ({"propensity": np.ones(3)}, f"propensity has 3 entries; pass one per row .{ROWS}."),
    "both corrections": ({"propensity": np.ones(ROWS), "position": np.zeros(ROWS)}, "not both"),
    "patience": ({"early_stopping_rounds": 0}, "early_stopping_rounds=0 must be a whole number"),
    "nothing to stop on": ({"early_stopping_rounds": 3}, "early_stopping_rounds needs an eval_set"),
    "eval lists": (
        {"eval_qid": [DATA.qid]},
        "eval_qid must be a list with one entry for each of the 0 pairs .* has 1$",
    ),
    "eval queries": ({"eval_set": TWO}, r"eval_set\[0\]: pass eval_group= \(sizes\) or eval_qid= \(one id per row\)$"),
    "an eval query": ({"eval_set": TWO, "eval_qid": [DATA.qid, None]}, r"eval_set\[1\]: pass eval_group= .* eval_qid="),
    "few eval lists": (
        {"eval_set": TWO, "eval_group": [DATA.group]},
        r"eval_group .* but has 1: eval_set\[1\] has none",
    ),
    "names as sizes": ({"qid": None, "group": ["a", "b"]}, r"group must be numbers.*; for one id per row use qid="),
    "ids as sizes": (
        {"qid": None, "group": DATA.qid - DATA.qid.min()},
        r"query \d+ has 0; group holds .*; for one id per row use qid=",
    ),
    "bare eval list": ({"eval_set": TWO, "eval_qid": DATA.qid}, f"each of the 2 pairs of eval_set, but has {ROWS}$"),
    "eval both": (
        {"eval_set": TWO, "eval_group": [DATA.group] * 2, "eval_qid": [DATA.qid] * 2},
        "eval_qid= .* not both",
    ),
    "an eval label": (
        {"eval_set": [*TWO[:1], (DATA.X, changed(DATA.y, 3, np.nan))], "eval_qid": [DATA.qid] * 2},
        r"eval_set\[1\]: labels must be finite, but row 3",
    ),
    "a parameter": ({"cat_features": [0]}, r"fit takes no cat_features=; give it to \w+Ranker\(cat_features=...\)$"),
    "cutoffs": ({"eval_at": [5]}, "fit takes no eval_at=; name the cutoffs in eval_metric="),
    "another name": ({"group_id": DATA.qid}, "fit takes no group_id=; it is called qid= here$"),
    "eval pairs": (
        {"eval_set": (DATA.X, DATA.y)},
        rf"pairs \(X, y\), but eval_set\[0\] has {ROWS} entries; write eval_set=\[\(X, y\)\], also for one pair$",
    ),
}


@everywhere
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_named_before_training(library, mistake):
    given, message = MISTAKES[mistake]
    arguments = {"X": DATA.X, "y": DATA.y, "qid": DATA.qid, **given}
    untrained = ranker(library)
    with pytest.raises(LTRError, match=message):
        untrained.fit(**arguments)
    assert not hasattr(untrained, "booster_")


@everywhere
def test_fit_and_score_take_two_arguments_by_position(library):
    untrained, trained = ranker(library), ranker(library).fit(DATA.X, DATA.y, qid=DATA.qid)
    for call in (untrained.fit, trained.score):
        for more in ((DATA.qid,), (None,), (None, DATA.qid)):
            with pytest.raises(LTRError, match=r"only X and y are given by position; .* as in fit\(X, y, qid=qid\)$"):
                call(DATA.X, DATA.y, *more)
    assert not hasattr(untrained, "booster_")


@everywhere
@pytest.mark.parametrize("kind", ["Pool", "DMatrix", "Dataset"])
def test_what_fit_and_score_are_told_of_one_argument(library, kind):
    data_set, trained = type(kind, (), {})(), ranker(library).fit(DATA.X, DATA.y, qid=DATA.qid)
    for call in (ranker(library).fit, trained.score):
        with pytest.raises(LTRError, match="requires y to be passed, but the target y is None; y holds the labels"):
            call(DATA.X, qid=DATA.qid)
        with pytest.raises(LTRError, match=f"X is a {kind}; give the features themselves"):
            call(data_set)


@everywhere
def test_the_eval_set_at_fault_is_named_and_must_have_the_features(library):
    arguments = {"X": DATA.X, "y": DATA.y, "qid": DATA.qid, "eval_qid": [DATA.qid, DATA.qid]}
    with pytest.raises(LTRError, match=r"eval_set\[1\]: X has"):
        ranker(library).fit(**arguments, eval_set=[(DATA.X, DATA.y), (DATA.X[1:], DATA.y)])
    with pytest.raises(ValueError, match=r"X has 9 features, but .* is expecting 10"):
        ranker(library).fit(**arguments, eval_set=[(DATA.X, DATA.y), (DATA.X[:, 1:], DATA.y)])


@everywhere
def test_labels_that_objective_or_metric_cannot_take(library):
    too_high = changed(DATA.y, 3, 9)
    for chosen in ({"objective": "yetiloss:err"}, {"objective": "ranknet", "eval_metric": "err"}):
        with pytest.raises(LTRError, match="max_label"):
            ranker(library, **chosen).fit(
                DATA.X, too_high, qid=DATA.qid, eval_set=[(DATA.X, too_high)], eval_qid=[DATA.qid]
            )


@everywhere
def test_the_library_s_own_objectives_take_no_label_beyond_float32_and_no_positions(library):
    for given, message in (
        ({"y": changed(DATA.y, 3, -1e39)}, "labels are beyond float32"),
        ({"y": DATA.y, "propensity": np.ones(ROWS)}, "leave propensity= and position= out"),
        ({"y": DATA.y, "position": np.zeros(ROWS)}, "leave propensity= and position= out"),
    ):
        with pytest.raises(LTRError, match=message):
            ranker(library, NATIVE[library]).fit(DATA.X, qid=DATA.qid, **given)
    data = {"qid": DATA.qid, "eval_qid": [DATA.qid], "eval_set": [(DATA.X, changed(DATA.y, 3, 1e39))]}
    with pytest.raises(LTRError, match=r"eval_set\[0\]: labels are beyond float32"):
        ranker(library).fit(DATA.X, DATA.y, **data)
    with pytest.raises(LTRError, match="queryrmse does not take propensity or position"):
        ranker(library, "queryrmse").fit(DATA.X, DATA.y, qid=DATA.qid, position=np.arange(ROWS) % 7)


@everywhere
@pytest.mark.parametrize("name", registry.WRAPPERS)
def test_text_that_names_a_wrapper(library, name):
    for text in (name, f"{name}:yetiloss:map", f"{name.title()}('yetiloss:map')"):
        with pytest.raises(LTRError, match=rf"(?i){name} is not written as text, but as an object: .*{name}\(."):
            ranker(library, objective=text).fit(DATA.X, DATA.y, qid=DATA.qid)


@everywhere
def test_parameters_that_cannot_be_right(library):
    for wrong in (3, True, object()):
        with pytest.raises(LTRError, match="objective must be"):
            ranker(library, objective=wrong).fit(DATA.X, DATA.y, qid=DATA.qid)
    for function in (len, [len]):
        with pytest.raises(LTRError, match=r"metric must be a string .* 'Write a metric or an objective'"):
            ranker(library, eval_metric=function).fit(DATA.X, DATA.y, qid=DATA.qid)
    with pytest.raises(LTRError, match="two metrics are both called map"):
        ranker(library, eval_metric=["map", registry.get_metric("map")]).fit(DATA.X, DATA.y, qid=DATA.qid)


@pytest.mark.parametrize(("library", "theirs", "ours"), [
    ("lightgbm", "metric", "eval_metric"), ("catboost", "loss_function", "objective"),
])  # fmt: skip
def test_one_name_for_one_thing(library, theirs, ours):
    with pytest.raises(LTRError, match=f"{theirs}= is called {ours}= in this"):
        ranker(library, **{theirs: "x"}).fit(DATA.X, DATA.y, qid=DATA.qid)


def test_metrics_that_a_library_would_leave_out_or_cannot_take():
    data = {"qid": DATA.qid, "eval_set": [(DATA.X, DATA.y)], "eval_qid": [DATA.qid]}
    with pytest.raises(LTRError, match=r"eval_metric='binry_logloss' is neither ours, .* nor the library's$"):
        ranker("lightgbm", eval_metric=["map", "average_precision", "binry_logloss"]).fit(DATA.X, DATA.y, **data)
    for stop in ({"early_stopping_rounds": 3}, {"od_wait": 3}, {"use_best_model": True}):
        with pytest.raises(LTRError, match="CatBoost stops early on NDCG:top=7 only where no other metric is ours"):
            ranker("catboost", eval_metric=["NDCG:top=7", "mrr"], **stop).fit(DATA.X, DATA.y, **data)


def test_parameters_that_lightgbm_would_ignore(monkeypatch):
    for wrong, right in (("num_leafs", "num_leaf"), ("min_child_sample", "min_child_samples"), ("qwxz", None)):
        end = f"; did you mean '{right}'[?]$" if right else "$"
        with pytest.raises(LTRError, match=f"LightGBM knows no parameter {wrong!r}{end}"):
            ranker("lightgbm", **{wrong: 31}).fit(DATA.X, DATA.y, qid=DATA.qid)
    lightgbm = pytest.importorskip("lightgbm")
    theirs = {"objective": "lambdarank", "num_leaves": 7, "n_estimators": 1, "verbose": -1}
    everything = lightgbm.LGBMRanker(**theirs).get_params()  # under the names of its estimator
    assert ranker_class("lightgbm")(**everything).fit(DATA.X, DATA.y, qid=DATA.qid).best_iteration_ == 1
    library = ranker_class("lightgbm").library._replace(its_aliases=tuple)  # its table is private, and may disappear
    for module in ("_libraries", "_lightgbm_ranker"):
        monkeypatch.setattr(f"ltr_objectives.adapters.{module}.LIGHTGBM", library)
    monkeypatch.setattr(ranker_class("lightgbm"), "library", library)
    assert ranker("lightgbm", num_leafs=31).fit(DATA.X, DATA.y, qid=DATA.qid).best_iteration_ == 8


@everywhere
def test_misspelt_parameters_are_refused(library):
    wrong, right = {
        "xgboost": ("max_deph", "max_depth"), "lightgbm": ("num_leavs", "num_leaves"), "catboost": ("dpth", "depth"),
    }[library]  # fmt: skip
    for name, end in ((wrong, f"; did you mean {right!r}[?]$"), ("qwxz", "$")):
        with pytest.raises(LTRError, match=f"knows no parameter {name!r}{end}"):
            ranker(library, **{name: 2}).fit(DATA.X, DATA.y, qid=DATA.qid)


def test_every_parameter_that_xgboost_knows_is_taken():
    xgboost = pytest.importorskip("xgboost")
    everything = xgboost.XGBRanker(objective="rank:ndcg", n_estimators=1).get_params()
    known = {"eta": 0.1, "alpha": 0, "seed": 3, "rate_drop": 0.1, "booster": "dart", "use_rmm": False, "nthread": 1}
    for given in (everything, known, {"tree_method": "exact", "opt_dense_col": 1.0}):
        assert ranker_class("xgboost")(**{"n_estimators": 1, **given}).fit(DATA.X, DATA.y, qid=DATA.qid).booster_
    warned = pytest.warns(UserWarning, match=r"(?s)max_deph.*not used")  # XGBoost's own message
    with xgboost.config_context(verbosity=1), warned:
        ranker("xgboost", max_deph=3, validate_parameters=False).fit(DATA.X, DATA.y, qid=DATA.qid)


@pytest.mark.parametrize(("library", "dart"), [
    ("xgboost", {"booster": "dart", "rate_drop": 0.5}), ("xgboost", {"rate_drop": 0.5}), ("xgboost", {"one_drop": 1}),
    ("lightgbm", {"boosting": "dart"}), ("lightgbm", {"boosting_type": "dart"}), ("lightgbm", {"boost": "DART"}),
])  # fmt: skip
@pytest.mark.parametrize("objective", ["yetiloss:map", "native"])
def test_dart_has_no_best_round(library, dart, objective):
    if library == "xgboost" and "booster" not in dart:
        pytest.importorskip("xgboost", "3.4")  # before, other boosters have no dropout
    objective = NATIVE[library] if objective == "native" else objective
    data = {"qid": DATA.qid, "eval_set": [(DATA.X, DATA.y)], "eval_qid": [DATA.qid]}
    assert ranker(library, objective, **dart).fit(DATA.X, DATA.y, **data).best_iteration_ == 8
    with pytest.raises(LTRError, match=r"changes earlier rounds in later ones, .* cannot be kept; leave early"):
        ranker(library, objective, **dart).fit(DATA.X, DATA.y, **data, early_stopping_rounds=3)
    if library == "xgboost":
        stop = pytest.importorskip("xgboost").callback.EarlyStopping(rounds=3)
        going_on = ranker(library, objective, booster="dart", rate_drop=0.5).fit(DATA.X, DATA.y, **data)
        for given in ({"callbacks": [stop]}, {"early_stopping_rounds": 3, "init_model": going_on}):
            with pytest.raises(LTRError, match="changes earlier rounds"):
                ranker(library, objective, **(dart if "callbacks" in given else {})).fit(
                    DATA.X, DATA.y, **data, **given
                )
    else:
        stop = pytest.importorskip("lightgbm").early_stopping(1, verbose=False)
        for params, given in (({"early_stopping_round": 3}, {}), ({}, {"callbacks": [stop]})):
            with pytest.raises(LTRError, match="changes earlier rounds"):
                ranker(library, objective, **params, **dart).fit(DATA.X, DATA.y, **data, **given)


def test_lightgbm_s_random_forests_take_none_of_ours():
    forest = {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5}
    with pytest.raises(LTRError, match="boosting='rf' works only with LightGBM's own objectives"):
        ranker("lightgbm", **forest).fit(DATA.X, DATA.y, qid=DATA.qid)
    data = {"eval_set": [(DATA.X, DATA.y)], "eval_qid": [DATA.qid], "early_stopping_rounds": 2}
    fitted = ranker("lightgbm", "lambdarank", eval_metric="map", **forest).fit(DATA.X, DATA.y, qid=DATA.qid, **data)
    kept = fitted.best_score_["validation_0"]["map"]  # unlike dart, a forest does not change earlier trees
    assert fitted.score(DATA.X, DATA.y, qid=DATA.qid) == pytest.approx(kept, abs=1e-12)


@everywhere
def test_the_weights_of_eval_sets_have_two_names(library):
    weight = [np.random.default_rng(0).uniform(1, 2, 40)]
    data = {"qid": DATA.qid, "eval_set": [(DATA.X, DATA.y)], "eval_qid": [DATA.qid]}
    names = ("eval_sample_weight", "sample_weight_eval_set")
    one, two = (ranker(library).fit(DATA.X, DATA.y, **data, **{name: weight}).evals_result_ for name in names)
    assert one == two != ranker(library).fit(DATA.X, DATA.y, **data).evals_result_
    with pytest.raises(LTRError, match="eval_sample_weight and sample_weight_eval_set are two names of one"):
        ranker(library).fit(DATA.X, DATA.y, **data, **dict.fromkeys(names, weight))
    with pytest.raises(LTRError, match="sample_weight_eval_set must be a list with one entry for each of the 1 pairs"):
        ranker(library).fit(DATA.X, DATA.y, **data, sample_weight_eval_set=[])


@pytest.mark.filterwarnings("ignore:40 of 40 queries have zero gradient")  # as it has to be
def test_catboost_trains_on_when_there_is_nothing_left_to_learn():
    y = DATA.qid % 2  # equal labels in a query: CatBoost's default bootstrap fails
    fitted = ranker("catboost").fit(DATA.X, y, qid=DATA.qid)
    assert np.array_equal(fitted.predict(DATA.X), np.zeros(ROWS))


@everywhere
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"objective": "yetilos:map"},
            "objective='yetilos' is unknown; did you mean 'yetiloss'[?] Ours are lambdamart, ",
        ),
        ({"objective": "lambdamrt"}, "did you mean 'lambdamart'"),
        ({"eval_metric": "ndgc@10"}, "eval_metric='ndgc@10' is neither .*; did you mean 'ndcg@10'"),
        ({"eval_metric": "ndcg10"}, "eval_metric='ndcg10' is neither .*; did you mean 'ndcg@10'"),
        ({"eval_metric": "p@5"}, "eval_metric='p@5' is neither .*; did you mean 'precision@5'"),
        ({"eval_metric": "map5[revenue]"}, r"eval_metric='map5.revenue.' is .*; did you mean 'map@5\[revenue\]'"),
        ({"eval_metric": ["map", "mpa"]}, "eval_metric='mpa' is neither .*; did you mean 'map'"),
        ({"eval_metric": "NDCG@10"}, "eval_metric='NDCG@10' is neither .*; did you mean 'ndcg@10'"),
    ],
)
def test_what_is_nearly_a_name_of_ours_is_refused(library, parameters, message):
    with pytest.raises(LTRError, match=message):
        ranker(library, **parameters).fit(DATA.X, DATA.y, qid=DATA.qid)


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_names_in_capitals_are_catboost_s_alone(library):
    for parameters, message in (
        ({"eval_metric": "MAP"}, "eval_metric='MAP' is neither .*; did you mean 'map'"),
        ({"objective": "YetiRank:mode=MAP"}, f"'YetiRank' begins with .* CatBoost's .* {library}'s; .* 'yetirank'"),
    ):
        with pytest.raises(LTRError, match=message):
            ranker(library, **parameters).fit(DATA.X, DATA.y, qid=DATA.qid)


KNOWN = {
    "xgboost": "rmse mae mape error error@0.7 merror auc aucpr pre pre@5 ndcg@10- map- tweedie-nloglik@1.5 quantile",
    "lightgbm": "l2 mean_absolute_error auc auc_mu average_precision mean_average_precision multi_error quantile l1,l2",
    "catboost": "NDCG:top=10 MAP PFound RMSE QueryRMSE AverageGain:top=3 FilteredDCG",
}


@everywhere
def test_metrics_of_the_library_are_known_by_its_names(library):
    for name in KNOWN[library].split():
        assert ranker(library)._knows_metric(name), name


@everywhere
def test_score_says_where_it_is_not_the_metric_of_the_training(library):
    theirs, native = KNOWN[library].split()[0], NATIVE[library]
    data = DATA.X, DATA.y
    for eval_metric in (theirs, [theirs]):
        fitted = ranker(library, native, eval_metric=eval_metric, n_estimators=1).fit(*data, qid=DATA.qid)
        with pytest.warns(
            LTRWarning, match=f"score is the mean ndcg@10, because eval_metric='{theirs}' is the library's"
        ):
            found = fitted.score(*data, qid=DATA.qid)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert fitted.set_params(eval_metric=["ndcg@10", theirs]).score(*data, qid=DATA.qid) == found
            assert fitted.set_params(eval_metric=None).score(*data, qid=DATA.qid) == found


@everywhere
def test_what_is_written_as_elsewhere_is_told_apart(library):
    theirs = KNOWN[library].split()[0]
    with pytest.warns(LTRWarning, match=f"eval_metric='{theirs}' is {library}'s own, so this trains for ndcg@10"):
        ranker(library, None, eval_metric=theirs, n_estimators=1).fit(DATA.X, DATA.y, qid=DATA.qid)
    for eval_metric, message in (("ndcg@10,map", "give a list, such as"), ("MAP@10", "did you mean 'map@10'"),
                                 ("ndcg10", "did you mean 'ndcg@10'")):  # fmt: skip
        with pytest.raises(LTRError, match=message):
            ranker(library, eval_metric=eval_metric).fit(DATA.X, DATA.y, qid=DATA.qid)
    with pytest.raises(LTRError, match="X is a Pool; give the features themselves"):
        ranker(library).fit(type("Pool", (), {})(), DATA.y, qid=DATA.qid)
