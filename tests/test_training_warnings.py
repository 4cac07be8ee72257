"""Warnings of trainings, each once, from the libraries' own functions and from our estimators."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from catalog import ONE_OF_EACH, PATHS
from rankers import LIBRARIES, NATIVE, fold, ranker, ranker_class
from scipy import sparse
from trainings import WAYS, release, trained

from ltr_objectives import LTRError, LTRWarning, compare_scores, evaluate, get_metric
from ltr_objectives.adapters import bagged

libraries = pytest.mark.parametrize("library", LIBRARIES)
ways = pytest.mark.parametrize("way", WAYS)
RNG = np.random.default_rng(0)
X, Y, GROUP = RNG.normal(size=(4000, 3)), RNG.integers(0, 3, 4000).astype(float), [20] * 200


def warnings_of(train):
    """Return our warnings of a training, which show a line of the caller's."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        train()
    found = [each for each in caught if issubclass(each.category, LTRWarning)]
    assert {Path(each.filename).parent for each in found} <= {Path(__file__).parent}
    return found


def warning_of(words, library, way, *data, **how):
    """Return the warning that has these words; there is no other, except of trees without a split."""
    found = warnings_of(lambda: trained(library, way, PATHS["own Hessian"], *data, **how))
    texts = [str(each.message) for each in found]
    [text] = [text for text in texts if words in text]
    assert all(words in other or "have a split" in other for other in texts)
    return text


@libraries
@ways
def test_useless_queries(library, way):
    equal = np.repeat(np.arange(200), 20) % 2  # labels of a query
    warning_of("200 of 200 queries have zero gradient", library, way, X, equal, GROUP, 2)


THRESHOLDS = [str(m) for m in ONE_OF_EACH if hasattr(m, "threshold") and m.empty != "skip"]
STARS = {"sales": Y, "stars": 1.0 + Y}
CALLS = {
    "evaluate": lambda metric: evaluate(metric, Y, STARS, GROUP),
    "compare_scores": lambda metric: compare_scores(metric, Y, -Y, STARS, GROUP),
    "fit": lambda metric: ranker("lightgbm", "yetiloss", eval_metric=metric, n_estimators=1).fit(
        X, Y, group=GROUP, eval_set=[(X, Y)], eval_group=[GROUP], eval_labels=[{"stars": STARS["stars"]}]
    ),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("metric", THRESHOLDS)
def test_a_sum_does_not_hide_a_part_that_no_order_changes(metric, call):
    alone, some = (
        [str(each.message) for each in warnings_of(lambda text=text: CALLS[call](text))]
        for text in (f"{metric}[stars]", f"ndcg@10 + 0.3*{metric}[stars]")
    )
    assert len(some) == 1
    assert some == alone


@ways
@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_a_limit_that_forbids_every_split(library, way):
    name = "min_sum_hessian_in_leaf" if (library, way) == ("lightgbm", "callable") else "min_child_weight"
    text = warning_of("forbids every split", library, way, X, Y, GROUP, 2, params={name: 1e5})
    assert f"{name}=100000" in text


@libraries
@ways
@pytest.mark.parametrize(
    "metric", [get_metric("map"), get_metric("ndcg@10"), *release(m for m in ONE_OF_EACH if m.empty != "skip")]
)
def test_eval_sets_on_which_every_order_is_as_good(library, way, metric):
    graded = hasattr(metric, "threshold")
    labels = 1.0 + Y if graded else np.full(4000, min(1.0, metric.label_limit or 1.0))
    arguments = library, way, X, Y / 4, GROUP, 1
    how = {"valid": (X, labels, GROUP), "metric": metric}
    text = warning_of(f"every order of the documents has the same {metric}; ", *arguments, **how)
    assert ("eval_set[0]: " in text) == (way == "estimator")
    if graded:
        assert f"labels are from 1 to 3, and those above {metric.threshold:g} are relevant" in text
        better = how | {"metric": text.split("as in '")[1].split("'")[0]}
        trained(library, way, PATHS["own Hessian"], *arguments[2:], **better)  # warnings are errors


# a model in which no tree has a split is never silent


TRAIN, VALI, _ = fold()
LIMITS = [  # the parameter as it is given, and its value
    ("xgboost", "gamma", 1e9), ("xgboost", "min_split_loss", 1e9), ("xgboost", "min_child_weight", 1e9),
    ("xgboost", "reg_lambda", 1e30), ("xgboost", "reg_alpha", 1e9), ("lightgbm", "min_split_gain", 1e9),
    ("lightgbm", "min_gain_to_split", 1e9), ("lightgbm", "min_child_samples", 10_000),
    ("lightgbm", "min_data_in_leaf", 10_000), ("lightgbm", "min_child_weight", 1e9), ("lightgbm", "reg_alpha", 1e9),
    ("catboost", "depth", 0), ("catboost", "min_data_in_leaf", 10_000),
]  # fmt: skip
LAST = {library: (name, value) for library, name, value in LIMITS}


def untrained(library, objective=PATHS["random"], **params):
    deep = {"grow_policy": "Depthwise"} if "min_data_in_leaf" in params and library == "catboost" else {}
    return ranker(library, objective, **{"n_estimators": 3, **deep, **params})


def fit(made, X=TRAIN.X, stop=None, **given):
    if stop:
        given |= {"eval_set": [(VALI.X, VALI.y)], "eval_qid": [VALI.qid], "early_stopping_rounds": stop}
    return made.fit(X, TRAIN.y, qid=TRAIN.qid, **given)


def outcome(made, *data, **given):
    """Return the only warning of a training whose model orders nothing, or its error."""
    try:
        [warning] = warnings_of(lambda: fit(made, *data, **given))
    except (LTRError, made.library.exception()) as error:
        return str(error)
    assert np.ptp(made.predict(VALI.X)) == 0
    assert warning.filename == __file__
    return str(warning.message)


@pytest.mark.parametrize(("library", "name", "value"), LIMITS)
def test_the_parameter_that_forbids_splits_is_named(library, name, value):
    text = outcome(untrained(library, **{name: value}))
    assert f"{name}={value}" in text
    assert "0 of" in text


@libraries
@pytest.mark.parametrize("queries", [1, 5, 20])
def test_tiny_data_are_ordered_or_the_parameter_is_named(library, queries):
    rows, labels = np.tile(np.eye(2), (queries, 1)), np.tile([1, 2], queries)
    model = ranker_class(library)(n_estimators=10)
    caught = warnings_of(lambda: model.fit(rows, labels, group=[2] * queries))
    worse, better = model.predict(np.eye(2))
    assert better > worse or "min_child_samples" in str(caught[0].message)


@libraries
@pytest.mark.parametrize("own", [True, False], ids=["ours", "native"])
@pytest.mark.parametrize("value", [1.0, np.nan], ids=["constant", "missing"])
def test_columns_that_order_nothing(library, own, value):
    made = untrained(library, PATHS["random"] if own else NATIVE[library])
    text = outcome(made, np.full_like(TRAIN.X, value))
    assert any(word in text for word in ("no column orders", "num_features", "constant"))


def of_users(rows):
    """Return tables whose columns have one value in each query."""
    table = np.column_stack([RNG.normal(size=len(rows)), np.where(RNG.random(len(rows)) < 0.3, np.nan, 1.0)])
    frame = pd.DataFrame(table, columns=["age", "known"]).assign(city=pd.Categorical(RNG.choice(["a", "b"], len(rows))))
    return table[rows], frame.iloc[rows], sparse.csr_matrix(np.nan_to_num(table)[rows])


@libraries
@pytest.mark.parametrize("own", [True, False], ids=["ours", "native"])
def test_features_of_the_user_alone_order_nothing(library, own):
    rows = np.unique(TRAIN.qid, return_inverse=True)[1]
    for X in of_users(rows):
        made = untrained(library, PATHS["random"] if own else NATIVE[library])
        messages = [str(each.message) for each in warnings_of(lambda m=made, t=X: m.fit(t, TRAIN.y, qid=TRAIN.qid))]
        assert "no column orders" in messages[-1]


@libraries
def test_queries_of_one_row_need_no_order(library):
    ranker(library, "rmse").fit(TRAIN.X, TRAIN.y, group=np.ones(len(TRAIN.y)))  # warnings are errors


@libraries
def test_models_without_splits_of_bags_candidates_and_continued_trainings(library):
    name, value = LAST[library]
    made = untrained(library, **{name: value})
    with pytest.warns(LTRWarning, match=f"{name}={value}"):
        bagged(made, TRAIN.X, TRAIN.y, qid=TRAIN.qid, bags=2)
    assert f"{name}={value}" in outcome(untrained(library, "auto", **{name: value}), stop=2)
    before = fit(untrained(library, **{name: 1}))
    with pytest.warns(LTRWarning, match=f"{name}={value}"):  # rounds of the earlier model do not count
        fit(made, init_model=before)


@pytest.mark.parametrize(
    "flags", [(RNG.random((400, 3)) < 0.01) * 1.0, np.ones((400, 3)), np.full((400, 3), np.nan), np.zeros((400, 3))]
)
def test_lightgbm_trains_on_columns_without_a_split(flags):
    """As its own ranker does. A function needs a column that was not dropped."""
    [text] = warnings_of(lambda: ranker("lightgbm", "yetiloss:map").fit(flags, Y[:400], group=GROUP[:20]))
    assert "have a split" in str(text.message)


def test_a_name_in_other_letters_than_catboost_s_is_ours():
    with pytest.warns(LTRWarning, match="or 'LambdaMart' for catboost's own"):
        fitted = ranker("catboost", "LambdaMART", n_estimators=1).fit(X, Y, group=GROUP)
    assert str(fitted.objective_) == "lambdamart"


def test_auto_says_that_only_native_objectives_are_left():
    made = untrained("lightgbm", "auto", bagging_by_query=True)
    first, second = (str(each.message) for each in warnings_of(lambda: fit(made, np.ones_like(TRAIN.X), stop=2)))
    assert isinstance(made.objective_, str)
    assert "none of our objectives" in first
    assert "0 of" in second


BY_ROW = {"y": Y % 2, "qid": np.repeat(np.arange(200), 20), "sample_weight": Y + 1, "position": np.arange(4000) % 20}
MARGINS = {"xgboost": "base_margin", "lightgbm": "init_score", "catboost": "baseline"}


def orders(work):
    """Return the warnings of orders."""
    return [text for text in (str(each.message) for each in warnings_of(work)) if "order" in text]


@libraries
@pytest.mark.filterwarnings("ignore:position= corrects nothing")
def test_series_in_another_order_than_the_table(library):
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    by_row = {**BY_ROW, MARGINS[library]: Y - 1.0}
    goals = {"goal": Y}

    def fit(labels=goals, X=table, **other):
        made = ranker(library, "lambdamart", n_estimators=1, eval_metric="ndcg + ndcg[goal]")
        return made.fit(X, labels=labels, **by_row | other)

    for name, values in by_row.items():
        [text] = orders(lambda n=name, v=values: fit(**{n: pd.Series(v)[::-1]}))
        assert text.startswith(f"{name} has the entries of X.index in another order")
        assert not orders(lambda n=name, v=values: fit(**{n: pd.Series(v)[::-1].to_numpy()[::-1]}))
        assert not orders(lambda n=name, v=values: fit(**{n: pd.Series(v).set_axis(np.arange(4000)[::-1] + 1)}))
        assert not orders(
            lambda n=name, v=values: fit(X=pl.from_pandas(table), **{n: pd.Series(v)[::-1].set_axis(range(4000))})
        )
    assert "labels['goal'] has" in orders(lambda: fit({"goal": pd.Series(Y)[::-1]}))[0]
    fitted = fit()
    wrong = {"y": Y, "qid": by_row["qid"], "labels": {"goal": pd.Series(Y)[::-1]}}
    assert "labels['goal'] has" in orders(lambda: fitted.score(table, **wrong))[0]
    eval_set = [(table, Y), (table, pd.Series(Y)[::-1])]
    lists = {"eval_qid": [by_row["qid"]] * 2, "eval_labels": [goals, {"goal": pd.Series(Y)[::-1]}]}
    said = orders(lambda: ranker(library, "lambdamart", n_estimators=1, eval_metric="ndcg + ndcg[goal]").fit(
        table, Y, qid=by_row["qid"], labels=goals, eval_set=eval_set, **lists))  # fmt: skip
    assert [text.partition(" has")[0] for text in said] == ["eval_set[1]: y", "eval_set[1]: labels['goal']"]


@libraries
def test_weights_by_query_in_another_order_than_the_queries(library):
    """As of groupby, which sorts the queries."""
    qid = np.repeat(np.random.default_rng(1).permutation(200), 20)
    by_query = pd.Series(np.arange(1.0, 201.0))
    fit = ranker(library, n_estimators=1).fit
    [text] = orders(lambda: fit(X, Y, qid=qid, sample_weight=by_query))
    assert text.startswith("sample_weight has the entries of qid.unique() in another order")
    assert not orders(lambda: fit(X, Y, qid=qid, sample_weight=by_query.loc[pd.unique(qid)]))
    sizes = pd.Series(20, index=pd.unique(qid))
    assert "group.index" in orders(lambda: fit(X, Y, group=sizes, sample_weight=by_query))[0]
    assert not orders(lambda: fit(X, Y, group=sizes, sample_weight=by_query.loc[sizes.index]))


@libraries
def test_sizes_in_the_order_of_value_counts(library):
    query = pd.Series(np.repeat([0, 1, 2], [30, 70, 3900]))
    fit = ranker(library, n_estimators=1).fit
    assert "counted by value_counts()" in orders(lambda: fit(X, Y, group=query.value_counts()))[0]
    assert not orders(lambda: fit(X, Y, group=query.value_counts(sort=False)))
