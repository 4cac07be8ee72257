"""Two processes of DistributedDataParallel have the gradient of one, if each has as many lists, or as much weight."""

import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if sys.platform == "win32" or not torch.distributed.is_available():
    pytest.skip("no gloo", allow_module_level=True)

from ltr_objectives.adapters import torch_loss  # noqa: E402 - skipped without torch

SIZES = [3, 5, 2, 4]
ROWS = sum(SIZES)
WEIGHTS = [1.0, 2.0, 0.5, 2.5]  # 3 in each process


def data():
    rng = np.random.default_rng(0)
    return torch.from_numpy(rng.normal(size=(ROWS, 6))), torch.from_numpy(rng.integers(0, 3, ROWS)).double()


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)).double()


def gradients(net, lists, weighted):
    """Return the gradients of the parameters after a step on these lists."""
    starts = np.cumsum([0, *SIZES])
    rows = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in lists])
    X, y = data()
    weight = [WEIGHTS[i] for i in lists] if weighted else None
    loss = torch_loss("lambdamart")
    loss(net(X[rows]).squeeze(1), y[rows], [SIZES[i] for i in lists], weight=weight).backward()
    return [p.grad.numpy() for p in net.parameters()]


def process(rank, folder):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    for name, lists, weighted in (
        ("equal", [[0, 1], [2, 3]], False), ("weighted", [[0, 1], [2, 3]], True), ("unequal", [[0], [1, 2, 3]], False)
    ):  # fmt: skip
        net = torch.nn.parallel.DistributedDataParallel(model())
        found = gradients(net, lists[rank], weighted)
        if rank == 0:
            np.savez(folder / name, *found)
    torch.distributed.destroy_process_group()


def test_gradients_of_two_processes(tmp_path):
    torch.multiprocessing.spawn(process, (tmp_path,), nprocs=2)
    for name, weighted in (("equal", False), ("weighted", True), ("unequal", False)):
        expected = gradients(model(), range(4), weighted)
        with np.load(tmp_path / f"{name}.npz") as found:
            close = [np.allclose(found[f"arr_{i}"], each, rtol=1e-10) for i, each in enumerate(expected)]
        assert all(close) == (name != "unequal"), name
