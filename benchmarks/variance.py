"""``python -m benchmarks variance``: how many independent draws have the variance of stratified ones."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from rich.progress import track
from typer import Option

from benchmarks.publish import save
from ltr_objectives import Queries, get_objective
from ltr_objectives.workbench.texts import terminal

OBJECTIVES = (
    "yetiloss:ndcg", "yetiloss:ndcg@10", "yetiloss:map", "yetiloss:mrr", "yetiloss:err", "yetiloss:ndcg;neighbors=1",
    "yetiloss:ndcg;difference=noisy", "yetirank",
)  # fmt: skip
DRAWS = 3, 5, 6, 7, 10


def spread(objective: Any, draws: int, scores: np.ndarray, labels: np.ndarray, copies: int) -> float:
    """Return the variance of a list's gradient, summed over its documents, over copies with other noise."""
    queries = Queries(np.tile(labels, copies), [len(labels)] * copies)
    grad, _ = replace(objective, permutations=draws).compute(queries, np.tile(scores, copies))
    return float(grad.reshape(copies, -1).var(axis=0).sum())


def variance(
    documents: Annotated[str, Option(help="Of a list.")] = "4,10,30,100",
    lists: Annotated[int, Option(help="Lists with other scores and labels; the table has their mean.")] = 5,
    copies: Annotated[int, Option(help="Of a list.")] = 2000,
    out: Annotated[Path, Option(help="Folder for the JSON file.")] = Path("results"),
) -> None:
    """Divide the variance of a gradient of one draw by that of several stratified ones.

    That is the number of independent draws with the same variance. Scores are normal with a standard deviation of 1.5.
    """
    console = terminal()
    results: list[dict[str, Any]] = []
    for name in track(OBJECTIVES, console=console, transient=True):
        objective: Any = get_objective(name)
        if "lambda_norm" in objective.parameters():  # which makes several draws depend on one another
            objective = replace(objective, lambda_norm=False)
        for n in map(int, documents.split(",")):
            rng, found = np.random.default_rng(n), []
            for _ in range(lists):
                labels = rng.permutation(np.resize([0.0, 3.0, 0.0, 1.0, 2.0], n))
                scores = 1.5 * rng.normal(size=n)
                one, *several = (spread(objective, draws, scores, labels, copies) for draws in (1, *DRAWS))
                found.append([one / each for each in several])
            as_many = np.mean(found, axis=0)
            results += [{"objective": name, "documents": n, "draws": draws, "as_many": as_many[k]}
                        for k, draws in enumerate(DRAWS)]  # fmt: skip
    save("variance", {"results": results}, out, console)
