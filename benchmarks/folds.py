"""The data of studies: folds on disk, public data sets in the layout of their archives, and generated data."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from ltr_objectives.checks import check_choice
from ltr_objectives.datasets import RankingFold, load_letor, make_ranking_fold
from ltr_objectives.errors import require
from ltr_objectives.workbench.trials import split_vali

GENERATED = "generated"
KINDS: dict[str, dict[str, Any]] = {  # arguments of make_ranking_fold, by kind of generated data
    GENERATED: {},
    "generated-binary": {"shares": (0.985, 0.015)},
    "generated-calibrated": {"noise": 2.0, "agreement": 0.8},
}


class Fold(NamedTuple):
    """The source of one training, validation and test part."""

    data: str  # name of the data set
    source: str  # absolute path of the fold, or the sizes of generated parts
    seed: int

    def load(self) -> RankingFold:
        """Read or generate it; without a validation part, a fifth of the training queries become it."""
        if not Path(self.source).is_absolute():
            train, vali, test = map(int, self.source.split(","))
            return make_ranking_fold((train, vali, test), self.seed, **KINDS[self.data.partition(" ")[0]])
        loaded = load_letor(self.source)
        require(isinstance(loaded, RankingFold), f"{self.source} is a file; pass a folder with train and test")
        assert isinstance(loaded, RankingFold)
        if loaded.vali is not None:
            return loaded
        return RankingFold(*split_vali(loaded.train, 0), loaded.test)


@lru_cache(1)
def load(fold: Fold) -> RankingFold:
    """Return the data of a fold, kept in memory until another fold is loaded."""
    return fold.load()


def folds_of(data: str, seeds: Sequence[int]) -> list[Fold]:
    """Find the folds of ``--data``: a folder of folds or of one, a prefix of file names, or ``generated:T,V,T``.

    Data are generated anew for each seed, or once for that in ``generated:TRAIN,VALI,TEST:SEED``. Other folds are used
    with each seed. ``generated-binary`` has few relevant documents and no grades. ``generated-calibrated`` has little
    signal, and grades that depend on other features than relevance does.
    """
    if data.startswith(GENERATED):
        kind, _, rest = data.partition(":")
        check_choice("data", kind, tuple(KINDS))
        sizes, _, own = (rest or "600,200,400").partition(":")
        require(not own or own.isdigit(), f"--data {data!r}: the seed at the end must be a number")
        parts = sizes.split(",")
        require(len(parts) == 3 and all(q.strip().isdigit() and int(q) for q in parts),
                f"--data {data!r}: the numbers of queries must be three, such as generated:600,200,400")  # fmt: skip
        return [Fold(f"{kind} {sizes}", sizes, seed) for seed in ([int(own)] if own else seeds)]
    path = Path(data).expanduser().resolve()
    if any(path.parent.glob(f"{path.name}.train*")):  # such as yahoo/set1, for set1.train.txt
        return [Fold(f"{path.parent.name} {path.name}", str(path), seed) for seed in seeds]
    require(path.exists(), f"--data {data} does not exist")
    require(path.is_dir(), f"--data {data} is a file; pass the folder of a fold, or of several folds")
    folders = sorted(p for p in path.iterdir() if p.is_dir() and p.name.lower().startswith("fold")) or [path]
    name = path.parent.name if path.name.lower().startswith("fold") else path.name
    return [Fold(name, str(folder), seed) for folder in folders for seed in seeds]
