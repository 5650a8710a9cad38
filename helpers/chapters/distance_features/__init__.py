"""You describe each head by how far it looks, cluster the heads, and ask whether the clusters are there.

After {cite:t}`guan2020`, sections 3 and 4.
"""
