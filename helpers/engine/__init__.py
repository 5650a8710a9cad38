"""The way into a forward pass: models, text to batches, taps, tasks, means with intervals, work in parts."""
