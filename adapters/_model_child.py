"""Read a model file and predict with it, in a process of its own; ``_model_files`` runs this file by its path.

It imports nothing of this package, and XGBoost and LightGBM without pandas and scikit-learn, which would take seconds.
"""

import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

STARTED, RAISED = "\1", "\0"  # what it writes to stderr once it can read the file, and before the library's own error


def main(library: str, path: str, sys_path: list[str], memory: int | None) -> None:
    """Read ``path`` with ``library`` and predict, with at most ``memory`` bytes."""
    sys.path[:] = sys_path
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        pass
    else:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if memory is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (memory, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    left_out: dict[str, Any] = dict.fromkeys(["sklearn"] if library == "catboost" else ["sklearn", "pandas", "dask"])
    sys.modules.update(left_out)
    __import__(library)
    sys.stderr.write(STARTED)
    sys.stderr.flush()
    {"xgboost": _xgboost, "lightgbm": _lightgbm, "catboost": _catboost}[library](path)


def _rows(features: int) -> "np.ndarray":
    """Rows that go many ways through trees: equal, missing, and drawn on scales from 0.01 to 1e6."""
    import numpy as np  # once sys.path is that of the caller

    rng = np.random.default_rng(0)
    equal = np.array([[0.0], [np.nan], [-1e30], [1e30]]) * np.ones(features)
    drawn = rng.normal(size=(max(2, min(1000, 2**22 // max(features, 1))), features))
    drawn[len(drawn) // 2 :] *= 10.0 ** rng.integers(-2, 7, drawn[len(drawn) // 2 :].shape)
    return np.concatenate((equal, drawn))


def _xgboost(path: str) -> None:
    import xgboost

    booster = xgboost.Booster(model_file=path)
    rows = xgboost.DMatrix(_rows(booster.num_features()), nthread=1)
    booster.predict(rows, validate_features=False)


def _lightgbm(path: str) -> None:
    import lightgbm

    booster = lightgbm.Booster(model_file=path)
    booster.predict(_rows(booster.num_feature()), num_threads=1)


def _catboost(path: str) -> None:
    import catboost

    with open(path, "rb") as file:
        form = "json" if file.read(1) == b"{" else "cbm"
    model = catboost.CatBoost().load_model(path, form)
    if model.get_text_feature_indices() or model.get_embedding_feature_indices():
        return
    rows: Any = _rows(len(model.feature_names_))
    if categories := model.get_cat_feature_indices():
        rows = rows.astype(object)
        rows[:, categories] = "0"
    model.predict(rows, thread_count=1)


if __name__ == "__main__":
    try:
        main(*json.loads(sys.argv[1]))
    except (Exception, MemoryError) as error:
        sys.stderr.write(f"{RAISED}{error or type(error).__name__}")
        sys.exit(3)
