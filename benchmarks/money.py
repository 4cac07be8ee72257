"""``python -m benchmarks money``: the money of the first ten documents, by what is trained on generated sessions."""

from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from typer import Option

from benchmarks.publish import save
from ltr_objectives import adapters, compare_scores
from ltr_objectives.libraries import LIBRARIES
from ltr_objectives.workbench.texts import terminal

MONEY = "dcg(gain_type=linear)@10"
OURS = {  # objective, by the name in the results; "orders" reads whether a document was ordered, the others its amount
    "orders: ndcg@10": "yetiloss:ndcg@10",
    "ndcg of money": "yetiloss:ndcg(gain_type=linear)@10",
    "dcg of money, lambda_norm": f"yetiloss:{MONEY};lambda_norm=True",
    "dcg of money": f"yetiloss:{MONEY}",
}
NATIVE = {"lightgbm": "lambdarank", "xgboost": "rank:ndcg", "catboost": "YetiRank"}
CLASSIFIER = {"lightgbm": "LGBMClassifier", "xgboost": "XGBClassifier", "catboost": "CatBoostClassifier"}
WEIGHTED, CHANCE = "orders, weight: the session's money", "chance of an order, times the margin"
BASE = "orders: ndcg@10"
ROUNDS, RATE, LENGTH = 60, 0.1, 10


class Sessions(NamedTuple):
    """Sessions of ``LENGTH`` documents each, whose margins are from 1 to 10,000."""

    X: np.ndarray
    margin: np.ndarray  # of each document if it is ordered; known to the ranker as the last feature, in logarithms
    chance: np.ndarray  # that it is ordered
    ordered: np.ndarray


def sessions(count: int, orders: str, seed: int) -> Sessions:
    """Make sessions, of which 13% have one order if ``orders`` is "one"; if it is "many", a session has 1.3 on average.

    The chance of an order falls with the margin.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count * LENGTH, 12))
    margin = np.clip(np.exp(4 + 1.5 * rng.normal(size=len(X))), 1, 10_000)
    X[:, -1] = np.log(margin)
    utility = X[:, 0] + 0.7 * X[:, 1] + 0.7 * X[:, 2] * X[:, 3] + np.abs(X[:, 4]) - 0.3 * X[:, -1]
    power = np.exp(utility).reshape(count, LENGTH)
    if orders == "one":  # or none: a logit whose outside option is chosen in 87% of the sessions
        chance = (power / (power + power.sum(axis=1, keepdims=True) - power + 6.7 * power.sum(axis=1).mean())).ravel()
        outcome = rng.uniform(size=(count, 1)) < np.cumsum(chance.reshape(count, LENGTH), axis=1)
        ordered = np.diff(outcome.astype(float), axis=1, prepend=0.0).ravel()
    else:
        chance = np.minimum(0.13 * power / power.mean(), 0.9).ravel()
        ordered = (rng.uniform(size=len(chance)) < chance).astype(float)
    return Sessions(X.astype(np.float32), margin, chance, ordered)


def scores(library: str, name: str, train: Sessions, test: Sessions, expected: bool) -> np.ndarray:
    """Train what ``name`` says, and score the test sessions; with ``expected`` labels are the chances, times money."""
    size: dict[str, Any] = {
        "n_estimators": ROUNDS,
        "learning_rate": RATE,
        "random_state": 0,
        LIBRARIES[library].threads: 1,
    }
    size |= {"verbose": False} if library == "catboost" else {"verbosity": 0 if library == "xgboost" else -1}
    orders = train.chance if expected else train.ordered
    money, group = orders * train.margin, np.full(len(train.X) // LENGTH, LENGTH)
    if name == CHANCE:
        model = getattr(LIBRARIES[library].load(), CLASSIFIER[library])(**size).fit(train.X, train.ordered)
        found: np.ndarray = model.predict_proba(test.X)[:, 1] * test.margin
        return found
    ranker = getattr(adapters, LIBRARIES[library].ranker)
    if name not in OURS:
        weight, labels = money.reshape(-1, LENGTH).sum(axis=1), train.ordered
        if library == "lightgbm":  # whose Hessians are compared with limits of a leaf
            weight = weight / weight[weight > 0].mean()
        size |= {"objective": NATIVE[library]}
        model = ranker(**size).fit(train.X, labels, group=group, sample_weight=weight)
    else:
        model = ranker(objective=OURS[name], **size).fit(train.X, orders if name == BASE else money, group=group)
    return np.asarray(model.predict(test.X))


def money(
    train: Annotated[int, Option(min=100, help="Sessions.")] = 10_000,
    test: Annotated[int, Option(min=100, help="Sessions.")] = 10_000,
    seeds: Annotated[int, Option(min=1, help="Data sets of each kind.")] = 1,
    out: Annotated[Path, Option(help="Folder for the JSON file.")] = Path("results"),
) -> None:
    """Compare the expected money of the first ten documents, discounted as in DCG, with that of NDCG of orders.

    Labels are amounts that were realised, or expected ones; sessions have one order at most, or several.
    """
    console, results = terminal(), []
    for orders, labels, library in (
        (o, e, k) for o in ("one", "many") for e in ("realised", "expected") for k in NATIVE
    ):
        for seed in range(seeds):
            learn, held = sessions(train, orders, 2 * seed), sessions(test, orders, 2 * seed + 1)
            true, names = held.chance * held.margin, [*OURS, WEIGHTED]
            found = {n: scores(library, n, learn, held, labels == "expected") for n in names}
            if labels == "realised":
                found[CHANCE] = scores(library, CHANCE, learn, held, False)
            found["best possible"] = true
            group = np.full(test, LENGTH)
            for name in list(found)[1:]:
                of = compare_scores(MONEY, found[name], found[BASE], true, group)
                line: dict[str, Any] = {
                    "orders": orders,
                    "labels": labels,
                    "library": library,
                    "seed": seed,
                    "trained": name,
                }
                line |= {k: round(100 * v / of.b, 2) for k, v in zip(("percent", "low", "high"), of[2:5], strict=True)}
                results.append(line)
                console.print(*line.values())
    save("money", {"metric": MONEY, "against": BASE, "results": results}, out, console)
