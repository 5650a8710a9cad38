"""You compute a head by hand from the model's weights, and look at all of them at once.

After {cite:t}`vaswani2017`, {cite:t}`devlin2019`.
"""
