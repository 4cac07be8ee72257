"""``python -m benchmarks compare``: native objectives and ours, in each library, under one budget."""

import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from rich.text import Text
from typer import Exit, Option

from ltr_objectives.datasets import RankingData, RankingFold, load_letor, make_ranking_fold
from ltr_objectives.errors import LTRError, require
from ltr_objectives.registry import get_metric

METRICS = "ndcg@10,map,mrr,err"
NATIVES = (
    "'usual', 'none', or names such as rank:ndcg,lambdarank,YetiRank:mode=NDCG;top=10. "
    "The first of each library is the reference of its marks."
)
OBJECTIVES = "lambdamart,yetirank,yetiloss:ndcg@10,yetiloss:map"


def compare(
    data: Annotated[Path | None, Option(help="Folder of a fold in LETOR format. Without it data is generated.")] = None,
    queries: Annotated[str, Option(help="Train, vali and test queries of generated data.")] = "600,200,400",
    libraries: Annotated[str, Option(help="Any of xgboost, lightgbm, catboost.")] = "xgboost,lightgbm,catboost",
    objectives: Annotated[str, Option(help="Ours, such as lambdamart:ndcg@10 or yetiloss:map.")] = OBJECTIVES,
    natives: Annotated[str, Option(help=NATIVES)] = "usual",
    metrics: Annotated[str, Option(help="Test metrics; the first also stops every training early.")] = METRICS,
    trees: Annotated[int, Option(min=1, help="At most so many.")] = 500,
    learning_rate: Annotated[float, Option(min=1e-6)] = 0.1,
    leaves: Annotated[int, Option(min=2, help="Of a tree; CatBoost's have the nearest depth.")] = 31,
    patience: Annotated[int, Option(min=1, help="Stop after so many trees without a better vali metric.")] = 50,
    min_child_weight: Annotated[float, Option(min=0, help="Least Hessian sum of a leaf; not in CatBoost.")] = 1e-3,
    l2: Annotated[float, Option(min=0, help="L2 regularisation of leaf values, in all libraries.")] = 0.0,
    threads: Annotated[int, Option(min=0, help="0: all processors.")] = 0,
    seed: Annotated[int, Option(min=0, help="Of data, splits, objectives and libraries.")] = 0,
    alpha: Annotated[float, Option(min=0, max=1, help="Level of the significance marks.")] = 0.05,
    out: Annotated[Path, Option(help="Folder for CSV, JSON and PNG.")] = Path("results"),
    name: Annotated[str, Option(help="Of these files.")] = "compare",
) -> None:
    """Compare native objectives and ours on the test queries.

    All trainings of a library get the same trees, learning rate and regularisation, and all stop early on OUR
    definition of the first metric. Regularisation by Hessians is weak by default: the Hessians of losses differ in
    scale, so that XGBoost's usual limits (min_child_weight 1, reg_lambda 1) would hold back some objectives and not
    others; CatBoost's own ranking losses default to no L2 either.
    """
    from benchmarks import experiment, plots, tables
    from benchmarks.libraries import Budget
    from ltr_objectives.kernels.threads import available_threads

    console = Console(width=None if sys.stdout.isatty() else 120)  # a file has no width to respect
    try:
        chosen = [get_metric(m) for m in _names(metrics, "metrics")]
        entries = experiment.plan(_names(libraries, "libraries"), _names(objectives), _names(natives, "natives"), seed)
        budget = Budget(
            trees, learning_rate, leaves, patience, min_child_weight, l2, threads or available_threads(), seed
        )
        fold, source = _load(data, queries, seed, console)
        assert fold.vali is not None
        console.print(f"[bold]{source}[/]: train {_size(fold.train)}, vali {_size(fold.vali)}, test {_size(fold.test)}")
        console.print(
            f"up to {trees} trees of {leaves} leaves, learning rate {learning_rate:g}, l2 {l2:g}, "
            f"min_child_weight {min_child_weight:g}, stopped by vali {chosen[0]} after {patience} trees without a "
            f"better one, {budget.threads} threads, seed {seed}"
        )
        out.mkdir(parents=True, exist_ok=True)  # now rather than fail after the trainings
        rows = experiment.run(entries, fold, chosen, budget, alpha, console)
    except (LTRError, ImportError, OSError) as error:
        Console(stderr=True).print(Text("error: ", "bold red"), Text(str(error)), sep="")
        raise Exit(2) from None
    title = f"{source}: test metrics"
    caption = (
        f"▲ better, ▼ worse than the library's first native objective: paired t-test over {len(fold.test.group)} test "
        f"queries, p < {alpha:g} after Holm's correction. Bold: best in its library. Seconds are of training, with the "
        "vali metric after each tree."
    )
    console.print(tables.printed(rows, title, caption))
    settings: dict[str, Any] = {"data": source, "metrics": [str(m) for m in chosen], "alpha": alpha, **asdict(budget)}
    files = tables.save(rows, settings, out, name)
    picture = out / f"{name}.png"
    files.append(plots.learning_curves(rows, str(chosen[0]), f"Learning curves on {source}", picture))
    console.print("written: " + ", ".join(os.fspath(file) for file in files))


def _names(text: str, option: str | None = None) -> list[str]:
    names = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    require(names or option is None, f"--{option} is empty")
    return names


def _size(part: RankingData) -> str:
    return f"{len(part.y):,} rows in {len(part.group):,} queries"


def _load(data: Path | None, queries: str, seed: int, console: Console) -> tuple[RankingFold, str]:
    from benchmarks.experiment import split_vali

    if data is None:
        sizes = tuple(int(q) if q.strip().isdigit() else 0 for q in queries.split(","))
        require(len(sizes) == 3 and all(sizes), f"--queries {queries!r} must be three numbers, such as 600,200,400")
        return make_ranking_fold(sizes, seed), "generated data"  # type: ignore[arg-type]  # three, as checked
    loaded = load_letor(data)
    require(isinstance(loaded, RankingFold), f"--data {data} is a file; pass the folder of a fold, with train and test")
    assert isinstance(loaded, RankingFold)
    source = "/".join(data.resolve().parts[-2:])
    if loaded.vali is None:
        train, vali = split_vali(loaded.train, seed)
        console.print(f"{source} has no vali part: {len(vali.group)} of its train queries are split off (seed {seed})")
        loaded = RankingFold(train, vali, loaded.test)
    return loaded, source
