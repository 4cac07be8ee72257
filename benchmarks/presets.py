"""Public data sets in the layout of their archives, and the settings of ``--preset``."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.cells import Fold
from ltr_objectives.workbench.letor import find_parts
from ltr_objectives.errors import LTRError, require

# Lyzhin et al., "Which Tricks Are Important for Learning to Rank?", section 4.1: 1000 trees without early stopping, cut
# to the best number on vali; 20 random and 80 Bayesian trials.
OPTIONS: dict[str, object] = {
    "metrics": "ndcg@10,mrr,map,err",
    "objectives": "queryrmse,lambdamart:{metric},stochasticrank:{metric},yetirank,yetiloss:{metric}",
    "natives": "lambdarank,rank:ndcg,rank:map,QueryRMSE,LambdaMart:metric={metric},StochasticRank:metric={metric},"
    "YetiRank,YetiRank:mode={metric}",
    "seeds": "0", "trees": 1000, "patience": 1000, "tune": 100,
}  # fmt: skip


PRESETS = {  # names of the data sets by their place in --data, a folder or a prefix of file names
    "web10k": {"Fold1": "Web10K"},
    "web30k": {"Fold1": "Web30K"},
    "yahoo": {"set1": "Yahoo S1", "set2": "Yahoo S2"},
    "istella": {"full": "Istella", "sample": "Istella-S"},
}


def preset_folds(preset: str, data: str, seeds: Sequence[int]) -> list[Fold]:
    """The folds of those data sets of a preset that are in the folder ``data``.

    Raises
    ------
    LTRError
        If none is found; the message says where it looked.
    """
    folder = Path(data).expanduser().resolve()
    require(folder.is_dir(), f"--data {data} is not a folder; --preset {preset} looks for its files there")
    found, missing = [], []
    for place, name in PRESETS[preset].items():
        try:
            find_parts(folder / place)
        except LTRError as error:
            missing.append(str(error))
        else:
            found += [Fold(name, str(folder / place), seed) for seed in seeds]
    if found:
        return found
    try:
        find_parts(folder)
    except LTRError:
        kinds = " or ".join(f"{data}/{place}" for place in PRESETS[preset])
        raise LTRError(f"--preset {preset} looks for train, vali and test files as {kinds}, or in {data} itself: "
                       + "; ".join(missing)) from None  # fmt: skip
    names = PRESETS[preset]
    name = next(iter(names.values())) if len(names) == 1 else names.get(folder.name, folder.name)
    return [Fold(name, str(folder), seed) for seed in seeds]
