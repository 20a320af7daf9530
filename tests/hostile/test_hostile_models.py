"""Model folders and files made to run code, to call somebody, to fill the memory, or simply broken.

What must come out is one clean error with a remedy, or, where what is evil is only ignored, the right answer.
Meanwhile no canary may sing: the marker that every payload would write, and any connection or process.
"""

from __future__ import annotations

import json
import os
import pickle
import resource
import shutil
import struct
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hostile import some
from tiny_models import tiny
from unfooled.defenses.harden import harden
from unfooled.errors import UserError
from unfooled.resources.encoders import open_encoder
from unfooled.resources.pretrained import load_pretrained
from unfooled.victims.loading import load_victim

TEXTS = ["the film is good", "a dull plot"]
MOST_MEMORY = 2_000_000  # kilobytes that one case may add to the peak
SECRET = "UNFOOLED_TEST_SECRET"


@dataclass
class Canary:
    """Sings when a payload ran, when anybody was called, and when a process was started."""

    marker: Path
    address: str = ""
    calls: list[str] = field(default_factory=list)

    def payload(self) -> str:
        return f"import pathlib\npathlib.Path({str(self.marker)!r}).touch()\ndef f(texts): return []\n"

    def pickled(self) -> bytes:
        return pickle.dumps(_Bomb(str(self.marker)))

    def assert_silent(self) -> None:
        assert not self.marker.exists(), "code of the model ran"
        assert self.calls == [], "somebody was called"


class _Bomb:
    def __init__(self, marker: str) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path(self.marker),))


_watching: list[Canary] = []


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if _watching and event in ("socket.connect", "subprocess.Popen", "os.system", "os.posix_spawn"):
        _watching[-1].calls.append(f"{event} {arguments[1:2]}")


@pytest.fixture(scope="module", autouse=True)
def audit() -> None:
    sys.addaudithook(_watch)  # cannot be taken away again; it does nothing while no canary watches


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server on this machine that would be glad to be called."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            for canary in _watching:
                canary.calls.append(f"POST {dict(self.headers)}")
            self.send_response(200)
            self.end_headers()

        do_GET = do_POST

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/classify"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds a sound model and a defence around it."""
    home = tmp_path_factory.mktemp("good")
    model = tiny("bert", classes=2)
    model.model.save_pretrained(home / "base")
    model.tokenizer.save_pretrained(home / "base")
    harden(str(home / "base"), method="five", out=home / "five", options={"copies": 2})
    harden(
        str(home / "base"),
        method="fuse",
        out=home / "fuse",
        options={"alternatives": 2, "similarity": "filter"},
    )
    return home


@pytest.fixture(scope="module")
def answers(good: Path) -> dict[str, Any]:
    return {name: load_victim(str(good / name)).predict(TEXTS) for name in ("base", "five")}


# -- how each case is made: `make(home, canary)` spoils a copy of the good folders ----------------------

Make = Callable[[Path, Canary], None]


@dataclass(frozen=True)
class Case:
    name: str
    make: Make
    load: str = "base"  # what is loaded: a folder or file of the copy
    how: str = "victim"  # or as an encoder, or as a masked language model
    right: str = ""  # whose answers it must give, where it is harmless


def rewrite(file: Path, **changes: Any) -> None:
    content = json.loads(file.read_text(encoding="utf-8"))
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(content.get(key), dict):
            content[key] |= value
        else:
            content[key] = value
    file.write_text(json.dumps(content), encoding="utf-8")


def defense(name: str, kind: str = "five", right: str = "", **changes: Any) -> Case:
    """A defence that says something else; ADDRESS is that of the waiting server."""

    def make(home: Path, canary: Canary) -> None:
        for place in (home / kind, home):
            (place / "payload.py").write_text(canary.payload(), encoding="utf-8")
        told = json.loads(json.dumps(changes).replace("ADDRESS", canary.address))
        rewrite(home / kind / "defense.json", **told)

    return Case(f"defence: {name}", make, load=kind, right=right)


def config(
    name: str, file: str = "config.json", right: str = "", how: str = "victim", **changes: Any
) -> Case:
    def make(home: Path, canary: Canary) -> None:
        (home / "base" / "payload.py").write_text(canary.payload(), encoding="utf-8")
        rewrite(home / "base" / file, **changes)

    return Case(f"model: {name}", make, right=right, how=how)


def model(name: str, make: Make, right: str = "", how: str = "victim") -> Case:
    return Case(f"model: {name}", make, right=right, how=how)


def sklearn(name: str, file: str, make: Make) -> Case:
    return Case(f"scikit-learn: {name}", make, load=file)


def encoder(name: str, modules: list[dict[str, Any]], make: Make = lambda home, canary: None) -> Case:
    def spoil(home: Path, canary: Canary) -> None:
        (home / "base" / "payload.py").write_text(canary.payload(), encoding="utf-8")
        listed = [{"idx": number, "name": str(number), **module} for number, module in enumerate(modules)]
        (home / "base" / "modules.json").write_text(json.dumps(listed), encoding="utf-8")
        make(home, canary)

    return Case(f"encoder: {name}", spoil, how="encoder")


def link_away(home: Path, canary: Canary) -> None:
    outside = home.parent / "outside"
    shutil.copytree(home / "base", outside)
    (home / "five" / "inner").symlink_to(outside, target_is_directory=True)
    rewrite(home / "five" / "defense.json", model="inner")


def link_in_a_circle(home: Path, canary: Canary) -> None:
    (home / "five" / "inner").symlink_to("inner")
    rewrite(home / "five" / "defense.json", model="inner")


def around_each_other(home: Path, canary: Canary) -> None:
    rewrite(home / "five" / "defense.json", model="../fuse")
    rewrite(home / "fuse" / "defense.json", model="../five")


def write(file: str, content: str | bytes) -> Make:
    def make(home: Path, canary: Canary) -> None:
        place = home / file
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)

    return make


def folder_instead(file: str) -> Make:
    def make(home: Path, canary: Canary) -> None:
        (home / file).unlink()
        (home / file).mkdir()

    return make


def pickle_as(file: str, *without: str) -> Make:
    """A pickle that runs code when it is opened, under another name."""

    def make(home: Path, canary: Canary) -> None:
        for name in without:
            (home / name).unlink()
        (home / file).parent.mkdir(parents=True, exist_ok=True)
        (home / file).write_bytes(canary.pickled())

    return make


def pickle_beside(home: Path, canary: Canary) -> None:
    (home / "evil.joblib").write_bytes(canary.pickled())
    rewrite(home / "five" / "defense.json", model="../evil.joblib")


def torch_pickle(home: Path, canary: Canary) -> None:
    import torch

    torch.save({"x": _Bomb(str(canary.marker))}, home / "base" / "pytorch_model.bin")
    (home / "base" / "model.safetensors").unlink()


def cut(home: Path, canary: Canary) -> None:
    weights = home / "base" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])


def endless_header(home: Path, canary: Canary) -> None:
    weights = home / "base" / "model.safetensors"
    weights.write_bytes(struct.pack("<Q", 10**15) + weights.read_bytes()[8:])


def huge_tensor(home: Path, canary: Canary) -> None:
    header = json.dumps({"x": {"dtype": "F32", "shape": [10**12], "data_offsets": [0, 4 * 10**12]}}).encode()
    write("base/model.safetensors", struct.pack("<Q", len(header)) + header)(home, canary)


def no_numbers(home: Path, canary: Canary) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(home / "base" / "model.safetensors")
    weights["classifier.weight"][0, 0] = float("nan")
    save_file(weights, home / "base" / "model.safetensors", metadata={"format": "pt"})


def shards(name: str) -> Make:
    def make(home: Path, canary: Canary) -> None:
        (home / "evil.bin").write_bytes(canary.pickled())
        (home / "base" / "evil.bin").write_bytes(canary.pickled())
        (home / "base" / "model.safetensors").unlink()
        index = {"metadata": {"total_size": 1}, "weight_map": {"classifier.weight": name}}
        write("base/model.safetensors.index.json", json.dumps(index))(home, canary)

    return make


def own_generation(home: Path, canary: Canary) -> None:
    write("base/custom_generate/generate.py", canary.payload())(home, canary)


def skops_of(module: str, name: str) -> Make:
    """A skops file whose schema asks for any type."""

    def make(home: Path, canary: Canary) -> None:
        (home / "payload.py").write_text(canary.payload(), encoding="utf-8")
        schema = {
            "__class__": name,
            "__module__": module,
            "__loader__": "ObjectNode",
            "__id__": 1,
            "content": {"__class__": "dict", "__module__": "builtins", "__loader__": "DictNode", "__id__": 2,
                        "content": {}, "key_types": {"__class__": "list", "__module__": "builtins",
                                                     "__loader__": "ListNode", "__id__": 3, "content": []}},
            "protocol": 2,
            "_skops_version": "0.16.0",
        }  # fmt: skip
        with zipfile.ZipFile(home / "model.skops", "w") as archive:
            archive.writestr("schema.json", json.dumps(schema))

    return make


def skops_text(schema: str) -> Make:
    def make(home: Path, canary: Canary) -> None:
        with zipfile.ZipFile(home / "model.skops", "w") as archive:
            archive.writestr("schema.json", schema)

    return make


TRANSFORMER = {"path": "", "type": "sentence_transformers.models.Transformer"}
DENSE = {"path": "2_Dense", "type": "sentence_transformers.models.Dense"}
POOLING = {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}
_DENSE = {"in_features": 16, "out_features": 4, "bias": True, "activation_function": "torch.nn.Tanh"}


def dense(**changes: Any) -> Make:
    def make(home: Path, canary: Canary) -> None:
        pooling = {"word_embedding_dimension": 16, "pooling_mode_mean_tokens": True}
        write("base/1_Pooling/config.json", json.dumps(pooling))(home, canary)
        write("base/2_Dense/config.json", json.dumps(_DENSE | changes))(home, canary)
        if changes:
            import torch
            from safetensors.torch import save_file

            layer = {"linear.weight": torch.zeros(4, 16), "linear.bias": torch.zeros(4)}
            save_file(layer, home / "base" / "2_Dense" / "model.safetensors")
        else:
            pickle_as("base/2_Dense/pytorch_model.bin")(home, canary)

    return make


DEEP = "[" * 100_000
SECRETS = {"headers": {"x": f"env:{SECRET}"}, "trust_pickle": True, "trust_remote_code": True}
CODE = {
    "AutoConfig": "payload.C",
    "AutoModelForSequenceClassification": "payload.M",
    "AutoModel": "payload.M",
}

CASES = [
    defense("a function of a file in it", model="payload.py:f"),
    defense("a function, with its kind said", model="python:payload.py:f"),
    defense("a function of a module where one stands", model="payload:f"),
    defense("a function inside another model", model="noisy:payload.py:f"),
    defense("an address", model="ADDRESS"),
    defense("an address inside another model", model="rounded:ADDRESS", options=SECRETS),
    defense("a name on the hub", model="nobody/nothing"),
    defense("a name on the hub, with its kind said", model="hf:nobody/nothing"),
    defense("an absolute path", model="/tmp"),
    defense("a path that leads out", model="../../../../../../tmp"),
    defense("a path that leads out and back", model="../../outside/../outside"),
    defense("a home folder", model="~root"),
    defense("itself", model="."),
    defense("a file that is no model", model="payload.py"),
    defense("a device", model="hf:../../../../../../../../dev/zero"),
    defense("a name that no file system takes", model="x\u0000y"),
    defense("a very long name", model="x/" * 5000),
    defense("a thousand defences in one", model="five:" * 1000 + "../base"),
    defense("options with secrets of the environment", right="five", options=SECRETS),
    defense("copies without end", settings={"copies": 10**9}),
    defense("noise that is no number", settings={"sigma": float("nan")}),
    defense("a setting that nobody knows", settings={"__class__": "x"}),
    defense("settings that are a list", settings=[1]),
    defense("a model that is a list", model=["payload.py:f"]),
    defense("a method that is a path", method="../payload"),
    defense("gradients of a function", kind="fuse", settings={"switch_model": "payload.py:f"}),
    defense("gradients of an address", kind="fuse", settings={"switch_model": "ADDRESS"}),
    defense("an encoder on the hub", kind="fuse", settings={"encoder": "nobody/nothing"}),
    defense("a table outside", kind="fuse", settings={"table": "/etc/passwd"}),
    Case("defence: a link out of the folder", link_away, load="five"),
    Case("defence: a link in a circle", link_in_a_circle, load="five"),
    Case("defence: two around each other", around_each_other, load="five"),
    Case("defence: a pickle beside it", pickle_beside, load="five"),
    Case("defence: nested without end", write("five/defense.json", DEEP), load="five"),
    Case("defence: bytes", write("five/defense.json", b"\xff\xfe\x00"), load="five"),
    Case("defence: a folder instead of the file", folder_instead("five/defense.json"), load="five"),
    config("code of its own", model_type="mine", auto_map=CODE),
    config("code of its own beside a known architecture", auto_map=CODE),
    config("code of somebody on the hub", auto_map={"AutoConfig": "nobody/nothing--payload.C"}),
    config("a tokenizer with code", "tokenizer_config.json", auto_map={"AutoTokenizer": ["payload.T", None]}),
    config("a foreign tokenizer", "tokenizer_config.json", right="base", tokenizer_class="payload.T"),
    config("a template with code", "tokenizer_config.json", right="base", chat_template="{{ x.__class__ }}"),
    config("code for a language model", how="masked", auto_map=CODE),
    config("code for an encoder", how="encoder", auto_map=CODE),
    config("attention to be fetched", attn_implementation="nobody/kernel"),
    config("ten million layers", num_hidden_layers=10**7),
    config("a billion classes", num_labels=10**9),
    config("vectors of a billion numbers", hidden_size=2**30),
    config("a vocabulary that fills any memory", vocab_size=2**24, hidden_size=2**14),
    config("a size below zero", hidden_size=-16),
    config("a size that is a word", num_hidden_layers="many"),
    config("a number with a thousand digits", vocab_size=10**1000),
    config("classes that are a list", id2label=[1, 2, 3]),
    model("a configuration nested without end", write("base/config.json", '{"a":' * 50_000)),
    model("a configuration that is a list", write("base/config.json", "[1]")),
    model("a configuration of a hundred megabytes", write("base/config.json", " " * 100_000_000)),
    model("an adapter", write("base/adapter_config.json", '{"base_model_name_or_path": "nobody/nothing"}')),
    model("a pickle under the name of safetensors", pickle_as("base/model.safetensors")),
    model("a pickle with the library's own ending", torch_pickle),
    model("a pickle beside sound weights", pickle_as("base/pytorch_model.bin"), right="base"),
    model("code to write text with", own_generation, right="base"),
    model("weights cut short", cut),
    model("a header without end", endless_header),
    model("a tensor of terabytes", huge_tensor),
    model("weights that are no numbers", no_numbers),
    model("a list of weights that leads out", shards("../evil.safetensors")),
    model("a list of weights that names a pickle", shards("evil.bin")),
    model("a folder instead of weights", folder_instead("base/model.safetensors")),
    model("a folder instead of the tokenizer", folder_instead("base/tokenizer.json")),
    model("an empty tokenizer", write("base/tokenizer.json", "{}")),
    sklearn("a pickle under the name of skops", "model.skops", pickle_as("model.skops")),
    sklearn("a pickle", "model.pkl", pickle_as("model.pkl")),
    sklearn("a pickle in a trained folder", "trained", pickle_as("trained/model.skops")),
    sklearn("a type of Python itself", "model.skops", skops_of("os", "system")),
    sklearn("a type of a file beside it", "model.skops", skops_of("payload", "f")),
    sklearn("a schema nested without end", "model.skops", skops_text(DEEP)),
    sklearn("a schema that is none", "model.skops", skops_text('{"__loader__": "nothing"}')),
    encoder("a module of its own", [{"path": "", "type": "payload.Module"}]),
    encoder("a module of Python itself", [{"path": "", "type": "os.system"}]),
    encoder("a path that leads out", [TRANSFORMER | {"path": "../../.."}]),
    encoder("a pickled layer", [TRANSFORMER, POOLING, DENSE], dense()),
    encoder("a layer with code", [TRANSFORMER, POOLING, DENSE], dense(activation_function="payload.f")),
    encoder("a layer that fetches", [TRANSFORMER, POOLING, DENSE], dense(activation_function="torch.hub.x")),
]  # fmt: skip


def load(case: Case, place: Path) -> Any:
    if case.how == "encoder":
        return open_encoder(str(place))
    if case.how == "masked":
        return load_pretrained("masked", str(place))
    return load_victim(str(place))


@pytest.mark.hostile("model folders and files")
@pytest.mark.parametrize("case", some(CASES, few=14), ids=lambda case: case.name)
def test_nothing_runs_and_nobody_is_called(
    case: Case,
    good: Path,
    answers: dict[str, Any],
    address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home = tmp_path / "home"
    shutil.copytree(good, home)
    monkeypatch.setenv(SECRET, "a secret")
    canary = Canary(tmp_path / "ran", address)
    case.make(home, canary)
    monkeypatch.chdir(home)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _watching.append(canary)
    try:
        if case.right:
            np.testing.assert_array_equal(load(case, home / case.load).predict(TEXTS), answers[case.right])
        else:
            with pytest.raises(UserError) as caught:
                load(case, home / case.load)
            assert caught.value.cause
            assert caught.value.remedy
            assert "\n" not in caught.value.cause
            assert len(caught.value.cause) < 1000 + len(str(home))
    finally:
        _watching.remove(canary)
    canary.assert_silent()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_MEMORY
    assert os.getcwd() == str(home)


def test_the_canary_sings(tmp_path: Path, address: str) -> None:
    """Each payload does run when it is let: silence means something."""
    import urllib.request

    canary = Canary(tmp_path / "ran", address)
    pickle.loads(canary.pickled())
    assert canary.marker.exists()
    canary.marker.unlink()
    exec(canary.payload(), {})
    assert canary.marker.exists()
    _watching.append(canary)
    try:
        urllib.request.urlopen(address, timeout=10).read()
    finally:
        _watching.remove(canary)
    assert any("socket.connect" in call for call in canary.calls)
    assert any("POST" in call for call in canary.calls)
