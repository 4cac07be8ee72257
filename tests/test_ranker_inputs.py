"""NumPy, pandas, polars, pyarrow and SciPy give the same model for the same rows; categories and missing values."""

import pickle
import warnings

import numpy as np
import pytest
from rankers import LIBRARIES, SUFFIX, fold, ranker, ranker_class
from sklearn.exceptions import DataConversionWarning

from ltr_objectives import LTRError, LTRWarning, evaluate

for name in LIBRARIES:
    pytest.importorskip(name)
catboost, pandas = pytest.importorskip("catboost"), pytest.importorskip("pandas")
polars, arrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
sparse = pytest.importorskip("scipy.sparse")
everywhere = pytest.mark.parametrize("library", LIBRARIES)
by_code = pytest.mark.parametrize("library", ["xgboost", "lightgbm"])  # CatBoost's models have hashes of the categories
TRAIN, VALI, TEST = fold()
NAMES = [f"feature {i}" for i in range(10)]
SMALL = {"lightgbm": {"min_child_samples": 5, "min_data_per_group": 5}}
REFUSED = (ValueError, TypeError, catboost.CatBoostError)  # XGBoost's and LightGBM's are ValueErrors


def made(library, **params):
    return ranker(library, **SMALL.get(library, {}), **params)


def as_pandas(X):
    return pandas.DataFrame(X, columns=NAMES)


def swapped(values):
    """The same numbers in the other byte order."""
    values = np.asarray(values)
    return values.astype(values.dtype.newbyteorder(">"))


def as_series(values):
    """The numbers with an index that is not their order."""
    return pandas.Series(values, index=np.arange(len(values))[::-1])


FORMS = {  # of the table, and of all other arrays
    "pandas": (as_pandas, as_series),
    "polars": (lambda X: polars.DataFrame(X, schema=NAMES), list),
    "pyarrow": (lambda X: arrow.table(dict(zip(NAMES, X.T.copy(), strict=True))), list),
    "list": (np.ndarray.tolist, list),
    "wide": (np.float64, as_series),
    "swapped": (swapped, swapped),  # XGBoost reads every byte order as the native one
    "swapped wide": (lambda X: swapped(np.float64(X)), swapped),
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


def swapped_csr(X):
    X = sparse.csr_matrix(X)
    X.data = swapped(X.data)
    return X


@everywhere
@pytest.mark.parametrize(
    "make", [sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array, sparse.coo_matrix, swapped_csr]
)
def test_sparse_rows(library, make):
    X, Z = (np.where(np.abs(data.X) < 0.7, 0, data.X) for data in (TRAIN, TEST))
    fitted = ranker(library).fit(make(X), TRAIN.y, qid=TRAIN.qid)
    # XGBoost takes entries that are not stored as missing
    dense = (lambda A: np.where(A == 0, np.nan, A)) if library == "xgboost" else np.asarray
    expected = ranker(library).fit(dense(X), TRAIN.y, qid=TRAIN.qid)
    assert np.array_equal(fitted.predict(make(Z)), expected.predict(dense(Z)))


def categorical(rows, seed):
    """A table whose category decides relevance: blue is relevant."""
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


def in_polars(colours, dtype):
    return polars.DataFrame({"noise": X.noise.to_numpy(), "colour": polars.Series(list(colours), dtype=dtype)})


def in_arrow(colours, **how):
    return arrow.table({"noise": X.noise.to_numpy(), "colour": arrow.DictionaryArray.from_arrays(*colours, **how)})


@everywhere
@pytest.mark.parametrize(
    "table",
    [
        X.assign(colour=ORDERED),
        in_polars(X.colour, polars.Categorical),
        in_polars(X.colour, polars.Enum(ORDER)),
        in_arrow((ORDERED.codes, ORDER), ordered=True),
    ],
    ids=["ordered", "polars", "polars ordered", "pyarrow ordered"],
)
def test_categories_of_every_form_and_ordered_ones_are_categories(library, table):
    expected = made(library).fit(X, Y, qid=QID).predict(X)
    assert np.array_equal(made(library).fit(table, Y, qid=QID).predict(table), expected)


@everywhere
def test_missing_and_new_categories(library):
    table = X if library == "catboost" else HOLES
    if library == "catboost":
        with pytest.raises(catboost.CatBoostError, match="NaN"):
            ranker(library).fit(HOLES, Y, qid=QID)
    fitted = ranker(library).fit(table, Y, qid=QID)
    if library != "catboost":
        with pytest.warns(LTRWarning, match="'colour'"):
            assert np.isfinite(fitted.predict(X.assign(colour=pandas.Categorical(["violet"] * 600)))).all()
    assert np.isfinite(fitted.predict(table)).all()


@everywhere
@pytest.mark.parametrize("names", [[0, 1], [1, 0], [7, 5], [2.5, 1.5]])
def test_columns_with_numbers_as_names(library, names):
    """LightGBM and CatBoost take a number for the position of a categorical feature."""
    table = X if library == "catboost" else HOLES
    expected = ranker(library).fit(table, Y, qid=QID).predict(table)
    numbered = table.set_axis(names, axis=1)
    for given, qid in ((numbered, QID), (numbered.assign(qid=QID), None)):
        fitted = ranker(library).fit(given, Y, qid=qid, eval_set=[(numbered, Y)], eval_qid=[QID])
        assert np.array_equal(fitted.predict(given), expected)


@everywhere
def test_a_category_called_as_missing_values_are(library):
    table = X.assign(colour=X.colour.cat.rename_categories({"red": "nan"}))
    fitted = ranker(library).fit(table, Y, qid=QID)
    if library != "catboost":
        table.loc[::7, "colour"] = None
    assert np.isfinite(fitted.predict(table)).all()


@everywhere
def test_columns_that_are_no_features_are_refused(library):
    dates = pandas.Series(["2020-01-01", "2021-01-01"] * 300).astype("datetime64[ns]")
    for wrong in (X.assign(shop=["red", "blue"] * 300), X.assign(shop=dates)):
        if library != "catboost" or wrong.shop.dtype.kind != "M":  # CatBoost reads nanoseconds as numbers
            with pytest.raises(REFUSED):
                ranker(library).fit(wrong, Y, qid=QID)
        for column in ("shop", 2) if library == "catboost" else ():  # they may be named, or given by index
            named = ranker(library, cat_features=[column]).fit(wrong.astype({"shop": str}), Y, qid=QID)
            assert named.n_features_in_ == 3
    numbers = X.assign(a=Y > 0, b=Y.astype("float32"), c=pandas.array(Y, "Int64"))
    assert ranker(library).fit(numbers, Y, qid=QID).n_features_in_ == 5


def kinds():
    """The colours in all types that may hold them, and another column of each type."""
    text = pandas.Series(np.asarray(X.colour))
    number = text.map(COLOURS)
    return {
        "text": text.astype("category"),
        "turned": pandas.Series(pandas.Categorical(text, ORDER[::-1])),
        "whole": number.astype("category"),
        "nullable": number.astype("Int64").astype("category"),
        "digits": number.astype(str).astype("category"),
        "floats": number.astype(float).astype("category"),
        "boolean": (number == 1).astype("category"),
        "nullable boolean": (number == 1).astype("boolean").astype("category"),
        "numbers": number.astype(float),
        "objects": text.astype(object),
        "other text": pandas.Series(["a"] * len(text)).astype("category"),
        "other whole": pandas.Series([7] * len(text)).astype("category"),
    }


def said_of_colours(work):
    """The result of ``work``, None if it is refused, and warnings of the column."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            result = work()
        except REFUSED:
            return None, []
    return result, [text for text in (str(each.message) for each in said) if "'colour'" in text]


@pytest.mark.parametrize(
    ("library", "known"),
    [
        *[("xgboost", known) for known in ("text", "whole", "nullable", "digits", "numbers")],  # it refuses boolean
        *[("lightgbm", known) for known in ("text", "whole", "nullable", "digits", "boolean", "numbers")],
    ],
)
def test_a_column_of_another_type_is_never_read_in_silence(library, known, tmp_path):
    """It is refused, gives the scores of equal values, or is warned of by name."""
    columns = kinds()
    fitted = made(library).fit(X.assign(colour=columns[known]), Y, qid=QID)
    fitted.save_model(tmp_path / f"model{SUFFIX[library]}")
    loaded = ranker_class(library)().load_model(tmp_path / f"model{SUFFIX[library]}")
    expected = fitted.predict(X.assign(colour=columns[known]))
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
def test_columns_without_values_are_missing_or_refused(library):
    fitted = ranker(library).fit(X, Y, qid=QID)
    empty = X.assign(colour=pandas.Categorical([None] * 600, ORDER))
    expected = None if library == "catboost" else fitted.predict(empty)
    for missing in ([None] * 600, np.full(600, np.nan), pandas.Categorical([None] * 600)):
        scores, _ = said_of_colours(lambda c=missing: fitted.predict(X.assign(colour=c)))
        assert scores is None or np.array_equal(scores, expected)


@everywhere
def test_a_file_that_is_no_model_changes_nothing(library, tmp_path):
    fitted = ranker(library).fit(X, Y, qid=QID)
    expected = fitted.predict(X)
    with pytest.raises((OSError, fitted.library.exception()), match="nothing"):
        fitted.load_model(tmp_path / "nothing")
    np.testing.assert_array_equal(fitted.predict(X), expected)
    with pytest.raises((*REFUSED, LTRWarning)):
        fitted.predict(X.assign(colour=1.0))


@everywhere
def test_a_column_of_ids_is_no_feature(library):
    table, test = as_pandas(TRAIN.X).assign(qid=swapped(TRAIN.qid)), as_pandas(TEST.X)
    fitted = ranker(library).fit(table, TRAIN.y)
    assert fitted.n_features_in_ == 10
    expected = ranker(library).fit(as_pandas(TRAIN.X), TRAIN.y, qid=TRAIN.qid).predict(test)
    for given in (test, test.assign(qid=1)):
        assert np.array_equal(fitted.predict(given), expected)
    with pytest.raises(LTRError, match="in several places"):
        ranker(library).fit(table.assign(qid=np.roll(TRAIN.qid, 1)), TRAIN.y)


@everywhere
@pytest.mark.parametrize("loaded", [False, True])
def test_features_are_known_by_name_also_from_a_file(library, loaded, tmp_path):
    fitted, test = ranker(library).fit(as_pandas(TRAIN.X), TRAIN.y, qid=TRAIN.qid), as_pandas(TEST.X)
    expected = fitted.predict(test)
    if loaded:
        fitted.save_model(tmp_path / f"model{SUFFIX[library]}")
        fitted = ranker_class(library)().load_model(tmp_path / f"model{SUFFIX[library]}")
    assert np.array_equal(fitted.predict(test), expected)
    with pytest.raises(ValueError, match=r"feature names|9 features"):
        fitted.predict(test[NAMES[1:]])
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(test[NAMES[::-1]])


@everywhere
@pytest.mark.parametrize("values", [["red", "blue", "green", "grey"], [3, 1, 4, 2]])
def test_categories_are_known_by_value_also_from_a_file(library, values, tmp_path):
    colours = dict(zip(COLOURS, values, strict=True))
    table = X.assign(colour=pandas.Categorical(X.colour.map(colours).astype(type(values[0]))))
    fitted = made(library).fit(table, Y, qid=QID)
    expected, path = fitted.predict(table), tmp_path / f"model{SUFFIX[library]}"
    other = table.assign(colour=table.colour.cat.set_categories(values[::-1]))
    fitted.save_model(path)
    loaded = ranker_class(library)().load_model(path)
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
    by_codes.save_model(tmp_path / "model.json")
    loaded = ranker("xgboost", feature_types=types).load_model(tmp_path / "model.json")
    assert np.array_equal(loaded.predict(codes), by_codes.predict(codes))
    for call in (loaded.predict, lambda table: ranker("xgboost").fit(table, Y, qid=QID, init_model=loaded)):
        with pytest.raises(LTRError, match="categories"):
            call(X)


@pytest.mark.parametrize("make", [pandas.DataFrame, polars.DataFrame])
def test_labels_are_no_features(make):
    table = make({"a": Y + X.noise.to_numpy(), "rev": Y + 1.0})
    for labels in ({"rev": table["rev"]}, {"rev": Y}, {"revenue": table["rev"]}):
        with pytest.raises(LTRError, match="X has a column 'rev'"):
            ranker("lightgbm").fit(table, Y, qid=QID, labels=labels)
    with pytest.raises(LTRError, match="X has a column 'rev'"):
        ranker("lightgbm").fit(table, table["rev"], qid=QID)


@everywhere
def test_a_column_of_labels_is_read_as_scikit_learn_reads_it(library):
    scores = {"xgboost": "base_margin", "lightgbm": "init_score", "catboost": "baseline"}[library]
    start = np.linspace(0, 1, len(TRAIN.y))
    with pytest.warns(DataConversionWarning, match="column-vector"):
        found = ranker(library).fit(TRAIN.X, pandas.DataFrame(TRAIN.y), qid=TRAIN.qid, **{scores: start[:, None]})
    expected = ranker(library).fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid, **{scores: start})
    assert np.array_equal(found.predict(TRAIN.X), expected.predict(TRAIN.X))


MERGED = {  # labels that grow with the grades, and that float32 makes equal
    "milliseconds": lambda y: 1_700_000_000_000 + 1000 * y,
    "cents": lambda y: 100_000_000.01 + y / 100,
    "ids": lambda y: 2**24 + y % 2,
    "tiny": lambda y: np.where(y > 1, 1.0, 1e-300 * y),
}


@everywhere
@pytest.mark.parametrize("kind", MERGED)
def test_labels_that_float32_makes_equal_are_refused(library, kind):
    """Otherwise the library learns from fewer grades than `evaluate` counts."""
    wrong = MERGED[kind](VALI.y.astype(np.float64))
    evaluated = {"eval_set": [(VALI.X, wrong)], "eval_qid": [VALI.qid]}
    for data, y, also in ((VALI, wrong, {}), (TRAIN, TRAIN.y, evaluated)):
        with pytest.raises(LTRError, match="rank the labels within each query"):
            ranker(library).fit(data.X, y, qid=data.qid, **also)
    of_queries = np.split(wrong, np.cumsum(VALI.group)[:-1])
    grades = np.concatenate([np.unique(y, return_inverse=True)[1] for y in of_queries])
    ranker(library, n_estimators=1).fit(VALI.X, grades, qid=VALI.qid)
    apart = np.where(VALI.qid == VALI.qid[0], 2**24, 2**24 + 2.0)  # merged labels of two queries do no harm
    metric = "RMSE" if library == "catboost" else "rmse"
    ranker(library, "rmse", n_estimators=1, eval_metric=metric).fit(VALI.X, apart, qid=VALI.qid)
