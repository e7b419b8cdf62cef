"""StyleEyes: a wearer asks what they are looking at; an agent answers through sandboxed tools."""

import os

# numpy's product threads spin for milliseconds after each small product: with two cores that doubles
# what a look at a picture costs. It reads this once, when it is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

__version__ = "0.1.0"
