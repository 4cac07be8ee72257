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

X, GRADES, QID = ranking(0, levels=4)
LABELS = (GRADES > 1).astype(float)
GROUP = np.bincount(QID)
WEIGHT = np.random.default_rng(0).uniform(0.5, 2, len(GROUP))


def assert_same(scores, values=((0,), (0,))):
    assert np.ptp(scores[0]) > 0
    np.testing.assert_allclose(scores[1], scores[0], atol=1e-5)
    np.testing.assert_allclose(values[1], values[0], atol=1e-6)


def test_xgboost_trains_the_model_of_data_in_memory(tmp_path):
    xgb = pytest.importorskip("xgboost", minversion="3.0")

    class Parts(xgb.DataIter):
        def __init__(self):
            super().__init__(cache_prefix=str(tmp_path / "cache"))
            self.reset()

        def next(self, input_data):
            if not self.left:
                return False
            rows = self.left.pop(0)
            input_data(data=X[rows], label=LABELS[rows], qid=QID[rows], weight=WEIGHT[np.unique(QID[rows])])
            return True

        def reset(self):
            self.left = np.split(np.arange(len(LABELS)), [GROUP[:20].sum(), GROUP[:40].sum()])

    near, far = xgb.DMatrix(X, LABELS, qid=QID, weight=WEIGHT), xgb.ExtMemQuantileDMatrix(Parts())
    params = {"max_depth": 3, "min_child_weight": 0, "disable_default_eval_metric": 1, "nthread": 1}
    ours = {"obj": xgboost_objective("yetiloss:map"), "custom_metric": xgboost_metric("map")}
    scores, values = [], []
    for data in (near, far):
        found = {}
        model = xgb.train(params, data, 3, evals=[(data, "data")], evals_result=found, verbose_eval=False, **ours)
        scores.append(model.predict(near))
        values.append(found["data"]["map"])
    assert_same(scores, values)


def test_lightgbm_trains_the_model_of_data_in_memory(tmp_path):
    lgb, path = pytest.importorskip("lightgbm"), str(tmp_path / "train")
    params = {"num_leaves": 7, "lambda_l2": 1, "min_child_samples": 5, "verbose": -1, "metric": "None",
              "deterministic": True, "force_col_wise": True, "num_threads": 1}  # fmt: skip
    np.savetxt(path, np.column_stack([LABELS, X]), delimiter=",")
    np.savetxt(f"{path}.query", GROUP, fmt="%d")
    np.savetxt(f"{path}.weight", WEIGHT[QID], fmt="%.9g")
    near = lgb.Dataset(X, LABELS, group=GROUP, weight=WEIGHT[QID], params=params)
    far = lgb.Dataset(path, params={**params, "two_round": True, "label_column": 0, "header": False})
    scores, values = [], []
    for data in (near, far):
        found = {}
        model = lgb.train(
            {**data.params, "objective": lightgbm_objective("yetiloss:map")}, data, 3, valid_sets=[data],
            valid_names=["data"], feval=lightgbm_metric("map"), callbacks=[lgb.record_evaluation(found)],
        )  # fmt: skip
        scores.append(model.predict(X))
        values.append(found["data"]["map"])
    assert_same(scores, values)


def test_catboost_reads_a_file(tmp_path):
    catboost = pytest.importorskip("catboost")
    np.savetxt(tmp_path / "train.tsv", np.column_stack([LABELS, QID, X]), delimiter="\t", fmt="%g")
    (tmp_path / "train.cd").write_text("0\tLabel\n1\tGroupId\n")
    far = catboost.Pool(str(tmp_path / "train.tsv"), column_description=str(tmp_path / "train.cd"))
    params = {"iterations": 3, "eval_metric": "NDCG", "thread_count": 1, "bootstrap_type": "No", "verbose": False,
              "allow_writing_files": False}  # fmt: skip
    scores = []
    for pool in (catboost.Pool(X, LABELS, group_id=QID), far):
        loss = catboost_objective("lambdamart:map", pool)
        scores.append(catboost.CatBoost({**params, "loss_function": loss}).fit(pool).predict(X))
    assert_same(scores)


@pytest.mark.release
def test_the_page_runs(workplace, monkeypatch):
    lgb = pytest.importorskip("lightgbm")
    examples.less_data(monkeypatch)
    names = {}
    for code in examples.blocks("docs/large_data.md"):
        examples.run(code, names)
    assert isinstance(names["model"], lgb.Booster)
    assert names["dtrain"].num_data() == sum(names["group"])


@pytest.mark.release
def test_the_example_runs(workplace, monkeypatch):
    pytest.importorskip("xgboost", minversion="3.0")
    examples.less_data(monkeypatch)
    examples.run(examples.script("xgboost_on_disk"), names := {})
    assert len(names["dtrain"].get_uint_info("group_ptr")) == 3 * examples.MOST_QUERIES + 1
    assert names["model"].num_boosted_rounds() == 20
    names.clear()  # XGBoost prints when the matrix is deleted
