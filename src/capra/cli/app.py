"""The application that commands register with, and its entry point."""

import gc
import os
import sys
from typing import Annotated, Final

import typer
from typer.exceptions import TyperException

from capra import __version__
from capra.cli.help import PanelGroup
from capra.cli.invocation import RecordedApp
from capra.errors import CapraError, InputError

app = RecordedApp(
    cls=PanelGroup,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Speculative decoding on the GA2 chip, exact to the bit and counted to the cycle.",
)

COLLECTOR_THRESHOLDS: Final = (100_000, 50, 50)
"""Python's (700, 10, 10) looks through all that compiling made every few programs. Nearly all of it
lives, so an eighth of a decoding run would go into looking for what is not there."""

SHELLS: Final = ("bash", "zsh", "fish")
COMPLETION: Final = "_CAPRA_COMPLETE"
"""The variable by which a shell's completion script asks for completions."""

CLOSED_PIPE: Final = 128 + 13
"""What a shell says of a tool that SIGPIPE ended, as `... | head -1` ends one."""


def main() -> None:
    """Run the command line; every refusal becomes one sentence on stderr and exit code 2."""
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    if COMPLETION in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except (CapraError, TyperException) as error:
        from capra.text import printable

        text = error.format_message() if isinstance(error, TyperException) else str(error)
        line = " ".join(text.splitlines())
        print("error:", printable(line), file=sys.stderr)
        sys.exit(2)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    except SystemExit as stopped:
        if isinstance(stopped.__context__, BrokenPipeError):  # typer and rich exit with 1 then
            sys.exit(CLOSED_PIPE)
        raise
    except (OSError, UnicodeEncodeError) as error:
        # stdout takes no more; point it elsewhere, so that closing it does not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            sys.exit(CLOSED_PIPE)
        print(f"error: cannot write the output: {error}", file=sys.stderr)
        sys.exit(2)
    sys.exit(code if isinstance(code, int) else 0)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"capra {__version__}")
        raise typer.Exit


def _print_completion(shell: str | None) -> None:
    if shell is None:
        return
    if shell not in SHELLS:
        raise InputError(f"--show-completion is {shell!r}, expected one of {', '.join(SHELLS)}")
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    print(get_completion_script(prog_name="capra", complete_var=COMPLETION, shell=shell))
    raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and exit.", is_eager=True, callback=_print_version
        ),
    ] = False,
    completion: Annotated[
        str | None,
        typer.Option(
            "--show-completion",
            metavar="SHELL",
            help=f"Print the script that completes commands and options in {', '.join(SHELLS)}.",
            is_eager=True,
            callback=_print_completion,
        ),
    ] = None,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())
