"""The command line: each noun a module, nothing but the Host behind it."""
