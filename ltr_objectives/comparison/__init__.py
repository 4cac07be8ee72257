"""Which objective is best on given data: candidates, budgets, paired tests and tables. Needs SciPy and pandas."""
