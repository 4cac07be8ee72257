"""``python -m benchmarks clicks``: corrections of position bias on simulated clicks, judged by the true grades."""

import itertools
import json
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from rich.progress import track
from typer import Option

from benchmarks.publish import save
from ltr_objectives import adapters, evaluate
from ltr_objectives.datasets import make_ranking_fold
from ltr_objectives.errors import LTRWarning
from ltr_objectives.libraries import LIBRARIES
from ltr_objectives.position_bias import PositionOffsets
from ltr_objectives.workbench.texts import terminal

ROUNDS = (10, 20, 30, 50, 70, 100)
SIZE = (600, 1000)  # validation and test queries
RARE, HIGH = (0.03, 0.08, 0.2, 0.4, 0.6), (0.1, 0.3, 0.5, 0.8, 1.0)  # chance of a click by grade, if looked at
OURS = "yetiloss:ndcg"
NATIVE = {"lightgbm": "lambdarank", "xgboost": "rank:ndcg", "catboost": "YetiRank"}
STAGE: dict[str, Callable[[int], dict[str, Any]]] = {
    "lightgbm": lambda n: {"num_iteration": n},
    "xgboost": lambda n: {"iteration_range": (0, n)},
    "catboost": lambda n: {"ntree_end": n},
}


class World(NamedTuple):
    """How documents were shown, and how users click."""

    eta: float = 1.0  # users look at rank k with probability k^-eta
    length: int = 20  # mean
    old: str = "sum"  # the old ranking: of three features, of a model, by chance
    noise: float = 2.0
    queries: int = 3000
    attraction: tuple[float, ...] = RARE
    user: str = "position"


WORLDS = {
    "strong": World(eta=1.5),
    "base": World(),
    "weak": World(eta=0.5),
    "random": World(old="random", noise=1.0),
    "short": World(length=8, queries=5000),
    "long": World(length=50, queries=1200),
    "nearly": World(old="model", noise=0.3),  # nearly right
    "feature": World(old="feature", noise=0.3),  # the same, and the score of the old ranking is a feature
    "high": World(noise=1.0, queries=1500, attraction=HIGH),
    "cascade": World(noise=1.0, user="cascade"),  # from the top until satisfied or tired
    "trust": World(noise=1.0, user="trust"),  # clicks on the irrelevant at the top
    "many": World(length=10, queries=8000),
    "lacks": World(old="lacks", noise=1.0),  # the old ranking knew a relevant feature that the model does not have
    "several": World(old="several", noise=1.0),  # three old rankings, each on a third of the queries
}
METHODS = {  # objective and correction of the library, by name
    library: {
        "none": (NATIVE[library], "none"),
        **({"its own": (NATIVE[library], "own")} if library != "catboost" else {}),
        **({"position as a feature": (NATIVE[library], "feature")} if library != "xgboost" else {}),
        "position as a feature, ours": (OURS, "feature"),
        "position=": (OURS, "offset"),
        **({"true propensities": (OURS, "true")} if library == "lightgbm" else {}),
    }
    for library in NATIVE
}


class Log(NamedTuple):
    """Queries that were shown, in the order of the old ranking."""

    X: np.ndarray
    y: np.ndarray  # true grades
    group: np.ndarray
    position: np.ndarray
    clicks: np.ndarray


def logs(world: World, seed: int) -> list[Log]:
    """Make the logs of training, validation and test queries."""
    parts = [*make_ranking_fold((world.queries, *SIZE), seed=seed, features=15, mean_length=world.length)]
    rng, ranker = np.random.default_rng(seed), None
    if world.old in ("model", "feature"):  # which has learnt from 300 judged queries, and knows 9 features
        rows = int(parts[0].group[:300].sum())
        ranker = adapters.LGBMRanker(objective="lambdarank", num_leaves=7, n_estimators=40, n_jobs=1)
        ranker.fit(parts[0].X[:rows, :9], parts[0].y[:rows], group=parts[0].group[:300])
    found = []
    for data in parts:
        X, n = data.X, len(data.y)
        query = np.repeat(np.arange(len(data.group)), data.group)
        score = np.zeros(n)
        if ranker is not None:
            score = ranker.predict(X[:, :9])
            X, score = np.column_stack([X, score]) if world.old == "feature" else X, score / score.std()
        elif world.old == "several":
            score = np.choose(query % 3, [X[:, :3].sum(1), X[:, 3:6].sum(1), X[:, 0] - X[:, 5]])
        elif world.old != "random":
            score = X[:, :3].sum(1)
        X = X[:, 1:] if world.old == "lacks" else X
        order = np.lexsort((-(score + world.noise * rng.normal(size=n)), query))
        position = np.arange(n) - np.repeat(np.cumsum(data.group) - data.group, data.group)
        y = data.y[order]
        found.append(Log(X[order], y, data.group, position, _clicks(world, y, position, rng)))
    return found


def _clicks(world: World, y: np.ndarray, position: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    attraction = np.array(world.attraction)[y.astype(int)]
    draw, leaves = rng.random((2, len(y)))
    if world.user == "cascade":  # stops after a click with probability 0.6, else with 0.12
        clicks, gone = draw < attraction, False
        for i, k in enumerate(position):
            gone = gone and k > 0
            clicks[i] &= not gone
            gone = gone or leaves[i] < (0.6 if clicks[i] else 0.12)
        return clicks.astype(float)
    seen = (1.0 + position) ** -world.eta
    if world.user == "trust":
        attraction = attraction + (1 - attraction) * 0.3 / (1 + position)
    return (draw < seen * attraction).astype(float)


def scores_of(
    library: str, objective: str, how: str, world: World, log: Log, threads: int, rounds: Sequence[int] = ROUNDS
) -> tuple[Callable[[np.ndarray], list[np.ndarray]], str]:
    """Train, and return a function from features to scores after each number of rounds, and the advice if asked."""
    X = np.column_stack([log.X, log.position]) if how == "feature" else log.X
    size: dict[str, Any] = {"n_estimators": rounds[-1], "learning_rate": 0.1, LIBRARIES[library].threads: threads}
    size |= {"depth": 4} if library == "catboost" else {"max_depth": 0, "max_leaves": 15, "grow_policy": "lossguide"}
    if library == "lightgbm":
        size = {"n_estimators": rounds[-1], "learning_rate": 0.1, "num_leaves": 15, "num_threads": threads}
    given: dict[str, Any] = {"position": log.position} if how == "offset" else {}
    if how == "true":
        given = {"init_score": -world.eta * np.log1p(log.position)}
    if how == "own" and library == "lightgbm":
        lgb = LIBRARIES[library].load()
        data = lgb.Dataset(X, log.clicks, group=log.group, position=log.position)
        params = {"objective": objective, "metric": "None", "verbosity": -1, **size}
        model: Any = lgb.train(params, data)
    else:
        size |= {"lambdarank_unbiased": True} if how == "own" else {}
        model = getattr(adapters, LIBRARIES[library].ranker)(objective=objective, **size)
        model.fit(X, log.clicks, group=log.group, **given)

    def staged(X: np.ndarray) -> list[np.ndarray]:
        X = np.column_stack([X, np.zeros(len(X))]) if how == "feature" else X
        return [model.predict(X, **STAGE[library](n)) for n in rounds]

    return staged, model.position_offsets_.advice if how == "offset" else ""


def judged(staged: Callable[[np.ndarray], list[np.ndarray]], held: Log, test: Log, offsets: PositionOffsets) -> Any:
    """Return the true NDCG@10 after each number of rounds, and two criteria of the clicks of held-out queries."""
    ndcg = [evaluate("ndcg@10", s, test.y, test.group) for s in staged(test.X)]
    scores = staged(held.X)
    raw = [evaluate("ndcg@10", s, held.clicks, held.group) for s in scores]
    likelihood = [offsets.log_likelihood(held.clicks, s, held.position, group=held.group) for s in scores]
    return {
        name: np.round(values, 5).tolist()
        for name, values in {"ndcg": ndcg, "clicks": raw, "likelihood": likelihood}.items()
    }


def clicks(
    seeds: Annotated[str, Option(help="Seeds of the data, separated by commas.")] = "201,202,203,204",
    worlds: Annotated[str, Option(help="Worlds, separated by commas; by default all.")] = "",
    threads: Annotated[int, Option(min=1, help="Of a training.")] = 1,
    out: Annotated[Path, Option(help="Folder for the JSON file; trainings that it has are not repeated.")] = Path(
        "results"
    ),
) -> None:
    """Train with each correction on simulated clicks, and compare the NDCG@10 of true grades on other queries."""
    console, path = terminal(), out / "clicks.json"
    results = json.loads(path.read_text())["results"] if path.exists() else []
    done = {(r["world"], r["seed"], r["library"], r["method"]) for r in results}
    cells = [*itertools.product(map(int, seeds.split(",")), worlds.split(",") if worlds else WORLDS)]
    for seed, name in track(cells, "worlds", console=console):
        missing = [
            (library, method)
            for library, methods in METHODS.items()
            for method in methods
            if (name, seed, library, method) not in done
        ]
        if not missing:
            continue
        train, held, test = logs(WORLDS[name], seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LTRWarning)  # of queries without a click, and of the advice
            offsets = adapters.position_offsets(
                train.X, train.clicks, train.position, group=train.group, library="lightgbm", n_threads=threads
            )
            for library, method in missing:
                objective, how = METHODS[library][method]
                staged, advice = scores_of(library, objective, how, WORLDS[name], train, threads)
                line = {"world": name, "seed": seed, "library": library, "method": method, "advice": advice}
                results.append(line | judged(staged, held, test, offsets))
        save("clicks", {"rounds": ROUNDS, "results": results}, out, console)
