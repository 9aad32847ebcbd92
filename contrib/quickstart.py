"""Takes this checkout and nothing else, gives an environment with everything installed and one finished job in it.

Any Python can run this file, so that one that is too old or too new is told so in words. The work is in first_run.py.
"""

import json
import sys

if (3, 11) <= sys.version_info[:2] < (3, 14):
    from first_run import main

    sys.exit(main(sys.argv[1:]))
else:
    message = "Harness needs Python 3.11, 3.12 or 3.13; this is %d.%d" % sys.version_info[:2]  # noqa: UP031
    hint = "name another one, for example: python3.13 contrib/quickstart.py"
    if "--json" in sys.argv:
        error = dict(schema="harness.error/1", code="quickstart.python", message=message, hint=hint)  # noqa: C408
        sys.stdout.write(json.dumps(dict(error, where=sys.executable, facts={}), indent=2) + "\n")
    sys.stderr.write("quickstart: %s\n  where  %s\n  next   %s\n" % (message, sys.executable, hint))  # noqa: UP031
    sys.exit(1)
