"""You locate four tasks in the layers with probes that read hidden states, and ask controls whether the order means anything.

After {cite:t}`tenney2019`.
"""
