"""A promise of kernels to LLVM, which their decorators and the compiler read."""


def apart() -> None:
    """Mark the arrays that the calling kernel takes as noalias: none may overlap another if it is written.

    Otherwise vectorised loops begin by comparing the addresses, and YetiLoss for ERR takes 1.6 times as long.
    """
