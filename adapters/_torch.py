"""PyTorch: a loss module for neural rankers, and one for the cross-encoders of sentence-transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ltr_objectives.objectives.base import Objective

if TYPE_CHECKING:
    from ltr_objectives.adapters._torch_modules import CrossEncoderLoss, TorchLoss


def torch_loss(objective: str | Objective, reduction: str = "mean", seed: int = 0) -> TorchLoss:
    r"""Make a PyTorch loss from an objective, for rankers that are neural networks.

    .. math:: \frac{\partial \ell}{\partial s_i} = \frac{g_i}{\sum_q w_q}

    with the gradient :math:`g` of the objective and the weights :math:`w_q` of the queries, 1 by default. Gradients are
    computed on the CPU and returned on the device and in the type of the scores. There are no second derivatives.

    Call the module in one of two forms:

    * ``loss(scores, labels, group)``: one score a document, and the sizes of consecutive lists, or ``qid=``;
    * ``loss(scores, labels, mask=mask)``: shape (lists, documents), and a mask that is True for documents. Lists
      without a document do not count.

    Labels may be a mapping of goals to labels; ``weight`` and ``propensity`` are as in
    :class:`ltr_objectives.Queries`, in the form of the labels, weights also one a list.

    Parameters
    ----------
    objective : str or Objective
        Such as ``"yetiloss:map"``.
    reduction : "mean" or "sum"
        The mean over the lists, weighted, or the sum.
    seed : int
        Selects, with the number of steps so far, the random numbers of a random objective. ``state_dict`` keeps the
        number of steps.

    Returns
    -------
    torch.nn.Module
        Its attribute ``value_is`` names what it returns: "loss", or minus a metric, such as "-ndcg@10", for objectives
        that are random, have a metric or parts, or are no loss. The gradient is the objective's in either case.

    Raises
    ------
    LTRError
        For invalid input, as in :class:`ltr_objectives.Queries`; for second derivatives.

    Examples
    --------
    >>> import torch
    >>> scores = torch.tensor([[0.5, 0.1, 0.0], [0.3, 0.4, 0.2]], requires_grad=True)
    >>> labels = torch.tensor([[1.0, 2.0, -1.0], [0.0, 0.0, 1.0]])
    >>> loss = torch_loss("listnet")
    >>> loss.value_is
    'loss'
    >>> loss(scores, labels, mask=labels >= 0).backward()
    >>> bool(scores.grad[0, 2] == 0)
    True
    """
    from ltr_objectives.adapters._torch_modules import TorchLoss

    return TorchLoss(objective, reduction, seed)


def cross_encoder_loss(
    model: Any, objective: str | Objective, mini_batch_size: int | None = None, seed: int = 0
) -> CrossEncoderLoss:
    """Make a loss for ``CrossEncoderTrainer`` of sentence-transformers 6, which trains rerankers of text.

    Its data have a query, a list of documents, and a list of labels in each row.

    Parameters
    ----------
    model : sentence_transformers.CrossEncoder
        The model that is trained, with one output.
    objective : str or Objective
        Such as ``"yetiloss:map"``.
    mini_batch_size : int, optional
        Pairs of query and document in one forward pass; by default all of the batch.
    seed : int
        As in :func:`torch_loss`.

    Returns
    -------
    torch.nn.Module
        To be passed as ``loss=``.
    """
    from ltr_objectives.adapters._torch_modules import CrossEncoderLoss, TorchLoss

    return CrossEncoderLoss(model, TorchLoss(objective, seed=seed), mini_batch_size)
