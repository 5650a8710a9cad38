"""You switch off or flatten whole types of heads while the model answers questions, beside types shuffled within each layer.

After {cite:t}`guan2020`, section 5.
"""
