"""``python -m benchmarks bounds``: one training with a bound, beside eight with weights, on two goals."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from time import process_time
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
from typer import Option

from benchmarks.cells import write_whole
from benchmarks.provenance import provenance
from ltr_objectives import adapters
from ltr_objectives.datasets import RankingData, RankingFold, load_letor, make_ranking_fold
from ltr_objectives.errors import require
from ltr_objectives.libraries import LIBRARIES
from ltr_objectives.metrics.text import get_metric
from ltr_objectives.queries import Queries
from ltr_objectives.statistics import mean, standard_error
from ltr_objectives.workbench.cli.options import names_in
from ltr_objectives.workbench.tables import write_csv
from ltr_objectives.workbench.texts import show, terminal

LOSSES = (0.005, 0.01, 0.02, 0.05)
WEIGHTS = (0.03, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 4.0)
SHARES = (0.1, 0.3, 1.0, 3.0)  # of money in the label of plain LightGBM
FIRST, SECOND = "ndcg@10", "dcg(gain_type=linear)@10[second]"
OF_FIRST, OF_SECOND = "yetiloss:ndcg", "yetiloss:dcg(gain_type=linear)@10;lambda_norm=false[second]"
ROUNDS, CLASSES = 150, 30
METRICS = [get_metric(name) for name in (FIRST, SECOND)]
Row = dict[str, Any]
Values = list[np.ndarray]  # of each metric, by query


class Goals(NamedTuple):
    """A fold and the labels of the second goal of its parts."""

    fold: RankingFold
    second: list[np.ndarray]

    def queries(self, part: int) -> Queries:
        """Return the queries of a part with both labels."""
        data = self.parts[part]
        return Queries({"first": data.y, "second": self.second[part]}, data.group)

    @property
    def parts(self) -> list[RankingData]:
        """Training, validation and test data."""
        return [part for part in self.fold if part is not None]


def load(data: str) -> Goals:
    """Read ``many:SEED`` or ``one:SEED``, generated with many or one paid documents a query, or a folder of MovieLens.

    In a folder the first feature is the number of ratings of a film: the second goal is liked films (a label above 2)
    with at most the median number.
    """
    kind, _, seed = data.partition(":")
    if kind not in ("many", "one"):
        loaded = load_letor(data)
        require(isinstance(loaded, RankingFold) and loaded.vali is not None, f"--data {data} has no train, vali, test")
        fold = RankingFold(*loaded)
        few = np.median(fold.train.X[:, 0])
        return Goals(fold, [(d.y > 2) * (d.X[:, 0] <= few) * 1.0 for d in fold if d is not None])
    fold = make_ranking_fold((400, 300, 1000), seed=int(seed), features=20, mean_length=20)
    money = [np.where(d.y > 0, 10.0 * np.exp(d.X[:, 3]), 0.0) for d in fold if d is not None]
    if kind == "one":
        rng = np.random.default_rng(int(seed))
        for d, amounts in zip(fold, money, strict=True):
            assert d is not None
            chance = np.log(rng.random(len(d.y))) / np.maximum(2.0**d.y - 1.0, 1e-6)  # the largest: a draw by gain
            for rows in np.split(np.arange(len(d.y)), np.cumsum(d.group)[:-1]):
                amounts[np.delete(rows, chance[rows].argmax())] = 0.0
    return Goals(fold, money)


def params_of(library: str) -> dict[str, Any]:
    """Return the parameters of all trainings."""
    facts = LIBRARIES[library]
    shape = {name: v for name, v in facts.shaped(15, 20.0, 1e-3).items() if name != facts.l2}  # 20 is our default
    return {"n_estimators": ROUNDS, "learning_rate": 0.1, facts.threads: 1, **facts.reproducible(), **shape}


def train(library: str, goals: Goals, objective: str | None, metric: Any, **more: Any) -> Any:
    """Train our estimator on the first labels, with those of the second where they are read."""
    data, vali = goals.parts[:2]
    ranker = getattr(adapters, LIBRARIES[library].ranker)(
        objective=objective, eval_metric=metric, **params_of(library), **more
    )
    reads = "second" in f"{objective}{metric}"
    labels = [{"second": values} if reads else None for values in goals.second]
    given = {"eval_set": [(vali.X, vali.y)], "eval_qid": [vali.qid], "early_stopping_rounds": ROUNDS}
    if "[second]" in str(metric):
        given["eval_labels"] = [labels[1]]
    return ranker.fit(data.X, data.y, qid=data.qid, labels=labels[0], **given)


def label_mixture(goals: Goals, share: float, metric: str) -> Any:
    """Train plain LightGBM on one whole-numbered label: classes of relevance plus a share of money."""
    import lightgbm as lgb

    def worth(part: int) -> np.ndarray:
        gain = (2.0 ** goals.parts[part].y - 1.0) / 15.0
        scale = ((2.0 ** goals.parts[0].y - 1.0) / 15.0).mean() / goals.second[0].mean()
        return np.asarray(gain + share * scale * goals.second[part])

    data, vali = goals.parts[:2]
    values, positive = worth(0), worth(0) > 0
    edges = np.unique(np.quantile(values[positive], np.linspace(0, 1, CLASSES)[1:-1]))
    classes = [np.where(worth(i) > 0, 1 + np.digitize(worth(i), edges), 0) for i in (0, 1)]
    gains = [values[classes[0] == c].mean() if (classes[0] == c).any() else 0.0 for c in range(len(edges) + 2)]
    train_set = lgb.Dataset(data.X, classes[0], group=data.group)
    vali_set = lgb.Dataset(vali.X, classes[1], group=vali.group, reference=train_set)
    chosen, queries = get_metric(metric), goals.queries(1)
    params = {"objective": "lambdarank", "metric": "None", "label_gain": gains, "lambdarank_truncation_level": 30,
              "learning_rate": 0.1, "num_leaves": 15, "num_threads": 1, "verbosity": -1, "deterministic": True,
              "force_col_wise": True}  # fmt: skip
    return lgb.train(
        params, train_set, ROUNDS, valid_sets=[vali_set], callbacks=[lgb.early_stopping(ROUNDS, verbose=False)],
        feval=lambda scores, _: ("sum", chosen.mean(queries, scores, n_threads=1), True),
    )  # fmt: skip


def values_of(model: Any, goals: Goals, part: int) -> Values:
    """Return both metrics by query of a part."""
    scores, queries = model.predict(goals.parts[part].X), goals.queries(part)
    return [np.asarray(metric.values(queries, scores, n_threads=1)) for metric in METRICS]


def trainings(library: str, goals: Goals) -> Iterator[Row]:
    """Train for the first goal alone, with each bound, with each weight, and in LightGBM on each mixture of labels."""

    def line(kind: str, setting: float, model: Any, seconds: float) -> Row:
        row: Row = {"kind": kind, "setting": setting, "seconds": seconds}
        for part, name in ((1, "vali"), (2, "test")):
            for metric, value, base in zip(
                ("first", "second"), values_of(model, goals, part), alone[part], strict=True
            ):
                row |= {f"{name}_{metric}": mean(value) / mean(base) - 1}
                if kind == "bound" and metric == "first":  # what is missing to the bound
                    row[f"{name}_kept"] = mean(value - (1 - setting) * base)
                    row[f"{name}_kept_se"] = standard_error(value - (1 - setting) * base)
                row[f"{name}_{metric}_se"] = standard_error(value - base) / mean(base)
        return row

    start = process_time()
    model = train(library, goals, OF_FIRST, FIRST)
    seconds = process_time() - start
    alone = {part: values_of(model, goals, part) for part in (1, 2)}
    yield line("alone", 0.0, model, seconds)
    best, money = (mean(values) for values in alone[1])
    share = money / METRICS[1].unit(goals.queries(1))  # as the metric counts in a sum
    for loss in LOSSES:
        start = process_time()
        model = train(library, goals, OF_SECOND, SECOND, bounds={FIRST: (1 - loss) * best})
        yield line("bound", loss, model, process_time() - start)
    for kind, settings in (("weight", WEIGHTS), ("label", SHARES if library == "lightgbm" else ())):
        for weight in settings:
            start, metric = process_time(), f"{1 / best}*{FIRST} + {weight / share}*{SECOND}"
            if kind == "weight":
                model = train(library, goals, f"{OF_FIRST} + {weight}*{OF_SECOND}", metric)
            else:
                model = label_mixture(goals, weight, metric)
            yield line(kind, weight, model, process_time() - start)


def front_at(cell: pd.DataFrame, kind: str, at: float) -> float:
    """Return the second metric of the trainings of a kind and of the first goal alone, at a value of the first.

    Between the trainings on both sides it is interpolated; beyond the last it is that of the last.
    """
    points = cell[cell.kind.isin(("alone", kind))].sort_values("test_first")
    return float(np.interp(at, points.test_first, points.test_second))


def verdicts(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a line for each training with a bound: whether it was kept, and the second goal beside the front."""
    lines = []
    for (data, library), cell in rows.groupby(["data", "library"], sort=False):
        for each in cell[cell.kind == "bound"].itertuples():
            on_front = front_at(cell, "weight", each.test_first)
            found = {"data": data, "library": library, "loss": each.setting, "vali_first": each.vali_first,
                     "test_first": each.test_first, "test_second": each.test_second, "front": on_front,
                     "kept_vali": each.vali_kept >= 0, "kept_test": each.test_kept >= -2 * each.test_kept_se,
                     "on_front": each.test_second >= on_front - each.test_second_se,
                     "label": front_at(cell, "label", each.test_first) if (cell.kind == "label").any() else np.nan,
                     "seconds": each.seconds, "seconds_front": cell[cell.kind == "weight"].seconds.sum()}  # fmt: skip
            lines.append(found)
    return pd.DataFrame(lines)


def bounds(
    data: Annotated[list[str], Option(help="many:SEED, one:SEED, or the folder of a fold of MovieLens; repeatable.")],
    out: Annotated[Path, Option(help="Folder of the results; finished trainings there are kept.")],
    libraries: Annotated[str, Option(help="Any of xgboost, lightgbm, catboost.")] = "lightgbm,xgboost,catboost",
) -> None:
    """Train with bounds on NDCG@10 and with weights, on two goals: are bounds kept, and is the result on the front?"""
    out.mkdir(parents=True, exist_ok=True)
    rows: list[Mapping[str, Any]] = []
    for name in data:
        goals = load(name)
        label = "/".join(Path(name).parts[-2:])
        for library in names_in(libraries):
            file = out / f"{label.replace('/', '-').replace(':', '-')}-{library}.json"
            if not file.exists():
                found = [{"data": label, "library": library, **row} for row in trainings(library, goals)]
                write_whole(file, {"rows": found, **provenance()})
    for file in sorted(out.glob("*.json")):
        rows += json.loads(file.read_text())["rows"]
    table = pd.DataFrame(rows)
    found = verdicts(table)
    write_csv(table.round(6), out / "trainings.csv")
    write_csv(found.round(6), out / "verdicts.csv")
    summary(found)


def summary(found: pd.DataFrame) -> None:
    """Print for each bound how often it was kept, and the means of both goals, in percent."""
    lines = [["bound", "trainings", "kept on validation", "on test", "on the front", "first", "second", "front",
              "labels, LightGBM"]]  # fmt: skip
    for loss, of in [*found.groupby("loss"), ("all", found)]:
        name = loss if isinstance(loss, str) else f"-{100 * loss:g}%"
        counts = [f"{of[c].sum()} of {len(of)}" for c in ("kept_vali", "kept_test", "on_front")]
        means = [f"{100 * of[c].mean():+.1f}%" for c in ("test_first", "test_second", "front")]
        labels = of[of.library == "lightgbm"]
        beside = f"{100 * labels.label.mean():+.1f}% for {100 * labels.test_second.mean():+.1f}%" if len(labels) else ""
        lines.append([name, str(len(of)), *counts, *means, beside])
    show(terminal(), lines, "Bounds", "Test means beside the training for the first goal alone.")
