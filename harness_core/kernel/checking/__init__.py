"""What must hold in every log: the events of one session in, the broken invariants out; ``check`` is the way in."""
