"""The command's entry point, of the script `capra` too: `python -m capra` is the command line."""

import sys


def main() -> None:
    """`capra.cli.main`, and Ctrl-C while that is imported ends as quietly as later."""
    try:
        from capra.cli import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
