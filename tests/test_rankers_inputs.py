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
sparse = pytest.importorskip("scipy.sparse")
pytestmark = pytest.mark.parametrize("library", LIBRARIES)
NAMES = [f"feature {i}" for i in range(10)]
SMALL = {"lightgbm": {"min_child_samples": 5, "min_data_per_group": 5}}
REFUSED = (ValueError, TypeError, catboost.CatBoostError)  # XGBoost's and LightGBM's are ValueErrors


def with_holes(data, seed=0):
    X = data.X.copy()
    X[np.random.default_rng(seed).random(X.shape) < 0.1] = np.nan
    return X


def as_pandas(X):
    return pandas.DataFrame(X, columns=NAMES)


def as_polars(X):
    return pytest.importorskip("polars").DataFrame(X, schema=NAMES)


def as_arrow(X):
    return pytest.importorskip("pyarrow").table(dict(zip(NAMES, X.T.copy(), strict=True)))


FORMS = {"pandas": as_pandas, "polars": as_polars, "pyarrow": as_arrow, "list": np.ndarray.tolist, "wide": np.float64}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_one_model(library, form):
    train, vali, test = fold()
    X = with_holes(train)
    expected = ranker(library).fit(X, train.y, qid=train.qid).predict(with_holes(test))
    make = FORMS[form]
    labels = pandas.Series(train.y, index=np.arange(len(train.y))[::-1])
    fitted = ranker(library).fit(
        make(X), labels, qid=pandas.Series(train.qid), eval_set=[(make(with_holes(vali)), list(vali.y))],
        eval_group=[list(vali.group)],
    )  # fmt: skip
    found = fitted.predict(make(with_holes(test)))
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("form", ["numpy", "wide", "pandas", "one column"])
def test_byte_order_does_not_matter(library, form):
    """XGBoost reads every byte order as the native one, and pandas refuses another."""
    make = {
        "numpy": lambda X: X.astype(">f4"),
        "wide": lambda X: X.astype(">f8"),
        "pandas": lambda X: as_pandas(X.astype(">f4")),
        "one column": lambda X: as_pandas(X).assign(**{NAMES[2]: X[:, 2].astype(">f4")}),
    }[form]
    train, vali, test = fold()
    names = as_pandas if form in ("pandas", "one column") else np.asarray
    weight = np.random.default_rng(0).uniform(1, 2, len(train.group)).astype(np.float32)
    native = {"X": names(train.X), "y": train.y, "qid": train.qid, "sample_weight": weight}
    swapped = {k: np.asarray(v).astype(np.asarray(v).dtype.newbyteorder(">")) for k, v in native.items() if k != "X"}
    vali_group = vali.group.astype(">i4")
    expected = ranker(library).fit(**native, eval_set=[(names(vali.X), vali.y)], eval_group=[vali.group])
    fitted = ranker(library).fit(
        make(train.X), **swapped, eval_set=[(make(vali.X), vali.y.astype(">f8"))], eval_group=[vali_group]
    )
    scores = expected.predict(names(test.X))
    assert np.array_equal(fitted.predict(make(test.X)), scores)
    assert np.array_equal(fitted.predict(names(test.X)), scores)
    assert fitted.evals_result_ == expected.evals_result_
    table = as_pandas(train.X).assign(qid=train.qid.astype(">i8"))
    by_column = ranker(library).fit(table, swapped["y"], sample_weight=swapped["sample_weight"])
    assert np.array_equal(by_column.predict(as_pandas(test.X)), scores)


def test_byte_order_of_sparse_values(library):
    train, _, test = fold()
    X = sparse.csr_matrix(np.where(np.abs(train.X) < 0.7, 0, train.X))
    other = X.copy()
    other.data = other.data.astype(">f4")
    expected = ranker(library).fit(X, train.y, qid=train.qid).predict(test.X)
    assert np.array_equal(ranker(library).fit(other, train.y, qid=train.qid).predict(test.X), expected)


@pytest.mark.parametrize("form", ["csr_matrix", "csc_matrix", "csr_array", "coo_matrix"])
def test_sparse_rows(library, form):
    train, _, test = fold()
    X, Z = (np.where(np.abs(data.X) < 0.7, 0, data.X) for data in (train, test))
    make = getattr(sparse, form)
    fitted = ranker(library).fit(make(X), train.y, qid=train.qid)
    # XGBoost takes entries that are not stored as missing
    dense = (lambda A: np.where(A == 0, np.nan, A)) if library == "xgboost" else np.asarray
    expected = ranker(library).fit(dense(X), train.y, qid=train.qid)
    assert np.array_equal(fitted.predict(make(Z)), expected.predict(dense(Z)))


def categorical(rows, seed):
    """A table whose category decides relevance: blue is relevant."""
    rng = np.random.default_rng(seed)
    colours = rng.choice(["red", "blue", "green", "grey"], rows)
    X = pandas.DataFrame({"noise": rng.normal(size=rows), "colour": pandas.Categorical(colours)})
    return X, (colours == "blue").astype(int) * 2, np.repeat(np.arange(rows // 10), 10)


@pytest.mark.parametrize("form", ["pandas", "polars"])
def test_categories_are_features(library, form):
    X, y, qid = categorical(600, 0)
    make = as_polars_with_categories if form == "polars" else pandas.DataFrame.copy
    options = SMALL.get(library, {})
    fitted = ranker(library, eval_metric="map", **options).fit(
        make(X), y, qid=qid, eval_set=[(make(X), y)], eval_qid=[qid]
    )
    assert fitted.score(make(X), y, qid=qid) == evaluate("map", y, y, qid=qid)
    Z, z, _ = categorical(100, 1)
    scores = fitted.predict(make(Z))
    assert scores[z > 0].min() > scores[z == 0].max()
    only = Z[Z.colour.isin(["blue", "grey"])]
    fewer = only.assign(colour=pandas.Categorical(only.colour))  # other codes for the same categories
    assert np.array_equal(fitted.predict(make(fewer)), scores[Z.colour.isin(["blue", "grey"])])


def as_polars_with_categories(X):
    polars = pytest.importorskip("polars")
    colours = polars.Series("colour", list(X.colour.astype(object)), dtype=polars.Categorical)
    return polars.DataFrame({"noise": X.noise.to_numpy(), "colour": colours})


def test_missing_and_new_categories(library):
    X, y, qid = categorical(600, 0)
    holes = X.assign(colour=X.colour.where(np.arange(600) % 7 > 0))
    if library == "catboost":  # which refuses missing categories itself
        with pytest.raises(catboost.CatBoostError, match="NaN values should be converted to string"):
            ranker(library).fit(holes, y, qid=qid)
    else:
        X = holes
    fitted = ranker(library).fit(X, y, qid=qid)
    new = X.assign(colour=pandas.Categorical(["violet"] * len(X)))
    if library != "catboost":  # whose models have hashes of the categories
        with pytest.warns(LTRWarning, match="'colour'"):
            assert np.isfinite(fitted.predict(new)).all()
    assert np.isfinite(fitted.predict(X)).all()


@pytest.mark.parametrize("names", [[0, 1], [1, 0], [7, 5], [2.5, 1.5]])
def test_columns_with_numbers_as_names(library, names):
    """LightGBM and CatBoost take a number for the position of a categorical feature."""
    X, y, qid = categorical(600, 0)
    if library != "catboost":  # which refuses missing categories itself
        X.loc[::7, "colour"] = np.nan
    expected = ranker(library).fit(X, y, qid=qid).predict(X)
    numbered = X.set_axis(names, axis=1)
    for given in (numbered, numbered.assign(qid=qid)):
        fitted = ranker(library).fit(
            given, y, qid=None if "qid" in given else qid, eval_set=[(numbered, y)], eval_qid=[qid]
        )
        assert np.array_equal(fitted.predict(given), expected)
    with pytest.raises(LTRError, match=r"columns whose names are strings, and others; .* X.columns.astype\(str\)"):
        ranker(library).fit(X.set_axis(["noise", 1], axis=1), y, qid=qid)


def test_a_category_called_as_missing_values_are(library):
    X, y, qid = categorical(600, 0)
    X["colour"] = X.colour.cat.rename_categories({"red": "nan"})
    fitted = ranker(library).fit(X, y, qid=qid)
    if library != "catboost":
        X.loc[::7, "colour"] = None
    assert np.isfinite(fitted.predict(X)).all()


def test_columns_that_are_no_features_are_refused(library):
    X, y, qid = categorical(60, 0)
    dates = pandas.Series(["2020-01-01", "2021-01-01"] * 30).astype("datetime64[ns]")
    for wrong in (X.assign(shop=["red", "blue"] * 30), X.assign(shop=dates)):
        if library != "catboost" or wrong.shop.dtype.kind != "M":  # CatBoost reads nanoseconds as numbers
            with pytest.raises(REFUSED):
                ranker(library).fit(wrong, y, qid=qid)
        if library == "catboost":  # they may be named, or given by index
            for column in ("shop", 2):
                named = ranker(library, cat_features=[column]).fit(wrong.astype({"shop": str}), y, qid=qid)
                assert named.n_features_in_ == 3
    numbers = X.assign(a=y > 0, b=y.astype("float32"), c=pandas.array(y, "Int64"))
    assert ranker(library).fit(numbers, y, qid=qid).n_features_in_ == 5


COLOURS = {"red": 3, "blue": 1, "green": 4, "grey": 2}


def kinds(colours):
    """One column in all types that may hold it, and another column of each type."""
    text = pandas.Series(np.asarray(colours))
    number = text.map(COLOURS)
    return {
        "text": text.astype("category"),
        "turned": pandas.Series(pandas.Categorical(text, sorted(COLOURS)[::-1])),
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


@pytest.mark.parametrize("known", ["text", "whole", "nullable", "digits", "boolean", "numbers"])
def test_a_column_of_another_type_is_never_read_in_silence(library, known, tmp_path):
    """It is refused, gives the scores of equal values, or is warned of by name."""
    if library == "catboost":
        pytest.skip("its models have hashes of the categories")
    X, y, qid = categorical(600, 0)
    columns = kinds(X.colour)
    try:
        fitted = ranker(library, **SMALL.get(library, {})).fit(X.assign(colour=columns[known]), y, qid=qid)
    except REFUSED:
        assert (library, known) == ("xgboost", "boolean")
        return
    path = tmp_path / f"model{SUFFIX[library]}"
    fitted.save_model(path)
    models = [fitted, ranker_class(library)().load_model(path)]
    expected = fitted.predict(X.assign(colour=columns[known]))
    outcomes = set()
    for kind, column in columns.items():
        for model in models:
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                try:
                    scores = model.predict(X.assign(colour=column))
                except REFUSED:
                    outcomes.add("refused")
                    continue
            warned = [str(each.message) for each in said if "'colour'" in str(each.message)]
            same = np.array_equal(scores, expected)
            assert len(warned) == (not same), (kind, warned)
            outcomes.add("warned" if warned else "same")
    assert outcomes >= {"refused", "same"}
    assert ("warned" in outcomes) == (known != "numbers")


def test_an_eval_set_of_another_type_is_never_read_in_silence(library):
    if library == "catboost":
        pytest.skip("its models have hashes of the categories")
    X, y, qid = categorical(600, 0)
    for kind, column in kinds(X.colour).items():
        sets = {"eval_set": [(X, y), (X.assign(colour=column), y)], "eval_qid": [qid, qid]}
        made = ranker(library, eval_metric="map", n_estimators=3, **SMALL.get(library, {}))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                first, second = made.fit(X, y, qid=qid, **sets).evals_result_.values()
            except REFUSED:
                continue
        warned = [str(each.message) for each in said if "'colour'" in str(each.message)]
        assert len(warned) == (first != second), kind
        assert all("eval_set[1]" in message for message in warned)


def test_ordered_categories_are_categories(library):
    polars, arrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    X, y, qid = categorical(600, 0)
    order = sorted(COLOURS)
    ordered = pandas.Categorical(X.colour, order, ordered=True)
    forms = {
        "pandas": X.assign(colour=ordered),
        "polars": polars.DataFrame(
            {"noise": X.noise.to_numpy(), "colour": polars.Series(X.colour.tolist(), dtype=polars.Enum(order))}
        ),
        "pyarrow": arrow.table(
            {
                "noise": X.noise.to_numpy(),
                "colour": arrow.DictionaryArray.from_arrays(ordered.codes, order, ordered=True),
            }
        ),
    }
    expected = ranker(library, **SMALL.get(library, {})).fit(X, y, qid=qid).predict(X)
    for table in forms.values():
        assert np.array_equal(ranker(library, **SMALL.get(library, {})).fit(table, y, qid=qid).predict(table), expected)


def test_columns_without_values_are_missing_or_refused(library):
    X, y, qid = categorical(60, 0)
    fitted = ranker(library).fit(X, y, qid=qid)
    columns = [[None] * 60, np.full(60, np.nan), pandas.Categorical([None] * 60)]
    if library == "catboost":
        for missing in columns:
            with pytest.raises(REFUSED):
                fitted.predict(X.assign(colour=missing))
        return
    expected = fitted.predict(X.assign(colour=pandas.Categorical([None] * 60, X.colour.cat.categories)))
    for missing in columns:
        try:
            scores = fitted.predict(X.assign(colour=missing))
        except REFUSED:
            continue
        assert np.array_equal(scores, expected)


def test_a_file_that_is_no_model_changes_nothing(library, tmp_path):
    X, y, qid = categorical(60, 0)
    fitted = ranker(library).fit(X, y, qid=qid)
    expected = fitted.predict(X)
    with pytest.raises((OSError, fitted.library.exception()), match="nothing"):
        fitted.load_model(tmp_path / "nothing")
    np.testing.assert_array_equal(fitted.predict(X), expected)
    with pytest.raises((*REFUSED, LTRWarning)):
        fitted.predict(X.assign(colour=1.0))


def test_a_column_of_ids_is_no_feature(library):
    train, _, test = fold()
    X = as_pandas(train.X).assign(qid=train.qid)
    fitted = ranker(library).fit(X, train.y)
    assert fitted.n_features_in_ == 10
    expected = ranker(library).fit(as_pandas(train.X), train.y, qid=train.qid).predict(as_pandas(test.X))
    assert np.array_equal(fitted.predict(as_pandas(test.X)), expected)
    assert np.array_equal(fitted.predict(as_pandas(test.X).assign(qid=1)), expected)
    with pytest.raises(LTRError, match="query 40 occurs in several places"):
        ranker(library).fit(X.assign(qid=np.roll(train.qid, 1)), train.y)


def test_features_are_known_by_name_also_from_a_file(library, tmp_path):
    train, _, test = fold()
    fitted = ranker(library).fit(as_pandas(train.X), train.y, qid=train.qid)
    fitted.save_model(tmp_path / f"model{SUFFIX[library]}")
    loaded = ranker_class(library)().load_model(tmp_path / f"model{SUFFIX[library]}")
    for each in (fitted, loaded):
        assert each.predict(as_pandas(test.X)).shape == test.y.shape
        with pytest.raises(ValueError, match=r"feature names|9 features"):
            each.predict(as_pandas(test.X)[NAMES[1:]])
        with pytest.raises(ValueError, match="feature names should match"):
            each.predict(as_pandas(test.X)[NAMES[::-1]])
    without = ranker(library).fit(train.X, train.y, qid=train.qid)
    without.save_model(tmp_path / f"model{SUFFIX[library]}")
    again = ranker_class(library)().load_model(tmp_path / f"model{SUFFIX[library]}")
    assert np.array_equal(again.predict(test.X), without.predict(test.X))


@pytest.mark.parametrize("values", [["red", "blue", "green", "grey"], [3, 1, 4, 2]])
def test_categories_are_known_by_value_also_from_a_file(library, values, tmp_path):
    X, y, qid = categorical(600, 0)
    colours = dict(zip(["red", "blue", "green", "grey"], values, strict=True))
    X = X.assign(colour=pandas.Categorical(X.colour.map(colours).astype(type(values[0]))))
    options = SMALL.get(library, {})
    fitted = ranker(library, **options).fit(X, y, qid=qid)
    expected, path = fitted.predict(X), tmp_path / f"model{SUFFIX[library]}"
    other = X.assign(colour=X.colour.cat.set_categories(values[::-1]))
    fitted.save_model(path)
    loaded = ranker_class(library)().load_model(path)
    for each in (fitted, loaded, pickle.loads(pickle.dumps(loaded))):
        assert np.array_equal(each.predict(other), expected)
        assert np.ptp(expected) > 0
    if library == "catboost":  # it knows categories by their values when it trains on, too
        return
    for model in (loaded, loaded.booster_):
        with pytest.raises(LTRError, match=r"X has the categories .* make them the same"):
            ranker(library, **options).fit(other, y, qid=qid, init_model=model)


def test_a_file_without_categories(library, tmp_path):
    if library != "xgboost":
        pytest.skip("the others' files have them")
    X, y, qid = categorical(600, 0)
    codes = X.assign(colour=X.colour.cat.codes)
    kinds = ["float", "c"]
    by_codes = ranker(library, feature_types=kinds).fit(codes, y, qid=qid)
    path = tmp_path / "model.json"
    by_codes.save_model(path)
    loaded = ranker(library, feature_types=kinds).load_model(path)
    assert np.array_equal(loaded.predict(codes), by_codes.predict(codes))
    for call in (loaded.predict, lambda X: ranker(library).fit(X, y, qid=qid, init_model=loaded)):
        with pytest.raises(LTRError, match="categories"):
            call(X)


@pytest.mark.parametrize("form", ["pandas", "polars"])
def test_labels_are_no_features(library, form):
    train, _, _ = fold()
    make = as_pandas if form == "pandas" else as_polars
    table = as_pandas(train.X).assign(rev=train.y + 1.0, label=train.y)
    frame = table if form == "pandas" else pytest.importorskip("polars").from_pandas(table)
    rest = frame[[*NAMES, "rev"]]
    told = "X has a column '{0}', which holds labels and would be a feature; drop it$"
    for labels in ({"rev": frame["rev"]}, {"rev": train.y}, {"revenue": frame["rev"]}):
        with pytest.raises(LTRError, match=told.format("rev")):
            ranker(library, "lambdamart").fit(rest, train.y, qid=train.qid, labels=labels)
    with pytest.raises(LTRError, match=told.format("label")):
        ranker(library).fit(frame[[*NAMES, "label"]], frame["label"], qid=train.qid)
    with pytest.raises(LTRError, match=r"eval_set\[0\]: X has a column 'rev'"):
        ranker(library, "lambdamart", eval_metric="ndcg[rev]").fit(
            make(train.X), train.y, qid=train.qid, labels={"rev": train.y}, eval_set=[(rest, train.y)],
            eval_qid=[train.qid], eval_labels=[{"rev": train.y}],
        )  # fmt: skip


def test_a_column_of_labels_is_read_as_scikit_learn_reads_it(library):
    train, _, _ = fold()
    with pytest.warns(DataConversionWarning, match="column-vector"):
        found = ranker(library).fit(train.X, pandas.DataFrame(train.y), qid=train.qid)
    assert np.array_equal(found.predict(train.X), ranker(library).fit(train.X, train.y, qid=train.qid).predict(train.X))


MERGED = {  # labels that grow with the grades, and that float32 makes equal
    "milliseconds": lambda y: 1_700_000_000_000 + 1000 * y,
    "cents": lambda y: 100_000_000.01 + y / 100,
    "ids": lambda y: 2**24 + y % 2,
    "tiny": lambda y: np.where(y > 1, 1.0, 1e-300 * y),
}


@pytest.mark.parametrize("kind", MERGED)
def test_labels_that_float32_makes_equal_are_refused(library, kind):
    """Otherwise the library learns from fewer grades than `evaluate` counts."""
    train, vali, _ = fold()
    wrong = MERGED[kind](vali.y.astype(np.float64))
    assert any(len(np.unique(y)) > len(np.unique(y.astype(np.float32))) for y in split(wrong, vali))
    for data, y, also in ((vali, wrong, {}), (train, train.y, {"eval_set": [(vali.X, wrong)], "eval_qid": [vali.qid]})):
        with pytest.raises(LTRError, match="rank the labels within each query"):
            ranker(library).fit(data.X, y, qid=data.qid, **also)
    grades = np.concatenate([np.unique(y, return_inverse=True)[1] for y in split(wrong, vali)])
    ranker(library, n_estimators=1).fit(vali.X, grades, qid=vali.qid)
    apart = np.where(vali.qid == vali.qid[0], 2**24, 2**24 + 2.0)  # merged labels of two queries do no harm
    metric = "RMSE" if library == "catboost" else "rmse"
    ranker(library, "rmse", n_estimators=1, eval_metric=metric).fit(vali.X, apart, qid=vali.qid)


def split(labels, data):
    return np.split(labels, np.cumsum(data.group)[:-1])
