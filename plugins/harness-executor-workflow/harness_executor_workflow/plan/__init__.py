"""What the compiler and the run of a plan share: its templates, its graph and the paths of its steps."""
