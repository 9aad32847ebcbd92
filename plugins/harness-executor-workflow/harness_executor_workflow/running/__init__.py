"""A checked plan, an input and the outcomes of its steps go in; what to ask for next comes out.

Read ``run`` first: the state, outcome by outcome. ``program`` has what never changes, ``flow`` which step may begin,
``steps`` the life of one, ``fan`` branches, ``tasks`` what is asked, ``move`` how the state is written.
"""
