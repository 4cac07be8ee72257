"""The workbench reads files, trains candidates, compares and prints. Of the library `datasets` alone imports it."""
