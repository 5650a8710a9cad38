"""You name single attention maps by five types: without looking, by two numbers, and with classifiers judged by labelled maps.

After {cite:t}`kovaleva2019`.
"""
