"""You switch off every head and layer, estimate the same from one backward pass, and remove heads for real.

After {cite:t}`michel2019`, {cite:t}`kovaleva2019`.
"""
