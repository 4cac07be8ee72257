"""Data in files: the models and values of the same rows in memory, with whole queries."""

import examples
import numpy as np
import pytest
from generated import ranking

from ltr_objectives.adapters import (
    catboost_objective,
    lightgbm_metric,
    lightgbm_objective,
    xgboost_metric,
    xgboost_objective,
)

OBJECTIVE = "yetiloss:map"
XGB = {"max_depth": 3, "min_child_weight": 0, "base_score": 0, "disable_default_eval_metric": 1, "nthread": 1}
LGB = {"num_leaves": 7, "min_child_weight": 0, "lambda_l2": 1, "min_child_samples": 5, "verbose": -1}
LGB |= {"metric": "None", "deterministic": True, "force_col_wise": True, "num_threads": 1}
X, GRADES, QID = ranking(0, levels=4)
LABELS = (GRADES > 1).astype(float)
GROUP = np.bincount(QID)
WEIGHT = np.random.default_rng(0).uniform(0.5, 2, len(GROUP))
PARTS = np.split(np.arange(len(LABELS)), [GROUP[:20].sum(), GROUP[:40].sum()])


@pytest.fixture(scope="module")
def xgb():
    module = pytest.importorskip("xgboost")
    if not hasattr(module, "ExtMemQuantileDMatrix"):
        pytest.skip("XGBoost before 3.0")
    return module


def external(xgb, folder, parts, *, weights=False):
    """The rows of ``parts``, kept in files."""

    class Parts(xgb.DataIter):
        def __init__(self):
            self.left = list(parts)
            super().__init__(cache_prefix=str(folder / "cache"))

        def next(self, input_data):
            if not self.left:
                return False
            rows = self.left.pop(0)
            given = {"weight": WEIGHT[np.unique(QID[rows])]} if weights else {}
            input_data(data=X[rows], label=LABELS[rows], qid=QID[rows], **given)
            return True

        def reset(self):
            self.left = list(parts)

    return xgb.ExtMemQuantileDMatrix(Parts())


@pytest.mark.parametrize("weights", [False, True])
def test_xgboost_trains_the_model_of_data_in_memory(xgb, tmp_path, weights):
    far = external(xgb, tmp_path, PARTS, weights=weights)
    near = xgb.DMatrix(X, LABELS, qid=QID, weight=WEIGHT if weights else None)
    assert np.array_equal(far.get_uint_info("group_ptr"), near.get_uint_info("group_ptr"))
    history = [{}, {}]
    models = [
        xgb.train(
            XGB, data, 3, obj=xgboost_objective(OBJECTIVE), custom_metric=xgboost_metric("map"),
            evals=[(data, "data")], evals_result=values, verbose_eval=False,
        )
        for data, values in zip((far, near), history, strict=True)
    ]  # fmt: skip
    scores = [model.predict(near) for model in models]
    assert np.ptp(scores[1]) > 0
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-5)
    np.testing.assert_allclose(history[0]["data"]["map"], history[1]["data"]["map"], atol=1e-6)


def test_xgboost_begins_a_query_at_each_part(xgb, tmp_path):
    """The page warns of it, and a new version of XGBoost may change it."""
    middle = GROUP[:20].sum() + 1
    assert QID[middle - 1] == QID[middle]
    rows = np.arange(len(LABELS))
    cut = external(xgb, tmp_path, [rows[:middle], rows[middle:]])
    assert len(cut.get_uint_info("group_ptr")) - 1 == len(GROUP) + 1


@pytest.fixture(scope="module")
def lgb():
    return pytest.importorskip("lightgbm")


@pytest.fixture(params=["sequences", "binary", "text"])
def distant(lgb, request, tmp_path):
    """Return a function that makes a Dataset of the rows in that form."""

    class Rows(lgb.Sequence):
        batch_size = 64

        def __init__(self, rows):
            self.rows = rows

        def __getitem__(self, index):
            return self.rows[index]

        def __len__(self):
            return len(self.rows)

    given = {"group": GROUP, "weight": WEIGHT[QID], "params": LGB}
    path = str(tmp_path / "train")
    if request.param == "sequences":  # the second begins within a query
        middle = GROUP[:20].sum() + 1
        return lambda: lgb.Dataset([Rows(X[:middle]), Rows(X[middle:])], LABELS, **given)
    if request.param == "binary":
        lgb.Dataset(X, LABELS, **given).save_binary(path)
        return lambda: lgb.Dataset(path, params=LGB)
    np.savetxt(path, np.column_stack([LABELS, X]), delimiter=",")
    np.savetxt(f"{path}.query", GROUP, fmt="%d")
    np.savetxt(f"{path}.weight", WEIGHT[QID], fmt="%.9g")
    return lambda: lgb.Dataset(path, params={**LGB, "two_round": True, "label_column": 0, "header": False})


def test_lightgbm_trains_the_model_of_data_in_memory(lgb, distant):
    scores, values = [], []
    for data in (lgb.Dataset(X, LABELS, group=GROUP, weight=WEIGHT[QID], params=LGB), distant()):
        params, found = {**data.params, "objective": lightgbm_objective(OBJECTIVE)}, {}
        model = lgb.train(
            params, data, 3, valid_sets=[data], valid_names=["data"], feval=lightgbm_metric("map"),
            callbacks=[lgb.record_evaluation(found)],
        )  # fmt: skip
        assert np.array_equal(data.get_group(), GROUP)
        scores.append(model.predict(X))
        values.append(found["data"]["map"])
    assert np.ptp(scores[0]) > 0
    np.testing.assert_allclose(scores[1], scores[0], atol=1e-6)
    np.testing.assert_allclose(values[1], values[0], atol=1e-6)


def test_catboost_reads_a_file(tmp_path):
    catboost = pytest.importorskip("catboost")
    np.savetxt(tmp_path / "train.tsv", np.column_stack([LABELS, QID, X]), delimiter="\t", fmt="%g")
    (tmp_path / "train.cd").write_text("0\tLabel\n1\tGroupId\n")
    pools = (
        catboost.Pool(str(tmp_path / "train.tsv"), column_description=str(tmp_path / "train.cd")),
        catboost.Pool(X, LABELS, group_id=QID),
    )
    params = {"iterations": 3, "leaf_estimation_method": "Newton", "eval_metric": "NDCG", "thread_count": 1}
    params |= {"bootstrap_type": "No", "verbose": False, "allow_writing_files": False}
    scores = [
        catboost.CatBoost({**params, "loss_function": catboost_objective("lambdamart:map", pool)}).fit(pool).predict(X)
        for pool in pools
    ]
    assert np.ptp(scores[1]) > 0
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-9)


@pytest.mark.release
def test_the_page_runs(xgb, lgb, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    examples.less_data(monkeypatch)
    names = {}
    for code in examples.blocks("docs/large_data.md"):
        if "LocalCluster" not in code and "XGBoostTrainer" not in code:  # other tests run these
            examples.run(code, names)
    assert isinstance(names["model"], lgb.Booster)
    assert names["dtrain"].num_data() == sum(names["group"])
