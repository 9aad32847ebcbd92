"""Sessions as they were recorded by each version, and the document each of them folds to for ever."""
