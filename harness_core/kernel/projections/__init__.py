"""Events in, a document out: each look at the past is a module of its own."""
