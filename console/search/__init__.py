"""Search over entries, documents, memories and titles (C5): rows filled in the background, bounded, saying when cut."""
