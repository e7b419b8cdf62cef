"""`python -m edge_agent` is the `styleeyes` program."""

from edge_agent.cli.main import main

main()
