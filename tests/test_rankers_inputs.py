"""NumPy, pandas, polars, pyarrow and SciPy give the same model for the same rows; categories and missing values."""

import numpy as np
import pytest
from rankers import LIBRARIES, SUFFIX, fold, ranker, ranker_class

from ltr_objectives import LTRError, evaluate

for name in LIBRARIES:
    pytest.importorskip(name)
pandas = pytest.importorskip("pandas")
sparse = pytest.importorskip("scipy.sparse")
pytestmark = pytest.mark.parametrize("library", LIBRARIES)
NAMES = [f"feature {i}" for i in range(10)]


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
    options = {"min_child_samples": 5, "min_data_per_group": 5} if library == "lightgbm" else {}
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
    if library == "xgboost":
        assert np.array_equal(fitted.predict(Z.assign(colour=Z.colour.astype(object))), scores)


def as_polars_with_categories(X):
    polars = pytest.importorskip("polars")
    colours = polars.Series("colour", list(X.colour.astype(object)), dtype=polars.Categorical)
    return polars.DataFrame({"noise": X.noise.to_numpy(), "colour": colours})


def test_missing_and_new_categories(library):
    X, y, qid = categorical(600, 0)
    X.loc[::7, "colour"] = np.nan
    fitted = ranker(library).fit(X, y, qid=qid)
    new = X.assign(colour=pandas.Categorical(["violet"] * len(X)))
    assert np.isfinite(fitted.predict(new)).all()
    assert np.isfinite(fitted.predict(X)).all()


KINDS = {
    "words": (["red", "blue"], object),
    "text": (["red", "blue"], "string"),
    "numbers as objects": ([1, 2], object),
    "dates": (["2020-01-01", "2021-01-01"], "datetime64[ns]"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_columns_that_are_no_features_are_named_before_training(library, kind):
    X, y, qid = categorical(60, 0)
    values, dtype = KINDS[kind]
    wrong = X.assign(shop=pandas.Series(values * 30).astype(dtype))
    for of, given in (("", [(X, y)]), (r"eval_set\[1\]: ", [(X, y), (wrong, y)])):
        untrained = ranker(library)
        message = f"^{of}X has columns that are neither numbers nor categories: 'shop' .*astype"
        with pytest.raises(LTRError, match=message):
            untrained.fit(X if of else wrong, y, qid=qid, eval_set=given, eval_qid=[qid] * len(given))
        assert not hasattr(untrained, "booster_")
    numbers = X.assign(a=y > 0, b=y.astype("float32"), c=pandas.array(y, "Int64"))
    assert ranker(library).fit(numbers, y, qid=qid).n_features_in_ == 5
    if library == "catboost":  # they may be named, or given by index
        for column in ("shop", 2):
            assert (
                ranker(library, cat_features=[column]).fit(wrong.astype({"shop": str}), y, qid=qid).n_features_in_ == 3
            )


def test_a_column_of_ids_is_no_feature(library):
    train, _, test = fold()
    X = as_pandas(train.X).assign(qid=train.qid)
    fitted = ranker(library).fit(X, train.y)
    assert fitted.n_features_in_ == 10
    expected = ranker(library).fit(as_pandas(train.X), train.y, qid=train.qid).predict(as_pandas(test.X))
    assert np.array_equal(fitted.predict(as_pandas(test.X)), expected)
    assert np.array_equal(fitted.predict(as_pandas(test.X).assign(qid=1)), expected)
    with pytest.raises(LTRError, match="X has a column 'qid'; drop it"):
        ranker(library).fit(X, train.y, qid=train.qid)
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
        if each is fitted or library != "lightgbm":  # its files do not keep the names as they were
            with pytest.raises(ValueError, match="feature names should match"):
                each.predict(as_pandas(test.X)[NAMES[::-1]])
