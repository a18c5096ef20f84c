#!/usr/bin/env python
"""The one entry point: `manage.py up`, `import`, `token` and the rest."""

import sys

from console.commandline import main

if __name__ == "__main__":
    main(sys.argv)
