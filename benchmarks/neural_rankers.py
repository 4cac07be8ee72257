"""``python -m benchmarks neural-rankers``: networks and trees trained by the same objectives, on the same queries."""

import copy
import json
import re
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from rich.progress import track
from scipy.stats import skew
from typer import Option

from benchmarks import speed_tables
from benchmarks.cells import write_whole
from benchmarks.folds import folds_of, load
from benchmarks.provenance import versions
from ltr_objectives.datasets import RankingData, RankingFold
from ltr_objectives.registry import get_metric, get_objective
from ltr_objectives.workbench.cli.options import names_in
from ltr_objectives.workbench.statistics import standard_error
from ltr_objectives.workbench.texts import terminal
from ltr_objectives.workbench.trials import Budget, Trial, measure, per_query, queries_of, seeded, train

METRICS, STOP = ("ndcg@5", "ndcg@10"), "ndcg@10"
LOSSES = (  # of NeuralNDCG's table 3, without cutoff; PL-Rank; two of the slides; ours
    "lambdamart:ndcg,neuralndcg:temperature=1,neuralndcg:temperature=1;transposed=true,listnet,rmse,ranknet,listmle,"
    "approxndcg:alpha=1,plrank:k=10,listnet:target=unnormalized,ordinal,yetiloss:ndcg"
)
MODELS = {"mlp": "MLP", "transformer": "transformer", "trees": "LightGBM"}
WIDTH, BATCH, RATE, DROPOUT = 32, 32, 2e-3, 0.1
LONGEST, PATIENCE = 40, 6  # documents of a list of train and vali, and epochs without a better vali value
TREES = Budget(trees=200, learning_rate=0.1, leaves=15, patience=20, min_child_weight=1.0)

Found = dict[tuple[str, str, str], dict[int, list[dict[str, Any]]]]  # records of folds by data, loss, model, and seed


def smaller(data: RankingData, queries: int, longest: int = LONGEST) -> RankingData:
    """At most so many queries, and of longer lists so many documents, both drawn at random."""
    rng = np.random.default_rng(0)
    data = data.select(np.sort(rng.permutation(len(data.group))[:queries]))
    starts = np.cumsum(data.group) - data.group
    kept = [np.sort(rng.permutation(size)[:longest]) + first for first, size in zip(starts, data.group, strict=True)]
    rows = np.concatenate(kept)
    return RankingData(data.X[rows], data.y[rows], np.minimum(data.group, longest), data.qid[rows])


def standardised(fold: RankingFold) -> list[np.ndarray]:
    """Features of the parts: the logarithm of one plus skewed ones, then mean 0 and deviation 1 on train."""
    X = fold.train.X.astype(np.float64)
    skewed = [x.min() >= 0 and np.ptp(x) > 0 and skew(x) > 1 for x in X.T]
    parts = [np.where(skewed, np.log1p(np.maximum(part.X, 0.0)), part.X) for part in fold]
    mean, scale = parts[0].mean(axis=0), parts[0].std(axis=0)
    return [np.clip((part - mean) / (scale + (scale == 0)), -10.0, 10.0).astype(np.float32) for part in parts]


def padded(data: RankingData, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows by list and document, and the mask of those that are no padding."""
    starts, sizes = (np.cumsum(data.group) - data.group)[queries], data.group[queries]
    mask = np.arange(sizes.max()) < sizes[:, None]
    return np.where(mask, starts[:, None] + np.arange(sizes.max()), starts[:, None]), mask


def network(model: str, features: int) -> Any:
    """Three parts: a layer of each document, one hidden layer or the two blocks over the list, and the scores."""
    from torch import nn

    if model == "mlp":
        return nn.ModuleList([nn.Linear(features, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH), nn.Linear(WIDTH, 1)])
    block = nn.TransformerEncoderLayer(WIDTH, 1, 4 * WIDTH, DROPOUT, batch_first=True)
    blocks = nn.TransformerEncoder(block, 2, enable_nested_tensor=False)
    return nn.ModuleList([nn.Linear(features, WIDTH), blocks, nn.Linear(WIDTH, 1)])


def scores_of(net: Any, objective: str, levels: int, X: Any, mask: Any) -> Any:
    """Scores; with NeuralNDCG they end in tanh, with RMSE in a sigmoid times the number of grades, as published."""
    first, middle, last = net
    h = middle(first(X), src_key_padding_mask=~mask) if hasattr(middle, "layers") else middle(first(X).relu()).relu()
    s = last(h).squeeze(-1)
    return s.tanh() if objective.startswith("neuralndcg") else levels * s.sigmoid() if objective == "rmse" else s


def measured_network(model: str, objective: str, fold: RankingFold, seed: int, epochs: int) -> dict[str, Any]:
    """The values of the test queries by the best epoch on vali, and the vali values of the epochs."""
    import torch

    from ltr_objectives.adapters import torch_loss

    assert fold.vali is not None
    torch.manual_seed(seed)
    rng, levels = np.random.default_rng(seed), int(fold.train.y.max()) + 1
    X, *others = (torch.from_numpy(part) for part in standardised(fold))
    net, loss = network(model, X.shape[1]), torch_loss(objective, value="metric", seed=seed)
    optimizer = torch.optim.Adam(net.parameters(), RATE)
    decay = torch.optim.lr_scheduler.StepLR(optimizer, max(1, epochs // 2))  # to a tenth
    best, values = None, list[float]()

    def scored(X: Any, data: RankingData) -> np.ndarray:
        scores, order = np.zeros(len(data.y)), np.argsort(data.group, kind="stable")
        net.eval()
        for queries in np.array_split(order, -(-len(order) // 128)):
            rows, mask = padded(data, queries)
            with torch.no_grad():
                scores[rows[mask]] = scores_of(net, objective, levels, X[rows], torch.from_numpy(mask)).numpy()[mask]
        net.train()
        return scores

    for _ in range(epochs):
        order = rng.permutation(len(fold.train.group))
        for queries in np.array_split(order, -(-len(order) // BATCH)):
            rows, real = padded(fold.train, queries)
            mask, y = torch.from_numpy(real), torch.from_numpy(fold.train.y[rows])
            optimizer.zero_grad()
            loss(scores_of(net, objective, levels, X[rows], mask), y, mask=mask).backward()
            optimizer.step()
        decay.step()
        values.append(get_metric(STOP).mean(queries_of(fold.vali), scored(others[0], fold.vali), n_threads=1))
        if values[-1] > max([-1.0, *values[:-1]]):
            best = copy.deepcopy(net.state_dict())
        elif len(values) - np.argmax(values) > PATIENCE:
            break
    net.load_state_dict(best)
    scores = scored(others[1], fold.test)
    return {"test": {m: per_query(get_metric(m), fold.test, scores, 1) for m in METRICS}, "vali": values}


def measured(model: str, objective: str, fold: RankingFold, seed: int, epochs: int) -> dict[str, Any]:
    """The values of the test queries, and those of vali after each epoch or tree."""
    if model != "trees":
        return measured_network(model, objective, fold, seed, epochs)
    plain = re.sub(r"temperature=1\b", "temperature=10", objective)  # the scores of trees spread further than tanh
    trial = Trial("lightgbm", plain, plain, METRICS, TREES, stop=STOP)
    record = measure(trial, fold, train(trial, fold.train, fold.vali, seeded(get_objective(plain), seed)))
    return {"test": record["test"], "vali": record["curves"][STOP]}


def summary(found: Found) -> list[dict[str, Any]]:
    """By data, model and loss: means, their errors over queries and over seeds, differences from the first loss."""
    lines, first = [], dict[tuple[str, str, str], np.ndarray]()
    for (data, loss, model), seeds in found.items():
        line: dict[str, Any] = {"data": data, "model": MODELS[model], "loss": loss, "seeds": len(seeds)}
        for metric in METRICS:
            of = np.array([np.concatenate([f["test"][metric] for f in folds]) for folds in seeds.values()], float)
            values = of.mean(axis=0)
            gap = values - first.setdefault((data, model, metric), values)
            line[metric] = {"mean": values.mean(), "se": standard_error(values), "difference": gap.mean(),
                            "se of difference": standard_error(gap) if gap.any() else 0.0,
                            "se of seeds": standard_error(of.mean(axis=1)) if len(of) > 1 else 0.0}  # fmt: skip
        lines.append(line | {"queries": len(values)})
    return lines


def neural_rankers(
    data: Annotated[list[str], Option(help="As of `quality`; may be repeated.")],
    losses: Annotated[str, Option(help="Names, separated by commas.")] = LOSSES,
    seeds: Annotated[str, Option(help="Of weights, batches and noise; trees have the first alone.")] = "0,1",
    queries: Annotated[int, Option(min=2, help="To train on, at most; half as many of vali.")] = 500,
    epochs: Annotated[int, Option(min=1, help="At most; the learning rate falls to a tenth half-way.")] = 40,
    out: Annotated[Path, Option(help="Folder for the JSON file and the trainings.")] = Path("results"),
) -> None:
    """Train an MLP, a transformer of two blocks and LightGBM by each loss; NDCG@5 and NDCG@10 on test."""
    import torch

    torch.set_num_threads(1)
    console, whole = terminal(), [int(seed) for seed in names_in(seeds)]
    parts = [(fold, model, seed) for place in data for fold in folds_of(place, [0]) for seed in whole
             for model in MODELS if model != "trees" or seed == whole[0]]  # fmt: skip
    found: Found = {}
    for fold, model, seed in track(parts, "losses", console=console, transient=True):
        for loss in names_in(losses):
            name = f"{fold.data} {Path(fold.source).name} {model} {loss} {queries} {epochs} {seed}.json"
            if not (path := out / "neural_rankers" / name).exists():
                of_train, vali, test = load(fold)
                of = RankingFold(smaller(of_train, queries), smaller(vali, queries // 2), test)
                write_whole(path, measured(model, loss, of, seed, epochs))
            record = json.loads(path.read_text())
            found.setdefault((fold.data, loss, model), {}).setdefault(seed, []).append(record)
    document = {"metrics": METRICS, "queries": queries, "longest": LONGEST, "epochs": epochs, "patience": PATIENCE}
    document |= {"versions": versions(("lightgbm", "torch")), "results": summary(found)}
    speed_tables.save("neural_rankers", document, out, console)
