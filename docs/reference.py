"""The pages of the reference, whose docstrings mkdocstrings inserts."""

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from surface import public_names, registered, render

from ltr_objectives import Objective

ROOT = Path(__file__).resolve().parents[1]
MATH, ROLE = re.compile(r":math:`([^`]+)`"), re.compile(r":\w+:`(?:[\w.]+\.)?(\w+)`")  # of docstrings
NATIVE = {  # what a library calls its own objective of this kind
    "lambdamart": {"lightgbm": "lambdarank", "xgboost": "rank:ndcg, rank:map"},
    "queryrmse": {"catboost": "QueryRMSE"},
    "ranknet": {"xgboost": "rank:pairwise", "catboost": "PairLogit"},
    "rmse": {"lightgbm": "regression", "catboost": "RMSE"},
    "stochasticrank": {"catboost": "StochasticRank"},
    "xendcg": {"lightgbm": "rank_xendcg"},
    "yetiloss": {"catboost": "YetiRank:mode="},
    "yetirank": {"catboost": "YetiRank"},
}
TASKS = {  # names of the reference, by what they are used for
    "Train": (
        *("LGBMRanker", "XGBRanker", "CatBoostRanker", "objective_for", "bagged", "refit"),
        *("tradeoff", "TradeoffDisplay", "position_offsets", "PropensityDisplay"),
    ),
    "Train by the library's own function": (
        *(f"{library}_{kind}" for library in ("lightgbm", "xgboost", "catboost") for kind in ("objective", "metric")),
        *("bounded", "dask_group", "dask_evaluate", "torch_loss", "cross_encoder_loss"),
    ),
    "Evaluate and compare": (
        *(
            "evaluate",
            "compare_scores",
            "ComparisonDisplay",
            "evaluate_items",
            "evaluate_exposure",
            "to_run",
            "to_qrels",
        ),
        *("report", "Report"),
    ),
    "Read data": (
        *("from_table", "load_letor", "load_example", "make_ranking", "make_ranking_fold"),
        *("RankingData", "RankingFold", "Queries", "Preferences"),
    ),
    "Combine and change objectives": ("Mixture", "Subsample", "UnitHessian", "Langevin", "FairExposure"),
    "Choose by name, write your own": (
        *("get_metric", "get_objective", "metric_names", "objective_names"),
        *("Metric", "Objective", "check_metric", "check_objective"),
    ),
}


def referred(public: str, thing: Any) -> str:
    """Return the name as a link to its reference."""
    return f"[`{thing.__name__}`][{public}]"


def objectives_table() -> str:
    """Return a line for each objective: notation, metric, randomness, Hessian, and what a library has of it."""
    lines = ["| objective | optimises | random | Hessian | native counterpart |", "|---" * 5 + "|"]
    for public, thing in registered("objectives").items():
        plain = thing()
        subject = "any metric" if "metric" in thing.parameters() else what_it_is(thing)
        native = [f"{library} `{name}`" for library, name in NATIVE.get(thing.name, {}).items()]
        lines.append(
            f'| {referred(public, thing)}<br>`"{thing.name}"` | {subject} | {"yes" if plain.facts.random else "no"} '
            f"| {plain.facts.hessian_kind} | {'<br>'.join(native) or '-'} |"
        )
    return "\n".join(lines) + "\n"


def what_it_is(thing: Any) -> str:
    """Return the head of the module's text, without the name in front of it."""
    head = (inspect.getdoc(inspect.getmodule(thing)) or "").partition("\n")[0].rstrip(".")
    what = head.rpartition(": ")[2]
    return what if what[1:2].isupper() else what[:1].lower() + what[1:]


def conventions_table() -> str:
    """Tabulate the options that each metric changes for the convention of each library."""
    lines = ["| metric | convention | sets |", "|---|---|---|"]
    for public, thing in registered("metrics").items():
        for library, settings in thing.conventions.items():
            shown = ", ".join(f"`{name}={value!r}`" for name, value in settings.items())
            lines.append(f"| {referred(public, thing)} | {library} | {shown} |")
    return "\n".join(lines) + "\n"


def kernels() -> list[str]:
    """Return the modules with a derivation at the head: kernels, and objectives that are more than a name."""
    package = ROOT / "ltr_objectives"
    shared = [f"ltr_objectives.kernels.{path.stem}" for path in sorted((package / "kernels").glob("[!_]*.py"))]
    own = sorted({each.__module__ for each in Objective.named.values()})
    derived = [name for name in own if "\n" in (importlib.import_module(name).__doc__ or "").strip()]
    return [*shared, *derived]


def by_task() -> dict[str, dict[str, Any]]:
    """Sort the public names that are no registered objective or metric by what they are used for."""
    rest = {n: each for n, each in public_names().items() if n not in registered("objectives") | registered("metrics")}
    tasks = {task: {n: rest.pop(n) for name in names for n in [*rest] if n.endswith(f".{name}")}
             for task, names in TASKS.items()}  # fmt: skip
    return tasks | {"Errors and settings": rest}


def listed(names: dict[str, Any]) -> str:
    """Return a line for each name: a link to its page, and the first line of its docstring."""
    lines = []
    for public, each in names.items():
        head = (inspect.getdoc(each) or "").partition("\n")[0]
        head = ROLE.sub(r"`\1`", MATH.sub(r"$\1$", head))
        lines.append(f"| {referred(public, each)} | {head} |")
    return "\n".join(("| name | what it is |\n|---|---|", *lines)) + "\n"


def reference() -> Iterator[tuple[str, str]]:
    """Name and Markdown of each page of the reference, with the docstrings for mkdocstrings to insert."""
    for public, thing in public_names().items():
        yield f"api/{thing.__name__}.md", render(public, thing)
    tasks = "\n".join(f"## {task}\n\n{listed(names)}" for task, names in by_task().items())
    yield (
        "api/index.md",
        f"""# Functions and classes

`import ltr_objectives` loads neither numba nor a library. From `ltr_objectives.adapters`, if a library is missing, the
error names what to install.

{tasks}""",
    )
    yield (
        "api/metrics.md",
        f"""# Metrics

`evaluate` takes each of them by name, such as `"ndcg@10"`, or as an object. `Metric` has what is common to all.

{listed(registered("metrics"))}
## Conventions

The options that [`convention=`](../metrics.md#conventions) sets; others keep their defaults.

{conventions_table()}""",
    )
    yield (
        "objectives/index.md",
        rf"""# Objectives

Every objective gives each row a gradient $g_i$ and a Hessian $h_i$, from which [the library fits trees](../hessian.md).

Notation: a query has $n$ documents with scores $s$ and labels $y$. $d$ and $e$ are ranks, counted from 1 in the order
of descending score. $G$ is the gain of a label and $D(d) = \log_2(1 + d)$ the discount. $hi$ and $lo$ are the documents
of a pair with the larger and the smaller label.

{objectives_table()}""",
    )
    derivations = "\n".join(f"::: {name}\n    options:\n      members: false\n" for name in kernels())
    yield (
        "objectives/kernels.md",
        f"""---
search: {{exclude: true}}
---

# Kernels

How the formulas of the [objectives](index.md) and [metrics](../api/metrics.md) are computed. Functions of these modules
are not public.

{derivations}""",
    )
