"""``python -m benchmarks retrain``: ten weeks of drifting data, by how the model is renewed each week."""

import warnings
from pathlib import Path
from time import process_time
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
from typer import Option

from benchmarks.publish import save
from ltr_objectives import LTRWarning, adapters, compare_scores
from ltr_objectives.adapters import refit
from ltr_objectives.libraries import LIBRARIES
from ltr_objectives.workbench.texts import terminal

METRIC = "ndcg@10"
LENGTH, BRANDS, NEW_BRANDS = 15, 200, 20  # documents of a query; brands at first, and new ones a week
FIRST, ROUNDS, MORE, RECENT = 4, 100, 20, 4  # weeks before the first model; its rounds; rounds to go on for
DRIFTS = {"slow": 0.05, "fast": 0.3}  # the share of tastes that a week replaces
ALL, LAST = "from scratch, all weeks", f"from scratch, the last {RECENT} weeks"
WAYS = (
    ALL, LAST, f"continue: {MORE} rounds on the last week", "refit on the last week, decay_rate=0.9",
    "refit on the last week, decay_rate=0.5", "the first model",
)  # fmt: skip


class Week(NamedTuple):
    """The queries of one week."""

    X: pd.DataFrame
    y: np.ndarray


def weeks(count: int, queries: int, drift: float, seed: int) -> list[Week]:
    """Make weeks in which weights of features and the appeal of brands drift, and brands appear."""
    rng = np.random.default_rng(seed)
    weights, appeal, made = rng.normal(size=6), rng.normal(size=BRANDS), []
    for week in range(count):
        keep = np.sqrt(1 - drift)
        weights = keep * weights + np.sqrt(drift) * rng.normal(size=6)
        appeal = keep * appeal + np.sqrt(drift) * rng.normal(size=len(appeal))
        appeal = np.append(appeal, rng.normal(size=NEW_BRANDS if week else 0))
        X = rng.normal(size=(queries * LENGTH, 6))
        newest = rng.beta(1, 3, size=len(X))  # newer brands are shown more often
        brand = ((1 - newest) * len(appeal)).astype(int).clip(0, len(appeal) - 1)
        utility = np.tanh(X) @ weights + X[:, 0] * X[:, 1] + appeal[brand] + rng.normal(size=len(X))
        table = pd.DataFrame(X.astype(np.float32)).add_prefix("f")
        table["brand"] = pd.Categorical(np.char.add("b", brand.astype(str)))
        made.append(Week(table, np.digitize(utility, np.array([0.5, 1.5, 2.5, 4.0]) * np.sqrt(utility.var() / 6))))
    return made


def joined(several: list[Week]) -> dict[str, Any]:
    """Return the arguments of ``fit`` for several weeks."""
    X = pd.concat([week.X.astype({"brand": str}) for week in several], ignore_index=True).astype({"brand": "category"})
    return {
        "X": X, "y": np.concatenate([week.y for week in several]), "qid": np.repeat(np.arange(len(X) // LENGTH), LENGTH)
    }  # fmt: skip


def renewed(way: str, ranker: Any, before: Any, known: Any, past: list[Week]) -> Any:
    """Return the model of this week, from the one ``before``; ``known`` are the brands of the first model."""
    if way == WAYS[-1]:
        return before
    if way.startswith("from scratch"):
        return ranker.fit(**joined(past if way == ALL else past[-RECENT:]))
    data = joined(past[-1:])
    if way.startswith("refit"):
        return refit(before, **data, decay_rate=float(way.rpartition("=")[2]))
    if ranker.library.name != "catboost":  # whose models have no list of categories
        data["X"]["brand"] = data["X"].brand.cat.set_categories(known)
    return ranker.set_params(n_estimators=MORE).fit(**data, init_model=before)


def retrain(
    queries: Annotated[int, Option(min=10, help="Queries a week.")] = 300,
    count: Annotated[int, Option("--weeks", min=1, help="Weeks that are evaluated.")] = 10,
    seeds: Annotated[int, Option(min=1, help="Data sets of each kind.")] = 1,
    out: Annotated[Path, Option(help="Folder for the JSON file.")] = Path("results"),
) -> None:
    """Renew a model each week in several ways, and compare them on the week that follows."""
    console, results = terminal(), []
    warnings.filterwarnings("ignore", category=LTRWarning, message=".*that the model does not know")
    for (drift, share), library, seed in ((d, k, s) for d in DRIFTS.items() for k in LIBRARIES for s in range(seeds)):
        made = weeks(FIRST + count, queries, share, seed)
        y = np.concatenate([week.y for week in made[FIRST:]])
        size = {"n_estimators": ROUNDS, "random_state": 0, LIBRARIES[library].threads: 1, "eval_metric": METRIC}
        ranker_class = getattr(adapters, LIBRARIES[library].ranker)
        first = ranker_class(**size).fit(**joined(made[:FIRST]))
        known = joined(made[:FIRST])["X"].brand.cat.categories
        scores, seconds = {}, {}
        for way in WAYS:
            model, found, start = first, [], process_time()
            spent = 0.0
            for now in range(FIRST, FIRST + count):
                if now > FIRST:
                    start = process_time()
                    model = renewed(way, ranker_class(**size), model, known, made[:now])
                    spent += process_time() - start
                found.append(model.predict(made[now].X))
            scores[way], seconds[way] = np.concatenate(found), spent / max(1, count - 1)
        group = np.full(len(y) // LENGTH, LENGTH)
        for way in WAYS:
            of = compare_scores(METRIC, scores[way], scores[ALL], y, group)
            line: dict[str, Any] = {"drift": drift, "library": library, "seed": seed, "way": way}
            line |= {"metric": round(of.a, 4), "seconds": round(seconds[way], 3)}
            line |= {k: round(v, 4) for k, v in zip(("difference", "low", "high"), of[2:5], strict=True)}
            results.append(line)
            console.print(*line.values())
    save("retrain", {"metric": METRIC, "against": ALL, "results": results}, out, console)
