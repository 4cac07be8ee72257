"""A search of hyper-parameters for each training of a study, on vali, random and then Bayesian."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.cells import Cell, write_whole
from benchmarks.folds import load
from ltr_objectives.errors import LTRError, require
from ltr_objectives.objectives.around import Langevin
from ltr_objectives.objectives.base import Objective
from ltr_objectives.workbench.trials import Record, Training, measure, objective_of, train

RANDOM_TRIALS = 20
LEARNING_RATE, L2 = (1e-3, 1.0, "log"), (1e-3, 100.0, "log")
LEAF_WISE: dict[str, Any] = {"depth": (6, 16, ""), "leaves": (16, 256, "log"), "l2": (0.1, 100.0, "log")}
SPACES: dict[str, dict[str, Any]] = {
    "lightgbm": LEAF_WISE | {"least": (1, 1000, "log")},
    "xgboost": LEAF_WISE | {"least": (1e-3, 100.0, "log")},
    "catboost": {"depth": (6, 8, ""), "l2": L2},
}
LANGEVIN = {"shrink": (1e-5, 1e-2, "log"), "diffusion": (1e8, 1e11, "log"), "mu": (1e-2, 10.0, "log")}
NAMES = {  # the others are fields of the budget
    "lightgbm": {"depth": "max_depth", "least": "min_data_in_leaf"},
    "xgboost": {"depth": "max_depth"},
    "catboost": {"depth": "depth", "shrink": "model_shrink_rate", "diffusion": "diffusion_temperature"},
}
FIELDS = {"learning_rate": "learning_rate", "leaves": "leaves", "l2": "l2"}
Settings = dict[str, Any]


def space(library: str, objective: str) -> dict[str, tuple[float, float, str]]:
    """Least and largest value of each hyper-parameter, and "log" if it is drawn log-uniformly.

    Ranges of Lyzhin et al., "Which Tricks Are Important for Learning to Rank?", appendix A. XGBoost is not
    in the paper. It has the ranges of LightGBM, whose trees also grow by leaves, but the least Hessian of a leaf
    instead of its least number of rows.

    >>> space("catboost", "yetiloss:map")["depth"]
    (6, 8, '')
    """
    found = {"learning_rate": LEARNING_RATE, **SPACES[library]}
    if _is_stochasticrank(objective):
        del found["l2"]
        found |= LANGEVIN
        if library == "catboost":
            found["depth"] = (6, 10, "")
    return found


def _is_stochasticrank(objective: str) -> bool:
    return objective.lower().partition(":")[0] == "stochasticrank"


def applied(cell: Cell, found: Settings) -> tuple[Cell, str | Objective, Settings]:
    """The cell with these values in its budget, the objective, and the library's further parameters."""
    fields = {FIELDS[key]: value for key, value in found.items() if key in FIELDS}
    if cell.library == "xgboost":
        fields["min_child_weight"] = found["least"]
    params = {name: found[key] for key, name in NAMES[cell.library].items() if key in found}
    if not _is_stochasticrank(cell.objective):
        return replace(cell, budget=replace(cell.budget, **fields)), objective_of(cell), params
    cell, objective = replace(cell, budget=replace(cell.budget, **fields, l2=0.0)), objective_of(cell)
    if isinstance(objective, str):
        objective += f"{';' if ':' in objective else ':'}mu={found['mu']:.17g}"
    else:
        objective = replace(objective, mu=found["mu"])  # type: ignore[call-arg]  # StochasticRank has it
    if cell.library == "catboost":  # no noise in Newton leaves
        return cell, objective, params | {"langevin": True, "leaf_estimation_method": "Gradient"}
    assert not isinstance(objective, str)
    rate, seed = found["learning_rate"], cell.budget.seed
    return cell, Langevin(objective, 1.0 / found["diffusion"], rate, shrink=found["shrink"], seed=seed), params


@dataclass(frozen=True)
class TunedCell(Cell):
    """A training with the hyper-parameters of the trial that was best on vali, by its one metric.

    After an interruption the search is repeated from its start. It proposes the same trials, because it gets the same
    values, so only trials without a value are trained. A longer search continues a shorter one in the same way.
    """

    trials: int = RANDOM_TRIALS

    def history(self, out: Path) -> Path:
        """Where its trials are kept."""
        return out / "trials" / f"{replace(self, trials=0).key}.json"

    def done(self, out: Path | None) -> list[dict[str, Any]]:
        """The trials of earlier runs."""
        path = self.history(out) if out is not None else None
        return json.loads(path.read_text()) if path is not None and path.exists() else []

    def trial(self, found: Settings) -> dict[str, Any]:
        """Train with these values; a trial that fails has a message instead of a value."""
        try:
            training = self._train(found)
        except LTRError as error:
            return {"found": found, "value": None, "trees": 0, "seconds": 0.0, "error": str(error)}
        best = training.best(self.metrics[0])
        value = training.curves[self.metrics[0]][best - 1]
        return {"found": found, "value": value, "trees": best, "seconds": training.seconds}

    def compute(self, out: Path | None) -> Record:
        """Search, then train with what was found; test data are used only then."""
        trials = self.search(out)
        best = max((t for t in trials if t["value"] is not None), key=lambda t: t["value"], default=None)
        require(best is not None, f"none of {len(trials)} trials could be trained: {trials[0].get('error')}")
        assert best is not None
        record = measure(self, load(self.fold), self._train(best["found"]))
        record["seconds"] += sum(t["seconds"] for t in trials)
        return record | {"tuned": best["found"]}

    def search(self, out: Path | None) -> list[dict[str, Any]]:
        """All trials in their order."""
        optuna = _optuna()
        kinds = {int: optuna.distributions.IntDistribution, float: optuna.distributions.FloatDistribution}
        ranges = {
            name: kinds[type(low)](low, high, log=scale == "log")
            for name, (low, high, scale) in space(self.library, self.objective).items()
        }
        sampler = optuna.samplers.TPESampler(n_startup_trials=RANDOM_TRIALS, seed=self.budget.seed)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        before = {_name(t["found"]): t for t in self.done(out)}
        trials: list[dict[str, Any]] = []
        for _ in range(self.trials):
            asked = study.ask(ranges)
            known = before.get(_name(asked.params))
            trial = known or self.trial(asked.params)
            failed = {} if trial["value"] is not None else {"state": optuna.trial.TrialState.FAIL}
            study.tell(asked, trial["value"], **failed)
            trials.append(trial)
            if out is not None and known is None:
                write_whole(self.history(out), trials)
        return trials

    def _train(self, found: Settings) -> Training:
        cell, objective, params = applied(self, found)
        data = load(self.fold)
        return train(cell, data.train, data.vali, objective, **params)


def _name(found: Settings) -> str:
    return json.dumps(found, sort_keys=True)


def _optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise ImportError(f"pip install optuna, for --tune: {error}") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
