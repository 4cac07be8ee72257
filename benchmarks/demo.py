"""``python -m benchmarks demo``: a bound, clicks and seconds, each beside what the library has of its own."""

import os
from collections.abc import Callable, Mapping
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from rich.console import Console
from typer import Option

from benchmarks.clicks import METHODS, NATIVE, WORLDS, logs, scores_of
from benchmarks.figures import demo_panels, write_figure
from ltr_objectives import adapters, compare_scores, evaluate
from ltr_objectives.checks import check_choice
from ltr_objectives.datasets import make_ranking_fold
from ltr_objectives.kernels.threads import available_threads
from ltr_objectives.libraries import LIBRARIES
from ltr_objectives.metrics.text import get_metric
from ltr_objectives.registry import objective_for
from ltr_objectives.workbench.cli.options import names_in
from ltr_objectives.workbench.tables import write_csv
from ltr_objectives.workbench.texts import show, terminal
from ltr_objectives.workbench.trials import Budget, Trial, params_of, queries_of, train

OURS = str(objective_for("ndcg"))
MONEY = "dcg(gain_type=linear)@10"
LOSS = 0.01  # of NDCG@10, on validation queries
WEIGHTS = np.geomspace(0.02, 2, 30)  # of the second of two models that are added
WORLD = "high"
FASTER = {"catboost": ["QueryRMSE"]}
BUYERS = np.array([0.0, 0.02, 0.05, 0.1, 0.2])  # among those who see a document, by grade
OF_GOALS = (
    "Changes from the first line of a library, with 95% intervals over test queries. Revenue is the expected one of "
    "the first ten documents. The two models take twice the time of training and ranking, and classes of revenue as "
    "labels; their weight has the most revenue within the same bound on validation queries."
)
OF_CLICKS = (
    "In brackets: 95% intervals of the differences from the first line of a library. One of the 14 worlds of "
    "docs/position_bias.md, a small one, in which XGBoost and CatBoost gain more than in the mean of all; if the old "
    "ranking is nearly right, no correction is better."
)
OF_SECONDS = (
    "NDCG@10 with 95% intervals of the differences from the first line of a library. Defaults differ in more than the "
    "objective, such as the L2. CatBoost's QueryRMSE is as fast and fits squared errors, no metric."
)
Line = dict[str, Any]


def demo(
    libraries: Annotated[str, Option(help="Any of xgboost, lightgbm, catboost.")] = "xgboost,lightgbm,catboost",
    trees: Annotated[int, Option(min=1, help="The most trees.")] = 100,
    out: Annotated[Path, Option(help="Folder for demo.csv and demo.png.")] = Path("results"),
) -> None:
    """Train the most revenue for 1% less relevance, from clicks, and against the clock, in up to three libraries.

    Three tables and a picture, in under two minutes on two cores.
    """
    console, names = terminal(), names_in(libraries)
    for name in names:
        check_choice("--libraries", name, tuple(LIBRARIES))
    out.mkdir(parents=True, exist_ok=True)  # so that it cannot fail after the trainings
    parts = [part(console, names, trees) for part in (with_a_bound, from_clicks, in_seconds)]
    write_csv(pd.concat(parts), out / "demo.csv")
    files = [out / "demo.csv", write_figure(demo_panels(*parts), out / "demo.png")]
    console.print("written: " + ", ".join(os.fspath(file) for file in files))


def with_a_bound(console: Console, libraries: list[str], trees: int) -> pd.DataFrame:
    """Train the most revenue for a loss of relevance, beside the library's own objective for one and for each."""
    data, vali, test = parts = make_ranking_fold((700, 400, 1000), seed=0, features=20, mean_length=20)
    assert vali is not None
    rng = np.random.default_rng(0)
    money = [BUYERS[part.y.astype(int)] * earned(part.X, rng) for part in parts]
    classes = [np.digitize(amounts, np.quantile(money[0], (0.5, 0.6, 0.7, 0.8, 0.9, 0.95))) for amounts in money]
    budget, lines = Budget(trees, threads=available_threads(), defaults=True), []

    def trained(library: str, objective: str | None, metric: str, y: list[Any], **more: Any) -> list[np.ndarray]:
        settings = params_of(library, objective or OURS, budget, queries_of(data)) | more.pop("settings", {})
        ranker = getattr(adapters, LIBRARIES[library].ranker)(objective=objective, eval_metric=metric, **settings)
        watch = {"eval_set": [(vali.X, y[1])], "eval_qid": [vali.qid], "early_stopping_rounds": 20}
        ranker.fit(data.X, y[0], qid=data.qid, **watch, **more)
        return [ranker.predict(part.X) for part in (vali, test)]

    for library in libraries:
        own, relevance = NATIVE[library], [part.y for part in parts]
        first, second = (trained(library, own, "ndcg@10", labels) for labels in (relevance, classes))
        ndcg = partial(evaluate, "ndcg@10", labels=vali.y, qid=vali.qid)
        least = (1 - LOSS) * ndcg(scores=first[0])
        sums = [[a / first[0].std() + weight * b / second[0].std() for a, b in zip(first, second, strict=True)]
                for weight in WEIGHTS]  # fmt: skip
        kept = [pair for pair in sums if ndcg(scores=pair[0]) >= least] or [first]
        added = max(kept, key=lambda pair: evaluate(MONEY, pair[0], money[1], qid=vali.qid))
        goals = {"labels": {"revenue": money[0]}, "eval_labels": [{"revenue": money[1]}]}
        bounded = {"settings": {"bounds": {"ndcg@10": least}}, **goals}
        scores = {
            f"{own} for relevance": first[1],
            f"{own} for each, added": added[1],
            "ours, with the bound": trained(library, None, f"{MONEY}[revenue]", relevance, **bounded)[1],
        }
        lines += compared(library, scores, {"NDCG@10": ("ndcg@10", test.y), "revenue": (MONEY, money[2])}, test.qid)
    title = f"1. The most revenue for {100 * LOSS:g}% less NDCG@10, in one model"
    return printed(console, lines, title, OF_GOALS, change)


def earned(X: np.ndarray, rng: np.random.Generator) -> Any:
    """Return what an order earns: lognormal, two thirds of the logarithm's variance explained by two features."""
    return np.exp(0.4 * (X[:, 3] + X[:, 8] + rng.standard_normal(len(X))))


def from_clicks(console: Console, libraries: list[str], trees: int) -> pd.DataFrame:
    """Train on simulated clicks with what the library has against position bias, with nothing, and with ours."""
    world, lines = WORLDS[WORLD], []
    log, _, test = logs(world, seed=201)
    query = np.repeat(np.arange(len(test.group)), test.group)
    for library in libraries:
        names = {"its own": f"{NATIVE[library]}, its own correction", "none": f"{NATIVE[library]}, no correction",
                 "position=": "ours, position="}  # fmt: skip
        scores = {}
        for method in (each for each in names if each in METHODS[library]):
            staged, _ = scores_of(library, *METHODS[library][method], world, log, available_threads(), (trees,))
            scores[names[method]] = staged(test.X)[-1]
        lines += compared(library, scores, {"NDCG@10": ("ndcg@10", test.y)}, query)
    title = f"2. {int(log.clicks.sum()):,} simulated clicks, biased by position: NDCG@10 of the true grades"
    return printed(console, lines, title, OF_CLICKS, difference)


def in_seconds(console: Console, libraries: list[str], trees: int) -> pd.DataFrame:
    """Time a training with the library's own objectives and with ours, whose kernels are compiled by now."""
    data, _, test = make_ranking_fold((250, 1, 300), seed=0)
    budget = Budget(max(1, trees * 3 // 10), threads=available_threads(), defaults=True)
    lines = []
    for library in libraries:
        scores, seconds = {}, []
        for objective in (NATIVE[library], *FASTER.get(library, ()), OURS):
            ranker, time = train(Trial(library, objective, budget), data, None, [get_metric("ndcg@10")])
            scores[f"ours, {OURS}" if objective == OURS else objective] = ranker.predict(test.X)
            seconds += [{"seconds": time}]
        found = compared(library, scores, {"NDCG@10": ("ndcg@10", test.y)}, test.qid)
        lines += [line | more for line, more in zip(found, seconds, strict=True)]
    title = f"3. Seconds: {budget.trees} trees on {len(data.y):,} generated documents, with all defaults"
    return printed(console, lines, title, OF_SECONDS, difference, ("seconds",))


def compared(
    library: str, scores: Mapping[str, np.ndarray], labels: Mapping[str, tuple[str, np.ndarray]], qid: Any
) -> list[Line]:
    """Return a line for each objective and metric, with the difference from the first objective."""
    first = next(iter(scores.values()))
    return [
        {"library": library, "objective": objective, "metric": name,
         **compare_scores(metric, found, first, truth, qid=qid)._asdict()}
        for objective, found in scores.items() for name, (metric, truth) in labels.items()
    ]  # fmt: skip


def change(line: Line) -> str:
    """Format the change in percent of the first line's value."""
    d, low, high = (100 * line[key] / line["b"] for key in ("difference", "low", "high"))
    return f"{d:+.1f}% ({low:+.1f} to {high:+.1f})" if line["difference"] else f"{line['a']:.4f}"


def difference(line: Line) -> str:
    """Format the value, with the interval of the difference from the first line."""
    return f"{line['a']:.4f}" + (f" ({line['low']:+.4f} to {line['high']:+.4f})" if line["difference"] else "")


def printed(
    console: Console, lines: list[Line], title: str, note: str, cell: Callable[[Line], str], more: tuple[str, ...] = ()
) -> pd.DataFrame:
    """Print a row for each objective, and return the lines."""
    metrics = list(dict.fromkeys(line["metric"] for line in lines))
    rows = []
    for (library, objective), of in groupby(lines, lambda line: (line["library"], line["objective"])):
        cells: dict[str, str] = {}
        for line in of:
            cells |= {line["metric"]: cell(line), **{name: f"{line[name]:.1f}" for name in more}}
        rows.append([library, objective, *(cells[name] for name in (*more, *metrics))])
    show(console, [["library", "objective", *more, *metrics], *rows], title, note)
    return pd.DataFrame(lines).assign(part=title)
