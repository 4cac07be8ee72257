"""Train CatBoost for the revenue of the first three products of a shop, with a categorical column."""

import numpy as np
import pandas as pd

from ltr_objectives import evaluate
from ltr_objectives.adapters import CatBoostRanker

rng = np.random.default_rng(0)
shown = pd.DataFrame({"search": np.repeat(np.arange(300), 20)})
shown["brand"] = pd.Categorical(rng.choice(["anvil", "birch", "cedar", "delta"], len(shown)))
shown["price"] = rng.lognormal(3.0, 1.0, len(shown)).round(2)
appeal = shown["brand"].map({"anvil": 0.4, "birch": 0.2, "cedar": 0.1, "delta": 0.05}).astype(float)
sold = rng.random(len(shown)) < appeal / np.log(shown["price"] + 3)
revenue = (sold * shown["price"]).to_numpy()
train = shown["search"] < 200
X, qid = shown[["brand", "price"]], shown["search"].to_numpy()

for metric, labels in (("dcg(gain_type='linear')@3", revenue), ("ndcg@3", sold.to_numpy(float))):
    ranker = CatBoostRanker(eval_metric=metric, n_estimators=100, learning_rate=0.1)
    ranker.fit(X[train], labels[train], qid=qid[train])
    found = evaluate("dcg(gain_type='linear')@3", ranker.predict(X[~train]), revenue[~train], qid=qid[~train])
    print(f"trained for {metric:<26} discounted revenue of the first three: {found:.2f}")
