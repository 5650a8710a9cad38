"""The exercises of each chapter: cases, right answers and typical mistakes; beside them, in YAML, hints and what a guide needs."""
