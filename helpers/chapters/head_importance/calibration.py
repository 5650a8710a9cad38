"""A model that is too sure of itself, made less so: one number, the temperature, that every logit is divided by.

Which answer is given stays the same; only the loss changes. After {cite:t}`guo2017`.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from helpers import tasks
from helpers.adapters import LABELS, Head, Inputs
from helpers.chapters.head_importance.jobs import Job
from helpers.chapters.head_importance.sweep import Removals, costs, remove_each


class Cooled(Head):
    """A head whose logits are divided by a temperature: above 1 it is less sure of every answer."""

    def __init__(self, head: Head, temperature: float) -> None:
        super().__init__(head.task, head.labels)
        self.head, self.whole, self.sha256 = head, head.whole, head.sha256
        self.register_buffer("temperature", torch.tensor(float(temperature)))

    def forward(self, hidden: Tensor, batch: Inputs) -> Tensor:
        return self.head(hidden, batch) / self.temperature


def classifies(job: Job) -> bool:
    """Whether the job's answers are the classes of its own head, which a temperature can be found for."""
    labels = LABELS[job.task]
    return job.task in ("paraphrase", "entailment") and set(labels) == set(job.encoder.head.labels)


def temperature(job: Job) -> float:
    """The temperature with the least loss on a job's examples, between 1/20 and 20."""
    logits, targets = [], []
    for asked in job.batches():
        asked = asked.to(job.encoder.device)
        with torch.inference_mode():
            hidden = job.encoder.model(**asked.batch.inputs).last_hidden_state
            logits.append(tasks.answers(job.encoder, hidden, asked).double().cpu())
        targets.append(asked.targets.cpu())
    given, right = torch.cat(logits), torch.cat(targets)

    def loss(log_temperature: float) -> float:
        return float(torch.nn.functional.cross_entropy(given / np.exp(log_temperature), right))

    ends = np.log([1 / 20, 20])
    return float(np.exp(minimize_scalar(loss, bounds=ends, method="bounded", options={"xatol": 1e-4}).x))


def cooled(job: Job, temperature: float) -> Job:
    """The same job with a head at another temperature."""
    return replace(job, encoder=replace(job.encoder, head=Cooled(job.encoder.head, temperature)))


def calibrated(
    job: Job, parts: tuple[list[int], list[int]], removed: Removals, *, seed: int = 0
) -> dict[str, Any] | None:
    """What removals add to the loss of a model whose temperature was found on one half of the documents, on the other half.

    Args:
        removed: what removals do to the job's examples as the model is.

    Returns:
        ``temperature``, and for the model as it is (``plain``) and at that temperature (``cooled``): its ``loss`` and the
        ``cost`` of heads and layers. None for a task without classes of its own.
    """
    if not classifies(job):
        return None
    one, two = (job.on(part) for part in parts)
    found: dict[str, Any] = {"temperature": temperature(one), "examples": len(two.examples)}
    by_way = {"plain": removed.on(parts[1]), "cooled": remove_each(cooled(two, found["temperature"]))}
    for name, each in by_way.items():
        found[name] = {"loss": each.whole.estimate("loss", seed=seed), "cost": costs(each, "loss", seed=seed)}
    return found
