"""`python -m picokernel` is `picokernel`."""

import sys

from .cli import main

sys.exit(main())
