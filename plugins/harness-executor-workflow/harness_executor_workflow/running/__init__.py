"""A checked plan, an input and the outcomes of its steps go in; what to ask for next comes out."""
