"""Numba kernels, and the names that they share.

``q``: a query. ``n``: documents of its list. ``i, j``: documents, counted from the first row of the query, or rows of a
matrix. ``d, e``: ranks, counted from 0 at the top. ``a, b``: a range ``a <= x < b``, of rows if nothing else is said.
``s``: score, ``y``: label. ``g``: gain in a metric; gradient in losses without gains. ``h``: Hessian. ``w``: discount
by rank; weight by row in losses without ranks. ``p``: a probability. ``r``: the ``Scratch`` of a kernel, its arrays.
``E``: ``exp(scale (s - max s))``. ``U, A, V``: terms of a swap, see :mod:`ltr_objectives.kernels.swaps`.
``lam, hes``: gradient and Hessian of one list, in the order in which the loop takes its documents. ``rng``: random
numbers of one iteration. A *draw* is one random ranking, a *batch* several draws of one list. A list is *narrow* if
exponentials in one unit represent all its scores, else *wide*.

A *swap* exchanges the documents of two ranks, a *move* takes one document to another rank. A *cutoff* limits the ranks
of a metric, a *truncation* the ranks of pairs.
"""
