"""The workbench reads files, trains candidates, compares and prints. It imports the library, never the reverse."""
