"""The edge: everything that touches the world, one module a thing."""
