"""NumPy, pandas, polars, pyarrow and SciPy give the same model for the same rows; categories and missing values."""

import pickle
import warnings
from decimal import Decimal
from pathlib import Path

import catboost
import numpy as np
import pandas
import polars
import pyarrow as arrow
import pytest
from rankers import SUFFIX, everywhere, fold, ranker, ranker_class
from scipy import sparse

from ltr_objectives import LTRError, evaluate

by_code = pytest.mark.parametrize("library", ["xgboost", "lightgbm"])  # CatBoost's models have hashes of the categories
TRAIN, VALI, TEST = fold()
NAMES = [f"feature {i}" for i in range(10)]
SMALL = {"min_child_samples": 5, "min_data_per_group": 5}
REFUSED = (ValueError, TypeError, catboost.CatBoostError)  # XGBoost's and LightGBM's are ValueErrors


def made(library, **params):
    return ranker(library, **(SMALL if library == "lightgbm" else {}), **params)


def read_again(fitted, library, tmp_path):
    """Return the model in the file that this one writes."""
    path = tmp_path / f"model{SUFFIX[library]}"
    fitted.save_model(path)
    return ranker_class(library)().load_model(path)


def as_pandas(X):
    return pandas.DataFrame(X, columns=NAMES)


def as_objects(X, kind):
    """Return columns as a database gives them, with None for NaN."""
    return pandas.DataFrame([[None if np.isnan(x) else kind(float(x)) for x in row] for row in X], None, NAMES, object)


def swapped(values):
    """Return the same numbers in the other byte order."""
    values = np.asarray(values)
    return values.astype(values.dtype.newbyteorder(">"))


def as_series(values):
    """Return the numbers with an index of their own."""
    return pandas.Series(values, index=np.arange(len(values))[::-1] + 0.5)


FORMS = {  # of the table, and of all other arrays
    "pandas": (as_pandas, as_series),
    "polars": (lambda X: polars.DataFrame(X, schema=NAMES), list),
    "pyarrow": (lambda X: arrow.table(dict(zip(NAMES, X.T.copy(), strict=True))), list),
    "list": (np.ndarray.tolist, list),
    "objects": (lambda X: as_objects(X, float), as_series),
    "decimals": (lambda X: as_objects(X, Decimal), as_series),
    "wide": (np.float64, as_series),
    "swapped": (swapped, swapped),  # XGBoost reads every byte order as the native one
    "swapped pandas": (lambda X: as_pandas(swapped(X)), swapped),  # which pandas refuses
    "swapped column": (lambda X: as_pandas(X).assign(**{NAMES[2]: swapped(X[:, 2])}), swapped),
}


def with_holes(data, seed=0):
    X = data.X.copy()
    X[np.random.default_rng(seed).random(X.shape) < 0.1] = np.nan
    return X


@everywhere
@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_one_model(library, form):
    def trained(table, array):
        weight = np.random.default_rng(0).uniform(1, 2, len(TRAIN.group)).astype(np.float32)
        evaluated = {"eval_set": [(table(with_holes(VALI)), array(VALI.y))], "eval_group": [array(VALI.group)]}
        given = {"qid": array(TRAIN.qid), "sample_weight": array(weight)}
        fitted = ranker(library).fit(table(with_holes(TRAIN)), array(TRAIN.y), **given, **evaluated)
        return fitted.predict(table(with_holes(TEST))), fitted.evals_result_

    expected, record = trained(np.asarray, np.asarray)
    found = trained(*FORMS[form])
    assert np.array_equal(found[0], expected)
    assert found[1] == record


def test_the_number_that_stands_for_missing_in_xgboost_does_so_in_predict():
    X, Z = with_holes(TRAIN), with_holes(TEST)
    expected = ranker("xgboost").fit(X, TRAIN.y, qid=TRAIN.qid).predict(Z)
    fitted = ranker("xgboost", missing=-9.0).fit(np.nan_to_num(X, nan=-9), TRAIN.y, qid=TRAIN.qid)
    assert np.array_equal(fitted.predict(np.nan_to_num(Z, nan=-9)), expected)


def swapped_csr(X):
    X = sparse.csr_matrix(X)
    X.data = swapped(X.data)
    return X


@everywhere
@pytest.mark.parametrize("make", [sparse.csc_matrix, sparse.csr_array, swapped_csr])
def test_sparse_rows(library, make):
    X, Z = (np.where(np.abs(data.X) < 0.7, 0, data.X) for data in (TRAIN, TEST))
    fitted = ranker(library).fit(make(X), TRAIN.y, qid=TRAIN.qid)
    # XGBoost takes entries that are not stored as missing
    dense = (lambda A: np.where(A == 0, np.nan, A)) if library == "xgboost" else np.asarray
    expected = ranker(library).fit(dense(X), TRAIN.y, qid=TRAIN.qid)
    assert np.array_equal(fitted.predict(make(Z)), expected.predict(dense(Z)))


def categorical(rows, seed):
    """Return a table whose category decides relevance: blue is relevant."""
    rng = np.random.default_rng(seed)
    colours = rng.choice(["red", "blue", "green", "grey"], rows)
    X = pandas.DataFrame({"noise": rng.normal(size=rows), "colour": pandas.Categorical(colours)})
    return X, (colours == "blue").astype(int) * 2, np.repeat(np.arange(rows // 10), 10)


X, Y, QID = categorical(600, 0)
COLOURS = {"red": 3, "blue": 1, "green": 4, "grey": 2}
ORDER = sorted(COLOURS)
ORDERED = pandas.Categorical(X.colour, ORDER, ordered=True)
HOLES = X.assign(colour=X.colour.where(np.arange(600) % 7 > 0))  # refused by CatBoost


@everywhere
def test_categories_are_features(library):
    fitted = made(library, eval_metric="map").fit(X, Y, qid=QID, eval_set=[(X, Y)], eval_qid=[QID])
    assert fitted.score(X, Y, qid=QID) == evaluate("map", Y, Y, qid=QID)
    Z, z, _ = categorical(100, 1)
    scores = fitted.predict(Z)
    assert scores[z > 0].min() > scores[z == 0].max()
    only = Z[Z.colour.isin(["blue", "grey"])]
    fewer = only.assign(colour=pandas.Categorical(only.colour))  # other codes for the same categories
    assert np.array_equal(fitted.predict(fewer), scores[Z.colour.isin(["blue", "grey"])])


IN_ARROW = arrow.DictionaryArray.from_arrays(ORDERED.codes, ORDER, ordered=True)
IN_POLARS = polars.Series(list(X.colour), dtype=polars.Enum(ORDER))


@everywhere
@pytest.mark.parametrize(
    "table",
    [
        X.assign(colour=ORDERED),
        polars.DataFrame({"noise": X.noise.to_numpy(), "colour": IN_POLARS}),
        arrow.table({"noise": X.noise.to_numpy(), "colour": IN_ARROW}),
    ],
    ids=["pandas", "polars", "pyarrow"],
)
def test_ordered_categories_of_every_form_are_categories(library, table):
    expected = made(library).fit(X, Y, qid=QID).predict(X)
    assert np.array_equal(made(library).fit(table, Y, qid=QID).predict(table), expected)


@everywhere
@pytest.mark.parametrize("names", [[1, 0], [2.5, 1.5]])
def test_columns_with_numbers_as_names(library, names):
    """LightGBM and CatBoost take a number for the position of a categorical feature."""
    table = X if library == "catboost" else HOLES
    expected = ranker(library).fit(table, Y, qid=QID).predict(table)
    numbered = table.set_axis(names, axis=1)
    for given, qid in ((numbered, QID), (numbered.assign(qid=QID), None)):
        fitted = ranker(library).fit(given, Y, qid=qid, eval_set=[(numbered, Y)], eval_qid=[QID])
        assert np.array_equal(fitted.predict(given), expected)


@everywhere
def test_eval_sets_may_stand_in_a_tuple_and_margins_in_a_column(library):
    """Two pairs are not one, whose features and labels are pairs."""
    margin, more = {
        "xgboost": ("base_margin", "base_margin_eval_set"), "lightgbm": ("init_score", "eval_init_score"),
        "catboost": ("baseline", ""),
    }[library]  # fmt: skip
    pairs = [(TRAIN.X, TRAIN.y), (TEST.X, TEST.y)]
    lists = {"eval_qid": [TRAIN.qid, TEST.qid]}
    fitted = [made(library).fit(*pairs[0], qid=TRAIN.qid, eval_set=kind(pairs), **lists) for kind in (list, tuple)]
    assert fitted[0].evals_result_ == fitted[1].evals_result_
    assert len(fitted[0].evals_result_) == 2
    start = np.sin(np.arange(len(TRAIN.y)))
    of_eval = {"eval_set": (TRAIN.X, TRAIN.y), "eval_qid": [TRAIN.qid]} if more else {}
    scores = [
        made(library)
        .fit(*pairs[0], qid=TRAIN.qid, **{margin: shaped}, **of_eval, **{more: [shaped]} if more else {})
        .predict(TEST.X)
        for shaped in (start, start[:, None])
    ]
    assert np.array_equal(*scores)


BY_NUMBER = {
    "xgboost": {
        "monotone_constraints": [(1, 0), "(1,0)", {0: 1}],
        "interaction_constraints": [[[0, 1]], [range(2)], "[[0, 1]]"],
        "feature_weights": [[1, 2]],
    },
    "lightgbm": {
        "categorical_feature": [[1], "1", "0,1", {1}, pandas.Index([1])],
        "cat_feature": [[1]], "monotone_constraints": [[1, 0], "1,0"],
        "max_bin_by_feature": [[9, 9]], "forcedsplits_filename": [__file__, Path(__file__)],
    },
    "catboost": {
        "cat_features": [[1], range(1, 2), np.array([1])],
        "feature_weights": [{"1": 2.0}, pandas.Series([1, 2])],
        "ignored_features": [[1], ["1"], ["0-1"]],
        "monotone_constraints": [[1, 0], "(1,0)", {0: 1}, "0:1"],
        "per_float_feature_quantization": [["1:border_count=9"]],
    },
}  # fmt: skip
BY_NAME = {
    "xgboost": {"monotone_constraints": {"2nd": 1}, "interaction_constraints": [["1st", "2nd"]]},
    "lightgbm": {"categorical_feature": ["2nd"]},
    "catboost": {"cat_features": ["2nd"], "ignored_features": ["1st"], "monotone_constraints": {"1st": 1}},
}


@everywhere
def test_numbers_of_columns_beside_a_column_of_ids_are_refused(library):
    """The libraries do not see this column, and would count from the one behind it."""
    table = pandas.DataFrame({"qid": TRAIN.qid, "1st": TRAIN.X[:, 0], "2nd": TRAIN.qid % 3})
    for name, values in BY_NUMBER[library].items():
        for value in values:
            with pytest.raises(LTRError, match=f"^{name}="):
                made(library, **{name: value}).fit(table, TRAIN.y)
    for name, value in BY_NAME[library].items():
        assert made(library, **{name: value}).fit(table, TRAIN.y).booster_


def kinds():
    """Return the colours in all types that may hold them, and another column of each type."""
    text = pandas.Series(np.asarray(X.colour))
    number = text.map(COLOURS)
    return {
        "text": text.astype("category"),
        "turned": pandas.Series(pandas.Categorical(text, ORDER[::-1])),
        "whole": number.astype("category"),
        "nullable": number.astype("Int64").astype("category"),
        "digits": number.astype(str).astype("category"),
        "floats": number.astype(float).astype("category"),
        "nullable boolean": (number == 1).astype("boolean").astype("category"),
        "numbers": number.astype(float),
        "objects": text.astype(object),
        "other text": pandas.Series(["a"] * len(text)).astype("category"),
        "other whole": pandas.Series([7] * len(text)).astype("category"),
    }


def said_of_colours(work):
    """Return the result of ``work``, None if it is refused, and warnings of the column."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            result = work()
        except REFUSED:
            return None, []
    return result, [text for text in (str(each.message) for each in said) if "'colour'" in text]


@by_code
@pytest.mark.parametrize("known", ["text", "whole", "nullable", "digits", "numbers"])
def test_a_column_of_another_type_is_never_read_in_silence(library, known, tmp_path):
    """It is refused, gives the scores of equal values, or is warned of by name."""
    columns = kinds()
    fitted = made(library).fit(X.assign(colour=columns[known]), Y, qid=QID)
    loaded, expected = read_again(fitted, library, tmp_path), fitted.predict(X.assign(colour=columns[known]))
    outcomes = set()
    for kind, column in columns.items():
        for model in (fitted, loaded):
            scores, warned = said_of_colours(lambda m=model, c=column: m.predict(X.assign(colour=c)))
            if scores is not None:
                assert len(warned) == (not np.array_equal(scores, expected)), (kind, warned)
            outcomes.add("refused" if scores is None else "warned" if warned else "same")
    assert outcomes >= {"refused", "same"}
    assert ("warned" in outcomes) == (known != "numbers")


@by_code
def test_an_eval_set_of_another_type_is_never_read_in_silence(library):
    for kind, column in kinds().items():
        sets = {"eval_set": [(X, Y), (X.assign(colour=column), Y)], "eval_qid": [QID, QID]}
        untrained = made(library, eval_metric="map", n_estimators=3)
        fitted, warned = said_of_colours(lambda u=untrained, s=sets: u.fit(X, Y, qid=QID, **s))
        if fitted is not None:
            first, second = fitted.evals_result_.values()
            assert len(warned) == (first != second), kind
            assert all("eval_set[1]" in message for message in warned)


@everywhere
def test_bools_with_missing_values_and_whole_numbers_among_objects(library):
    flags = np.where(np.arange(len(TRAIN.y)) % 5 == 0, np.nan, TRAIN.X[:, 1] > 0)
    numbers = np.rint(10 * TRAIN.X[:, 0])
    plain, objects = as_pandas(TRAIN.X), as_pandas(TRAIN.X)
    plain[NAMES[1]], plain[NAMES[0]] = flags, numbers
    objects[NAMES[1]] = pandas.Series([None if np.isnan(x) else bool(x) for x in flags], dtype=object)
    objects[NAMES[0]] = pandas.Series(numbers.astype(int), dtype=object)
    before = objects.copy()
    fitted, expected = (made(library).fit(table, TRAIN.y, qid=TRAIN.qid) for table in (objects, plain))
    for table in (plain, objects):
        assert np.array_equal(fitted.predict(table), expected.predict(plain))
    pandas.testing.assert_frame_equal(objects, before)


EMPTY = [[None] * 600, np.full(600, np.nan), pandas.Categorical([None] * 600), pandas.Categorical([None] * 600, ORDER)]


@by_code
def test_columns_without_values_are_missing(library, tmp_path):
    """In tables to predict, also before a second column with other categories, and in eval sets."""
    table = X.assign(second=pandas.Categorical(X.colour.map(COLOURS)))
    fitted = made(library, eval_metric="map").fit(table, Y, qid=QID)
    tables = [table.assign(colour=missing) for missing in EMPTY]
    expected = fitted.predict(tables[-1])
    for each in tables:
        assert np.array_equal(fitted.predict(each), expected)
    if library == "xgboost":  # a file of LightGBM does not have the numbers of the columns
        assert np.array_equal(read_again(fitted, library, tmp_path).predict(tables[1]), expected)
    evaluated = {"eval_set": [(each, Y) for each in tables], "eval_qid": [QID] * 4}
    first, *others = made(library, eval_metric="map").fit(table, Y, qid=QID, **evaluated).evals_result_.values()
    assert others == [first] * 3


def strange_categories():
    """Yield categories of all types that pandas makes."""
    number = X.colour.map(COLOURS).astype(int)
    dates = pandas.to_datetime(number, unit="D")
    yield from (pandas.cut(number, 2), pandas.cut(X.noise, 2), dates.dt.date, dates.dt.to_period("D"), dates)
    yield from (dates - dates[0], number + 0.5, number > 2, number.astype(complex), number.map(lambda n: (n, 1)))
    yield from (number.map(lambda n: n if n > 1 else "one"), number.map(lambda n: b"a" * n), number.map(Decimal))


@everywhere
def test_categories_of_any_type_are_kept_by_the_file_or_refused_by_name(library, tmp_path):
    outcomes = []
    for values in strange_categories():
        table = X.assign(colour=values.astype("category"))
        try:
            fitted = made(library).fit(table, Y, qid=QID)
        except LTRError as error:
            assert "'colour'" in str(error)  # noqa: PT017 - some types are read
            outcomes.append("refused")
        else:
            assert np.array_equal(read_again(fitted, library, tmp_path).predict(table), fitted.predict(table))
            outcomes.append("read")
    assert "refused" in outcomes
    assert ("read" in outcomes) == (library != "xgboost")


FORMS_OF_COLUMNS = [
    ["shade"], ("shade",), {"shade"}, np.array(["shade"]), pandas.Index(["shade"]), pandas.Series(["shade"]), "shade",
    [1], (1,), {1}, np.array([1]), [np.int64(1)], range(1, 2), 1, "1",
]  # fmt: skip


@pytest.mark.parametrize(("library", "name"), [("lightgbm", "categorical_feature"), ("catboost", "cat_features")])
def test_categorical_columns_in_every_form(library, name):
    table = X.assign(colour=X.colour.map(COLOURS).astype(int)).rename(columns={"colour": "shade"})
    expected = made(library, **{name: ["shade"]}).fit(table, Y, qid=QID).predict(table)
    assert not np.array_equal(made(library).fit(table, Y, qid=QID).predict(table), expected)
    also = [{"cat_feature": "shade"}, {"categorical_column": "1"}, {name: "name:shade"}]
    for given in [{name: form} for form in FORMS_OF_COLUMNS] + (also if library == "lightgbm" else []):
        assert np.array_equal(made(library, **given).fit(table, Y, qid=QID).predict(table), expected), given
        if name in given:
            assert np.array_equal(made(library).fit(table, Y, qid=QID, **given).predict(table), expected), given
    for wrong in (["none"], "none", [2], [-1], [True], [False, True], [1.0], [None]):
        with pytest.raises(LTRError, match=name):
            made(library, **{name: wrong}).fit(table, Y, qid=QID)


@everywhere
def test_features_are_known_by_name_also_from_a_file_and_a_column_of_ids_is_none(library, tmp_path):
    table, test = as_pandas(TRAIN.X), as_pandas(TEST.X)
    fitted = ranker(library).fit(table.assign(qid=swapped(TRAIN.qid)), TRAIN.y)
    assert fitted.n_features_in_ == 10
    expected = ranker(library).fit(table, TRAIN.y, qid=TRAIN.qid).predict(test)
    for model in (fitted, read_again(fitted, library, tmp_path)):
        for given in (test, test.assign(qid=1)):
            assert np.array_equal(model.predict(given), expected)
        with pytest.raises(ValueError, match=r"feature names|9 features"):
            model.predict(test[NAMES[1:]])
        with pytest.raises(ValueError, match="feature names"):
            model.predict(test[NAMES[::-1]])
    with pytest.raises(LTRError, match="in several places"):
        ranker(library).fit(table.assign(qid=np.roll(TRAIN.qid, 1)), TRAIN.y)


@everywhere
def test_categories_are_known_by_value_also_from_a_file(library, tmp_path):
    table = X.assign(colour=pandas.Categorical(X.colour.map(COLOURS).astype(int)))
    fitted = made(library).fit(table, Y, qid=QID)
    expected, loaded = fitted.predict(table), read_again(fitted, library, tmp_path)
    other = table.assign(colour=table.colour.cat.set_categories([4, 3, 2, 1]))
    for each in (fitted, loaded, pickle.loads(pickle.dumps(loaded))):
        assert np.array_equal(each.predict(other), expected)
        assert np.ptp(expected) > 0
    assert made(library).fit(table, Y, qid=QID, init_model=loaded).best_iteration_ == 16
    for model in (loaded, loaded.booster_) if library != "catboost" else ():
        with pytest.raises(LTRError, match="make them the same"):
            made(library).fit(other, Y, qid=QID, init_model=model)


def test_an_xgboost_file_without_categories(tmp_path):
    codes, types = X.assign(colour=X.colour.cat.codes), ["float", "c"]
    by_codes = ranker("xgboost", feature_types=types).fit(codes, Y, qid=QID)
    loaded = read_again(by_codes, "xgboost", tmp_path).set_params(feature_types=types)
    assert np.array_equal(loaded.predict(codes), by_codes.predict(codes))
    for call in (loaded.predict, lambda table: ranker("xgboost").fit(table, Y, qid=QID, init_model=loaded)):
        with pytest.raises(LTRError, match="categories"):
            call(X)


def test_labels_that_float32_makes_equal_are_refused():
    """Otherwise the library learns from fewer grades than `evaluate` counts."""
    wrong = 1.7e12 + 1000 * VALI.y.astype(float)
    evaluated = {"eval_set": [(VALI.X, wrong)], "eval_qid": [VALI.qid]}
    for data, y, also in ((VALI, wrong, {}), (TRAIN, TRAIN.y, evaluated)):
        with pytest.raises(LTRError, match="rank the labels within each query"):
            ranker("lightgbm").fit(data.X, y, qid=data.qid, **also)
    apart = 2**24 + 4 * VALI.y.astype(float) + (VALI.qid == VALI.qid[0])  # merged labels of two queries do no harm
    noise = np.where(VALI.X[:, 0] > 0, 1e-15, 0.0)  # nor does rounding
    for labels in (apart, VALI.y + 0.1 + noise, 2**24 + VALI.y + 100.0 * (VALI.X[:, 0] > 0)):
        ranker("lightgbm", "rmse", eval_metric="rmse").fit(VALI.X, labels, qid=VALI.qid)


@everywhere
def test_a_row_is_scored_as_its_table_is(library, monkeypatch):
    """Without reading a signature: that takes longer than the trees."""
    wide = TRAIN.X.astype(float) * 1e3
    X = as_pandas(wide).assign(
        whole=2**40 + np.arange(len(wide)), half=wide[:, 0].astype(np.float32), flag=wide[:, 1] > 0
    )
    fitted = made(library).fit(X, TRAIN.y, qid=TRAIN.qid)
    every = fitted.predict(X)
    monkeypatch.setattr("inspect.signature", None)
    rows = np.concatenate([fitted.predict(X[i : i + 1]) for i in range(20)])
    assert np.array_equal(rows, every[:20])
    assert np.array_equal(fitted.predict(X.assign(flag=X.flag.astype(float))), every)  # columns of other types
    with pytest.raises(REFUSED, match="feature 0"):
        fitted.predict(X.rename(columns={"feature 0": "other"}))
