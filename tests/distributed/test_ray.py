"""Ray Train: two workers train the model of one process. Run by ``make test-distributed``."""

import os
from pathlib import Path

import examples
import lightgbm as lgb
import numpy as np
import pytest
import ray
import xgboost as xgb
from generated import ranking

from ltr_objectives import evaluate
from ltr_objectives.adapters import lightgbm_objective, xgboost_objective

# Ray 2.60 reads its own deprecated settings
pytestmark = pytest.mark.filterwarnings("ignore:.* is deprecated:DeprecationWarning:ray.data.context")

HERE = Path(__file__).parent
DATA = ranking(0, levels=4)  # every worker sees every value, so that all have the same bins


@pytest.fixture(scope="module")
def jobs():
    """A local cluster of two processors, and what its workers run."""
    paths = [str(path) for path in (HERE, HERE.parent, HERE.parents[1])]
    os.environ["RAY_TRAIN_V2_ENABLED"] = "1"
    env = {"PYTHONPATH": os.pathsep.join(paths), "OMP_WAIT_POLICY": "passive"}
    ray.init(num_cpus=2, include_dashboard=False, runtime_env={"env_vars": env})
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(HERE)
        import jobs

        yield jobs
    ray.shutdown()


def train(jobs, library, folder, failures=0, **config):
    """The result of a training on two workers, and the file of its model."""
    import ray.train.lightgbm
    import ray.train.xgboost

    trainer = ray.train.xgboost.XGBoostTrainer if library == "xgboost" else ray.train.lightgbm.LightGBMTrainer
    result = trainer(
        getattr(jobs, f"in_{library}"),
        train_loop_config={"data": DATA, **config},
        scaling_config=ray.train.ScalingConfig(num_workers=2),
        run_config=ray.train.RunConfig(
            storage_path=str(folder), failure_config=ray.train.FailureConfig(max_failures=failures)
        ),
    ).fit()
    return result, f"{result.checkpoint.path}/{jobs.FILE}"


def alone(jobs):
    X, y, qid = DATA
    data = xgb.DMatrix(X, y, qid=qid)
    return xgb.train(jobs.XGB, data, jobs.ROUNDS, obj=xgboost_objective("lambdamart:map")).predict(data)


def test_xgboost_trains_the_model_of_one_process(jobs, tmp_path):
    X, y, qid = DATA
    result, path = train(jobs, "xgboost", tmp_path)
    scores = xgb.Booster(model_file=path).predict(xgb.DMatrix(X))
    assert np.ptp(scores) > 0.1
    np.testing.assert_allclose(scores, alone(jobs), atol=1e-5)
    assert result.metrics["map"] == pytest.approx(evaluate("map", scores, y, qid=qid), abs=1e-6)  # of both workers


def test_lightgbm_trains_the_model_of_one_process(jobs, tmp_path):
    X, y, qid = DATA
    _, path = train(jobs, "lightgbm", tmp_path)
    params = {**jobs.LGB, "objective": lightgbm_objective("lambdamart:map")}
    one = lgb.train(params, lgb.Dataset(X, y, group=np.bincount(qid)), jobs.ROUNDS).predict(X)
    assert np.ptp(one) > 0.1
    np.testing.assert_allclose(lgb.Booster(model_file=path).predict(X), one, atol=1e-9)


def test_a_worker_that_dies_ends_the_training(jobs, tmp_path):
    with pytest.raises(ray.train.WorkerGroupError):
        train(jobs, "xgboost", tmp_path, died=str(tmp_path / "died"))
    assert (tmp_path / "died").exists()


def test_with_max_failures_the_training_begins_again(jobs, tmp_path):
    _, path = train(jobs, "xgboost", tmp_path, failures=1, died=str(tmp_path / "died"))
    assert (tmp_path / "died").exists()
    np.testing.assert_allclose(xgb.Booster(model_file=path).predict(xgb.DMatrix(DATA[0])), alone(jobs), atol=1e-5)


def test_the_page_runs(jobs):
    names = {"__name__": "page"}
    examples.run(examples.block("docs/distributed.md", "XGBoostTrainer"), names)
    assert names["model"].num_boosted_rounds() == 20
