"""A document goes in, a checked plan or everything that is wrong with it comes out."""
