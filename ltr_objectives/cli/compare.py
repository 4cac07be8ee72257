"""``ltr-objectives compare``: which objective is best on given data, by cross-validation."""

import importlib.util
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from typer import Context, Option, echo

from ltr_objectives.checks import check_choice
from ltr_objectives.cli import options
from ltr_objectives.cli.libraries import FACTS, Library, ranker_of
from ltr_objectives.errors import LTRError, require

if TYPE_CHECKING:
    import pandas as pd

    from ltr_objectives.cli.crossval import Fold, Outcome
    from ltr_objectives.comparison.budget import Budget
    from ltr_objectives.datasets import RankingData
    from ltr_objectives.metrics.base import Metric

Found = dict[tuple[str, str], "Outcome"]  # by library and objective
COLUMNS = (
    TextColumn("{task.description}"),
    BarColumn(),
    MofNCompleteColumn(),
    TimeRemainingColumn(),
)
LIBRARIES = "Any of xgboost, lightgbm, catboost, separated by commas. Default: those that are installed."
OBJECTIVES = (
    "Ours such as yetiloss:map, and the libraries' own such as lambdarank, separated by commas. Default: several of "
    "both that suit the first metric."
)
DRAWS = (
    "Settings of learning rate, leaves, least Hessian and L2 to try, the same for every objective; vali chooses. Not "
    "with --learning-rate or --leaves."
)

SETTINGS = (
    "learning rate {learning_rate:.3g}, {leaves} leaves, at least {min_child_weight:.3g} documents in a leaf by their "
    "Hessians, L2 of {documents:.3g} documents"
)


def compare(
    context: Context,
    data: Annotated[Path, Option(metavar="FILE", help="LETOR text, Parquet or CSV.")],
    label: options.Label = "label",
    qid: options.QidColumn = "qid",
    weight: options.Weight = None,
    ignore: options.Ignore = "",
    metric: Annotated[str, Option(help=f"{options.METRICS}. The first stops the trainings and chooses.")] = "ndcg@10",
    library: Annotated[str | None, Option(metavar="NAMES", help=LIBRARIES, show_default=False)] = None,
    objectives: Annotated[str | None, Option(metavar="NAMES", help=OBJECTIVES, show_default=False)] = None,
    folds: Annotated[int, Option(min=3, help="Of queries: one is test, one is vali, the others train.")] = 5,
    draws: Annotated[int, Option(min=0, help=DRAWS)] = 0,
    trees: options.Trees = 500,
    learning_rate: options.LearningRate = 0.1,
    leaves: Annotated[int, Option(min=2, help="CatBoost's trees have the nearest depth.")] = 31,
    patience: options.Patience = 50,
    threads: options.Threads = 0,
    seed: Annotated[int, Option(min=0, help="Of the folds and the libraries.")] = 0,
    alpha: Annotated[float, Option(min=0, max=1, help="Level of the significance marks.")] = 0.05,
    save_best: Annotated[
        Path | None, Option(metavar="MODEL", help="Train the best again on all queries.", show_default=False)
    ] = None,
    out: Annotated[Path | None, Option(metavar="FILE", help="The table as .csv.", show_default=False)] = None,
    as_json: options.AsJson = False,
) -> None:
    """Compare objectives on your data, by cross-validation over queries.

    Each objective has the same trees, learning rate and regularisation in documents. The table has the mean of each
    metric over all queries when they were test queries, and paired tests against the best of the library's own
    objectives. The best one is selected on the same queries, so that its value is larger than on new ones.
    """
    from ltr_objectives.cli.crossval import folds_of
    from ltr_objectives.cli.files import require_apart, writable
    from ltr_objectives.cli.tables import features_of, show_features
    from ltr_objectives.comparison.budget import SHARED, Budget, drawn
    from ltr_objectives.comparison.candidates import labels_for
    from ltr_objectives.kernels.threads import available_threads

    if draws:
        options.refuse_with_draws(context, "learning_rate", "leaves")
    metrics = options.read_metrics(metric, None)
    chosen = _libraries(library)
    saved = _library_of(save_best, chosen)
    for option, path, endings in (("save-best", save_best, FACTS[saved].endings), ("out", out, (".csv",))):
        if path is not None:
            writable(path, endings, saved if option == "save-best" else "tables", option)
            require_apart(path, data, option=option)
    planned = _candidates(objectives, chosen, metrics[0])
    table = _read(data, label, qid, weight, options.names_in(ignore), metrics)
    n_threads = threads or available_threads()
    budget = Budget(trees, learning_rate, leaves, patience, 1.0, 0.0, n_threads, seed, documents=20.0)
    budgets = [replace(budget, **found) for found in drawn(draws)] or [budget]
    parts = folds_of(len(table.group), folds, seed)
    found, left_out = _run(planned, table, parts, metrics, budgets, required=objectives is not None)
    rows = _summary(found, table, metrics, data.name)
    best = rows[(rows["metric"] == str(metrics[0])) & ((rows["library"] == saved) | (save_best is None))]
    require(not best.empty, f"no objective of {saved} could be trained; leave --save-best out, or see the data")
    winner = best.loc[best["mean"].idxmax()]
    kept = found[winner["library"], winner["objective"]]
    settings = {name: getattr(kept.budget, name) for name in SHARED}
    notes = [note for note in (labels_for(*key, table.y)[1] for key in found) if note]
    if out is not None:
        _write(rows, out)
    if not as_json:
        options.console().print(show_features(table.X), markup=False, soft_wrap=True)
        _print(rows, found, metrics, f"{data.name}: {len(table.group):,} queries, {folds} folds", alpha, notes)
        for name, why in left_out.items():
            echo(f"note: {name} is left out: {why}", err=True)
    if save_best is not None:  # after the table, which a failure would lose
        _save(winner, kept, metrics[0], table, save_best)
    if as_json:
        options.print_json({
            "data": str(data), "queries": len(table.group), "folds": folds, "metrics": [str(m) for m in metrics],
            "features": features_of(table.X), "table": _records(rows), "left_out": left_out, "notes": notes,
            "best": {"library": winner["library"], "objective": winner["objective"], "trees": kept.trees, **settings},
            "model": None if save_best is None else str(save_best),
        })  # fmt: skip
        return
    where = f"of {saved} " if save_best is not None and len(chosen) > 1 else ""
    lines = [f"best {where}by {metrics[0]}: {winner['library']}, {winner['objective']}{_certainty(winner, alpha)}"]
    if draws:
        lines.append(SETTINGS.format(**settings))
    if save_best is not None:
        lines.append(f"{kept.trees} trees on all queries, written to {save_best}")
    options.console().print("\n".join(lines), markup=False, soft_wrap=True)


def _certainty(winner: "pd.Series[Any]", alpha: float) -> str:
    """Whether the best of all is better than the library's own best beyond chance."""
    if not winner.get("p", -1) >= 0:  # it is the library's own best, or none was trained
        return ""
    return f"; its lead over {winner['reference']} is {'beyond' if winner['p'] < alpha else 'within'} chance"


def _libraries(text: str | None) -> list[str]:
    if text is None:
        found = [each.value for each in Library if importlib.util.find_spec(each.value)]
        require(found, "no library is installed: pip install ltr-objectives[lightgbm], or [xgboost] or [catboost]")
        return found
    names = options.names_in(text)
    require(names, "--library is empty; name at least one of xgboost, lightgbm, catboost")
    for name in names:
        check_choice("--library", name, tuple(each.value for each in Library))
        with ranker_of(name):  # says what to install
            pass
    return names


def _library_of(model: Path | None, libraries: Sequence[str]) -> str:
    """The library whose models have this ending; the best of its objectives is saved."""
    endings = [ending for name in libraries for ending in FACTS[name].endings]
    found = [name for name in libraries if model is None or model.suffix in FACTS[name].endings]
    require(found, f"--save-best {model} must end with {' or '.join(endings)}, as models of --library do")
    return found[0]


def _candidates(objectives: str | None, libraries: Sequence[str], metric: "Metric") -> list[tuple[str, str]]:
    """Each library and objective to train; a name that only some libraries know is theirs."""
    from ltr_objectives.adapters._libraries import LIBRARIES as KNOWN
    from ltr_objectives.comparison.candidates import natives_for, ours_for
    from ltr_objectives.registry import get_objective

    if objectives is None:
        return [(name, each) for name in libraries for each in (*natives_for(name, metric), *ours_for(metric))]
    asked = options.names_in(objectives)
    require(asked, "--objectives is empty; leave it out, or name some")
    for each in asked:
        if not any(KNOWN[name].knows(each) for name in libraries):
            try:
                goals = get_objective(each).goals
            except LTRError as error:
                own = "; ".join(f"{name} has {', '.join(KNOWN[name].natives)}" for name in libraries)
                raise LTRError(f"--objectives: {error}; {own}") from None
            options.refuse_goals("objectives", goals)
    natives = {each for each in asked if any(KNOWN[name].knows(each) for name in libraries)}
    return [(name, each) for name in libraries for each in asked if each not in natives or KNOWN[name].knows(each)]


def _read(
    data: Path, label: str, qid: str, weight: str | None, ignore: Sequence[str], metrics: "Sequence[Metric]"
) -> "RankingData":
    import numpy as np

    from ltr_objectives.cli.crossval import queries_of
    from ltr_objectives.cli.files import existing, read_letor
    from ltr_objectives.cli.tables import Columns, is_table, read_table, warn_of_labels
    from ltr_objectives.comparison.candidates import check_comparable

    existing("data", data)
    require(not data.is_dir(), f"--data {data} is a folder; join the parts of a fold: cat {data}/*.txt > all.txt")
    table = is_table(data)
    columns = Columns(label, qid, weight, tuple(ignore))
    if not table:
        columns.refuse(data)
    found = read_table("data", data, columns) if table else read_letor("data", data)
    queries = queries_of(found)
    for metric in metrics:  # raises for labels that it does not take
        metric.mean(queries, np.arange(len(found.y), dtype=np.float64))
    check_comparable(metrics[0], queries, f"--data {data}")
    warn_of_labels(found, ignore)
    return found


def _run(
    planned: Sequence[tuple[str, str]], data: "RankingData", folds: "Sequence[Fold]", metrics: "Sequence[Metric]",
    budgets: "Sequence[Budget]", *, required: bool,
) -> tuple[Found, dict[str, str]]:  # fmt: skip
    """Train everything. What cannot be trained is left out, with the reason, unless the user named it."""
    from ltr_objectives.cli.crossval import cross_validate

    each = len(folds) * len(budgets)
    found: Found = {}
    left_out: dict[str, str] = {}
    screen = Console(stderr=True)
    with Progress(*COLUMNS, console=screen, transient=True, disable=not screen.is_terminal) as progress:
        task = progress.add_task("", total=each * len(planned))

        def advance() -> None:
            progress.advance(task)

        for i, (library, label) in enumerate(planned):
            progress.update(task, description=f"{library} {label}", completed=each * i)
            try:
                outcome = cross_validate(library, label, data, folds, metrics, budgets, advance)
            except LTRError as error:
                if required:
                    raise
                left_out[f"{library} {label}"] = str(error)
                continue
            found[library, label] = outcome
    require(found, f"no objective could be trained: {next(iter(left_out.values()), '')}")
    return found, left_out


def _summary(found: Found, data: "RankingData", metrics: "Sequence[Metric]", name: str) -> "pd.DataFrame":
    from ltr_objectives.cli.crossval import queries_of
    from ltr_objectives.comparison.summary import summary

    by_query = queries_of(data).weight_by_query
    weights = {str(m): None if m.query_weights == "ignore" else by_query for m in metrics}
    values = {(name, *key, metric): v for key, outcome in found.items() for metric, v in outcome.values.items()}
    table = summary(values, randomise=False, weights=weights)
    keys = list(zip(table["library"], table["objective"], strict=True))
    return table.assign(trees=[found[key].trees for key in keys], seconds=[found[key].seconds for key in keys])


def _print(
    rows: "pd.DataFrame", found: Found, metrics: "Sequence[Metric]", title: str, alpha: float, notes: Sequence[str]
) -> None:
    import numpy as np

    from ltr_objectives.comparison.statistics import BETTER, WORSE
    from ltr_objectives.comparison.summary import CAPTION, rows_of
    from ltr_objectives.comparison.texts import p_of, show, signed

    names = [str(metric) for metric in metrics]
    lines = rows_of(rows, names, alpha)
    first = rows[rows["metric"] == names[0]].to_dict("records")
    for line, of in zip(lines, first, strict=True):
        tested = of.get("p", np.nan) >= 0  # else it is the reference, or there is none
        line += [signed(of["difference"], of["difference_se"]), p_of(of["p"])] if tested else ["", ""]
        line += [str(of["trees"]), f"{of['seconds']:.1f}"]
    head = ["library", "objective", *names, f"difference in {names[0]}", "p", "trees", "seconds"]
    caption = " ".join([CAPTION.format(BETTER, WORSE, alpha), *(f"{note}." for note in notes)])
    show(options.console(), [head, *lines], title, caption)


def _write(rows: "pd.DataFrame", out: Path) -> None:
    from ltr_objectives._files import replacing

    with replacing(out) as new:
        rows.to_csv(new, index=False)


def _save(winner: Any, outcome: "Outcome", metric: "Metric", data: "RankingData", model: Path) -> None:
    from ltr_objectives.cli.crossval import refit

    library, objective = winner["library"], winner["objective"]
    with Console(stderr=True).status(f"{library} trains {objective} on all queries"), ranker_of(library):
        refit(library, objective, outcome, metric, data).save_model(model)


def _records(rows: "pd.DataFrame") -> list[dict[str, Any]]:
    """The rows for JSON, which has no NaN."""
    return [{k: None if v != v else v for k, v in row.items()} for row in rows.to_dict("records")]
