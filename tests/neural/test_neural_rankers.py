"""The study of neural rankers: its features, padding and networks, and a run on little data."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

torch = pytest.importorskip("torch")

from benchmarks.__main__ import app  # noqa: E402 - skipped without torch
from benchmarks.neural_rankers import MODELS, network, padded, scores_of, smaller, standardised  # noqa: E402 - likewise
from ltr_objectives.datasets import RankingData, RankingFold, make_ranking_fold  # noqa: E402 - likewise

FOLD = make_ranking_fold((12, 6, 6), mean_length=8, features=10)


def test_fewer_queries_and_shorter_lists_are_part_of_the_data():
    some = smaller(FOLD.train, 5, 4)
    assert len(some.group) == 5
    assert some.group.max() == 4
    assert np.array_equal(np.repeat(some.qid[np.cumsum(some.group) - 1], some.group), some.qid)
    rows = {(q, y, *x) for q, y, x in zip(FOLD.train.qid, FOLD.train.y, FOLD.train.X.tolist(), strict=True)}
    assert {(q, y, *x) for q, y, x in zip(some.qid, some.y, some.X.tolist(), strict=True)} <= rows
    every = smaller(FOLD.train, 99, 99)
    assert np.array_equal(every.X, FOLD.train.X)


def test_skewed_features_are_logarithms_and_all_are_standardised():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.lognormal(0, 2, 400), rng.normal(3, 2, 400), np.full(400, 7.0)])
    parts = [RankingData(x, x[:, 0], np.array([200]), np.zeros(200)) for x in np.split(X, 2)]
    train, vali, _ = standardised(RankingFold(*parts, parts[0]))
    for found, part in ((train, X[:200]), (vali, X[200:])):
        expected = np.column_stack([np.log1p(part[:, 0]), part[:, 1]])
        of_train = np.column_stack([np.log1p(X[:200, 0]), X[:200, 1]])
        expected = (expected - of_train.mean(axis=0)) / of_train.std(axis=0)
        np.testing.assert_allclose(found[:, :2], expected, rtol=1e-5, atol=1e-6)
        assert (found[:, 2] == 0).all()


@pytest.mark.parametrize("model", [model for model in MODELS if model != "trees"])
@pytest.mark.parametrize("objective", ["listnet", "neuralndcg:temperature=1", "rmse"])
def test_scores_depend_on_neither_padding_nor_order(model, objective):
    torch.manual_seed(0)
    net = network(model, 10).eval()
    X = torch.from_numpy(standardised(FOLD)[0])
    rows, mask = padded(FOLD.train, np.array([3, 0, 7]))
    found = scores_of(net, objective, 5, X[rows], torch.from_numpy(mask)).detach().numpy()
    starts = np.cumsum(FOLD.train.group) - FOLD.train.group
    for scores, real, query in zip(found, mask, (3, 0, 7), strict=True):
        of = np.arange(starts[query], starts[query] + FOLD.train.group[query])[::-1].copy()
        alone = scores_of(net, objective, 5, X[of][None], torch.ones(1, len(of), dtype=torch.bool))
        np.testing.assert_allclose(alone[0].detach().numpy()[::-1], scores[real], rtol=1e-4, atol=1e-5)
    low, high = {"listnet": (-np.inf, np.inf), "rmse": (0, 5)}.get(objective, (-1, 1))
    assert low < found.min() < found.max() < high


def test_the_study_continues_and_sums_up_its_trainings(tmp_path):
    losses = "listnet,neuralndcg:temperature=1"
    given = ["neural-rankers", "--data", "generated-calibrated:30,20,20", "--losses", losses, "--epochs", "3"]
    for seeds in ("0", "0,1"):  # the second run trains the second seed alone
        before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("neural_rankers/*")}
        done = CliRunner().invoke(app, [*given, "--seeds", seeds, "--out", str(tmp_path)])
        assert done.exit_code == 0, done.output
        assert all(path.stat().st_mtime_ns == time for path, time in before.items())
    assert len(before) == 6
    assert len(list(tmp_path.glob("neural_rankers/*"))) == 10  # trees have one seed
    results = json.loads((tmp_path / "neural_rankers.json").read_text())["results"]
    assert [(r["model"], r["loss"], r["seeds"]) for r in results] == [
        (model, loss, 1 if model == "LightGBM" else 2) for model in MODELS.values() for loss in losses.split(",")
    ]
    for result in results:
        model = next(key for key, name in MODELS.items() if name == result["model"])
        files = sorted(tmp_path.glob(f"neural_rankers/* {model} {result['loss']} * * *.json"))
        values = np.array([json.loads(path.read_text())["test"]["ndcg@5"] for path in files])
        assert values.shape == (result["seeds"], 20)
        assert result["ndcg@5"]["mean"] == pytest.approx(values.mean())
        assert result["ndcg@5"]["se"] == pytest.approx(values.mean(axis=0).std(ddof=1) / np.sqrt(20))
        spread = values.mean(axis=1).std(ddof=1) / np.sqrt(2) if result["seeds"] == 2 else 0
        assert result["ndcg@5"]["se of seeds"] == pytest.approx(spread)
    assert results[0]["ndcg@5"]["difference"] == 0
