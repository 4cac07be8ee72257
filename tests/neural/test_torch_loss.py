"""PyTorch gets the kernels' gradients, in both forms of input, and nothing else."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from ltr_objectives import (  # noqa: E402 - skipped without torch
    Langevin,
    LTRError,
    LTRWarning,
    Mixture,
    Preferences,
    Subsample,
    get_objective,
    registry,
)
from ltr_objectives.adapters import torch_loss  # noqa: E402 - likewise

NAMES = registry.objective_names()
rng = np.random.default_rng(0)
SIZES = np.array([4, 1, 6, 3])
LABELS = np.array([0, 1, 2, 1, 1, 0, 0, 1, 2, 0, 1, 1, 1, 1], float)  # the last list has equal labels
SCORES = rng.normal(size=SIZES.sum())


def flat(dtype=torch.float64):
    return torch.tensor(SCORES, dtype=dtype, requires_grad=True)


def padded(values, fill):
    out = torch.full((len(SIZES) + 1, 8), fill, dtype=torch.float64)  # the last list has no document
    for row, part in zip(out, np.split(values, np.cumsum(SIZES)[:-1]), strict=False):
        row[: len(part)] = torch.tensor(part)
    return out


@pytest.mark.parametrize("name", NAMES)
def test_both_forms_have_the_gradient_of_the_kernel(name):
    objective = get_objective(name)
    grad, _ = objective.gradient_hessian(SCORES, LABELS, SIZES)
    s = flat()
    torch_loss(objective, "sum")(s, torch.tensor(LABELS), SIZES).backward()
    np.testing.assert_array_equal(s.grad.numpy(), grad)
    y = padded(LABELS, -1.0)
    for mask in (y >= 0, (np.asarray(y) >= 0).tolist()):
        matrix = padded(SCORES, float("nan")).requires_grad_()
        torch_loss(objective, "sum")(matrix, y, mask=mask).backward()
        np.testing.assert_array_equal(matrix.grad[y >= 0].numpy(), grad)
        assert (matrix.grad[y < 0] == 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_the_value_is_what_its_name_says(name):
    loss = torch_loss(name)
    s, y = flat(), torch.tensor(LABELS)
    value = loss(s, y, SIZES)
    if loss.value_is == "loss":
        assert torch.autograd.gradcheck(lambda x: torch_loss(name)(x, y, SIZES), (s,), atol=1e-6)
    else:
        assert loss.value_is == f"-{loss.metric}"
        expected = -loss.metric.per_query(SCORES, LABELS, SIZES).mean()
        assert value.item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_type_of_the_scores_stays(dtype):
    s = flat(dtype)
    loss = torch_loss("lambdamart")(s, torch.tensor(LABELS), SIZES)
    loss.backward()
    assert loss.dtype == s.grad.dtype == dtype
    exact, _ = get_objective("lambdamart").gradient_hessian(s.detach().double().numpy(), LABELS, SIZES)
    assert torch.equal(s.grad, torch.tensor(exact / len(SIZES)).to(dtype))


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_reductions_and_weights(reduction):
    weight = np.array([1.0, 2.0, 0.5, 0.0])
    s, matrix, y = flat(), padded(SCORES, 0.0).requires_grad_(), padded(LABELS, -1.0)
    one = torch_loss("listnet", reduction)(s, torch.tensor(LABELS), SIZES, weight=weight)
    two = torch_loss("listnet", reduction)(matrix, y, mask=y >= 0, weight=np.append(weight, 7.0))
    assert one == two
    (3 * one).backward()
    (3 * two).backward()
    grad, _ = get_objective("listnet").gradient_hessian(SCORES, LABELS, SIZES, weight)
    np.testing.assert_allclose(s.grad.numpy(), {"mean": 3 / 3.5, "sum": 3.0}[reduction] * grad, rtol=1e-14)
    assert torch.equal(matrix.grad[y >= 0], s.grad)


def test_weights_of_zero_and_evaluation():
    s, y = flat(), torch.tensor(LABELS)
    loss = torch_loss("yetiloss")
    value = loss(s, y, SIZES, weight=[0, 0, 0, 1])  # of a list with equal labels
    value.backward()
    assert value.isfinite()
    assert (s.grad == 0).all()
    before = loss.step
    with torch.no_grad():
        loss(s, y, SIZES)
    loss.eval()
    loss(s, y, SIZES)
    assert loss.step == before


@pytest.mark.parametrize("name", sorted({*NAMES} - {"rmse", "ordinal", "queryrmse"}))  # whose equal labels have one
def test_lists_without_an_order_have_no_gradient(name):
    mask = torch.tensor([[True, False], [False, False], [True, False]])
    for there in (mask, mask & False):
        matrix = torch.zeros((3, 2), dtype=torch.float64, requires_grad=True)
        value = torch_loss(name)(matrix, torch.ones((3, 2)), mask=there)
        value.backward()
        assert (matrix.grad == 0).all()
    assert value == 0


def test_random_objectives_draw_anew_each_step_and_alike_in_each_run():
    def grads(loss, steps=3):
        found = []
        for _ in range(steps):
            s = flat()
            loss(s, torch.tensor(LABELS), SIZES).backward()
            found.append(s.grad)
        return found

    first, again = grads(torch_loss("yetiloss")), grads(torch_loss("yetiloss"))
    assert all(map(torch.equal, first, again))
    assert not torch.equal(first[0], first[1])
    assert not torch.equal(first[0], grads(torch_loss("yetiloss", seed=1))[0])
    loss = torch_loss("yetiloss")
    grads(loss, 1)
    other = torch_loss("yetiloss")
    other.load_state_dict(loss.state_dict())
    assert torch.equal(grads(other, 1)[0], first[1])


@pytest.mark.parametrize(
    "objective",
    [Mixture(["listnet", "queryrmse"]), Subsample("listnet", queries=1.0), Langevin("listnet", temperature=0.0)],
    ids=repr,
)
def test_wrappers(objective):
    s, y = flat(), torch.tensor(LABELS)
    assert torch_loss(objective).value_is == "-ndcg"  # factors of a batch are not those of its lists
    torch_loss(objective, "sum")(s, y, SIZES).backward()
    np.testing.assert_array_equal(s.grad.numpy(), objective.gradient_hessian(SCORES, LABELS, SIZES)[0])


def test_goals_and_clicks():
    clicks, position = (LABELS > 0).astype(float), np.concatenate([np.arange(n) for n in SIZES])
    revenue = rng.random(len(LABELS))
    mixture = get_objective("listnet+.3*listnet[revenue]")
    labels = {"relevance": torch.tensor(LABELS), "revenue": torch.tensor(revenue)}
    s, matrix = flat(), padded(SCORES, 0.0).requires_grad_()
    matrices = {goal: padded(y.numpy(), -1.0) for goal, y in labels.items()}
    torch_loss(mixture, "sum")(s, labels, SIZES).backward()
    mask = matrices["relevance"] >= 0
    torch_loss(mixture, "sum")(matrix, matrices, mask=mask).backward()
    assert torch.equal(matrix.grad[mask], s.grad)
    expected, _ = mixture.gradient_hessian(SCORES, {"relevance": LABELS, "revenue": revenue}, SIZES)
    np.testing.assert_array_equal(s.grad.numpy(), expected)
    loss, names = torch_loss("ranknet"), []
    for given in ({}, {"propensity": np.full(len(LABELS), 0.5)}, {"weight": 1.0 + position}):
        loss(flat(), clicks, SIZES, **given)
        names.append(loss.value_is)
    assert names == ["loss", "-ndcg", "-ndcg"]  # the loss has neither clicks nor weights within a list
    s, propensity = flat(), 1.0 / (1.0 + position)
    torch_loss("lambdamart", "sum")(s, clicks, SIZES, propensity=propensity).backward()
    expected, _ = get_objective("lambdamart").gradient_hessian(SCORES, clicks, SIZES, propensity=propensity)
    np.testing.assert_array_equal(s.grad.numpy(), expected)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (0, 0)])
def test_an_empty_batch_has_loss_0(shape, reduction):
    for given in [{"group": []}, {"qid": []}] if len(shape) == 1 else [{"mask": torch.ones(shape) > 0}]:
        scores = torch.zeros(shape, requires_grad=True)
        loss = torch_loss("listnet", reduction)(scores, torch.zeros(shape), **given)
        loss.backward()
        assert loss == 0
        assert scores.grad.shape == shape


def test_torch_compile_leaves_the_loss_alone():
    s, loss = flat(), torch_loss("listnet")
    torch.compile(lambda scores: loss(2 * scores, LABELS, SIZES), backend="eager")(s).backward()
    [expected] = torch.autograd.grad(loss(2 * s, LABELS, SIZES), s)
    assert torch.equal(s.grad, expected)


def test_second_derivatives_are_refused():
    s = flat()
    [grad] = torch.autograd.grad(torch_loss("listnet")(s, LABELS, SIZES), s, create_graph=True)
    with pytest.raises(LTRError, match="no second derivatives"):
        grad.sum().backward()


SQUARE = torch.zeros((2, 2), requires_grad=True)
WRONG = [
    ("mask, group and qid", (SQUARE, SQUARE, [2, 2]), {"mask": SQUARE == 0}),
    ("mask has shape", (SQUARE[None], SQUARE[None]), {"mask": SQUARE[None] == 0}),
    ("pass mask=", (SQUARE, SQUARE), {}),
    ("pass mask=", (SQUARE, SQUARE, [2, 2]), {}),
    ("labels must be one-dimensional", (SQUARE.reshape(4), SQUARE, [2, 2]), {}),
    ("scores must be one-dimensional", (SQUARE.reshape(4, 1), [0, 1, 0, 1], [2, 2]), {}),
    ("floating-point", (torch.zeros(2, dtype=torch.int64), [0, 1], [2]), {}),
    ("scores must be finite", (torch.tensor([0.0, float("nan")]), [0, 1], [2]), {}),
]


@pytest.mark.parametrize(("words", "given", "more"), WRONG, ids=[row[0] for row in WRONG])
def test_bad_input_is_refused(words, given, more):
    with pytest.raises(LTRError, match=words):
        torch_loss("listnet")(*given, **more)


@pytest.mark.parametrize("shape", [(2,), (2, 2), (3, 3), (2, 3, 1)])
def test_other_shapes_are_refused_beside_a_mask(shape):
    mask = torch.tensor([[True, True, False], [True, True, True]])
    right, other = torch.zeros((2, 3)), torch.zeros(shape)
    for scores, labels in ((other, right), (right, other)):
        with pytest.raises((LTRError, IndexError)):
            torch_loss("listnet")(scores, labels, mask=mask)
    with pytest.raises((LTRError, IndexError)):
        torch_loss("listnet")(right, right, mask=other == 0)


def test_lists_of_one_document_are_warned_of():
    with pytest.warns(LTRWarning, match="all 4 lists have one document"):
        torch_loss("listnet")(torch.zeros(4, requires_grad=True), torch.ones(4), [1, 1, 1, 1])


def test_preferences_are_refused():
    with pytest.raises(LTRError, match="Preferences"):
        torch_loss(Mixture(["listnet", Preferences([[1, 0]], 2)]))
