"""Taking heads out for good: a copy of the model without their parameters."""

import copy
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from helpers import attention
from helpers.chapters.head_importance.jobs import Heads
from helpers.encoders import Encoder, EncoderError
from helpers.layers import layers


class PruneError(EncoderError):
    """The heads of this family cannot be taken out."""


QUERY_KEY_VALUE = (
    ("query", "key", "value"),
    ("q_lin", "k_lin", "v_lin"),
    ("q", "k", "v"),
    ("query_proj", "key_proj", "value_proj"),
)
NUMBERS = ("num_attention_heads", "n_heads", "num_heads")


class NoHeads(nn.Module):
    """Stands where the attention of a layer was that lost all of its heads; what is left is the output map's bias.

    Args:
        width: of what it returns: 0 before an output map, else that of a hidden state.
        bias: the bias of an output map that went with the heads.
    """

    def __init__(self, width: int, bias: Tensor | None) -> None:
        super().__init__()
        self.width = width
        self.bias = None if bias is None else nn.Parameter(bias.clone(), requires_grad=False)

    def forward(self, hidden_states: Tensor, *_: object, **__: object) -> tuple[Tensor, None]:
        nothing = hidden_states.new_zeros(*hidden_states.shape[:-1], self.width)
        return (nothing if self.bias is None else nothing + self.bias), None


def prune(encoder: Encoder, heads: Heads) -> Encoder:
    """A copy of the encoder without the parameters of some heads: their rows of Q, K, V and their columns of O are gone.

    The copy answers as the model with these heads switched off does. It cannot be tapped, since its layers differ
    in their number of heads.

    Raises:
        PruneError: for a family whose heads share their parameters (ALBERT, DeBERTa) or keep them in another way.
    """
    gone: dict[int, set[int]] = {}
    for layer, head in heads:
        if not (0 <= layer < encoder.layers and 0 <= head < encoder.heads):
            raise PruneError(
                f"{encoder.name!r} has no head ({layer}, {head}): it has {encoder.layers} x {encoder.heads}, "
                "counted from 0."
            )
        gone.setdefault(layer, set()).add(head)
    pruned = replace(encoder, model=copy.deepcopy(encoder.model), sha256=f"{encoder.sha256}-pruned")
    layers, outputs = _prunable(pruned), attention.output_projections(pruned)
    for layer, lost in gone.items():
        kept = [h for h in range(encoder.heads) if h not in lost]
        _shrink(layers[layer], outputs[layer], kept, encoder.heads)
    return pruned


def _prunable(encoder: Encoder) -> list[nn.Module]:
    family = type(encoder.model).__name__
    try:
        found = layers(encoder)
    except EncoderError as error:
        raise PruneError(f"{error} Its heads cannot be taken out one by one.") from None
    if any("Disentangled" in type(m).__name__ for layer in found for m in layer.modules()):
        raise PruneError(
            f"{encoder.name!r} ({family}): position and content share the maps of a head; it cannot be taken out."
        )
    return found


def _shrink(layer: nn.Module, output: nn.Linear, kept: Sequence[int], heads: int) -> None:
    """Cut one layer's attention down to the heads ``kept``."""
    module, names = _projections(layer)
    width = output.in_features // heads
    columns = torch.tensor([h * width + i for h in kept for i in range(width)], dtype=torch.long)
    if not kept:
        _empty(layer, module, output)
        return
    for name in names:
        old, blocks = getattr(module, name), 3 if name == "Wqkv" else 1
        rows = torch.cat([block * heads * width + columns for block in range(blocks)])
        setattr(module, name, _linear(old.weight[rows], None if old.bias is None else old.bias[rows]))
    _set(layer, output, _linear(output.weight[:, columns], output.bias))
    for name in NUMBERS:
        if hasattr(module, name):
            setattr(module, name, len(kept))
    if hasattr(module, "all_head_size"):
        module.all_head_size = len(kept) * width
    if names[0] == "q":  # MPNet hands every layer a table of distances for all heads
        chosen = torch.tensor(kept)
        module.register_forward_pre_hook(
            lambda _, args, kwargs: ((*args[:2], args[2][:, chosen.to(args[2].device)], *args[3:]), kwargs),
            with_kwargs=True,
        )


def _projections(layer: nn.Module) -> tuple[nn.Module, tuple[str, ...]]:
    """The module that holds a layer's query, key and value maps, and their names."""
    for module in layer.modules():
        for names in (*QUERY_KEY_VALUE, ("Wqkv",)):
            if all(isinstance(getattr(module, name, None), nn.Linear) for name in names):
                return module, names
    raise PruneError(
        f"No query, key and value maps were found in a {type(layer).__name__}; its heads cannot be taken out."
    )


def _empty(layer: nn.Module, module: nn.Module, output: nn.Linear) -> None:
    """Take out a layer's attention; the bias of its output map stays."""
    inside = any(m is output for m in module.modules())
    if inside:  # the output map goes as well
        _set(layer, module, NoHeads(output.out_features, output.bias))
        return
    _set(layer, module, NoHeads(0, None))
    _set(layer, output, _linear(output.weight[:, :0], output.bias))


def _set(layer: nn.Module, old: nn.Module, new: nn.Module) -> None:
    path = next(name for name, m in layer.named_modules() if m is old)
    parent, _, name = path.rpartition(".")
    setattr(layer.get_submodule(parent) if parent else layer, name, new)


def _linear(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    made = nn.Linear(1, 1, bias=bias is not None, device=weight.device)
    made.in_features, made.out_features = weight.shape[1], weight.shape[0]
    made.weight = nn.Parameter(weight.clone(), requires_grad=False)
    if bias is not None:
        made.bias = nn.Parameter(bias.clone(), requires_grad=False)
    return made


def sizes(encoder: Encoder) -> dict[str, int]:
    """Numbers of parameters: in all, without the embeddings, and in the attention (Q, K, V, O)."""
    names, inside = {n for group in QUERY_KEY_VALUE for n in group} | {"Wqkv"}, set()
    for name, module in encoder.model.named_modules():
        known = name.rpartition(".")[2] in names or attention.OUTPUT_PROJECTION.fullmatch(name)
        if isinstance(module, NoHeads) or (isinstance(module, nn.Linear) and known):
            inside |= {id(p) for p in module.parameters()}
    every = list(encoder.model.named_parameters())
    outside = sum(p.numel() for n, p in every if "embeddings" in n.split("."))
    within = sum(p.numel() for _, p in every if id(p) in inside)
    return {"all": encoder.parameters, "layers": encoder.parameters - outside, "attention": within}
