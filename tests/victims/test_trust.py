"""No file makes us run code: what must be trusted, how it is said, and what is refused without it."""

from __future__ import annotations

import importlib
import io
import json
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tiny_models import tiny
from unfooled.cli.app import app
from unfooled.defenses.harden import harden
from unfooled.defenses.named import check_settings
from unfooled.errors import ResourceError, UserError, VictimError
from unfooled.people.web.repeating import ModelArguments
from unfooled.resources.encoders import open_encoder
from unfooled.resources.pretrained import load_pretrained
from unfooled.trust import Trust, granted, trusting
from unfooled.victims.loading import load_victim

TEXTS = ["the film is good", "a dull plot"]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    folder = tmp_path / "base"
    model = tiny("bert", classes=2)
    model.model.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def own_path() -> Iterator[None]:
    """Modules and search paths that a test adds go away with it."""
    modules, path = set(sys.modules), list(sys.path)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith(("cleaning", "payload", "transformers_modules")):
            del sys.modules[name]


# -- what is granted ----------------------------------------------------------------------------------


def test_trust_adds_up_and_ends() -> None:
    assert granted() == Trust()
    with trusting(pickle=True), trusting(remote_code=True, types=["a.B"]), trusting(types=["a.B", "c.D"]):
        assert granted() == Trust(pickle=True, remote_code=True, types=("a.B", "c.D"))
    assert granted() == Trust()
    with pytest.raises(ValueError), trusting(pickle=True):
        raise ValueError
    assert granted() == Trust()


LOADING = ["attack", "compare", "transfer", "harden", "search", "evaluate", "replay", "analyse", "playground"]


@pytest.mark.parametrize("command", [*LOADING, "train", "calibrate", "measure"])
def test_every_command_that_loads_a_model_can_be_told(command: str) -> None:
    text = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).output
    assert "--trust-remote-code" in text
    if command in LOADING:
        assert "--trust-pickle" in text
        assert "--trust " in text


def test_what_a_command_is_told_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Trust] = []
    monkeypatch.setattr("unfooled.cli.attack.Attack.run", lambda _: seen.append(granted()))
    flags = ["--trust-pickle", "--trust-remote-code", "--trust", "a.B", "--trust", "c.D"]
    for given in (flags, []):
        CliRunner().invoke(app, ["attack", "--model", "fake", "--data", "mr", *given], catch_exceptions=False)
    assert seen == [Trust(pickle=True, remote_code=True, types=("a.B", "c.D")), Trust()]
    assert granted() == Trust()


def test_the_playground_repeats_what_was_trusted() -> None:
    trust = Trust(pickle=True, remote_code=True, types=("a.B",))
    words = ["--model", "m", "--trust-pickle", "--trust-remote-code", "--trust", "a.B"]
    assert ModelArguments("m", trust=trust).words() == words


# -- what a model folder may name ---------------------------------------------------------------------


def rewritten(folder: Path, **changes: Any) -> None:
    file = folder / "defense.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    content["settings"] |= changes.pop("settings", {})
    file.write_text(json.dumps(content | changes), encoding="utf-8")


@pytest.mark.parametrize(
    "model",
    [
        "payload.py:f",
        "python:payload.py:f",
        "five:payload.py:f",
        "payload:f",
        "http://127.0.0.1:9/x",
        "noisy:https://127.0.0.1:9/x",
        "hf:nobody/nothing",
        "nobody/nothing",
        "../../elsewhere",
        "/",
        "~",
        "",
    ],
)
def test_a_folder_names_no_code_no_address_and_no_other_place(
    base: Path, tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "guarded"
    harden(str(base), method="five", out=out, options={"copies": 2})
    (out / "payload.py").write_text("raise SystemExit('ran')", encoding="utf-8")
    shutil.copytree(base, tmp_path.parent / "elsewhere", dirs_exist_ok=True)
    monkeypatch.chdir(out)
    rewritten(out, model=model)
    with pytest.raises(VictimError, match="a folder may name no other") as caught:
        load_victim(str(out))
    assert "model=MODEL" in caught.value.remedy
    assert isinstance(load_victim(str(out), model=str(base)).name, str)


def test_options_in_a_folder_are_not_passed_on(base: Path, tmp_path: Path) -> None:
    """Once they reached the loader: headers with `env:NAME`, `trust_pickle`."""
    out = tmp_path / "guarded"
    harden(str(base), method="five", out=out, options={"copies": 2})
    expected = load_victim(str(out)).predict(TEXTS)
    rewritten(out, options={"trust_pickle": True, "headers": {"x": "env:SECRET"}, "max_length": 3})
    np.testing.assert_array_equal(load_victim(str(out)).predict(TEXTS), expected)


@pytest.mark.parametrize("name", ["switch_model", "encoder", "table", "tagger"])
@pytest.mark.parametrize("value", ["payload.py:f", "http://127.0.0.1:9/x", "nobody/nothing", "/etc"])
def test_settings_in_a_folder_are_looked_at_too(base: Path, tmp_path: Path, name: str, value: str) -> None:
    out = tmp_path / "guarded"
    harden(str(base), method="fuse", out=out, options={"alternatives": 2, "similarity": "filter"})
    rewritten(out, settings={name: value})
    with pytest.raises(VictimError, match=f"its {name} .* a folder may name no other") as caught:
        load_victim(str(out))
    assert f"{name}={name.upper()}" in caught.value.remedy


@pytest.mark.parametrize("value", ["payload.py:f", "http://127.0.0.1:9/x", "nobody/nothing", "/etc", "."])
def test_five_borrows_gradients_only_from_below_or_beside(base: Path, tmp_path: Path, value: str) -> None:
    out = tmp_path / "guarded"
    harden(str(base), method="five", out=out, options={"copies": 2})
    rewritten(out, settings={"switch_model": value})
    with pytest.raises(VictimError, match=r"its switch_model .* a folder may name no other"):
        load_victim(str(out))


def test_folders_that_borrow_from_each_other_are_told(base: Path, tmp_path: Path) -> None:
    for name in ("one", "other"):
        harden(str(base), method="five", out=tmp_path / name, options={"copies": 2})
    rewritten(tmp_path / "one", settings={"switch_model": "../other"})
    rewritten(tmp_path / "other", settings={"switch_model": "../one"})
    with pytest.raises(VictimError, match="around itself"):
        load_victim(str(tmp_path / "one"))


def test_folders_around_each_other_are_told(base: Path, tmp_path: Path) -> None:
    for name in ("one", "other"):
        harden(str(base), method="five", out=tmp_path / name, options={"copies": 2})
    rewritten(tmp_path / "one", model="../other")
    rewritten(tmp_path / "other", model="../one")
    with pytest.raises(VictimError, match="around itself"):
        load_victim(str(tmp_path / "one"))
    rewritten(tmp_path / "one", model="five:" * 50 + "../base")
    with pytest.raises(VictimError, match="inside too many others"):
        load_victim(str(tmp_path / "one"))


def test_a_function_is_hardened_but_named_again_by_the_user(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_path: None
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "payload.py").write_text(
        "LABELS = ['a', 'b']\ndef f(texts):\n    return [[0.2, 0.8]] * len(texts)\n", encoding="utf-8"
    )
    out = tmp_path / "guarded"
    arguments = ["harden", "--method", "fuse", "--model", "payload.py:f", "--out", str(out)]
    told = CliRunner().invoke(app, [*arguments, "--set", f"switch_model={base}"], catch_exceptions=False)
    assert "cannot be loaded by itself" in told.output
    assert "--victim-option model=payload.py:f" in told.output
    with pytest.raises(VictimError, match="a folder may name no other"):
        load_victim(str(out))
    named = load_victim(str(out), model="payload.py:f")
    assert named.labels == ("a", "b")
    assert again(named).fingerprint() == named.fingerprint()


def test_a_pickle_beside_a_folder_needs_trust(tmp_path: Path, base: Path) -> None:
    import joblib  # type: ignore[import-untyped]
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    pipeline = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(["good film", "bad film"], [1, 0])
    joblib.dump(pipeline, tmp_path / "model.joblib")
    with trusting(pickle=True):
        harden(
            str(tmp_path / "model.joblib"),
            method="fuse",
            out=tmp_path / "out",
            options={"switch_model": str(base)},
        )
    with pytest.raises(VictimError, match="is a pickle"):
        load_victim(str(tmp_path / "out"))
    assert load_victim(str(tmp_path / "out"), trust_pickle=True).labels == ("0", "1")


def test_a_record_of_a_training_fetches_no_body(base: Path, tmp_path: Path) -> None:
    from unfooled.defenses.harden import settings_for
    from unfooled.defenses.methods import find_method

    record = {"format": 1, "family": "bert", "status": "finished", "options": {"body": "nobody/nothing"}}
    (base / "training.json").write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(UserError, match="a record fetches nothing"):
        settings_for(find_method("retune"), load_victim(str(base)), {"start": "body"})  # type: ignore[arg-type]


# -- code that a model's folder brings ----------------------------------------------------------------

CODE = """
open({mark!r}, "a").close()
from transformers import BertConfig, BertForSequenceClassification
class MyConfig(BertConfig):
    model_type = "mine"
class MyModel(BertForSequenceClassification):
    config_class = MyConfig
"""


def again(victim: Any) -> Any:
    """As a worker process loads it."""
    return load_victim(victim.spec, **victim.options)


def with_code(folder: Path, mark: Path) -> Path:
    (folder / "own_code.py").write_text(CODE.format(mark=str(mark)), encoding="utf-8")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config |= {
        "model_type": "mine",
        "auto_map": {
            "AutoConfig": "own_code.MyConfig",
            "AutoModelForSequenceClassification": "own_code.MyModel",
        },
    }
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def test_code_in_a_folder_is_refused_without_a_question(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_path: None
) -> None:
    mark = tmp_path / "ran"
    folder = with_code(base, mark)
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n" * 20))  # what a prompt would read
    with pytest.raises(VictimError, match="brings Python code of its own") as caught:
        load_victim(str(folder))
    assert "--trust-remote-code" in caught.value.remedy
    assert sys.stdin.read() == "y\n" * 20
    assert not mark.exists()
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="runs Python code of its own"):
            load_victim(str(folder), trust_remote_code=True)
        warnings.simplefilter("ignore")
        victim = load_victim(str(folder), trust_remote_code=True)
        assert again(victim).fingerprint() == victim.fingerprint()
    assert mark.exists()
    assert victim.predict(TEXTS).shape == (2, 2)


def test_language_models_and_encoders_bring_no_code_either(base: Path, tmp_path: Path) -> None:
    folder = with_code(base, tmp_path / "ran")
    with pytest.raises(ResourceError, match="brings Python code of its own"):
        load_pretrained("masked", str(folder))
    with pytest.raises(ResourceError, match="brings Python code of its own"):
        open_encoder(str(folder))
    encoder = tmp_path / "encoder"
    encoder.mkdir()
    (encoder / "mine.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a')", encoding="utf-8")
    modules = [{"idx": 0, "name": "0", "path": "", "type": "mine.Transformer"}]
    (encoder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    with pytest.raises(ResourceError, match=r"made of mine\.Transformer"):
        open_encoder(str(encoder))
    modules[0] |= {"type": "sentence_transformers.models.Transformer", "path": "../base"}
    (encoder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    with pytest.raises(ResourceError, match="leads out of the folder"):
        open_encoder(str(encoder))
    assert not (tmp_path / "ran").exists()


def test_a_body_to_fine_tune_brings_no_code(base: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("text,label\n" + "good film,1\nbad film,0\n" * 10, encoding="utf-8")
    folder = with_code(base, tmp_path / "ran")
    arguments = ["train", "--model", "bert", "--data", str(rows), "--body", str(folder)]
    result = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "out")])
    assert isinstance(result.exception, VictimError)
    assert "brings Python code of its own" in result.exception.cause
    assert not (tmp_path / "ran").exists()


# -- types in a scikit-learn pipeline -----------------------------------------------------------------

CLEANING = """
from sklearn.base import BaseEstimator, TransformerMixin
class Lower(TransformerMixin, BaseEstimator):
    def fit(self, texts, labels=None):
        self.fitted_ = True
        return self
    def transform(self, texts):
        return [text.lower() for text in texts]
"""


@pytest.fixture
def custom(tmp_path: Path, own_path: None, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A pipeline with a transformer of a module of its own, which is then forgotten."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    (tmp_path / "cleaning.py").write_text(CLEANING, encoding="utf-8")
    sys.path.insert(0, str(tmp_path))
    module = importlib.import_module("cleaning")
    pipeline = make_pipeline(module.Lower(), TfidfVectorizer(lowercase=False), LogisticRegression())
    return pipeline.fit(["good film", "bad film"] * 4, [1, 0] * 4)


def forget(folder: Path) -> None:
    sys.path.remove(str(folder))
    del sys.modules["cleaning"]
    importlib.invalidate_caches()


def test_a_type_of_a_skops_file_is_trusted_by_name(tmp_path: Path, custom: Any) -> None:
    from skops.io import dump

    path = tmp_path / "model.skops"
    dump(custom, path)
    expected = custom.predict_proba(["GOOD film"])
    forget(tmp_path)
    with pytest.raises(
        VictimError, match=r"cleaning\.Lower \(from cleaning\.py beside the model\)"
    ) as caught:
        load_victim(str(path))
    assert "--trust cleaning.Lower" in caught.value.remedy
    assert "cleaning" not in sys.modules
    with pytest.raises(VictimError, match=r"cleaning\.Lower"):
        load_victim(str(path), trust_types=["cleaning.Upper"])
    victim = load_victim(str(path), trust_types=["cleaning.Lower"])
    np.testing.assert_array_equal(victim.predict(["GOOD film"]), expected)
    assert again(victim).fingerprint() == victim.fingerprint()


def test_modules_are_found_beside_a_trusted_pickle_and_where_one_stands(
    tmp_path: Path, custom: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import joblib

    path = tmp_path / "model.pkl"
    joblib.dump(custom, path)
    forget(tmp_path)
    assert load_victim(str(path), trust_pickle=True).labels == ("0", "1")
    forget(tmp_path)
    away, here = tmp_path / "away", tmp_path / "here"
    away.mkdir()
    here.mkdir()
    path = path.rename(away / "model.pkl")
    (tmp_path / "cleaning.py").rename(here / "cleaning.py")
    with pytest.raises(VictimError, match="needs the Python module cleaning, which is neither"):
        load_victim(str(path), trust_pickle=True)
    monkeypatch.chdir(here)
    assert load_victim(str(path), trust_pickle=True).labels == ("0", "1")


def test_a_class_of_the_script_that_saved_it_is_explained(tmp_path: Path) -> None:
    script = f"""
{CLEANING}
import joblib, skops.io
joblib.dump(Lower().fit([]), {str(tmp_path / "model.pkl")!r})
skops.io.dump(Lower().fit([]), {str(tmp_path / "model.skops")!r})
"""
    subprocess.run([sys.executable, "-c", script], check=True)
    with pytest.raises(VictimError, match="by a script that defined a part of it"):
        load_victim(str(tmp_path / "model.pkl"), trust_pickle=True)
    with pytest.raises(VictimError, match="defined in the script that saved the model"):
        load_victim(str(tmp_path / "model.skops"))


# -- the folder that one stands in --------------------------------------------------------------------

TRAPS = ("typer", "rich", "numpy", "pickle", "multiprocessing", "struct", "json", "signal", "jinja2")


@pytest.fixture
def trapped(tmp_path: Path) -> Path:
    here = tmp_path / "here"
    here.mkdir()
    for name in TRAPS:
        (here / f"{name}.py").write_text(
            f"open({str(tmp_path / 'ran')!r}, 'a').write('{name} ')\nraise SystemExit(9)\n", encoding="utf-8"
        )
    return here


def test_no_command_imports_from_the_current_folder(trapped: Path, tmp_path: Path) -> None:
    """Worker processes too: a new Python would look there for its own library first."""
    rows = tmp_path / "rows.csv"
    rows.write_text("text,label\n" + "a good film,positive\na bad film,negative\n" * 3, encoding="utf-8")
    arguments = ["attack", "--model", "fake", "--data", str(rows), "--workers", "2"]
    arguments += ["--attack", "deepwordbug", "--out", str(tmp_path / "run"), "--json"]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    for start in ([sys.executable, "-m", "unfooled"], [str(Path(sys.executable).parent / "unfooled")]):
        command = [*start, *arguments, "--restart"]
        done = subprocess.run(command, cwd=trapped, env=environment, capture_output=True, text=True)
        assert not (tmp_path / "ran").exists(), (tmp_path / "ran").read_text(encoding="utf-8")
        assert done.returncode == 0, done.stderr


# -- folders deep and descriptions large --------------------------------------------------------------


@pytest.mark.parametrize("value", [["minilm"], {"a": 1}, "1e12", "99999999999", 10**400, "inf", "nan"])
@pytest.mark.parametrize("name", ["table", "tagger", "encoder", "copies"])
def test_settings_of_a_folder_are_words_and_sane_numbers(tmp_path: Path, name: str, value: Any) -> None:
    with pytest.raises(VictimError) as caught:
        check_settings({name: value}, tmp_path)
    assert name in caught.value.cause
    assert check_settings({"vote": "mean-probs", "copies": 10, "fresh": False}, tmp_path)["copies"] == 10


@pytest.mark.parametrize("name", ["config.json", "defense.json"])
def test_a_description_that_is_far_too_large_is_not_read(
    base: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (base / name).open("wb") as file:
        file.truncate(100 << 20)  # a hole: it takes no place on disk

    def read(path: Path, *_: object, **__: object) -> str:
        raise AssertionError(f"{path} was read")

    monkeypatch.setattr(Path, "read_text", read)
    with pytest.raises(VictimError, match="far too"):
        load_victim(str(base))


@pytest.mark.parametrize(
    ("place", "content", "told"),
    [
        ("1/2/modules.json", [{"path": "", "type": "payload.Module"}], "payload.Module"),
        ("1/2/router_config.json", {"types": {"a": "payload.Module"}}, "payload.Module"),
        ("1/2/config.json", {"activation_function": "payload.f"}, "payload.f"),
        ("1/2/config.json", {"auto_map": {"AutoModel": "payload.M"}}, "payload.M"),
        ("1/2/pytorch_model.bin", {}, "holds a pickle"),
    ],
)
def test_modules_inside_modules_bring_no_code(base: Path, place: str, content: Any, told: str) -> None:
    kind = "sentence_transformers.SentenceTransformer"
    (base / "modules.json").write_text(json.dumps([{"path": "1/2", "type": kind}]), encoding="utf-8")
    (base / place).parent.mkdir(parents=True)
    (base / place).write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ResourceError, match=told):
        open_encoder(str(base))


@pytest.mark.parametrize("file", ["router_config.json", "config.json"])
@pytest.mark.parametrize("place", ["../elsewhere", "/etc", "a/../../b", "..\\elsewhere", "C:\\elsewhere"])
def test_the_modules_of_a_router_lie_inside_its_folder(base: Path, file: str, place: str) -> None:
    kind = "sentence_transformers.models.Router"
    (base / "modules.json").write_text(json.dumps([{"path": "1", "type": kind}]), encoding="utf-8")
    (base / "1").mkdir()
    named = {"types": {place: "sentence_transformers.models.Pooling"}, "structure": {"query": [place]}}
    (base / "1" / file).write_text(json.dumps(named), encoding="utf-8")
    with pytest.raises(ResourceError, match="leads out of the folder"):
        open_encoder(str(base))


def test_a_router_of_an_early_version_brings_no_code(base: Path) -> None:
    """It keeps its modules in a `config.json`."""
    kind = "sentence_transformers.models.Asym"
    (base / "modules.json").write_text(json.dumps([{"path": "1", "type": kind}]), encoding="utf-8")
    (base / "1").mkdir()
    named = {"types": {"a": "payload.Module"}, "structure": {"query": ["a"]}}
    (base / "1" / "config.json").write_text(json.dumps(named), encoding="utf-8")
    with pytest.raises(ResourceError, match=r"payload\.Module"):
        open_encoder(str(base))
