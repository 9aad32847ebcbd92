"""The promises of each kind as executable suites: a plugin's thing goes in, the rules that it breaks come out.

A plugin's tests subclass the suite of its kind and give the subject::

    class TestSqliteStore(StoreContract):
        def subject(self) -> Store:
            return build(Settings(), self.host)

``rules`` is the mechanism, ``host`` an in-memory host, every other module one suite. Needs the extra ``contracts``.
"""
