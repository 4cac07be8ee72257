"""NumPy, pandas, polars, pyarrow and SciPy give the same model for the same rows; categories and missing values."""

import pickle

import numpy as np
import pytest
from rankers import LIBRARIES, SUFFIX, fold, ranker, ranker_class

from ltr_objectives import LTRError, evaluate

for name in LIBRARIES:
    pytest.importorskip(name)
catboost, pandas = pytest.importorskip("catboost"), pytest.importorskip("pandas")
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
    if library == "catboost":  # the methods of its class read tables as predict does
        for table in (X, X.assign(qid=qid)):
            assert np.array_equal(list(fitted.staged_predict(table))[-1], fitted.predict(X))
            assert np.array_equal(fitted.calc_leaf_indexes(table), fitted.calc_leaf_indexes(X))
        if catboost.__version__ != "1.2":  # which needs the np.int of older versions of NumPy
            statistics = fitted.calc_feature_statistics(X, y, feature="colour", plot=False)
            assert "nan" in statistics["cat_values"]


@pytest.mark.parametrize("names", [[0, 1], [1, 0], [7, 5], [2.5, 1.5]])
def test_columns_with_numbers_as_names(library, names):
    """LightGBM and CatBoost take a number for the position of a categorical feature."""
    X, y, qid = categorical(600, 0)
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
    X.loc[::7, "colour"] = None
    if library != "catboost":  # which alone refuses missing categories itself
        assert np.isfinite(fitted.predict(X)).all()
        return
    for call in (lambda: fitted.predict(X), lambda: ranker(library).fit(X, y, qid=qid)):
        with pytest.raises(LTRError, match=r"X\['colour'\] has missing values, .* the category 'nan'.*; rename it"):
            call()


def test_missing_values_in_text_columns_of_cat_features(library):
    if library != "catboost":
        return
    X, y, qid = categorical(600, 0)
    X = X.assign(colour=X.colour.astype(object))
    fitted = ranker("catboost", cat_features=["colour"]).fit(X, y, qid=qid)
    X.loc[::7, "colour"] = np.nan
    for call in (lambda: fitted.predict(X), lambda: ranker("catboost", cat_features=["colour"]).fit(X, y, qid=qid)):
        with pytest.raises(LTRError, match=r"cat_features must be text .* without missing values .*astype"):
            call()


def test_columns_that_are_no_features_are_named_before_training(library):
    X, y, qid = categorical(60, 0)
    dates = pandas.Series(["2020-01-01", "2021-01-01"] * 30).astype("datetime64[ns]")
    for wrong in (X.assign(shop=["red", "blue"] * 30), X.assign(shop=dates)):
        with pytest.raises(LTRError, match=r"^X has columns that are neither numbers nor categories: 'shop' .*astype"):
            ranker(library).fit(wrong, y, qid=qid)
        if library == "catboost":  # they may be named, or given by index
            for column in ("shop", 2):
                named = ranker(library, cat_features=[column]).fit(wrong.astype({"shop": str}), y, qid=qid)
                assert named.n_features_in_ == 3
    numbers = X.assign(a=y > 0, b=y.astype("float32"), c=pandas.array(y, "Int64"))
    assert ranker(library).fit(numbers, y, qid=qid).n_features_in_ == 5


@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")  # of the array
@pytest.mark.filterwarnings("ignore:X has feature names:UserWarning")
def test_eval_sets_and_predict_take_the_columns_of_the_training(library):
    X, y, qid = categorical(60, 0)
    X = X.assign(shop=y + 1.0)
    category, text = X.assign(shop=pandas.Categorical(y.astype(int))), X.assign(shop=["red", "blue"] * 30)
    other_names = X.drop(columns="shop")
    for train, other, said in (
        (X, category, "the column 'shop' has categories of numbers here and numbers in the training"),
        (category, X, "the column 'shop' has numbers here and categories of numbers in the training"),
        (
            X.drop(columns="colour").to_numpy(),
            category.drop(columns="colour"),
            "'shop' has categories of .* and numbers",
        ),
        (
            category.drop(columns="colour"),
            X.drop(columns="colour").to_numpy(),
            "'shop' has numbers here and categories",
        ),
        (category, text.astype({"shop": "category"}), "has categories of text here and categories of numbers"),
        (X, text, "the column 'shop' has (object|str) here and numbers in the training; give it the same dtype"),
        (X, other_names, ".*feature names"),
    ):
        with pytest.raises(ValueError, match=rf"(?s)^eval_set\[1\]: .*{said}"):
            ranker(library).fit(train, y, qid=qid, eval_set=[(train, y), (other, y)], eval_qid=[qid, qid])
        with pytest.raises(ValueError, match=rf"(?s)^.*{said}"):
            ranker(library).fit(train, y, qid=qid).predict(other)


def test_columns_in_which_all_is_missing_are_of_any_kind(library):
    X, y, qid = categorical(60, 0)
    X = X.assign(shop=pandas.Categorical(y.astype(int)))
    fitted = ranker(library).fit(X, y, qid=qid)
    none, nan = pandas.Series([None] * 60, dtype=object), np.full(60, np.nan)
    for column in ("noise", "colour", "shop"):
        all_missing = X.assign(**{column: nan if column == "noise" else pandas.Series(nan).astype("category")})
        expected = fitted.predict(all_missing)
        # CatBoost 1.2.0 reads no NA among numbers
        nullable = [] if (library, column) == ("catboost", "noise") else [pandas.array([None] * 60, "Int64")]
        for missing in (none, nan, none.astype("category"), *nullable):
            np.testing.assert_array_equal(fitted.predict(X.assign(**{column: missing})), expected)


def test_objects_are_read_as_in_the_training(library):
    X, y, qid = categorical(60, 0)
    X = X.assign(shop=pandas.Categorical(y.astype(int)))
    fitted = ranker(library).fit(X, y, qid=qid)
    np.testing.assert_array_equal(fitted.predict(X.astype({"noise": object, "shop": object})), fitted.predict(X))
    for wrong in (X.astype({"shop": int}).astype({"shop": str}), X.assign(colour=pandas.Timestamp(0))):
        with pytest.raises(LTRError, match=r"has .* here and categories of (text|numbers) in the training"):
            fitted.predict(wrong)


def test_a_file_that_is_no_model_changes_nothing(library, tmp_path):
    X, y, qid = categorical(60, 0)
    fitted = ranker(library).fit(X, y, qid=qid)
    expected = fitted.predict(X)
    with pytest.raises(LTRError, match="is not a file"):
        fitted.load_model(tmp_path / "nothing")
    np.testing.assert_array_equal(fitted.predict(X), expected)
    with pytest.raises(LTRError, match="'colour' has numbers here and categories of text in the training"):
        fitted.predict(X.assign(colour=1.0))


def test_text_is_read_as_the_categories_of_the_training(library, tmp_path):
    X, y, qid = categorical(60, 0)
    text = X.astype({"colour": str})
    fitted = ranker(library).fit(X, y, qid=qid, eval_set=[(X, y), (text, y)], eval_qid=[qid, qid])
    first, second = fitted.evals_result_.values()
    assert first == second
    np.testing.assert_array_equal(fitted.predict(text), fitted.predict(X))
    fitted.save_model(tmp_path / f"model{SUFFIX[library]}")
    if library == "xgboost":  # the only library whose models have our attributes
        loaded = ranker_class(library)().load_model(tmp_path / f"model{SUFFIX[library]}")
        with pytest.raises(LTRError, match="'colour' has numbers here and categories of text in the training"):
            loaded.predict(X.assign(colour=1.0))


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
    options = {"min_child_samples": 5, "min_data_per_group": 5} if library == "lightgbm" else {}
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
    for model in (path, loaded, loaded.booster_):
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
    for call in (loaded.predict, lambda X: ranker(library).fit(X, y, qid=qid, init_model=path)):
        with pytest.raises(
            LTRError, match=r"saved without its categories, .* numbers, with feature_types=\['float', 'c'\]"
        ):
            call(X)


@pytest.mark.parametrize("form", ["pandas", "polars"])
def test_labels_are_no_features(library, form):
    train, _, _ = fold()
    make = as_pandas if form == "pandas" else as_polars
    table = as_pandas(train.X).assign(rev=train.y + 1.0, label=train.y)
    frame = table if form == "pandas" else pytest.importorskip("polars").from_pandas(table)
    rest = frame[[*NAMES, "rev"]]
    told = r"X has a column 'rev', which is labels\['{0}'\] and would be a feature; drop it{1}$"
    for labels, message in (
        ({"rev": frame["rev"]}, told.format("rev", r", or give labels=\['rev'\], the name of the column, instead")),
        ({"rev": train.y}, told.format("rev", ".*")),
        ({"revenue": frame["rev"]}, told.format("revenue", "")),
    ):
        with pytest.raises(LTRError, match=message):
            ranker(library, "lambdamart").fit(rest, train.y, qid=train.qid, labels=labels)
    with pytest.raises(LTRError, match=r"X has a column 'label', which is y and would be a feature; drop it$"):
        ranker(library).fit(frame[[*NAMES, "label"]], frame["label"], qid=train.qid)
    on_rev = ranker(library, "lambdamart[rev]", eval_metric="ndcg@10[rev]").fit(
        rest, train.y, qid=train.qid, labels=["rev"]
    )
    assert list(on_rev.feature_names_in_) == NAMES
    arrays = {"labels": {"rev": train.y + 1.0}}
    assert on_rev.score(rest, train.y, qid=train.qid) == on_rev.score(rest, train.y, qid=train.qid, **arrays)
    with pytest.raises(LTRError, match=r"eval_set\[0\]: X has a column 'rev', which is eval_labels\['rev'\]"):
        ranker(library, "lambdamart", eval_metric="ndcg[rev]").fit(
            make(train.X), train.y, qid=train.qid, labels={"rev": train.y}, eval_set=[(rest, train.y)],
            eval_qid=[train.qid], eval_labels=[{"rev": train.y}],
        )  # fmt: skip


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
    ranker(library, "rmse", n_estimators=1, eval_metric=metric).fit(
        vali.X, apart - (vali.qid > vali.qid[0]), qid=vali.qid
    )


def split(labels, data):
    return np.split(labels, np.cumsum(data.group)[:-1])
