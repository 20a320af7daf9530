"""Theorem 1 of "On the Robustness of Self-Attentive Models", checked with numbers.

The score of word i for word j is s_ij = x_iᵀ W^Q (W^K)ᵀ x_j with W^Q, W^K of d rows. Where x_j moves by Δx
with ‖Δx‖ ≤ δ and the x_i are uniform on the unit sphere, the theorem says

    E|s' − s| ≤ Cδ/√d        and        P(|s' − s| ≥ ε) ≤ Cδ/(ε√d),        C = ‖W^Q‖ ‖W^K‖.

The change is xᵀz with the fixed vector z = W^Q (W^K)ᵀ Δx. By Jensen E|xᵀz| ≤ √E(xᵀz)² = ‖z‖/√d, and ‖z‖ ≤ Cδ
in the spectral norm, which is the smallest one that serves; it is used here. Exactly,
E|xᵀz| = ‖z‖ Γ(d/2) / (√π Γ((d+1)/2)), about 0.80 ‖z‖/√d: the measured mean must come near it.

Each check draws x from the sphere and uses two perturbations of length δ: a random direction, and the worst
one (the first right singular vector of W^Q (W^K)ᵀ), which comes nearest to the bound. The theorem knows no
biases; a real model's query bias b adds the constant bᵀ(W^K)ᵀΔx to the change, which the bound does not
cover: `biased` is the mean with it. The scores are the paper's; a model that divides them by √k divides both
sides.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

DIMENSIONS = (16, 32, 64, 128, 256, 512, 1024)
HEAD = 64  # columns of the random matrices, or d where that is smaller
DRAWS = 10  # random pairs of matrices per dimension
SAMPLES = 2000  # vectors x per draw
MODEL_SAMPLES = 10_000  # vectors x that all heads of a model share
FAR = 2.0  # ε as a multiple of the bound, for the second statement

_NAMES = {"query": "key", "q_lin": "k_lin", "q_proj": "k_proj", "query_proj": "key_proj"}
_QUERY = re.compile(rf"^(.*\.)?({'|'.join(_NAMES)})\.weight$")
_FUSED = re.compile(r"^(.*\.)?attn\.c_attn\.weight$")


@dataclass(frozen=True, slots=True, eq=False)
class HeadWeights:
    """One head as the paper writes it: W^Q and W^K are [d, k], the bias of the query [k]."""

    layer: int  # from 1
    head: int  # from 1
    query: Numbers
    key: Numbers
    bias: Numbers


@dataclass(frozen=True, slots=True)
class BoundCheck:
    """`source` is "random" or "model". Means over `n` vectors x (and over draws of random matrices)."""

    source: str
    layer: int
    head: int
    d: int
    k: int
    delta: float
    constant: float  # C
    bound: float  # Cδ/√d
    random: float  # E|s' − s|, Δx in a random direction
    worst: float  # the same, Δx in the worst direction
    exact: float  # what `worst` is in theory
    biased: float  # as `random`, with the query's bias
    far: float  # share of |s' − s| ≥ 2 × bound in the worst direction; the theorem allows 0.5
    holds: bool  # both statements, in every draw
    n: int


@dataclass(frozen=True)
class Theorem:
    checks: tuple[BoundCheck, ...]

    def of(self, source: str) -> list[BoundCheck]:
        return [check for check in self.checks if check.source == source]


def check_random(
    dimensions: Sequence[int] = DIMENSIONS,
    *,
    delta: float = 1.0,
    draws: int = DRAWS,
    samples: int = SAMPLES,
    seed: int = 0,
) -> list[BoundCheck]:
    """Matrices of independent normal entries with variance 1/d, several per dimension."""
    found = []
    for d in dimensions:
        checks = []
        for draw in range(draws):
            rng = np.random.default_rng([seed, d, draw])
            k = min(HEAD, d)
            matrices = rng.normal(0.0, d**-0.5, (2, d, k))
            head = HeadWeights(0, 0, matrices[0], matrices[1], np.zeros(k))
            checks.append(check_head(head, on_sphere(rng, samples, d), delta=delta, rng=rng, source="random"))
        found.append(_mean(checks))
    return found


def check_model(
    heads: Sequence[HeadWeights], *, delta: float = 1.0, samples: int = MODEL_SAMPLES, seed: int = 0
) -> list[BoundCheck]:
    """A model's own matrices, head by head, on the same vectors x."""
    vectors: dict[int, Numbers] = {}
    found = []
    for head in heads:
        d = len(head.query)
        if d not in vectors:
            vectors[d] = on_sphere(np.random.default_rng([seed, d]), samples, d)
        rng = np.random.default_rng([seed, head.layer, head.head])
        found.append(check_head(head, vectors[d], delta=delta, rng=rng, source="model"))
    return found


def check_head(
    head: HeadWeights, vectors: Numbers, *, delta: float, rng: np.random.Generator, source: str
) -> BoundCheck:
    """`vectors` are the x, one per row; `rng` chooses the random direction of Δx."""
    d, k = head.query.shape
    constant = float(np.linalg.norm(head.query, 2) * np.linalg.norm(head.key, 2))
    bound = constant * delta / math.sqrt(d)
    direction = delta * on_sphere(rng, 1, d)[0]
    worst = delta * worst_direction(head)
    moved = head.key.T @ direction
    change = vectors @ (head.query @ moved)
    stretched = head.query @ (head.key.T @ worst)
    changes = np.abs(vectors @ stretched)
    means = float(np.abs(change).mean()), float(changes.mean())
    far = float((changes >= FAR * bound).mean()) if bound else 0.0
    return BoundCheck(
        source=source,
        layer=head.layer,
        head=head.head,
        d=d,
        k=k,
        delta=delta,
        constant=constant,
        bound=bound,
        random=means[0],
        worst=means[1],
        exact=float(np.linalg.norm(stretched)) * mean_projection(d),
        biased=float(np.abs(change + head.bias @ moved).mean()),
        far=far,
        holds=max(means) <= bound and far <= 1 / FAR,
        n=len(vectors),
    )


def on_sphere(rng: np.random.Generator, n: int, d: int) -> Numbers:
    """Uniform: the normal distribution looks the same in every direction."""
    drawn = rng.normal(size=(n, d))
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))


def worst_direction(head: HeadWeights) -> Numbers:
    """The unit vector that W^Q (W^K)ᵀ stretches most, without building that d × d matrix."""
    left, sizes, right = np.linalg.svd(head.key, full_matrices=False)  # W^K = left · sizes · right
    inner = head.query @ right.T * sizes
    _, _, turned = np.linalg.svd(inner, full_matrices=False)
    return np.asarray(left @ turned[0])


def mean_projection(d: int) -> float:
    """E|x·e| for x uniform on the unit sphere of d dimensions and a unit vector e."""
    return math.exp(math.lgamma(d / 2) - math.lgamma((d + 1) / 2)) / math.sqrt(math.pi)


def head_weights(victim: Any) -> list[HeadWeights]:
    """W^Q and W^K of every self-attention head of a victim's torch model; empty where it has none."""
    model = getattr(victim, "model", None)
    if model is None or not hasattr(model, "state_dict"):
        return []
    config = model.config
    heads = next(
        (
            int(value)
            for name in ("num_attention_heads", "n_heads", "n_head")
            if (value := getattr(config, name, 0))
        ),
        0,
    )
    if not heads:
        return []
    state = model.state_dict()
    found: list[HeadWeights] = []
    layer = 0
    for name in state:
        if match := _QUERY.match(name):
            prefix, query = match[1] or "", match[2]
            if f"{prefix}{_NAMES[query]}.weight" not in state:
                continue
            q, k = (_array(state, f"{prefix}{name}.weight") for name in (query, _NAMES[query]))
            bias = _array(state, f"{prefix}{query}.bias") if f"{prefix}{query}.bias" in state else None
        elif _FUSED.match(name):
            # GPT-2 keeps query, key and value side by side, and its weights the other way round.
            q, k, _ = np.split(_array(state, name).T, 3)
            bias = np.split(_array(state, name.removesuffix("weight") + "bias"), 3)[0]
        else:
            continue
        layer += 1
        found += _split(q, k, bias, heads, layer)
    return found


def _split(q: Numbers, k: Numbers, bias: Numbers | None, heads: int, layer: int) -> list[HeadWeights]:
    size = len(q) // heads
    groups = max(1, len(k) // size)  # several query heads may share one key
    found = []
    for head in range(heads):
        rows = slice(head * size, (head + 1) * size)
        shared = head * groups // heads
        found.append(
            HeadWeights(
                layer,
                head + 1,
                q[rows].T,
                k[shared * size : (shared + 1) * size].T,
                np.zeros(size) if bias is None else bias[rows],
            )
        )
    return found


def _array(state: Any, name: str) -> Numbers:
    return np.asarray(state[name].detach().cpu().numpy(), dtype=np.float64)


def _mean(checks: Sequence[BoundCheck]) -> BoundCheck:
    first = checks[0]
    means = {
        name: float(np.mean([getattr(check, name) for check in checks]))
        for name in ("constant", "bound", "random", "worst", "exact", "biased", "far")
    }
    return BoundCheck(
        source=first.source,
        layer=0,
        head=0,
        d=first.d,
        k=first.k,
        delta=first.delta,
        holds=all(check.holds for check in checks),
        n=sum(check.n for check in checks),
        **means,
    )
