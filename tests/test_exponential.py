"""The vectorised exponential against NumPy's long double."""

import numpy as np

from ltr_objectives.kernels.exponential import FARTHEST, exponentials


def exp(x):
    out = x.copy()
    exponentials(out)
    return out


def test_error_is_below_one_unit_in_the_last_place(rng):
    near = np.nextafter(FARTHEST, 0)
    x = np.concatenate([rng.uniform(-1, 1, 50_000) * scale for scale in (700, 1, 1e-3, 1e-17)] + [[near, -near, 0.0]])
    exact = np.exp(x.astype(np.longdouble))
    assert np.max(np.abs(exp(x) - exact) / exact) < 2.2e-16


def test_far_out_it_is_the_c_library_s():
    x = np.array([1.0, -745.0, -1e308, 710.0, -np.inf, np.nan])
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(exp(x), np.exp(x), rtol=1e-15)


def test_without_numbers():
    assert len(exp(np.empty(0))) == 0
