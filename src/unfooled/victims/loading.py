"""From what the user typed after `--model` to a victim."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

from unfooled.core.victim import Reloadable, Victim, as_type, require_positive
from unfooled.device import FULL, computing, said
from unfooled.errors import VictimError
from unfooled.plugins import registry
from unfooled.trust import granted, trusting
from unfooled.victims.labels import parse_labels

SKLEARN_FILE = "model.skops"  # inside a trained folder
DEFENSE_FILE = "defense.json"  # a defence around a model that lies elsewhere
SKLEARN_SUFFIXES = (".skops", ".joblib", ".pkl", ".pickle")

FORMS = (
    "a model is one of: fake · python:package.module:function · sklearn:FILE.skops · "
    "hf:FOLDER_OR_HUB_NAME · seq2seq:FOLDER_OR_HUB_NAME · https://HOST/PATH · "
    "openai:MODEL@URL · fuse:MODEL · five:MODEL · normalise:MODEL"
)

# Where a victim is asked for in Python, any of these will do.
GivenVictim: TypeAlias = Victim | str | Path | Callable[[list[str]], Any]

_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*|.+\.py:[A-Za-z_][\w.]*")
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def load_victim(
    spec: str | Path,
    *,
    labels: Sequence[str] | str | None = None,
    trust_pickle: bool = False,
    trust_remote_code: bool = False,
    trust_types: Sequence[str] = (),
    thresholds: Mapping[str, float | str] | None = None,
    device: str | None = None,
    precision: str | None = None,
    flag: Sequence[str] = (),
    **options: Any,
) -> Victim:
    """Load the classifier that `spec` names.

    `labels` names the classes in the model's order. `trust_pickle` allows files that run code when they
    are opened, `trust_remote_code` Python that a model's folder brings, `trust_types` classes in a skops file
    by their full names. `thresholds` are those of the deployed decision, by class (see `thresholds.py`);
    `flag` names classes that are blocked, and makes a filter that only says whether a text passes (see
    `filtering.py`). `device` and `precision` are those of a torch model (see `device.py`). Any further option
    belongs to the kind of victim; text is turned into the option's type.

    Example:

        >>> victim = unfooled.load_victim("fake")
        >>> victim.labels
        ('negative', 'positive')
        >>> victim.predict(["a superb film"]).argmax()
        np.int64(1)
    """
    spec = str(spec)
    kind, rest = split_spec(spec)
    names = parse_labels(labels)
    load: Callable[..., Victim] = registry.load("victim", kind)
    settled = _settle_options(kind, load, options)
    if kind == "sklearn" and Path(rest).name == SKLEARN_FILE and Path(spec).name != SKLEARN_FILE:
        settled.setdefault("name", Path(rest).resolve().parent.name)  # every trained folder has the same file
    trusted = trusting(pickle=trust_pickle, remote_code=trust_remote_code, types=trust_types)
    with trusted, computing(device, precision):
        trust, compute = granted(), said()
        victim = load(rest, labels=names, trust_pickle=trust.pickle, **settled)
    # Plug-ins and victims that a module holds ready are checked as well.
    require_positive(
        **{size: getattr(victim, size, 1) for size in ("batch_size", "concurrency", "max_tokens")}
    )
    if isinstance(victim, Reloadable):
        victim.spec = spec
        also: dict[str, Any] = {"trust_remote_code": trust.remote_code, "trust_types": trust.types}
        # As it was asked for: another process may have another device.
        also |= {"device": compute.device, "precision": compute.precision.replace(FULL, "")}
        also = {name: value for name, value in also.items() if value}
        victim.options = {"labels": names, "trust_pickle": trust.pickle, **also, **settled}
    if thresholds:
        from unfooled.victims.thresholds import Thresholded

        victim = Thresholded(victim, thresholds)
    if flag:
        from unfooled.victims.filtering import Filter

        victim = Filter(victim, flag)
    return victim


def as_victim(given: GivenVictim) -> Victim:
    """Whatever a caller gave as a victim: one, what `load_victim` takes, a function of texts."""
    if isinstance(given, str | Path):
        return load_victim(given)
    # By its class: `isinstance(given, Victim)` would ask for its capabilities, which may ask the model.
    if all(callable(getattr(type(given), name, None)) for name in ("predict", "fingerprint")):
        return cast(Victim, given)
    if callable(given):
        from unfooled.victims.function import FunctionVictim

        return FunctionVictim(given)
    raise VictimError(
        f"{type(given).__name__} is not a victim", "wrap it with SklearnVictim or FunctionVictim"
    )


def split_spec(spec: str) -> tuple[str, str]:
    """The kind of victim and what its loader gets."""
    spec = spec.strip()
    kind, colon, rest = spec.partition(":")
    if kind in registry.names("victim"):
        if kind in ("http", "https"):
            return kind, spec
        if colon or kind == "fake":
            return kind, rest
        raise VictimError(f"{spec!r} says what kind of model it is, but not which", FORMS)
    path = Path(spec).expanduser()
    if path.is_dir():
        if (path / DEFENSE_FILE).is_file():
            return "defense", str(path)
        if (path / "config.json").is_file():
            return ("seq2seq" if _writes_text(path) else "hf"), str(path)
        if (path / SKLEARN_FILE).is_file():
            return "sklearn", str(path / SKLEARN_FILE)
        if _is_unfinished(path):
            raise VictimError(
                f"the training in {spec} was not finished", "go on with unfooled train --resume"
            )
        raise VictimError(
            f"the folder {spec} holds no model: it has no config.json and no {SKLEARN_FILE}", FORMS
        )
    if path.suffix.lower() in SKLEARN_SUFFIXES:
        return "sklearn", str(path)  # a missing file is named by the loader
    if path.is_file():
        known = ", ".join(SKLEARN_SUFFIXES)
        raise VictimError(f"{spec} is not a model file that can be read", f"known endings: {known}")
    if _FUNCTION.fullmatch(spec):
        return "python", spec
    if _HUB_NAME.fullmatch(spec):
        return "hf", spec
    if "/" in spec or "\\" in spec or spec.startswith((".", "~")):
        raise VictimError(f"there is no file or folder {spec}", "check the path")
    raise VictimError(f"{spec!r} is not a model", FORMS)


def _writes_text(folder: Path) -> bool:
    """Whether the model is an encoder-decoder that was not made to choose a class."""
    from unfooled.model_folder import LARGEST_CONFIG

    try:
        if (folder / "config.json").stat().st_size > LARGEST_CONFIG:
            return False
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        kinds = " ".join(map(str, config.get("architectures") or ()))
        return bool(config.get("is_encoder_decoder")) and "Classif" not in kinds
    except (OSError, ValueError, AttributeError, RecursionError):
        return False  # the loader says what is wrong with it


def _is_unfinished(folder: Path) -> bool:
    """Whether `unfooled train` began here and has not ended."""
    try:
        record = json.loads((folder / "training.json").read_text(encoding="utf-8"))
        return bool(record["status"] != "finished")
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return False


def _settle_options(kind: str, load: Callable[..., Victim], options: dict[str, Any]) -> dict[str, Any]:
    """Check the names and turn what the command line gives into the type of each option's default."""
    parameters = {
        name: parameter
        for name, parameter in inspect.signature(load).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY and name not in ("labels", "trust_pickle")
    }
    takes_any = any(p.kind is p.VAR_KEYWORD for p in inspect.signature(load).parameters.values())
    settled = {}
    for name, value in options.items():
        if name not in parameters:
            if not takes_any:
                known = ", ".join(parameters) or "none"
                raise VictimError(f"{kind} victims have no option {name!r}", f"their options: {known}")
            settled[name] = value
        else:
            settled[name] = as_type(name, value, parameters[name].default)
    return settled
