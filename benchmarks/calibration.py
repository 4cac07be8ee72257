"""``python -m benchmarks calibration``: ranking and probabilities of a ranking loss, a pointwise one, and both."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from rich.progress import track
from sklearn.isotonic import IsotonicRegression
from typer import Option

from benchmarks import speed_tables
from benchmarks.folds import folds_of
from benchmarks.quality import number
from ltr_objectives.checks import check_choice
from ltr_objectives.datasets import RankingFold
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.mixture import Mixture
from ltr_objectives.objectives.ordinal import Ordinal
from ltr_objectives.registry import get_metric, get_objective
from ltr_objectives.workbench.cli.options import names_in
from ltr_objectives.workbench.libraries import LIBRARIES
from ltr_objectives.workbench.statistics import standard_error
from ltr_objectives.workbench.texts import terminal
from ltr_objectives.workbench.trials import per_query

DATA = "As of `quality`; isotonic regression learns from the vali queries."
METRIC = "ndcg@10"
RANKING, POINTWISE = "yetiloss:ndcg@10", Ordinal((0.0,))
OBJECTIVES: dict[str, Objective] = {
    "ranking": get_objective(RANKING),
    "mixture": Mixture([RANKING, POINTWISE]),
    "pointwise": POINTWISE,
}
FLOOR = 1e-3  # a probability of 0 that turns out wrong would cost an infinite log loss
BINS = 15
Arrays = dict[str, np.ndarray]


def probabilities(scores: np.ndarray) -> np.ndarray:
    """The probability that the logistic loss reads from a score."""
    return np.exp(-np.logaddexp(0.0, -scores))


def log_losses(p: np.ndarray, relevant: np.ndarray) -> np.ndarray:
    """Minus the log likelihood of each document."""
    found: np.ndarray = -np.log(np.where(relevant, p, 1.0 - p))
    return found


def calibration_error(p: np.ndarray, relevant: np.ndarray) -> float:
    """Expected calibration error: mean difference of probability and share of relevant documents, in equal bins.

    >>> calibration_error(np.array([0.25, 0.25, 0.75, 0.75]), np.array([0, 0, 1, 1]))
    0.25
    """
    return sum(size * abs(mean - share) for mean, share, size in reliability(p, relevant)) / len(p)


def reliability(p: np.ndarray, relevant: np.ndarray) -> list[tuple[float, float, int]]:
    """Mean probability, share of relevant documents, and size of equal bins.

    Documents of equal probability, which isotonic regression makes many, count with their share.
    """
    _, same = np.unique(p, return_inverse=True)
    shares = (np.bincount(same, relevant) / np.bincount(same))[same]
    bins = [rows for rows in np.array_split(np.argsort(p, kind="stable"), BINS) if len(rows)]
    return [(float(p[rows].mean()), float(shares[rows].mean()), len(rows)) for rows in bins]


def measure(library: str, objective: Objective, fold: RankingFold, trees: int, seed: int) -> Arrays:
    """Probabilities of the test part before and after isotonic regression on the vali part; NDCG of both by query."""
    facts = LIBRARIES[library]
    with facts.estimator() as estimator:
        ranker = estimator(objective=objective, n_estimators=trees, random_state=seed, **{facts.threads: 1})
        ranker.fit(fold.train.X, fold.train.y, group=fold.train.group)
    assert fold.vali is not None
    held_out, scores = (np.asarray(ranker.predict(part.X), np.float64) for part in (fold.vali, fold.test))
    isotonic = IsotonicRegression(y_min=FLOOR, y_max=1.0 - FLOOR, out_of_bounds="clip")
    after = isotonic.fit(held_out, fold.vali.y > 0).predict(scores)
    metric = get_metric(METRIC)
    ndcg, of_ties = (np.array(per_query(metric, fold.test, s, 1), np.float64) for s in (scores, after))
    before = np.clip(probabilities(scores), 1e-15, 1.0 - 1e-15)
    return {"before": before, "after": after, "ndcg": ndcg, "ndcg of probabilities": of_ties}


def compared(found: Arrays, base: Arrays, relevant: np.ndarray, starts: np.ndarray) -> dict[str, Any]:
    """Means, and differences from ``base`` with their standard errors over queries, 0 for ``base`` itself."""
    ndcg = found["ndcg"] - base["ndcg"]
    loss = log_losses(found["after"], relevant) - log_losses(base["after"], relevant)
    by_query = np.add.reduceat(loss, starts) * len(starts) / len(loss)
    result: dict[str, Any] = {
        "ndcg": float(np.nanmean(found["ndcg"])),
        "ndcg_of_probabilities": float(np.nanmean(found["ndcg of probabilities"])),
        "ndcg_difference": float(np.nanmean(ndcg)), "ndcg_se": 0.0 if found is base else standard_error(ndcg),
        "log_loss_difference": float(loss.mean()), "log_loss_se": 0.0 if found is base else standard_error(by_query),
    }  # fmt: skip
    for when in ("before", "after"):
        p = found[when]
        result[when] = {
            "log_loss": float(log_losses(p, relevant).mean()), "brier": float(np.mean((p - relevant) ** 2)),
            "error": calibration_error(p, relevant), "curve": reliability(p, relevant),
        }  # fmt: skip
    return result


def over_seeds(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Means over seeds; standard errors too, but with one seed those over queries.

    >>> means = over_seeds([{"ndcg_difference": x, "ndcg_se": 9.0} for x in (0.25, 0.5, 0.75)])
    >>> means["ndcg_difference"], round(means["ndcg_se"], 4)
    (0.5, 0.1443)
    """
    if len(found) == 1:
        return found[0]
    columns = {key: [each[key] for each in found] for key in found[0]}
    return {key: _over_seeds(key, values, columns) for key, values in columns.items()}


def _over_seeds(key: str, values: list[Any], columns: dict[str, list[Any]]) -> Any:
    if isinstance(values[0], dict):
        return over_seeds(values)
    if key.endswith("_se"):
        return standard_error(np.array(columns[key.replace("_se", "_difference")]))
    if key == "curve":  # bins are of equal sizes within a seed
        return [tuple(np.mean(points, axis=0)) for points in zip(*values, strict=True)]
    return float(np.mean(values))


def of_a_constant(share: float) -> dict[str, float]:
    """The losses of a model that gives every document the share of relevant documents."""
    return {
        "log_loss": float(-share * np.log(share) - (1.0 - share) * np.log(1.0 - share)),
        "brier": share * (1.0 - share),
    }


def calibration(
    data: Annotated[str, Option(help=DATA)] = "generated-calibrated:250,200,400",
    seeds: Annotated[str, Option(help="Of data and libraries.")] = "0",
    libraries: Annotated[str, Option(help="Any of xgboost, lightgbm, catboost.")] = "xgboost,lightgbm,catboost",
    trees: Annotated[int, Option(min=1)] = 100,
    out: Annotated[Path, Option(help="Folder for the JSON file and reliability.png.")] = Path("results"),
) -> None:
    """Measure the probabilities that scores become.

    Isotonic regression on held-out queries makes probabilities of them. A document is relevant if its label is above 0.
    """
    from benchmarks.figures.reliability import reliability_curves

    console, results = terminal(), []
    folds = [(place, place.load()) for place in folds_of(data, [number(s, int, "seeds") for s in names_in(seeds)])]
    truth = [(fold.test.y > 0, np.cumsum(fold.test.group) - fold.test.group) for _, fold in folds]
    for library in names_in(libraries):
        check_choice("libraries", library, tuple(LIBRARIES))
        by_label: dict[str, list[Arrays]] = {}
        for label, objective in track(OBJECTIVES.items(), library, console=console, transient=True):
            by_label[label] = [measure(library, objective, fold, trees, place.seed) for place, fold in folds]
        for label, parts in by_label.items():
            pairs = zip(parts, by_label["ranking"], truth, strict=True)
            each = [compared(found, base, *of) for found, base, of in pairs]
            results.append({"library": library, "objective": label, **over_seeds(each)})
    share = float(np.concatenate([relevant for relevant, _ in truth]).mean())
    document = {"relevant": share, "constant": of_a_constant(share), "trees": trees, "results": results}
    speed_tables.save("calibration", document, out, console)
    console.print(f"written: {reliability_curves(document, out)}")
