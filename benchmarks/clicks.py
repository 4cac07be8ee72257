"""``python -m benchmarks clicks``: training on clicks with ``position=``, for several logging policies."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from typer import Option, echo

from ltr_objectives import LambdaMART, Queries, evaluate
from ltr_objectives.adapters import CatBoostRanker, XGBRanker, lightgbm_objective
from ltr_objectives.datasets import RankingData, RankingFold, load_letor, make_ranking_fold
from ltr_objectives.statistics import standard_error
from ltr_objectives.workbench.texts import pipe_table, signed

EXAMPLE = "LightGBM's example"
TREES = 60
PARAMS = {"num_leaves": 15, "learning_rate": 0.1, "min_sum_hessian_in_leaf": 1e-3, "verbose": -1, "num_threads": 1,
          "deterministic": True, "force_col_wise": True, "metric": "None"}  # fmt: skip
METHODS = ("none", "true propensities", "position=", "lambdarank, its own", "XGBoost position=", "CatBoost position=")


class Log(NamedTuple):
    """Clicks on the training queries, and test queries with their true labels."""

    train: RankingData
    test: RankingData
    position: np.ndarray  # from 0
    propensity: np.ndarray  # by position
    clicks: np.ndarray
    metric: str


def feature(data: RankingData, rng: np.random.Generator) -> np.ndarray:
    """The feature that the labels depend on most."""
    return data.X[:, np.argmax([abs(np.corrcoef(x, data.y)[0, 1]) for x in data.X.T])]


def old_model(data: RankingData, rng: np.random.Generator) -> np.ndarray:
    """A fit of five features to 300 rows, plus noise of the same size."""
    X, y = data.X[:, :5] - data.X[:300, :5].mean(0), data.y[:300] - data.y[:300].mean()
    fit = X @ np.linalg.lstsq(X[:300], y, rcond=None)[0]
    return np.asarray(fit / fit.std() + rng.normal(size=len(fit)))


POLICIES: dict[str, Callable[[RankingData, np.random.Generator], np.ndarray]] = {
    "one feature": feature,
    "old model": old_model,
    "random": lambda data, rng: rng.normal(size=len(data.y)),
    "true order": lambda data, rng: data.y + 1e-3 * rng.normal(size=len(data.y)),
}


def positions(scores: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Each row's place among those of its query, by descending score."""
    query = np.repeat(np.arange(len(group)), group)
    out = np.empty(len(scores), np.int64)
    out[np.lexsort((-scores, query))] = np.arange(len(scores)) - np.repeat(np.cumsum(group) - group, group)
    return out


def generated(policy: str, queries: int, seed: int) -> Log:
    """Each query shown once; rank k is examined with probability 1 / k, and the worst label attracts a tenth."""
    train, _, test = make_ranking_fold(
        (queries, 1, 1000), seed, features=20, mean_length=10, shares=(0.45, 0.25, 0.15, 0.1, 0.05)
    )
    rng = np.random.default_rng(seed + 1000)
    position = positions(POLICIES[policy](train, rng), train.group)
    propensity = 1.0 / (1.0 + np.arange(position.max() + 1))
    chance = propensity[position] * (0.1 + 0.9 * (2.0**train.y - 1) / 15)
    return Log(train, test, position, propensity, (rng.uniform(size=len(chance)) < chance).astype(float), "ndcg@5")


def example(folder: Path, seed: int) -> Log:
    """LightGBM's test of position bias: ranked by feature 34; users go on to the next document with chance 0.8."""
    fold = load_letor(folder)
    assert isinstance(fold, RankingFold)
    train, test, rng = fold.train, fold.test, np.random.default_rng(seed + 1000)
    position = positions(np.nan_to_num(np.asarray(train.X[:, 33], float)), train.group)
    last = np.repeat(rng.geometric(0.2, len(train.group)) - 1, train.group)
    attracted = rng.uniform(size=len(train.y)) < np.array([0.4, 0.6, 0.7, 0.8, 0.9])[train.y.astype(int)]
    clicks = (attracted & (position <= last)).astype(float)
    return Log(train, test, position, 0.8 ** np.arange(position.max() + 1.0), clicks, "ndcg@3")


def trained(log: Log) -> dict[str, tuple[float, float]]:
    """For each method the test value, and its difference from the same objective and library without correction."""
    import lightgbm as lgb

    X, clicks, group = log.train.X, log.clicks, log.train.group

    def value(predict: Callable[[Any], Any]) -> float:
        return evaluate(log.metric, predict(log.test.X), log.test.y, log.test.group)

    def lightgbm(objective: Any, position: np.ndarray | None = None) -> float:
        data = lgb.Dataset(X, clicks, group=group, position=position)
        return value(lgb.train({**PARAMS, "objective": objective}, data, TREES).predict)

    def estimator(kind: Any, position: np.ndarray | None = None) -> float:
        ranker = kind(objective="lambdamart", n_estimators=TREES, learning_rate=0.1)
        return value(ranker.fit(X, clicks, group=group, position=position).predict)

    queries, offset = Queries(clicks, group), np.log(log.propensity)[log.position]
    none, native = lightgbm(lightgbm_objective("lambdamart")), lightgbm("lambdarank")
    xgboost, catboost = estimator(XGBRanker), estimator(CatBoostRanker)
    found = (
        (none, none),
        (lightgbm(lambda scores, data: LambdaMART().compute(queries, scores + offset)), none),
        (lightgbm(lightgbm_objective("lambdamart"), log.position), none),
        (lightgbm("lambdarank", log.position), native),
        (estimator(XGBRanker, log.position), xgboost),
        (estimator(CatBoostRanker, log.position), catboost),
    )
    return {name: (here, here - there) for name, (here, there) in zip(METHODS, found, strict=True)}


def clicks(
    seeds: Annotated[int, Option(min=2, help="Trainings of each method.")] = 8,
    queries: Annotated[int, Option(min=10, help="Training queries of the generated data.")] = 1500,
    policies: Annotated[str, Option(help=f"Names, separated by commas: {', '.join(POLICIES)}.")] = ",".join(POLICIES),
    data: Annotated[Path | None, Option(help="Folder of LightGBM's lambdarank example, for its policy.")] = None,
) -> None:
    """Compare ways to correct clicks for their position: test NDCG by true labels, and its standard error over seeds.

    Differences are from the same objective without correction, in the same library; the first three are LightGBM's.
    """
    rows = [["policy", *METHODS]]
    for policy in [*filter(None, policies.split(",")), *([EXAMPLE] if data else [])]:
        logs = (example(data, s) if data and policy == EXAMPLE else generated(policy, queries, s) for s in range(seeds))
        found = [trained(log) for log in logs]
        cells = [np.array([each[method] for each in found]) for method in METHODS]
        base = f"{cells[0][:, 0].mean():.3f}"
        rows.append([policy, base, *(signed(c[:, 1].mean(), standard_error(c[:, 1]), 3) for c in cells[1:])])
        echo(" | ".join(rows[-1]))
    echo(pipe_table(rows, [i > 0 for i in range(len(rows[0]))]))
