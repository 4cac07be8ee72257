"""Why a model ranks one document above another: the difference of their SHAP values."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ltr_objectives.adapters._libraries import LIBRARIES
from ltr_objectives.checks import check_integer
from ltr_objectives.errors import require

if TYPE_CHECKING:
    import pandas as pd


def explain_pair(model: Any, data: Any, i: int, j: int, *, ax: Any = None) -> "pd.DataFrame":
    """Explain why row ``i`` scores above row ``j``, or below it, by the exact SHAP values of the model's library.

    Parameters
    ----------
    model : estimator or model of XGBoost, LightGBM or CatBoost
        The model to explain.
    data : array or table of shape (rows, features)
        Features, as ``predict`` takes them.
    i : int
        Row of one document.
    j : int
        Row of another document of the same query, because only scores within a query are compared.
    ax : matplotlib.axes.Axes, optional
        The ten largest contributions are drawn here.

    Returns
    -------
    pandas.DataFrame
        Columns ``feature``, ``value_i``, ``value_j`` and ``contribution``, the largest contribution first. The
        contributions add up to the score of ``i`` minus the score of ``j``; the expected score cancels.

    Examples
    --------
    >>> from ltr_objectives.adapters import LGBMRanker
    >>> X, y = [[0.0, 1.0], [1.0, 1.0]] * 30, [0, 1] * 30
    >>> explain_pair(LGBMRanker(n_estimators=1).fit(X, y, group=[2] * 30), X, 1, 0).round(2)
       feature  value_i  value_j  contribution
    0        0      1.0      0.0          0.27
    1        1      1.0      1.0          0.00
    """
    import pandas as pd

    from ltr_objectives.adapters._ranker_inputs import is_frame, read_table

    data = read_table(data, getattr(model, "label_columns_", ())).X
    chosen = [check_integer(name, row, 0, data.shape[0] - 1) for name, row in (("i", i), ("j", j))]
    rows = data.iloc[chosen] if is_frame(data) else data[chosen]
    of_i, of_j = _contributions(model, rows)
    values = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)
    features = rows.columns if is_frame(rows) else range(rows.shape[1])
    columns = {"feature": features, "value_i": values[0], "value_j": values[1], "contribution": (of_i - of_j)[:-1]}
    table = pd.DataFrame(columns).sort_values("contribution", key=np.abs, ascending=False, ignore_index=True)
    if ax is not None:
        shown = table[:10][::-1]
        names = [f"{feature}: {a if isinstance(a, str) else f'{a:.4g}'}, {b if isinstance(b, str) else f'{b:.4g}'}"
                 for feature, a, b in shown.iloc[:, :3].itertuples(index=False)]  # fmt: skip
        ax.barh(names, shown.contribution, color=np.where(shown.contribution < 0, "tab:red", "tab:blue"))
        ax.set_xlabel(f"contribution to the score of row {i} minus that of row {j}")
    return table


def _contributions(model: Any, rows: Any) -> Any:
    """SHAP values by row, and the expected score in the last column."""
    modules = {each.__module__.partition(".")[0] for each in type(model).__mro__}
    found = modules.intersection(LIBRARIES)
    require(found, f"model is a {type(model).__name__}; pass a model or estimator of XGBoost, LightGBM or CatBoost")
    if "lightgbm" in found:
        values = model.predict(rows, pred_contrib=True)
        return values.toarray() if hasattr(values, "toarray") else values
    if "catboost" in found:
        pool, _ = model._process_predict_input_data(rows, "explain_pair", -1)
        return model.get_feature_importance(pool, type="ShapValues")
    if "ltr_objectives" in modules:
        return model.predict(rows, pred_contribs=True)
    from xgboost import Booster, DMatrix

    rounds = 0 if isinstance(model, Booster) else getattr(model, "best_iteration", -1) + 1  # 0 is all
    booster = model if isinstance(model, Booster) else model.get_booster()
    return booster.predict(DMatrix(rows, enable_categorical=True), pred_contribs=True, iteration_range=(0, rounds))
