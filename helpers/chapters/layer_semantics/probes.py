"""The probes of chapter 12: one for each prefix of layers, trained side by side."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from helpers import parallel
from helpers.chapters.layer_semantics.states import Part

CHUNK = 256
"""Spans, or pairs, that are scored at once."""

RATE, MIXING = 0.003, 0.03
"""First learning rate of the classifier, and of a and gamma."""


class Probes(nn.Module):
    """Probes side by side that share nothing: probe ``l`` reads a mixture of the layers 0 to ``l``.

    A token's mixed state is projected; the tokens of a span are pooled by attention; the pooled spans go through one hidden
    layer (Tenney et al. 2019). All parameters have the probe as first axis, so training all at once equals training each
    alone.

    Args:
        scale: [layer], spread of each layer's states, which is divided out.
        width: of the hidden states.
        classes: number of labels.
        roles: spans of a target, 1 or 2; each has its own projection and pooling.
        size: width of the projection and of the hidden layer.
        uniform: keep the mixing weights equal instead of learning them.
        seed: of the first weights, which are the same for all probes.
    """

    def __init__(
        self,
        scale: Float[np.ndarray, "layer"],
        width: int,
        classes: int,
        *,
        roles: int = 1,
        size: int = 48,
        uniform: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__()
        count, generator = len(scale), torch.Generator().manual_seed(seed)

        def drawn(*shape: int) -> nn.Parameter:
            one = torch.randn(*shape, generator=generator) / shape[-2] ** 0.5
            return nn.Parameter(one.expand(count, *shape).clone())

        self.register_buffer("scale", torch.tensor(scale, dtype=torch.float32))
        self.register_buffer("reads", torch.ones(count, count).tril().bool())
        self.a = nn.Parameter(torch.zeros(count, count), requires_grad=not uniform)
        self.gamma = nn.Parameter(torch.ones(count))
        self.project = drawn(roles, width, size)
        self.attend = nn.Parameter(torch.zeros(count, roles, size))
        self.hidden, self.hidden_bias = drawn(roles * size, size), nn.Parameter(torch.zeros(count, 1, size))
        self.out, self.out_bias = drawn(size, classes), nn.Parameter(torch.zeros(count, 1, classes))

    def weights(self) -> Float[Tensor, "probe layer"]:
        """Mixing weights s of each probe; 0 for the layers that it does not read."""
        return self.a.masked_fill(~self.reads, -torch.inf).softmax(-1)

    def mixed(self, states: Float[Tensor, "layer token width"]) -> Float[Tensor, "probe token width"]:
        """Each probe's mixture of the layers."""
        weights = self.gamma[:, None] * self.weights() / self.scale
        return (weights @ states.flatten(1)).view(-1, *states.shape[1:])

    def forward(self, inputs: "list[tuple[Tensor, Tensor]]") -> Float[Tensor, "probe target label"]:
        """Logits of every probe; inputs as :meth:`Part.inputs` gives them."""
        spans = []
        roles = zip(inputs, self.project.unbind(1), self.attend.unbind(1), strict=True)
        for (states, owner), project, attend in roles:
            tokens = self.mixed(states) @ project
            scores = (tokens * attend[:, None]).sum(-1)
            spans.append(pooled(tokens, scores, owner))
        hidden = (torch.cat(spans, -1) @ self.hidden + self.hidden_bias).relu()
        return hidden @ self.out + self.out_bias


def pooled(
    tokens: Float[Tensor, "probe token size"], scores: Float[Tensor, "probe token"], owner: Int[Tensor, "token"]
) -> Float[Tensor, "probe target size"]:
    """The tokens of each target, weighted by a softmax of their scores; every target has at least one token."""
    count = int(owner.max()) + 1
    at = owner.expand(len(scores), -1)
    top = scores.new_full((len(scores), count), -torch.inf).scatter_reduce(1, at, scores.detach(), "amax")
    weights = (scores - top.gather(1, at)).exp()
    total = torch.zeros_like(top).index_add(1, owner, weights)
    summed = tokens.new_zeros(len(scores), count, tokens.shape[-1]).index_add(1, owner, tokens * weights[..., None])
    return summed / total[..., None]


def train(
    train: Part, dev: Part, *, steps: int = 300, batch: int = 64, every: int = 30, seed: int = 0, **made: Any
) -> Probes:
    """Train the probes of all prefixes of layers at once with Adam; both rates fall to 0 along a line.

    Args:
        steps, batch: steps of training and targets in each; passes over the training part follow from them.
        every: steps between looks at the development part; each probe ends as it was when its cross-entropy was least.
        seed, made: see :class:`Probes`; the seed also orders the targets.
    """
    shape = train.states.scale, train.states.values.shape[-1], len(train.labels)
    probes = Probes(*shape, roles=len(train.low), seed=seed, **made)
    learned = {name: p for name, p in probes.named_parameters() if p.requires_grad}
    mix = [learned.pop(name) for name in ("a", "gamma") if name in learned]
    rest = list(learned.values())
    flat = (RATE, _as_one(rest)), (MIXING, _as_one(mix))
    optimiser = torch.optim.Adam([{"params": [one]} for _, one in flat])
    best, kept = None, {}
    with parallel.one_thread():
        for step, chosen in enumerate(_batches(len(train.targets), batch, steps, seed), 1):
            gradients = torch.autograd.grad(cross_entropy(probes, train, chosen).sum(0).mean(), [*rest, *mix])
            of_groups = gradients[: len(rest)], gradients[len(rest) :]
            for (first, one), group, found in zip(flat, optimiser.param_groups, of_groups, strict=True):
                group["lr"] = first * (1 - (step - 1) / steps)
                one.grad = torch.cat([g.flatten() for g in found])
            optimiser.step()
            if step % every == 0 or step == steps:
                with torch.inference_mode():
                    loss = torch.cat([cross_entropy(probes, dev, c) for c in _chunks(len(dev.targets))], 1).mean(1)
                best, kept = _keep(probes, loss, best, kept)
    probes.load_state_dict(kept)
    return probes.requires_grad_(False)


def _as_one(parameters: Sequence[nn.Parameter]) -> Tensor:
    """The parameters as views of one vector, which an optimiser moves in one step instead of one for each."""
    whole = torch.cat([p.detach().flatten() for p in parameters])
    for p, piece in zip(parameters, whole.split([p.numel() for p in parameters]), strict=True):
        p.data = piece.view_as(p)
    return whole


def cross_entropy(probes: Probes, part: Part, chosen: NDArray[np.int64]) -> Float[Tensor, "probe target"]:
    """Of each probe's answer to the chosen targets, in nats; 0 where the right class is unknown."""
    truth = torch.from_numpy(part.truth[chosen]).expand(len(probes.gamma), -1)
    logits = probes(part.inputs(chosen)).transpose(1, 2)
    return nn.functional.cross_entropy(logits, truth, ignore_index=-1, reduction="none")


def _keep(
    probes: Probes, loss: Tensor, best: Tensor | None, kept: dict[str, Tensor]
) -> tuple[Tensor, dict[str, Tensor]]:
    """For each probe by itself the better of its present and its kept state."""
    if best is None:
        return loss, {name: value.clone() for name, value in probes.state_dict().items()}
    for name, value in probes.named_parameters():
        kept[name][loss < best] = value.detach()[loss < best]
    return torch.minimum(loss, best), kept


def _batches(count: int, batch: int, steps: int, seed: int) -> Iterator[NDArray[np.int64]]:
    rng, queue = np.random.default_rng(seed), np.empty(0, np.int64)
    for _ in range(steps):
        while len(queue) < min(batch, count):
            queue = np.concatenate([queue, rng.permutation(count)])
        yield queue[:batch]
        queue = queue[batch:]


def _chunks(count: int) -> list[NDArray[np.int64]]:
    return np.split(np.arange(count), range(CHUNK, count, CHUNK))


def answers(probes: Probes, part: Part) -> Float[np.ndarray, "probe target label"]:
    """Probabilities of all labels, by every probe."""
    with parallel.one_thread(), torch.inference_mode():
        found = [probes(part.inputs(chosen)).softmax(-1) for chosen in _chunks(len(part.targets))]
    return torch.cat(found, 1).numpy()
