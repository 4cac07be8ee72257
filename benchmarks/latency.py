"""``python -m benchmarks latency``: milliseconds of one request, by what its features are given as."""

import re
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Annotated, Any, cast

import lightgbm
import numpy as np
import pandas as pd
from typer import Option

from benchmarks.publish import ROOT, save
from ltr_objectives import adapters
from ltr_objectives.libraries import LIBRARIES
from ltr_objectives.workbench.texts import terminal

ROWS, LEVELS, NUMBERS = 30, 3000, 10  # of a request, of each of two categorical columns, numeric columns
QUERIES, ROUNDS = 1000, 100


def table(rng: np.random.Generator, rows: int) -> pd.DataFrame:
    """Make features: numbers, and two columns of text as categories, which have only the values that occur."""
    made = pd.DataFrame(rng.normal(size=(rows, NUMBERS)).astype(np.float32)).add_prefix("f")
    for column in ("brand", "shop"):
        made[column] = pd.Categorical(np.char.add("c", rng.integers(LEVELS, size=rows).astype(str)))
    return made


def codes(X: pd.DataFrame, train: pd.DataFrame) -> np.ndarray:
    """Return an array with the numbers of the categories in the training."""
    coded = {c: X[c].cat.set_categories(train[c].cat.categories).cat.codes for c in ("brand", "shop")}
    return np.ascontiguousarray(X.assign(**coded).to_numpy(np.float64))


def ways(library: str, ranker: Any, X: pd.DataFrame, array: np.ndarray) -> dict[str, Callable[[], Any]]:
    """Return what is timed, by name: each returns the scores of the request."""
    booster, threads = ranker.booster_, {LIBRARIES[library].threads: 1}
    found: dict[str, Callable[[], Any]] = {"estimator, frame": lambda: ranker.predict(X)}
    if library == "catboost":  # which takes text as it is
        rows = X.astype(dict.fromkeys(("brand", "shop"), object)).to_numpy()
        found["library, frame"] = lambda: booster.predict(X, **threads)
        found["library, array"] = lambda: booster.predict(rows, **threads)
    elif library == "xgboost":
        matrix = LIBRARIES[library].load().DMatrix
        booster.set_param({"nthread": 1})
        found["library, frame"] = lambda: booster.predict(matrix(X, enable_categorical=True, nthread=1))
        found["library, array"] = lambda: booster.inplace_predict(array, validate_features=False)
    else:
        found["library, frame"] = lambda: booster.predict(X, **threads)
        found["library, array"] = lambda: booster.predict(array, **threads)
    return found


def converted(library: str, booster: Any, array: np.ndarray) -> dict[str, Callable[[], Any]]:
    """Return the scoring by programs that the model is converted for, as on the page, if they are installed."""
    found: dict[str, Callable[[], Any]] = {}
    if library == "catboost":  # which converts no categories
        return found
    if find_spec("treelite"):
        treelite: Any = import_module("treelite")
        model = getattr(treelite.frontend, f"from_{library}")(booster[:] if library == "xgboost" else booster)
        found["Treelite, array"] = lambda: treelite.gtil.predict(model, array, nthread=1).ravel()
    if find_spec("onnxmltools") and find_spec("onnxruntime"):
        onnxmltools, onnxruntime = import_module("onnxmltools"), import_module("onnxruntime")
        kinds: Any = import_module("onnxmltools.convert.common.data_types")
        ready = of_page({"xgboost": "with_names", "lightgbm": "with_objective"}[library])(booster)
        row = [("X", kinds.FloatTensorType([None, array.shape[1]]))]
        with suppress(RecursionError):  # of a chain with a node for each category
            made = getattr(onnxmltools, f"convert_{library}")(ready, initial_types=row).SerializeToString()
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = 1
            session = onnxruntime.InferenceSession(made, options)
            found["ONNX Runtime, array"] = lambda: session.run(None, {"X": array})[0].ravel()
    return found


def of_page(name: str) -> Callable[[Any], Any]:
    """Return a function of the page."""
    names: dict[str, Any] = {"re": re, "lgb": lightgbm}
    code = re.search(rf"^def {name}\(.*?(?=^\S)", (ROOT / "docs" / "serving.md").read_text(), re.S | re.M)
    exec(code[0] if code else "", names)
    return cast(Callable[[Any], Any], names[name])


def latency(
    repeats: Annotated[int, Option(min=1, help="Requests; the least processor time counts.")] = 300,
    out: Annotated[Path, Option(help="Folder for the JSON file.")] = Path("results"),
) -> None:
    """Time requests of 30 documents with two categorical columns of 3,000 levels, by the time of the processor."""
    console, results, rng = terminal(), [], np.random.default_rng(0)
    train, request = table(rng, QUERIES * ROWS), table(rng, ROWS)
    y, array = rng.integers(0, 5, len(train)), codes(request, train)
    for library in LIBRARIES:
        size = {"n_estimators": ROUNDS, LIBRARIES[library].threads: 1}
        ranker = getattr(adapters, LIBRARIES[library].ranker)(**size).fit(train, y, group=np.full(QUERIES, ROWS))
        more = converted(library, ranker.booster_, array.astype(np.float32))
        for way, call in (ways(library, ranker, request, array) | more).items():
            if not np.allclose(call(), ranker.predict(request), atol=1e-5):
                raise AssertionError(f"{library}: {way} has other scores")
            took = []
            for _ in range(repeats):
                start = process_time()
                call()
                took.append(process_time() - start)
            results.append({"library": library, "way": way, "ms": round(1e3 * min(took), 3)})
            console.print(*results[-1].values())
    save("latency", {"rows": ROWS, "levels": LEVELS, "trees": ROUNDS, "results": results}, out, console)
