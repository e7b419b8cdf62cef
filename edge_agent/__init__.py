"""StyleEyes: a wearer asks what they are looking at; an agent answers through sandboxed tools."""

__version__ = "0.1.0"
