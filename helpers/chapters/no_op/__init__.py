"""You ask what attention to `[CLS]` and `[SEP]` is for: with lengths of vectors, by deleting it, and with gradients.

After {cite:t}`clark2019`, section 3.2; {cite:t}`kobayashi2020`.
"""
