"""The command line: parse, then hand over."""

import asyncio
import contextlib
import os
import random
import sys
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, TextIO

import typer

from mini_agent import __version__, app
from mini_agent.core.errors import ConfigError
from mini_agent.record import sessions
from mini_agent.settings import load
from mini_agent.ui import headless, repl

_USAGE_ERRORS: tuple[type[Exception], ...] = (typer.BadParameter.__mro__[1],)
"""What typer raises for every wrong command line; it exports only a child of it."""

_HELP = {"help_option_names": ["-h", "--help"]}

_cli = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
_lab = typer.Typer(
    add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, context_settings=_HELP
)

_COMMANDS = {"lab": _lab}
"""Commands by their names: one of these as the first word; everything else is a chat."""


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mini-agent {__version__}")
        raise typer.Exit


@_cli.command(
    context_settings=_HELP,
    epilog="mini-agent lab serve: a provider on this machine that misbehaves as it is told (-- lab is a prompt).",
)
def mini_agent(
    prompt: Annotated[str | None, typer.Argument(help="A first message.", show_default=False)] = None,
    print_: Annotated[
        str | None,
        typer.Option(
            "-p", "--print", metavar="TEXT", help="Answer TEXT (- or nothing: standard input) and exit."
        ),
    ] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="The model; demo needs no key.")] = None,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Any endpoint of one of the API families.")
    ] = None,
    api: Annotated[
        Literal["chat", "responses", "messages"] | None,
        typer.Option(help="The API family, if not the vendor's own."),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The vendor, such as deepseek, openai, anthropic, ollama, demo."),
    ] = None,
    effort: Annotated[
        Literal["off", "low", "medium", "high"] | None, typer.Option(help="How much the model thinks first.")
    ] = None,
    output_format: Annotated[
        Literal["text", "json", "stream-json"], typer.Option(help="What -p writes.")
    ] = "text",
    no_stream: Annotated[bool, typer.Option("--no-stream", help="Ask for the answer in one piece.")] = False,
    mode: Annotated[Literal["ask", "auto"] | None, typer.Option(help="What is done without asking.")] = None,
    max_tokens: Annotated[
        int | None, typer.Option(metavar="N", help="Cap on the tokens of one answer.")
    ] = None,
    max_steps: Annotated[
        int | None, typer.Option(metavar="N", help="Cap on the requests of one turn.")
    ] = None,
    retry: Annotated[
        Literal["default", "patient"] | None, typer.Option(help="How long to keep trying.")
    ] = None,
    continue_: Annotated[
        bool, typer.Option("-c", "--continue", help="Go on with the last session of this folder.")
    ] = False,
    resume: Annotated[
        str | None, typer.Option("-r", "--resume", metavar="ID", help="Go on with that session.")
    ] = None,
    debug: Annotated[
        bool, typer.Option("--debug", help="Log every event to a file in the state folder, without secrets.")
    ] = False,
    cwd: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The workspace, if not this folder.")
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A coding agent in your terminal. Without -p it opens a chat; a key in DEEPSEEK_API_KEY makes it answer for real."""
    flags = {
        "model": model,
        "base_url": base_url,
        "api": api,
        "effort": effort,
        "profile": profile,
        "mode": mode,
        "max_tokens": max_tokens,
        "max_steps": max_steps,
        "retry": retry,
        "stream": False if no_stream else None,
        "debug": debug or None,
    }
    if continue_ and resume is not None:
        raise ConfigError("-c and -r name two sessions: give one of them")
    run = sessions.new_id(datetime.now().astimezone(), random.Random())  # noqa: S311  a name, nothing secret
    read = partial(load, _workspace(cwd), flags, dict(os.environ), run=run)
    settings = read()
    interactive = print_ is None and sys.stdin.isatty() and sys.stdout.isatty()
    if interactive and output_format != "text":
        raise ConfigError("--output-format is for -p; a chat is always text")
    if not interactive and print_ not in (None, "-") and prompt is not None:
        raise ConfigError("there are two prompts, one after -p and one besides: put them into one")
    goes_on = continue_ or resume is not None
    start = app.resume(settings, read, resume) if goes_on else app.begin(settings, read)
    if interactive:
        raise typer.Exit(_chat(start, prompt))
    ask = next(one for one in (prompt, print_, "-") if one is not None)
    notices = app.facts(start).notices
    if settings.is_demo and not {"model", "profile"} & settings.origins.keys():
        notices += ("no key is set: the demo model answers (--model demo says that it may)",)
    can_go_on = start.resumed is not None and start.resumed.is_waiting
    raise typer.Exit(
        headless.answer(app.warm(start, watched=False), ask, output_format, notices, can_go_on=can_go_on)
    )


@_lab.callback()
def lab() -> None:
    """A provider on this machine that misbehaves as it is told, for trying out any agent."""


@_lab.command(context_settings=_HELP)
def serve(
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="Where it listens; 0 takes a free one.")
    ] = app.LAB_PORT,
    fault: Annotated[
        list[str] | None,
        typer.Option(metavar="SPEC", help="What goes wrong, such as 'status=503 then ok'; may be repeated."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Answer 400 to a request that breaks a rule of its family.")
    ] = False,
    deepseek: Annotated[
        bool, typer.Option("--deepseek", help="Always think, and want the reasoning back, as DeepSeek does.")
    ] = False,
) -> None:
    """Serves chat completions, Responses and Messages on loopback. docs/lab.md lists the faults."""
    app.serve_lab(port, fault or [], strict=strict, deepseek=deepseek)


def _workspace(cwd: Path | None) -> Path:
    try:
        folder = Path.cwd() if cwd is None else cwd
        if not folder.is_dir():
            raise ConfigError(f"--cwd {folder} is no folder")
        return folder.resolve()
    except OSError as error:
        raise ConfigError(f"the working directory can't be used: {error}") from None


def _chat(start: app.Start, prompt: str | None) -> int:
    warm_up = app.WarmUp(start)
    return asyncio.run(
        repl.repl(
            app.facts(start),
            warm_up.open_session,
            warm_up.new_text,
            partial(app.list_paths, start.settings),
            first_prompt=prompt,
            on_ready=warm_up.start,
        )
    )


def _with_bare_p(arguments: Sequence[str]) -> list[str]:
    """`-p` without a text means `-p -`: the prompt comes from standard input."""
    given = list(arguments)
    end = given.index("--") if "--" in given else len(given)
    for place, word in enumerate(given[:end]):
        following = given[place + 1] if place + 1 < len(given) else "--"
        if word in ("-p", "--print"):
            if " " in following:  # a text, though it may begin like an option
                given[place : place + 2] = [f"--print={following}"]
            elif following.startswith("-") and following != "-":
                given[place : place + 1] = ["--print=-"]
            break
    return given


def _called(arguments: list[str]) -> tuple[typer.Typer, str, list[str]]:
    """What is asked for: the command that the first word names, else the chat; with its name and its arguments."""
    command = _COMMANDS.get(arguments[0]) if arguments else None
    if command is None:
        return _cli, "mini-agent", _with_bare_p(arguments)
    return command, f"mini-agent {arguments[0]}", arguments[1:]


def main() -> None:
    """The console script. Ends the process with a code of the documented table."""
    _open_streams()
    application, program, arguments = _called(sys.argv[1:])
    try:
        command = typer.main.get_command(application)
        code = command.main(arguments, prog_name=program, standalone_mode=False)
    except ConfigError as error:
        code = _said(str(error))
    except _USAGE_ERRORS as error:
        problem = getattr(error, "format_message", error.__str__)()
        code = _said(f"{problem} ({program} --help shows what there is)")
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except OSError as error:
        code = _said(f"nothing can be written: {error}")
    for stream in (sys.stdout, sys.stderr):
        _let_go(stream)
    sys.exit(code or 0)


def _let_go(stream: TextIO) -> None:
    """Writes what is left. What nobody takes any more is dropped here, or the interpreter would complain at its end."""
    try:
        stream.flush()
    except OSError:
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _open_streams() -> None:
    """A stream that the caller closed reads as empty and takes everything; `print` would take another one instead."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123  for the whole run


def _said(problem: str) -> int:
    print(f"mini-agent: {' '.join(problem.split())}", file=sys.stderr)  # noqa: T201  before there is any front end
    return headless.USAGE_ERROR
