"""The pages on models after training and on tools run, and trackers record every round."""

import examples
import mlflow
import numpy as np
import pytest
import ranx
from generated import ranking

from ltr_objectives import evaluate, to_qrels, to_run
from ltr_objectives.adapters import CatBoostRanker, LGBMRanker, XGBRanker

pytestmark = pytest.mark.filterwarnings("ignore")  # warnings that these packages cause among themselves
X, Y, QID = ranking(0)
DATA = {"X": X, "y": Y, "qid": QID, "eval_set": [(X, Y)], "eval_qid": [QID]}


@pytest.mark.parametrize(
    ("pages", "made"),
    [
        (["serving", "search_engines"], {"converted", "compiled", "dump", "solr"}),
        (["tools"], {"study", "logged", "stage", "theirs"}),
    ],
)
def test_the_pages_run(pages, made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for page in pages:
        for code in examples.blocks(f"docs/{page}.md"):
            examples.run(code, names)
    assert made <= set(names)
    if "serving" in pages:
        return
    np.testing.assert_allclose([names["theirs"][name] for name in names["measures"]], list(names["ours"].values()))
    test, learner = names["test"], names["stage"].learner
    constant = evaluate("ndcg@10", np.zeros(len(test.y)), test.y, test.group)
    assert learner.score(test.X, test.y, qid=test.qid) > constant + 0.1


def test_ranx_has_our_values_without_ties():
    scores = np.random.default_rng(0).permutation(len(Y)).astype(float)
    metrics = ["ndcg@10", "map", "mrr"]
    found = ranx.evaluate(ranx.Qrels(to_qrels(Y, qid=QID)), ranx.Run(to_run(scores, qid=QID)), metrics)
    ours = evaluate(metrics, scores, Y, qid=QID, convention="trec_eval")
    np.testing.assert_allclose([found[name] for name in metrics], list(ours.values()))


@pytest.mark.parametrize("kind", [XGBRanker, LGBMRanker, CatBoostRanker])
def test_mlflow_records_every_round_of_every_metric(kind, tmp_path):
    names = {"mlflow": mlflow}
    code = examples.block("docs/tools.md", "def log_rounds").partition("mlflow.set_tracking_uri")[0]
    examples.run(code, names)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'mlflow.db'}")
    experiment = mlflow.create_experiment("trackers", artifact_location=tmp_path.as_uri())
    metrics = ["ndcg@10", "dcg(gain_type=linear)@10", "map[sales] + 0.3*ndcg@5"]
    ranker = kind(objective="yetiloss:map", eval_metric=metrics, n_estimators=5)
    ranker.fit(**DATA, labels={"sales": Y}, eval_labels=[{"sales": Y}])
    with mlflow.start_run(experiment_id=experiment) as tracked:
        names["log_rounds"](ranker)
    client = mlflow.MlflowClient()
    logged = client.get_run(tracked.info.run_id).data.metrics
    recorded = [[each.value for each in client.get_metric_history(tracked.info.run_id, name)] for name in logged]
    assert "validation_0-ndcg_at_10" in logged
    assert sorted(recorded) == sorted(ranker.evals_result_["validation_0"].values())
