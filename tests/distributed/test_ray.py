"""Ray Train: two workers train the model of one process."""

import os
from pathlib import Path

import examples
import lightgbm as lgb
import numpy as np
import pytest
import ray
import ray.train.lightgbm
import ray.train.xgboost
import xgboost as xgb
from generated import ranking

from ltr_objectives import LambdaMART, Mixture, evaluate
from ltr_objectives.adapters import lightgbm_objective, xgboost_objective

OWN = "ignore:.* is deprecated:DeprecationWarning:ray.data.context"  # Ray 2.60 reads its own deprecated settings
pytestmark = pytest.mark.filterwarnings(OWN)  # reasons are beside OWN

LIBRARIES = "xgboost", "lightgbm"
HERE = Path(__file__).parent
DATA = ranking(0, levels=4)  # every worker sees every value, so that all have the same bins
DATA = *DATA, np.digitize(DATA[0][:, 1], [0, 2]).astype(float)  # labels of a second goal
ONE = LambdaMART("map")
TWO = Mixture(["lambdamart:map", "lambdamart"], labels=[None, "revenue"], normalize=False)


@pytest.fixture(scope="module")
def jobs():
    """Start a local cluster of two processors, and return what its workers run."""
    paths = [str(path) for path in (HERE, HERE.parent, HERE.parents[1])]
    env = {"PYTHONPATH": os.pathsep.join(paths), "OMP_WAIT_POLICY": "passive"}
    ray.init(num_cpus=2, include_dashboard=False, runtime_env={"env_vars": env})
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(HERE)
        import jobs

        yield jobs
    ray.shutdown()


def train(jobs, library, folder, failures=0, die=False, every=0, objective=ONE):
    """Return the result of a training on two workers, and the file of its model."""
    trainer = ray.train.xgboost.XGBoostTrainer if library == "xgboost" else ray.train.lightgbm.LightGBMTrainer
    result = trainer(
        getattr(jobs, f"in_{library}"),
        train_loop_config={"data": DATA, "folder": str(folder), "die": die, "every": every, "objective": objective},
        scaling_config=ray.train.ScalingConfig(num_workers=2),
        run_config=ray.train.RunConfig(
            storage_path=str(folder), failure_config=ray.train.FailureConfig(max_failures=failures)
        ),
    ).fit()
    return result, f"{result.checkpoint.path}/{jobs.FILE}"


def alone(jobs, library, objective=ONE):
    """Return the predictions of the model that one process trains."""
    X, y, qid, revenue = DATA
    labels = jobs.labels_for(objective, revenue)
    if library == "lightgbm":
        params = {**jobs.LGB, "objective": lightgbm_objective(objective, **labels)}
        return lgb.train(params, lgb.Dataset(X, y, group=np.bincount(qid)), jobs.ROUNDS).predict(X)
    data = xgb.DMatrix(X, y, qid=qid)
    return xgb.train(jobs.XGB, data, jobs.ROUNDS, obj=xgboost_objective(objective, **labels)).predict(data)


def predict(library, path):
    if library == "lightgbm":
        return lgb.Booster(model_file=path).predict(DATA[0])
    return xgb.Booster(model_file=path).predict(xgb.DMatrix(DATA[0]))


@pytest.mark.parametrize("objective", [ONE, TWO], ids=["one goal", "two goals"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_two_workers_train_the_model_of_one_process(jobs, library, objective, tmp_path):
    result, path = train(jobs, library, tmp_path, objective=objective)
    scores = predict(library, path)
    assert np.ptp(scores) > 0.1
    np.testing.assert_allclose(scores, alone(jobs, library, objective), atol=1e-5)
    if library == "xgboost":  # LightGBM's values are of one worker
        assert result.metrics["train-map"] == pytest.approx(evaluate("map", scores, DATA[1], qid=DATA[2]), abs=1e-6)


@pytest.mark.parametrize(("every", "begun"), [(0, {"0 rounds"}), (2, {"0 rounds", "2 rounds"})])
def test_with_max_failures_the_training_begins_again(jobs, every, begun, tmp_path):
    _, path = train(jobs, "xgboost", tmp_path, failures=1, die=True, every=every)
    assert (tmp_path / "died").exists()
    assert {found.name for found in tmp_path.glob("* rounds")} == begun
    np.testing.assert_allclose(predict("xgboost", path), alone(jobs, "xgboost"), atol=1e-5)


def test_the_example_runs(jobs):
    names = {"__name__": "example"}
    examples.run(examples.script("ray_clusters"), names)
    assert names["model"].num_boosted_rounds() == 20
