"""``python -m benchmarks demo``: our objectives beside the libraries' own in three comparisons, in a minute or two."""

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from rich.console import Console
from typer import Option

from benchmarks.figures import demo_panels, write
from benchmarks.selqa import load_selqa
from ltr_objectives import adapters, compare_scores
from ltr_objectives.datasets import RankingData, make_ranking_fold
from ltr_objectives.kernels.threads import available_threads
from ltr_objectives.libraries import LIBRARIES
from ltr_objectives.metrics.text import get_metric
from ltr_objectives.registry import objective_for
from ltr_objectives.workbench.cli.options import names_in
from ltr_objectives.workbench.contest import compete, print_table, table_of
from ltr_objectives.workbench.tables import write_csv
from ltr_objectives.workbench.texts import show, terminal
from ltr_objectives.workbench.trials import Budget, Trial, cross_validation, params_of, queries_of, train, trials

OWN = {"xgboost": ("rank:ndcg", "rank:map"), "lightgbm": ("lambdarank", "rank_xendcg"),
       "catboost": ("YetiRank", "YetiRank:mode=MAP")}  # fmt: skip
OURS = str(objective_for("ndcg"))
BOTH = "ndcg@10 + 0.3*dcg(gain_type=linear)@10[revenue]"  # a metric, and so the objective for it
METRICS = {"NDCG@10": "ndcg@10", "revenue": "dcg(gain_type=linear)@10"}
BUYERS = np.array([0.0, 0.02, 0.05, 0.1, 0.2])  # among those who see a document, by grade
INTERVALS = "In brackets: 95% intervals of the differences from the first line of a library, over test queries. "
OF_DEFAULTS = "The estimators' defaults differ from the libraries' in more than the objective, such as the L2."
OF_MAP = "Level is good news: one objective for all three libraries has the quality of the best of each"
OF_GOALS = (
    "Revenue is the expected one of the first ten documents. Two models of the library, added, come close in twice the "
    "time of training and ranking."
)
Line = dict[str, Any]


def demo(
    libraries: Annotated[str, Option(help="Any of xgboost, lightgbm, catboost.")] = "xgboost,lightgbm,catboost",
    trees: Annotated[int, Option(min=1, help="The most trees.")] = 100,
    out: Annotated[Path, Option(help="Folder for demo.csv and demo.png.")] = Path("results"),
) -> None:
    """Train our objectives beside the libraries' own: two goals in one model, seconds, and MAP of 2,374 questions.

    Three tables and a picture, in under two minutes on two cores.
    """
    console, names = terminal(), names_in(libraries)
    out.mkdir(parents=True, exist_ok=True)  # so that it cannot fail after the trainings
    parts = [part(console, names, trees) for part in (for_two_goals, in_seconds, for_named_metric)]
    write_csv(pd.concat(parts), out / "demo.csv")
    files = [out / "demo.csv", write(demo_panels(*parts), out / "demo.png")]
    console.print("written: " + ", ".join(os.fspath(file) for file in files))


def for_two_goals(console: Console, libraries: list[str], trees: int) -> pd.DataFrame:
    """Train one model for relevance and revenue, beside the library's own objective for one and for each of them."""
    data, vali, test = parts = make_ranking_fold((1000, 300, 1000), seed=0, features=40, mean_length=30)
    assert vali is not None
    rng = np.random.default_rng(0)
    relevance = [part.y for part in parts]
    revenue = [BUYERS[part.y.astype(int)] * earned(part.X, rng) for part in parts]
    classes = [np.digitize(money, np.quantile(revenue[0], (0.5, 0.6, 0.7, 0.8, 0.9, 0.95))) for money in revenue]
    goals = {"labels": {"revenue": revenue[0]}, "eval_labels": [{"revenue": revenue[1]}]}
    budget, lines = Budget(trees, threads=available_threads(), defaults=True), []

    def predicted(library: str, objective: str | None, metric: str, y: list[np.ndarray], **goals: Any) -> Any:
        settings = params_of(library, objective or OURS, budget, queries_of(data))
        ranker = getattr(adapters, LIBRARIES[library].ranker)(objective=objective, eval_metric=metric, **settings)
        watch = {"eval_set": [(vali.X, y[1])], "eval_qid": [vali.qid], "early_stopping_rounds": 20}
        return ranker.fit(data.X, y[0], qid=data.qid, **watch, **goals).predict(test.X)

    for library in libraries:
        own = OWN[library][0]
        first, second = (predicted(library, own, "ndcg@10", labels) for labels in (relevance, classes))
        scores = {
            f"{own} for relevance": first,
            f"{own} for each, two models added": first / first.std() + 0.3 * second / second.std(),
            "ours for both, one model": predicted(library, None, BOTH, relevance, **goals),
        }
        lines += compared(library, scores, {"NDCG@10": relevance[2], "revenue": revenue[2]}, test)
    return printed(console, lines, f'1. Two goals: eval_metric="{BOTH}"', OF_GOALS)


def in_seconds(console: Console, libraries: list[str], trees: int) -> pd.DataFrame:
    """Time a training with the library's own objective for NDCG and with ours, at the defaults of both."""
    data, _, test = make_ranking_fold((400, 1, 300), seed=0)
    budget = Budget(max(1, trees // 2), threads=available_threads(), defaults=True)
    ndcg, lines = [get_metric("ndcg@10")], []
    for library in libraries:
        scores, seconds = {}, []
        for objective in (OWN[library][0], OURS):
            trial = Trial(library, objective, budget)
            train(trial._replace(budget=replace(budget, trees=1)), data, None, ndcg)  # compiles before the clock runs
            ranker, time = train(trial, data, None, ndcg)
            scores[objective] = ranker.predict(test.X)
            seconds.append(time)
        lines += [line | {"seconds": time} for line, time in zip(
            compared(library, scores, {"NDCG@10": test.y}, test), seconds, strict=True)]  # fmt: skip
    title = f"2. Seconds: {budget.trees} trees on {len(data.y):,} generated documents, with all defaults"
    return printed(console, lines, title, OF_DEFAULTS, ("seconds",))


def earned(X: np.ndarray, rng: np.random.Generator) -> Any:
    """Return what an order earns: lognormal, two thirds of the logarithm's variance explained by two features."""
    return np.exp(0.4 * (X[:, 3] + X[:, 8] + rng.standard_normal(len(X))))


def for_named_metric(console: Console, libraries: list[str], trees: int) -> pd.DataFrame:
    """Cross-validate on SelQA; each training is stopped by MAP."""
    data, metrics = load_selqa(), [get_metric(name) for name in ("map", "mrr", "ndcg@10")]
    folds = [partial(split.of, data) for split in cross_validation(data, 3, seed=0)]
    budget = Budget(trees, leaves=15, patience=20, threads=available_threads())
    planned = [trial for library in libraries for objective in (*OWN[library], OURS)
               for trial in trials(library, objective, [budget])]  # fmt: skip
    found, _ = compete(planned, folds, metrics, console, required=True)
    lines = table_of(found, "SelQA", metrics)
    title = f'3. The metric that is named: eval_metric="map" on {len(data.group):,} questions, in {len(folds)} folds'
    print_table(console, lines, [str(metric) for metric in metrics], title, [OF_MAP])
    return pd.DataFrame(lines).assign(part=title)


def compared(
    library: str, scores: Mapping[str, np.ndarray], labels: Mapping[str, np.ndarray], test: RankingData
) -> list[Line]:
    """Return a line for each objective and metric, with the difference from the first objective."""
    first = next(iter(scores.values()))
    return [
        {"library": library, "objective": objective, "metric": metric,
         **compare_scores(METRICS[metric], found, first, truth, qid=test.qid)._asdict()}
        for objective, found in scores.items() for metric, truth in labels.items()
    ]  # fmt: skip


def printed(console: Console, lines: list[Line], title: str, note: str, more: tuple[str, ...] = ()) -> pd.DataFrame:
    """Print a row for each objective, and return the lines."""
    metrics = list(dict.fromkeys(line["metric"] for line in lines))
    rows = []
    for (library, objective), of in groupby(lines, lambda line: (line["library"], line["objective"])):
        cells: dict[str, str] = {}
        for line in of:
            interval = f" ({line['low']:+.4f} to {line['high']:+.4f})" if line["difference"] else ""
            cells |= {line["metric"]: f"{line['a']:.4f}{interval}", **{name: f"{line[name]:.1f}" for name in more}}
        rows.append([library, objective, *(cells[name] for name in (*more, *metrics))])
    show(console, [["library", "objective", *more, *metrics], *rows], title, INTERVALS + note)
    return pd.DataFrame(lines).assign(part=title)
