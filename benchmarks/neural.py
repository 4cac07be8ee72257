"""``python -m benchmarks neural``: processor time of losses in PyTorch, ours and a padded LambdaLoss."""

import importlib.metadata
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from rich.progress import track
from typer import Option

from benchmarks import speed_tables
from ltr_objectives.workbench.texts import terminal

REFERENCE = "LambdaLoss in PyTorch, padded"
NAMES = (
    "listnet,listmle,approxndcg,neuralndcg,lambdaloss,ranknet,lambdamart,lambdamart:map,yetiloss,yetiloss:map,plrank"
)


def processor_seconds(function: Callable[[], None]) -> float:
    """Processor time of one call, of all threads."""
    start = time.process_time()
    function()
    return time.process_time() - start


def padded_lambdaloss(scores: Any, labels: Any, mask: Any) -> Any:
    """Mean LambdaRank-weighted logistic loss of lists, by tensors of shape (lists, documents, documents)."""
    import torch

    s, order = scores.masked_fill(~mask, -torch.inf).sort(dim=1, descending=True)
    y, real = labels.masked_fill(~mask, 0.0).gather(1, order), mask.gather(1, order)
    discount = 1.0 / torch.arange(2, s.shape[1] + 2, dtype=s.dtype).log2()
    gain = y.exp2() - 1.0
    gain = gain / (gain.sort(dim=1, descending=True)[0] * discount).sum(1, keepdim=True).clamp(min=1e-10)
    weight = (gain[:, :, None] - gain[:, None]).abs() * (discount[:, None] - discount).abs()
    pairs = (y[:, :, None] > y[:, None]) & real[:, :, None] & real[:, None]
    gaps = (s[:, :, None] - s[:, None]).masked_fill(~pairs, 0.0)
    return (weight * torch.nn.functional.softplus(-gaps) * pairs).sum() / len(s) / np.log(2.0)


def neural(
    batches: Annotated[str, Option(help="Lists x documents of each batch.")] = "16x8,64x240",
    objectives: Annotated[str, Option(help="Names, separated by commas.")] = NAMES,
    rounds: Annotated[int, Option(min=1, help="Repetitions of each; the least time counts.")] = 21,
    out: Annotated[Path, Option(help="Folder for the JSON file.")] = Path("results"),
) -> None:
    """Time losses in PyTorch, forward and backward, in float32: processor time of all threads.

    Other work on the machine hardly changes it. Lists have half to all of the documents of a batch; the rest is
    padding. Times are those of ``value="metric"``, and of the value of the loss, if the objective has one.
    """
    import torch

    from ltr_objectives.adapters import torch_loss

    console, results, rng = terminal(), [], np.random.default_rng(0)
    for batch in batches.split(","):
        lists, documents = map(int, batch.split("x"))
        mask = torch.arange(documents) < torch.from_numpy(rng.integers(documents // 2, documents + 1, lists))[:, None]
        labels = torch.from_numpy(rng.choice(5, (lists, documents), p=[0.5, 0.3, 0.12, 0.05, 0.03])).float()
        scores = torch.from_numpy(rng.normal(size=(lists, documents))).float().requires_grad_()

        def milliseconds(loss: Any, batch: Any = (scores, labels, mask)) -> float:
            def step() -> None:
                loss(batch[0], batch[1], mask=batch[2]).backward()

            step()
            return 1e3 * min(processor_seconds(step) for _ in range(rounds))

        results.append({"objective": REFERENCE, "batch": batch, "loss": milliseconds(padded_lambdaloss)})
        for name in track(objectives.split(","), console=console, transient=True):
            result = {"objective": name, "batch": batch, "metric": milliseconds(torch_loss(name, value="metric"))}
            has = torch_loss(name).value_is == "loss"
            results.append(result | ({"loss": milliseconds(torch_loss(name))} if has else {}))
    document = {"rounds": rounds, "torch": importlib.metadata.version("torch"), "results": results}
    speed_tables.save("neural", document, out, console)
