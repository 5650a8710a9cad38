"""Numbers with provenance; the papers beside them."""
