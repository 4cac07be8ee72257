"""The search data of LightGBM's example of lambdarank (MIT licence, in this folder)."""

from pathlib import Path

import numpy as np

from ltr_objectives.workbench.data import RankingData, RankingFold


def load_example() -> RankingFold:
    """Load a small set of search data: 251 queries, 3,773 documents with 300 features and labels from 0 to 4.

    The first 150 queries are for training, the next 51 for early stopping, and the last 50 for the test, which are also
    the test queries of the source.

    Source: `examples/lambdarank <https://github.com/microsoft/LightGBM/tree/HEAD/examples/lambdarank>`_ of LightGBM.

    Examples
    --------
    >>> train, vali, test = load_example()
    >>> train
    RankingData(2,243 rows, 150 queries, 300 features)
    """
    with np.load(Path(__file__).with_name("lambdarank.npz")) as file:
        X, labels, sizes = (file[name] for name in ("hundredths", "labels", "sizes"))
    sizes = sizes.astype(np.int64)
    ids = np.repeat(np.arange(len(sizes)), sizes)
    whole = RankingData(np.ascontiguousarray(X, np.float32) / np.float32(100), labels.astype(np.float32), sizes, ids)
    train, vali, test = (whole.select(part) for part in np.split(np.arange(len(sizes)), (150, 201)))
    return RankingFold(train, vali, test)
