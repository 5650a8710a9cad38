"""Accumulators that keep sums while batches stream by, and passes in parts: what chapters need that are no functions of one text yet."""
