"""``ltr-objectives compare``: which objective is best on given data, by cross-validation or on the parts of a fold."""

import importlib.util
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
from rich.console import Console
from typer import Option, echo

from ltr_objectives.candidates import check_comparable, labels_for, natives_for, ours_for
from ltr_objectives.checks import check_choice
from ltr_objectives.errors import require, warn
from ltr_objectives.kernels.threads import available_threads
from ltr_objectives.libraries import LIBRARIES
from ltr_objectives.metrics.base import Metric
from ltr_objectives.objectives.mixture import get_objective
from ltr_objectives.queries import Queries
from ltr_objectives.statistics import Comparison
from ltr_objectives.workbench.cli import options
from ltr_objectives.workbench.cli.files import canvas, read_data, save_figure, save_model, writable
from ltr_objectives.workbench.cli.options import names_in
from ltr_objectives.workbench.contest import (
    Key,
    Line,
    Results,
    best_trial,
    compete,
    print_table,
    table_of,
    values_of,
    winner_of,
)
from ltr_objectives.workbench.data import RankingData, RankingFold, joined, load_letor
from ltr_objectives.workbench.tables import Columns, features_of, show_features, warn_of_labels, write_csv
from ltr_objectives.workbench.texts import terminal
from ltr_objectives.workbench.trials import (
    Budget,
    Split,
    Trial,
    cross_validation,
    forward,
    queries_of,
    split_vali,
    train,
    trials,
)

NAMES, QUIET = {"metavar": "NAMES", **options.QUIET}, options.QUIET
REFERENCE = "Tested against; default: the library's best."


def compare(
    data: Annotated[Path, Option(metavar="PATH", exists=True, help="LETOR, Parquet or CSV; or the folder of a fold.")],
    label: options.Label = "label",
    qid: options.QidColumn = "qid",
    weight: options.Weight = None,
    ignore: options.Ignore = None,
    categorical: options.Categorical = None,
    metric: Annotated[list[str], Option(metavar="NAMES", help=f"{options.METRICS}.")] = options.DEFAULT,
    library: Annotated[options.Names, Option(help="Default: those that are installed.", **NAMES)] = None,
    objectives: Annotated[options.Names, Option(help="Ours, the libraries' own; default: several.", **NAMES)] = None,
    folds: Annotated[int, Option(metavar="N", min=3, help="Each query of a file is test once.")] = 5,
    folds_by: Annotated[
        str | None, Option(metavar="COLUMN", help="A date or the like: test on later ones.", **QUIET)
    ] = None,
    reference: Annotated[str | None, Option(metavar="NAME", help=REFERENCE, **QUIET)] = None,
    trees: options.Trees = 500,
    learning_rate: options.LearningRate = 0.1,
    leaves: Annotated[int, Option(metavar="N", min=2, help="CatBoost: the nearest depth.")] = 31,
    patience: options.Patience = 50,
    param: options.Param = None,
    threads: options.Threads = 0,
    seed: Annotated[int, Option(metavar="N", min=0, help="Of folds and trainings.")] = 0,
    save_best: Annotated[Path | None, Option(metavar="MODEL", help="Train the best on all queries.", **QUIET)] = None,
    picture: options.Picture = None,
    out: Annotated[Path | None, Option(metavar="FILE", help="The table as .csv.", **QUIET)] = None,
    per_query: Annotated[Path | None, Option(metavar="FILE", help="Values of each query as .csv.", **QUIET)] = None,
    own: options.Own = None,
    as_json: options.AsJson = False,
) -> None:
    """Compare objectives on your data, by cross-validation over queries.

    Each objective has the same trees, learning rate, leaves and regularisation in documents; the library's own are also
    trained at its defaults, and validation chooses. The first metric stops the trainings. Paired tests compare with the
    best of the library's own. Of the folder of a LETOR fold, train trains, validation stops, and test is compared.
    """
    metrics, libraries = options.read_metrics(metric), _libraries(library)
    endings = {ending: name for name in libraries for ending in LIBRARIES[name].endings}
    saved = endings.get(writable(save_best, tuple(endings), "models of --library", data, option="save-best"), "")
    for option, path in (("out", out), ("per-query", per_query)):
        writable(path, (".csv",), "tables", data, option=option)
    figure = canvas(picture, data)
    columns = Columns(label, qid, weight, names_in(ignore), names_in(categorical), folds_by)
    budget = Budget(
        trees, learning_rate, leaves, patience, threads=threads or available_threads(), seed=seed,
        params=tuple(options.read_parameters(param).items()),
    )  # fmt: skip
    bounded = save_best is not None and dict(budget.params).get("bounds") is not None
    require(not bounded, "--save-best trains on all queries, and bounds need others; give the best to train --vali")
    whole, splits, kind = _read(data, columns, folds, seed)
    planned = _plan(objectives, libraries, metrics, budget, reference, queries_of(whole))
    warn_of_labels(whole, columns.ignore)
    _check(whole, splits, metrics, data)

    parts = [partial(split.of, whole) for split in splits]
    results, left_out = compete(planned, parts, metrics, Console(stderr=True), required=bool(objectives))
    for name, why in left_out.items():
        require(name.partition(" ")[2] != reference, f"--reference {reference}: {why}")
    lines = table_of(results, data.name, metrics, reference)
    winner, verdict = winner_of(lines, saved)
    best = best_trial(results[winner.library, winner.objective])
    notes = [note for key in results if (note := labels_for(*key, whole.y, metrics[0])[1])]
    found = Found(
        data=data, whole=whole, splits=splits, metrics=metrics, results=results, left_out=left_out, notes=notes,
        lines=lines, best=best,
    )  # fmt: skip

    if not as_json:
        found.show(f"{data.name}: {len(whole.group):,} queries, {kind}", reference)
    _write(found, out, per_query, picture, figure, save_best)
    if as_json:
        options.print_json(found.document(save_best))
        return
    said = [f"best {f'of {saved} ' if saved and len(libraries) > 1 else ''}by {metrics[0]}: {verdict}"]
    if best.budget.defaults:
        said.append(f"learning rate {best.budget.learning_rate:.3g}, and the defaults of {best.library}")
    if save_best is not None:
        said.append(f"{best.budget.trees} trees on all queries, written to {save_best}")
    terminal().print("\n".join(said), markup=False, soft_wrap=True)


class Found(NamedTuple):
    """The data, and the results of the objectives on them."""

    data: Path
    whole: RankingData
    splits: list[Split]
    metrics: list[Metric]
    results: dict[Key, Results]
    left_out: dict[str, str]  # objectives, and why they could not be trained
    notes: list[str]  # what was done with the labels for some objectives
    lines: list[Line]
    best: Trial

    def document(self, model: Path | None) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        best, budget = self.best, self.best.budget
        return {
            "data": str(self.data), "queries": len(self.whole.group), "folds": len(self.splits),
            "metrics": [str(m) for m in self.metrics], "features": features_of(self.whole.X),
            "left_out": self.left_out, "notes": self.notes, "table": [line._asdict() for line in self.lines],
            "best": {"library": best.library, "objective": best.objective, "trees": budget.trees,
                     "defaults": budget.defaults},
            "model": None if model is None else str(model),
        }  # fmt: skip

    def show(self, title: str, reference: str | None) -> None:
        """Print the features and the table, and what was left out."""
        screen = terminal()
        screen.print(show_features(self.whole.X), markup=False, soft_wrap=True)
        print_table(screen, self.lines, [str(m) for m in self.metrics], title, self.notes, reference)
        for name, why in self.left_out.items():
            echo(f"note: {name} is left out: {why}", err=True)


def _check(whole: RankingData, splits: Sequence[Split], metrics: Sequence[Metric], data: Path) -> None:
    """Raise for labels that a metric does not take, and for test queries that cannot be compared."""
    for each in metrics:
        each.mean(queries_of(whole), np.arange(len(whole.y), dtype=np.float64))
    compared = whole.select(np.concatenate([split.test for split in splits]))
    check_comparable(metrics[0], queries_of(compared), f"--data {data}")


def _write(
    found: Found, out: Path | None, per_query: Path | None, picture: Path | None, figure: Any, save_best: Path | None
) -> None:
    """Write the files that were asked for; the model comes last, because the others are lost if it fails."""
    whole, best = found.whole, found.best
    if out is not None:
        write_csv(pd.DataFrame(found.lines), out)
    if per_query is not None:
        ids = whole.qid[np.cumsum(whole.group) - whole.group]
        write_csv(values_of(found.results, [ids[split.test] for split in found.splits]), per_query)
    if picture is not None and any(line.reference for line in found.lines):
        _draw(found.lines, figure)
        save_figure(figure, picture)
    elif picture is not None:
        warn(f"{picture} was not written: no objective was compared with another one")
    if save_best is not None:
        with Console(stderr=True).status(f"{best.library} trains {best.objective} on all queries"):
            save_model(train(best, whole, None, found.metrics[:1])[0], save_best)


def _draw(lines: Sequence[Line], figure: Any) -> None:
    """Draw the differences in each metric from the reference of the library, by library and metric."""
    from ltr_objectives.adapters import ComparisonDisplay  # which knows all libraries

    parts: dict[tuple[str, str], dict[str, Comparison]] = {}  # by title and reference
    for x in lines:
        if x.reference:
            reach = 1.96 * x.difference_se
            mean, d = x.mean, x.difference
            found = Comparison(mean, mean - d, d, d - reach, d + reach, x.p, x.queries)
            parts.setdefault((f"{x.library}: {x.metric}", x.reference), {})[x.objective] = found
    heights = [len(rows) + 1 for rows in parts.values()]
    figure.set_size_inches(7, 0.6 + 0.35 * sum(heights))
    axes = figure.subplots(len(parts), 1, squeeze=False, height_ratios=heights)[:, 0]
    for ax, ((title, reference), rows) in zip(axes, parts.items(), strict=True):
        ComparisonDisplay.from_comparisons(rows, ("this objective", reference), ax)
        ax.set_title(title, loc="left")


def _libraries(given: options.Names) -> list[str]:
    names = names_in(given) if given else [name for name in LIBRARIES if importlib.util.find_spec(name)]
    require(names, f"--library names none; install and name at least one of {', '.join(LIBRARIES)}")
    for name in names:
        check_choice("--library", name, tuple(LIBRARIES))
        LIBRARIES[name].load()  # says what to install
    return names


def _plan(
    objectives: options.Names, libraries: list[str], metrics: Sequence[Metric], budget: Budget, reference: str | None,
    queries: Queries,
) -> list[Trial]:  # fmt: skip
    """Plan the trials of each library; a name that only some libraries know is theirs."""
    asked = names_in(objectives)
    require(not objectives or asked, "--objectives is empty; leave it out, or name some")
    kinds = [LIBRARIES[name] for name in libraries]
    given = [*asked, *([reference] if reference else [])]
    natives = [each for each in given if any(kind.knows(each) for kind in kinds)]
    ours = [each for each in given if each not in natives]
    for each in ours:
        get_objective(each)  # raises for a name that nothing has
    found: list[Trial] = []
    for kind in kinds:
        usual = [] if asked else [*natives_for(kind.name, metrics[0]), *ours_for(metrics[0], queries)]
        own = [each for each in (*usual, *natives) if kind.knows(each)]
        others = [each for each in (*usual, *ours) if not kind.knows(each)]
        for each in dict.fromkeys([*own, *others]):
            found += trials(kind.name, each, [budget])
    return found


def _read(data: Path, columns: Columns, folds: int, seed: int) -> tuple[RankingData, list[Split], str]:
    """Read all queries; return them, the folds, and the kind of folds."""
    if data.is_dir():
        columns.refuse(data)
        fold: Any = load_letor(data)
        fold = fold if fold.vali is not None else RankingFold(*split_vali(fold.train, seed), fold.test)
        ends = np.cumsum([len(part.group) for part in fold])
        return joined(fold), [Split(*np.split(np.arange(ends[-1]), ends[:2]))], f"{len(fold.test.group):,} of them test"
    whole, _, values = read_data("data", data, columns)
    if whole.weight is not None and whole.weight.any():  # queries without weight could make up a whole fold
        counts = np.add.reduceat(whole.weight, np.cumsum(whole.group) - whole.group) > 0
        whole, values = whole.select(counts), None if values is None else values[counts]
    if values is None:
        return whole, cross_validation(whole, folds, seed), f"{folds} folds"
    splits = forward(values, folds, str(columns.folds_by))
    tested = sum(len(split.test) for split in splits)
    return whole, splits, f"{folds} folds by {columns.folds_by}, {tested:,} of them test"
