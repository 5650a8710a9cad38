"""The way into a forward pass: models, text to batches, taps, tasks, means with intervals, work in parts."""

TASKS = ("mlm", "qa", "paraphrase", "entailment", "rte", "keywords")
"""What a head may be for; :data:`helpers.engine.adapters.LABELS` has its classes."""

DTYPES = ("float32", "float64")
"""What a model can compute in. In half precision the weights of a row would sum to 1 only within a hundredth."""
