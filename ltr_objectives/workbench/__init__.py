"""The workbench reads files, trains candidates, compares and prints. `datasets` and `__main__` alone import it."""
