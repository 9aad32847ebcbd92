"""The checks of the whole project, and the programs that read them; distributions keep tests of their own."""
