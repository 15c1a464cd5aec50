"""`python -m capra` is the command line."""

from capra.cli import main

main()
