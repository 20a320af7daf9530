"""What the site shows besides the pages in this folder: the commands, and pages that live elsewhere.

The reference of commands is made from the commands themselves at every build. Pages such as
`reproduction/bae.md` stay where they belong in the repository; links are written for the repository, and
are turned here into those of the site.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
COMMANDS = "reference/cli.md"
# From the repository to the site.
ELSEWHERE = {
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
    "bench/RESULTS.md": "explanation/benchmarks.md",
    "reproduction/README.md": "papers/claims.md",
}
_LINK = re.compile(r"(\]\()([^)#\s:]+)((?:#[^)]*)?\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, shown in elsewhere().items():
        files.append(File.generated(config, shown, abs_src_path=str(ROOT / source)))
    files.append(File.generated(config, COMMANDS, content=command_reference()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    return site_links(markdown, page.file.src_uri)


def elsewhere() -> dict[str, str]:
    """Every file outside this folder that the site shows, and where."""
    papers = ROOT / "reproduction"
    found = [
        path for path in papers.rglob("*") if path.suffix in (".md", ".svg") and path.name != "README.md"
    ]
    return ELSEWHERE | {
        path.relative_to(ROOT).as_posix(): f"papers/{path.relative_to(papers).as_posix()}"
        for path in sorted(found)
    }


def site_links(markdown: str, shown: str) -> str:
    """The text with links between files of the repository as links between pages of the site."""
    to_site = elsewhere()
    to_repository = {there: here for here, there in to_site.items()}
    here = to_repository.get(shown, f"docs/{shown}")

    def on_site(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(here), link[2]))
        if target in to_site:
            there = to_site[target]
        elif target.startswith("docs/"):
            there = target.removeprefix("docs/")
        else:
            return link[0]
        return f"{link[1]}{os.path.relpath(there, posixpath.dirname(shown) or '.')}{link[3]}"

    return _LINK.sub(on_site, markdown)


def command_reference() -> str:
    """Every command with its options, as `--help` tells them."""
    from typer.main import get_command

    from unfooled.cli.app import app

    main: Any = get_command(app)
    parts = ["# Commands", (main.help or "").strip()]
    parts += [part for name, command in commands(main) for part in _described(name, command)]
    return "\n\n".join(parts) + "\n"


def commands(group: Any, before: str = "unfooled") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{before} {name}")
        elif not command.hidden:
            yield f"{before} {name}", command


def _described(name: str, command: Any) -> Iterator[str]:
    yield f"## {name}"
    yield _plain(command.help)
    usage = [name, *(_usage(param) for param in command.params if param.param_type_name == "argument")]
    options = [param for param in command.params if param.param_type_name == "option"]
    yield f"```text\n{' '.join([*usage, *(['[OPTIONS]'] if options else [])])}\n```"
    rows = [_row(param) for param in command.params if param.name != "help"]
    if rows:
        yield "\n".join(["| | | default |", "|---|---|---|", *rows])
    if command.epilog:
        yield f"```text\n{_plain(command.epilog)}\n```"


def _usage(argument: Any) -> str:
    shown = argument.metavar or argument.name.upper()
    shown += "…" if argument.nargs == -1 else ""
    return shown if argument.required else f"[{shown}]"


def _row(parameter: Any) -> str:
    names = parameter.opts if parameter.param_type_name == "option" else [_usage(parameter)]
    named = ", ".join(f"`{name}`" for name in sorted(names, key=len, reverse=True))
    default = parameter.default
    plain = default is None or default is False or callable(default) or default in ((), [], "")
    shown = "required" if parameter.required else "" if plain else f"`{default}`"
    told = _plain(parameter.help or "").replace("|", "\\|").replace("\n", " ")
    return f"| {named} | {told} | {shown} |"


def _plain(text: str) -> str:
    return text.replace("\b\n", "").replace("\b", "").strip()
