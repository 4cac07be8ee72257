"""Serve requests of LightGBM in less than a millisecond, without a table.

In LightGBM and XGBoost a categorical feature of an array is the number of the category in the order of the training.
This order is kept beside the model. The server needs the library and NumPy only. For XGBoost write
``served = xgb.Booster(model_file="table.json")``, once ``served.set_param({"nthread": 1})``, and
``served.inplace_predict(encode(request), validate_features=False)``.
"""

import json

import lightgbm as lgb
import numpy as np
import pandas as pd

from ltr_objectives.adapters import LGBMRanker


class Encoder:
    """The numbers of the features of documents, given as dictionaries; what is missing or new is NaN."""

    def __init__(self, path):
        with open(path) as file:
            known = json.load(file)
        self.codes = {
            c: None if values is None else {v: i for i, v in enumerate(values)} for c, values in known.items()
        }

    def __call__(self, documents):
        def number(value, codes):
            found = value if codes is None else codes.get(value)
            return np.nan if found is None else found

        return np.array([[number(each.get(c), codes) for c, codes in self.codes.items()] for each in documents], float)


rng = np.random.default_rng(0)
table = pd.DataFrame({"price": rng.normal(size=600), "brand": pd.Categorical(rng.choice(list("abcdefgh"), 600))})
grades, queries = rng.integers(0, 4, 600), np.repeat(np.arange(40), 15)
ranker = LGBMRanker(n_estimators=20, min_data_per_group=5).fit(table, grades, qid=queries)
ranker.save_model("table.txt")
columns = {c: list(table[c].cat.categories) if table[c].dtype == "category" else None for c in table}
with open("table.columns.json", "w") as file:
    json.dump(columns, file)

encode, served = Encoder("table.columns.json"), lgb.Booster(model_file="table.txt")
request = [{"price": 0.5, "brand": "c"}, {"price": 0.1, "brand": "new"}, {"price": None, "brand": None}]
fast = served.predict(encode(request), num_threads=1)
print(np.array_equal(fast, ranker.predict(pd.DataFrame(request).astype({"price": float, "brand": "category"}))))
