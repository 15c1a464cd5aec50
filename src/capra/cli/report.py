"""capra report."""

import json
from pathlib import Path
from typing import Annotated

import typer

from capra.cli.app import app
from capra.cli.output import progress_bar, say
from capra.errors import InputError
from capra.files import check_distinct, check_writable, write_atomically


@app.command(epilog="Example: capra report table.json run.json -o report.html")
def report(
    records: Annotated[
        list[Path],
        typer.Argument(
            help="Files that decode, trace, table, grid, plan, anatomy, causality, serving, "
            "profile, replay, sweep, certify or eval wrote with --json."
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The report as one HTML file.")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(help="Folder for every figure, as PNG and SVG.")
    ] = None,
    traces: Annotated[
        Path | None,
        typer.Option(help="Folder for traces of runs and programs, for Perfetto and Chrome."),
    ] = None,
) -> None:
    """Draw records: a page, figures, and traces for other tools. Runs nothing."""
    from capra.report.names import slug
    from capra.report.records import read_records

    sources = read_records(records)
    if output is None and figures is None and traces is None:
        raise InputError("nothing to write, expected --output, --figures or --traces")
    if output is not None:
        check_writable(output)
        check_distinct([output], records)
    pages, drawn, traced = (list[tuple[Path, bytes]]() for _ in range(3))
    if output is not None or figures is not None:
        from capra.report.figures import draw
        from capra.report.figures.style import png, svg
        from capra.report.page import render_page

        drawings = list(draw(sources))
        if output is not None:
            pages.append((output, render_page(sources, drawings).encode()))
        if figures is not None:
            with progress_bar("figures", len(drawings)) as advance:
                for drawing in drawings:
                    drawn.append((figures / f"{drawing.name}.png", png(drawing)))
                    drawn.append((figures / f"{drawing.name}.svg", svg(drawing).encode()))
                    advance()
    if traces is not None:
        from capra.report.perfetto import program_trace, run_trace

        makers = {"decode": run_trace, "profile": program_trace}
        for source in sources:
            if source.kind in makers:
                trace = json.dumps(makers[source.kind](source.record)).encode()
                traced.append((traces / f"{slug(source.name)}.trace.json", trace))
    files = [*pages, *drawn, *traced]
    check_distinct((path for path, _ in files), records)
    for folder, made, what in (
        (figures, drawn, "a figure"),
        (traces, traced, "a trace, as those of decode, trace and profile have"),
    ):
        if folder is not None and made:
            _make_folder(folder)
        elif folder is not None:
            say(f"{folder}: not written, as no record has {what}")
    for path, data in files:
        write_atomically(path, data)
        say(f"{path}: {len(data):,} bytes")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {folder}: {error.strerror}") from None
