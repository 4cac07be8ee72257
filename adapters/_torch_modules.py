"""The modules of :mod:`ltr_objectives.adapters._torch`, which need PyTorch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ltr_objectives.adapters._parameters import leaves
from ltr_objectives.checks import check_choice, check_integer, check_seed, is_number
from ltr_objectives.errors import LTRError, require, warn
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.preferences import Preferences
from ltr_objectives.queries import Labels, Queries, vector
from ltr_objectives.registry import get_metric, get_objective

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

    def __init__(self, objective: str | Objective, reduction: str = "mean", seed: int = 0, value: str = "loss") -> None:
        super().__init__()
        check_choice("value", value, ("loss", "metric"))
        check_choice("reduction", reduction, ("mean", "sum", "none"))
        self.objective = get_objective(objective)
        fixed = any(isinstance(leaf, Preferences) for leaf in leaves(self.objective))
        require(not fixed, "Preferences number the rows of one data set, and batches have others; use labels")
        self.reduction = reduction
        self.seed = check_seed(seed)
        self.step = 0
        metric = getattr(self.objective, "metric", None)
        own = self.objective
        plain = value == "loss" and metric is None and not (own.random or own._inside or own.goals)
        two = np.array([0.0, 1.0])
        self._has_loss = plain and self.objective.reference_loss(two, two) is not None
        self.metric = get_metric("ndcg" if metric is None else metric)
        self.value_is = "loss" if self._has_loss else f"-{self.metric}"

    def extra_repr(self) -> str:
        """The settings, for ``print(model)``."""
        return f"{self.objective!r}, reduction={self.reduction!r}, seed={self.seed}"

    def get_extra_state(self) -> int:
        """The number of steps, which selects the random numbers; kept by ``state_dict``."""
        return self.step

    def set_extra_state(self, state: int) -> None:
        """Continue the random numbers after so many steps."""
        self.step = state

    @torch.compiler.disable  # type: ignore[untyped-decorator]  # torch.compile cannot follow NumPy and numba
    def forward(
        self,
        scores: Tensor | Sequence[Tensor],
        labels: Any,
        group: Any = None,
        *,
        qid: Any = None,
        mask: Tensor | None = None,
        padding: float | None = None,
        weight: Any = None,
        position: Any = None,
        propensity: Any = None,
    ) -> Tensor:
        """Return the loss of a batch; see :func:`torch_loss` for the three forms of its input."""
        batch = _Batch(scores, labels, group, qid, mask, padding)
        given = {name: batch.rows(name, value) for name, value in
                 (("weight", weight), ("position", position), ("propensity", propensity))}  # fmt: skip
        if batch.scores.numel() == 0:
            return batch.by_list(batch.scores) if self.reduction == "none" else batch.scores.sum()
        queries = self.objective._queries(batch.labels, batch.group, qid=batch.qid, **given)
        s = batch.scores.detach().to("cpu", torch.float64).contiguous().numpy()
        grad, _ = self.objective.compute(queries, s, iteration=self.seed * GOLDEN + self.step)
        self.step += self.training and torch.is_grad_enabled()
        if mask is None and padding is None and len(queries) > 1 and queries.longest == 1 and not grad.any():
            warn(
                f"all {len(queries)} lists have one document, so no order is better than another and all gradients are "
                "0; give several documents a list, or write scores.squeeze(1) and group= for a column of scores"
            )
        has_loss = self._has_loss and propensity is None and position is None and not _varies(queries)
        self.value_is = "loss" if has_loss else f"-{self.metric}"
        values = self._values(queries, s)
        weights = queries.weight_by_query
        if self.reduction == "mean":
            total = len(queries) if weights is None else weights.sum() or 1.0
            grad, values = grad / total, values / total
        by_query: Tensor = _WithGradient.apply(
            batch.scores, batch.to_tensor(grad), batch.to_tensor(values), queries.ptr
        )
        return batch.by_list(by_query) if self.reduction == "none" else by_query.sum()

    def _values(self, queries: Queries, scores: np.ndarray) -> np.ndarray:
        """The value of each query times its weight, as ``value_is`` describes it."""
        if self.value_is == "loss":
            lists = (np.split(x, queries.ptr[1:-1]) for x in (scores, queries.labels))
            losses = [self.objective.reference_loss(*each) for each in zip(*lists, strict=True)]
            values = np.real(np.array(losses)).astype(np.float64)
        else:
            values = -np.nan_to_num(self.metric.values(queries.of(self.metric.goal), scores))
        weights = queries.weight_by_query
        return values if weights is None else values * weights


def _varies(queries: Queries) -> bool:
    """Return True if documents of one list have different weights."""
    rows, lists = queries.weight_by_row, queries.weight_by_query
    return rows is not None and lists is not None and not np.allclose(rows, np.repeat(lists, np.diff(queries.ptr)))


class CrossEncoderLoss(nn.Module):
    """Scores of all pairs of a batch, and their loss."""

    def __init__(self, model: Any, loss: TorchLoss, mini_batch_size: int | None) -> None:
        super().__init__()
        outputs = getattr(model, "num_labels", 1)
        require(outputs == 1, f"model has {outputs} outputs; make it with CrossEncoder(..., num_labels=1)")
        size = None if mini_batch_size is None else check_integer("mini_batch_size", mini_batch_size)
        self.model, self.loss, self.mini_batch_size = model, loss, size

    def forward(self, inputs: Sequence[Any], labels: Sequence[Tensor], **options: Any) -> Tensor:
        """Return the mean loss; ``inputs`` has the queries, and for each of them the list of its documents."""
        good = len(inputs) == 2 and not isinstance(labels, Tensor)
        require(good, "each row of the data needs one query, one list of documents and one list of labels")
        queries, documents = inputs
        pairs = [(query, text) for query, texts in zip(queries, documents, strict=True) for text in texts]
        size = self.mini_batch_size or max(len(pairs), 1)
        scores = [self._scores(pairs[at : at + size], options) for at in range(0, len(pairs), size)]
        return self.loss(torch.cat(scores).split([len(texts) for texts in documents]), labels)

    def _scores(self, pairs: list[Any], options: dict[str, Any]) -> Tensor:
        tokens = self.model.preprocess(pairs, **options)
        tokens = {name: x.to(self.model.device) if isinstance(x, Tensor) else x for name, x in tokens.items()}
        scores: Tensor = self.model(tokens)["scores"]
        return scores.view(-1)

    def get_config_dict(self) -> dict[str, Any]:
        """The settings, which sentence-transformers writes into its model card."""
        return {"objective": repr(self.loss.objective), "mini_batch_size": self.mini_batch_size}


class _Batch:
    """One of the three forms of input, as flat tensors of the documents that exist."""

    def __init__(self, scores: Any, labels: Any, group: Any, qid: Any, mask: Tensor | None, padding: Any) -> None:
        listed, self.sizes = isinstance(scores, list | tuple), None
        require(
            isinstance(scores, Tensor) or (listed and all(isinstance(x, Tensor) for x in scores)),
            f"scores must be a tensor, or a list of tensors, got {type(scores).__name__}",
        )
        self.mask = mask = None if mask is None else torch.as_tensor(mask)
        several = labels if isinstance(labels, Mapping) else {None: labels}
        first = next(iter(several.values()), None)
        if not listed and scores.ndim == 1:
            require(mask is None and padding is None, "mask and padding belong to scores of shape (lists, documents)")
        else:
            flat = not listed and scores.ndim == 2 and scores.shape[1] == 1
            remedy = "write scores.squeeze(1)" if flat else "leave them out"
            require(
                group is None and qid is None,
                "group and qid belong to scores of shape (rows,), but scores "
                + (f"are a list; {remedy}" if listed else f"have shape {tuple(scores.shape)}; {remedy}"),
            )
            require(
                listed or scores.ndim == 2, f"scores have {() if listed else tuple(scores.shape)}; give 1 or 2 axes"
            )
        if listed:
            self.sizes = [len(x) for x in scores]
            require(self.sizes, "scores is an empty list; give one tensor for each list of documents")
        elif scores.ndim == 2:
            require(mask is None or padding is None, "give mask= or padding=, not both")
            require(
                padding is None or padding == padding, "padding=nan equals no label; give mask=, True for documents"
            )
            padding = padding.item() if isinstance(padding, Tensor) and padding.ndim == 0 else padding
            require(padding is None or is_number(padding), f"padding must be a number, got {padding!r}")
            if mask is None:
                _check_padding(torch.as_tensor(first), padding)
                same = torch.ones(scores.shape, dtype=torch.bool)
                mask = same if padding is None else torch.as_tensor(first) != padding
            require(
                mask.shape == scores.shape, f"mask or labels have {tuple(mask.shape)}, scores {tuple(scores.shape)}"
            )
            self.mask = mask.to(scores.device, torch.bool)
            self.sizes = self.mask.sum(1).tolist()
        self.scores = torch.cat(list(scores)) if listed else scores if self.mask is None else scores[self.mask]
        require(self.scores.is_floating_point(), f"scores are {self.scores.dtype}, but must be floating-point numbers")
        flat = {goal: self.rows("labels", values) for goal, values in several.items()}
        for values in flat.values():
            require(
                not np.isnan(vector("labels", values)).any(),
                "labels have NaN; leave such documents out, in padded tensors by mask=, which is True for documents",
            )
        self.labels: Labels = flat if isinstance(labels, Mapping) else flat[None]
        self.group = _numpy(group) if self.sizes is None else np.array([n for n in self.sizes if n > 0])
        self.qid = _numpy(qid)

    def by_list(self, values: Tensor) -> Tensor:
        """``values`` of the lists that have documents, and 0 of the others."""
        if self.sizes is None:
            return values
        at = torch.tensor(self.sizes, device=values.device).nonzero().view(-1)
        return values.new_zeros(len(self.sizes)).index_put((at,), values)

    def rows(self, name: str, values: Any) -> Any:
        """``values`` without padding, as NumPy; of weights also one for each list that has documents."""
        if values is None or self.sizes is None:
            return _numpy(values)
        if name == "weight" and not any(np.ndim(x) for x in values):
            require(len(values) == len(self.sizes), f"weight has {len(values)} entries for {len(self.sizes)} lists")
            return _numpy(values)[np.array(self.sizes) > 0]
        if self.mask is not None:
            values = torch.as_tensor(values)
            shape = tuple(self.mask.shape)
            require(values.shape == shape, f"{name} has shape {tuple(values.shape)}, but scores have {shape}")
            return _numpy(values[self.mask.to(values.device)])
        lengths = [len(x) for x in values]
        require(lengths == self.sizes, f"{name} has lists of {lengths} entries, but scores has {self.sizes}")
        return np.concatenate([_numpy(x) for x in values])

    def to_tensor(self, values: np.ndarray) -> Tensor:
        """``values`` on the device and in the type of the scores."""
        return torch.from_numpy(values).to(self.scores.device, self.scores.dtype)


def _check_padding(labels: Tensor, padding: float | None) -> None:
    """Warn of a negative label that only the ends of lists have, and raise for padding that may be a label."""
    if labels.ndim != 2 or labels.numel() == 0:
        return
    if padding is not None and padding >= 0:
        absent = labels == padding
        ends = (absent[:, :-1] != absent[:, 1:]).sum(1)  # of runs; 1 in a list that is padded at one end
        require(
            (ends <= 1).all(),
            f"padding={padding:g} stands among other labels, so documents with this label would be left out; pad "
            "labels with -1, or give mask=, True for documents",
        )
    least = labels[:, -1].min()
    absent = labels == least
    if least < 0 and least != padding and not (absent[:, :-1] & ~absent[:, 1:]).any():
        warn(
            f"lists end with labels of {least:g}, which are read as documents; if they are padding, pass "
            f"padding={least:g}, or mask=, which is True for documents"
        )


def _numpy(values: Any) -> Any:
    if not isinstance(values, Tensor):
        return values if values is None else np.asarray(values)
    values = values.detach().cpu()
    return (values.double() if values.is_floating_point() else values).numpy()


class _WithGradient(torch.autograd.Function):
    """Values by list, whose gradient was computed beforehand."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, grad: Tensor, values: Tensor, ptr: np.ndarray) -> Tensor:
        ctx.save_for_backward(scores, grad)
        ctx.sizes = torch.from_numpy(np.diff(ptr))
        return values

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        scores, grad = ctx.saved_tensors
        by_row = upstream.repeat_interleave(ctx.sizes.to(upstream.device))
        return _Once.apply(by_row, grad, scores), None, None, None


class _Once(torch.autograd.Function):
    """The product of two tensors, a function of ``scores`` that refuses to be differentiated."""

    @staticmethod
    def forward(ctx: Any, upstream: Tensor, grad: Tensor, scores: Tensor) -> Tensor:
        return upstream * grad

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> Any:
        raise LTRError(TWICE)
