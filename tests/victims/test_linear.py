"""Linear layers by oneDNN: torch's numbers, the same bits in any company, and nothing else touched."""

from __future__ import annotations

import platform
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from tiny_models import PIECES, victim_of  # noqa: E402
from unfooled.linear import fast_linear  # noqa: E402
from unfooled.passes import answering  # noqa: E402

TEXTS = [f"{word} film is {other}" for word in PIECES[6:9] for other in PIECES[5:7]]
linear = torch.nn.functional.linear
here = pytest.mark.skipif(
    platform.machine().lower() not in ("x86_64", "amd64") or not torch.backends.mkldnn.is_available(),
    reason="torch has oneDNN for x86-64 only",
)


def layer(inputs: int, outputs: int, rows: int) -> list[Any]:
    """Rows, weight and bias."""
    drawn = torch.Generator().manual_seed(inputs * 1000 + outputs)
    shapes = (rows, inputs), (outputs, inputs), (outputs,)
    return [torch.randn(*shape, generator=drawn) for shape in shapes]


@here
@settings(deadline=None)
@given(st.integers(1, 70), st.integers(1, 70), st.integers(1, 40), st.integers(1, 40))
def test_a_row_has_the_same_bits_in_any_company(inputs: int, outputs: int, rows: int, some: int) -> None:
    x, weight, bias = layer(inputs, outputs, rows)
    with torch.inference_mode(), fast_linear():
        together = linear(x, weight, bias)
        apart = linear(x[:some], weight, bias)
        alone = linear(x[0], weight, bias)
        stacked = linear(x.unsqueeze(1), weight, bias)
    assert torch.equal(apart, together[:some])
    assert torch.equal(alone, together[0])
    assert torch.equal(stacked.squeeze(1), together)
    assert torch.allclose(together, linear(x, weight, bias), atol=1e-4)


@here
def test_the_layers_of_a_pass_go_there() -> None:
    model = torch.nn.Linear(384, 384)
    x = torch.randn(64, 384)
    with answering(model), torch.profiler.profile() as seen:
        model(x)
        torch.nn.Linear(384, 2, bias=False)(x)
    assert [event.name for event in seen.events()].count("mkldnn::_linear_pointwise") == 2


@pytest.mark.parametrize("case", ["gradients", "double", "autocast", "integers"])
def test_other_layers_are_left_to_torch(case: str) -> None:
    x, weight, bias = layer(24, 8, 5)
    with fast_linear(), torch.inference_mode(case != "gradients"):
        if case == "gradients":
            weight.requires_grad_()
            linear(x, weight, bias).sum().backward()
            assert torch.allclose(weight.grad, x.sum(0).expand(8, -1), atol=1e-5)
        elif case == "double":
            assert linear(x.double(), weight.double()).dtype is torch.float64
        elif case == "autocast":
            with torch.autocast("cpu", torch.float16):
                assert linear(x, weight, bias).dtype is torch.float16
        else:
            counts = torch.arange(6).reshape(2, 3)
            assert linear(counts, counts).tolist() == [[5, 14], [14, 50]]


@pytest.mark.parametrize("shape", [(0, 24), (2, 0, 24), (3, 1, 24), (1, 1, 24), (24,)])
def test_shapes_are_those_of_torch(shape: tuple[int, ...]) -> None:
    _, weight, bias = layer(24, 8, 1)
    x = torch.ones(shape)
    with torch.inference_mode(), fast_linear():
        found = linear(x, weight, bias)
    assert found.shape == linear(x, weight, bias).shape
    assert torch.allclose(found, linear(x, weight, bias), atol=1e-5)


def test_a_wrong_shape_is_told_by_torch() -> None:
    _, weight, bias = layer(24, 8, 1)
    with (
        torch.inference_mode(),
        fast_linear(),
        pytest.raises(RuntimeError, match="shapes"),
    ):
        linear(torch.ones(5, 23), weight, bias)


def test_a_victim_answers_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    victim = victim_of("bert")
    fast = np.asarray(victim.predict(TEXTS))
    monkeypatch.setattr("unfooled.passes.fast_linear", nullcontext)
    assert np.allclose(fast, np.asarray(victim.predict(TEXTS)), atol=1e-5)


@pytest.mark.parametrize("case", ["strided", "expanded", "one for all", "nothing to multiply"])
def test_what_onednn_reads_otherwise_is_left_to_torch(case: str) -> None:
    x, weight, bias = layer(24, 8, 5)
    if case == "strided":
        bias = torch.randn(16)[::2]
    elif case == "expanded":
        bias = torch.randn(1).expand(8)
    elif case == "one for all":
        bias = torch.randn(1)
    else:
        x, weight = x[:, :0], weight[:, :0]
    with torch.inference_mode(), fast_linear():
        found = linear(x, weight, bias)
    assert torch.allclose(found, linear(x, weight, bias), atol=1e-5)
