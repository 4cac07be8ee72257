"""``python -m ltr_objectives``: the command line."""

from ltr_objectives.workbench.cli import main

if __name__ == "__main__":
    main()
