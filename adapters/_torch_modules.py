"""The modules of :mod:`ltr_objectives.adapters._torch`, which need PyTorch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ltr_objectives.adapters._callables import pairs_of_rows
from ltr_objectives.checks import check_choice, check_integer, check_seed
from ltr_objectives.errors import LTRError, require, warn
from ltr_objectives.metrics.text import get_metric
from ltr_objectives.objectives.base import Objective, read_queries
from ltr_objectives.objectives.composite import Composite
from ltr_objectives.objectives.mixture import get_objective
from ltr_objectives.queries import Queries

try:
    import torch
    from torch import Tensor, nn
except ModuleNotFoundError:
    raise ImportError("torch_loss and cross_encoder_loss need PyTorch: pip install torch") from None

GOLDEN = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio: the streams of different seeds begin far apart
TWICE = "the loss has no second derivatives; call backward() or torch.autograd.grad() without create_graph=True"


class TorchLoss(nn.Module):
    """The loss module that :func:`torch_loss` makes."""

    value_is: str

    def __init__(self, objective: str | Objective, reduction: str = "mean", seed: int = 0) -> None:
        super().__init__()
        check_choice("reduction", reduction, ("mean", "sum"))
        self.objective = own = get_objective(objective)
        of_rows = pairs_of_rows(own)
        require(not of_rows, "Preferences number the rows of one data set, and batches have others; use labels")
        self.reduction = reduction
        self.seed = check_seed("seed", seed)
        self.step = 0
        metric = getattr(own, "metric", None)
        plain = metric is None and not (own.facts.random or isinstance(own, Composite) or own.facts.goals)
        two = np.array([0.0, 1.0])
        self._has_loss = plain and own.reference_loss(two, two) is not None
        self.metric = get_metric("ndcg" if metric is None else metric)
        self.value_is = "loss" if self._has_loss else f"-{self.metric}"

    def get_extra_state(self) -> int:
        """Return the number of steps, which selects the random numbers; ``state_dict`` has it."""
        return self.step

    def set_extra_state(self, state: int) -> None:
        """Continue the random numbers after so many steps."""
        self.step = state

    @torch.compiler.disable  # type: ignore[untyped-decorator]  # torch.compile cannot follow NumPy and numba
    def forward(
        self, scores: Tensor, labels: Any, group: Any = None, *, qid: Any = None, mask: Any = None,
        weight: Any = None, propensity: Any = None,
    ) -> Tensor:  # fmt: skip
        """Return the loss of a batch; see :func:`torch_loss` for the two forms of its input."""
        require(scores.is_floating_point(), f"scores are {scores.dtype}, but must be floating-point numbers")
        if mask is not None:
            require(group is None and qid is None, "mask, group and qid all say which documents form a list; pass one")
            mask = torch.as_tensor(mask, dtype=torch.bool, device=scores.device)
            require(mask.ndim == 2, f"mask has shape {tuple(mask.shape)}; give one of shape (lists, documents)")
            scores, sizes = scores[mask], mask.sum(1)
            group = sizes[sizes > 0]
        shape = tuple(scores.shape)
        matrix = "for a matrix of lists pass mask=, which is True for documents"
        require(scores.ndim == 1, f"scores must be one-dimensional, got shape {shape}; {matrix}")
        if scores.numel() == 0:
            return scores.sum()
        several = isinstance(labels, Mapping)
        y = {goal: _rows(values, mask) for goal, values in labels.items()} if several else _rows(labels, mask)
        by_row = {"weight": _rows(weight, mask), "propensity": _rows(propensity, mask)}
        queries = read_queries(self.objective, y, group, qid=qid, **by_row)
        s = scores.detach().to("cpu", torch.float64).contiguous().numpy()
        grad, _ = self.objective.compute(queries, s, iteration=self.seed * GOLDEN + self.step)
        self.step += self.training and torch.is_grad_enabled()
        if mask is None and len(queries) > 1 and queries.longest == 1 and not grad.any():
            warn(f"all {len(queries)} lists have one document, so all gradients are 0; give several documents a list")
        has_loss = self._has_loss and propensity is None and not _varies(queries)
        self.value_is = "loss" if has_loss else f"-{self.metric}"
        values, weights = self._values(queries, s, has_loss), queries.weight_by_query
        value = (values if weights is None else values * weights).sum()
        total = 1.0
        if self.reduction == "mean":
            total = len(queries) if weights is None else weights.sum() or 1.0
        loss: Tensor = _WithGradient.apply(scores, *(torch.as_tensor(x / total).to(scores) for x in (grad, value)))
        return loss

    def _values(self, queries: Queries, scores: np.ndarray, has_loss: bool) -> np.ndarray:
        """Return the loss of each query, or minus its metric."""
        if not has_loss:
            return -np.nan_to_num(self.metric.values(queries.for_goal(self.metric.goal), scores))
        lists = (np.split(x, queries.ptr[1:-1]) for x in (scores, queries.labels))
        losses = [self.objective.reference_loss(*each) for each in zip(*lists, strict=True)]
        return np.real(np.array(losses)).astype(np.float64)


def _rows(values: Any, mask: Tensor | None) -> Any:
    """Return the values of the documents, or one for each list that has documents, as an array."""
    if mask is not None and values is not None:
        values = torch.as_tensor(values)
        values = values[(mask if values.ndim > 1 else mask.any(1)).to(values.device)]
    return values.detach().cpu().double().numpy() if isinstance(values, Tensor) else values


def _varies(queries: Queries) -> bool:
    """Return True if documents of one list have different weights."""
    rows, lists = queries.weight_by_row, queries.weight_by_query
    return rows is not None and lists is not None and not np.allclose(rows, np.repeat(lists, np.diff(queries.ptr)))


class CrossEncoderLoss(nn.Module):
    """Scores of all pairs of a batch, and their loss."""

    def __init__(self, model: Any, loss: TorchLoss, mini_batch_size: int | None) -> None:
        super().__init__()
        size = None if mini_batch_size is None else check_integer("mini_batch_size", mini_batch_size)
        self.model, self.loss, self.mini_batch_size = model, loss, size

    def forward(self, inputs: Sequence[Any], labels: Sequence[Tensor], **options: Any) -> Tensor:
        """Return the mean loss; ``inputs`` has the queries, and for each of them the list of its documents."""
        queries, documents = inputs
        sizes = [len(texts) for texts in documents]
        good = sizes == [len(y) for y in labels]
        require(good, "each row of the data needs one query, one list of documents and one label for each of them")
        pairs = [(query, text) for query, texts in zip(queries, documents, strict=True) for text in texts]
        size = self.mini_batch_size or max(len(pairs), 1)
        scores = [self._scores(pairs[at : at + size], options) for at in range(0, len(pairs), size)]
        return self.loss(torch.cat(scores), torch.cat(list(labels)), [n for n in sizes if n > 0])

    def _scores(self, pairs: list[Any], options: dict[str, Any]) -> Tensor:
        tokens = self.model.preprocess(pairs, **options)
        tokens = {name: x.to(self.model.device) if isinstance(x, Tensor) else x for name, x in tokens.items()}
        scores: Tensor = self.model(tokens)["scores"]
        return scores.view(-1)


class _WithGradient(torch.autograd.Function):
    """A value whose gradient was computed beforehand."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, grad: Tensor, value: Tensor) -> Tensor:
        ctx.save_for_backward(scores, grad)
        return value

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        scores, grad = ctx.saved_tensors
        return _Once.apply(upstream, grad, scores), None, None


class _Once(torch.autograd.Function):
    """The product of two tensors, a function of ``scores`` that refuses to be differentiated."""

    @staticmethod
    def forward(ctx: Any, upstream: Tensor, grad: Tensor, scores: Tensor) -> Tensor:
        return upstream * grad

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> Any:
        raise LTRError(TWICE)
