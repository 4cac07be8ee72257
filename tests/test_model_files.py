"""Model files: LightGBM's are whole, and CatBoost's may be JSON."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

from rankers import SUFFIX, ranker, ranker_class

from ltr_objectives.datasets import make_ranking

DATA = make_ranking(10, features=10, mean_length=10)


@pytest.mark.parametrize("library", list(SUFFIX))
def test_models_with_categories_are_read(library, tmp_path):
    pytest.importorskip(library)
    pandas = pytest.importorskip("pandas")
    path = tmp_path / f"model{SUFFIX[library]}"
    X = pandas.DataFrame(DATA.X, columns=[f"f{i}" for i in range(10)])
    X["f0"] = pandas.Categorical(np.array(["a", "b", "c"])[np.arange(len(X)) % 3])
    fitted = ranker(library).fit(X, DATA.y, qid=DATA.qid)
    fitted.save_model(path)
    assert ranker_class(library)().load_model(path).n_features_in_ == 10


@pytest.mark.parametrize("form", ["json", "cbm"])
def test_catboost_s_models_are_read_in_both_forms(form, tmp_path):
    """By the estimator, and as a start of it."""
    pytest.importorskip("catboost")
    path = tmp_path / "model"
    fitted = ranker("catboost").fit(DATA.X, DATA.y, qid=DATA.qid)
    fitted.save_model(path, format=form)
    read = ranker_class("catboost")().load_model(path)
    np.testing.assert_allclose(read.predict(DATA.X), fitted.predict(DATA.X), atol=1e-12)
    longer = [ranker("catboost").fit(DATA.X, DATA.y, qid=DATA.qid, init_model=start) for start in (read, fitted)]
    np.testing.assert_allclose(longer[0].predict(DATA.X), longer[1].predict(DATA.X), atol=1e-12)
