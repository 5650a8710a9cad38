"""You measure position, special tokens, punctuation and entropy for every head, and name specialists by a rule.

After {cite:t}`clark2019`, section 3.
"""
