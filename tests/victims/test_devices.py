"""Where models compute: the choice of a device, passes that do not fit into memory, precision.

Tests that take `stand_in` need the stand-in device: `pytest --stand-in-device`, which one of `tests/house`
does.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import unfooled
from unfooled import device
from unfooled.attacks.parts.constraints import SentenceSimilarity
from unfooled.batching import like_length
from unfooled.core.questions import mark
from unfooled.core.recipe import with_constraint
from unfooled.device import computing, require_precision, resolved, said
from unfooled.errors import UserError
from unfooled.plugins import registry
from unfooled.runs.workers.portions import PortionJob

torch = pytest.importorskip("torch")

from command_line import unfooled as typed  # noqa: E402
from reviews import sentences, write_csv  # noqa: E402
from tiny_language_models import causal, masked  # noqa: E402
from tiny_models import PIECES, save_bert, tiny  # noqa: E402
from toys import encoder  # noqa: E402
from unfooled.passes import Passes, device_of, is_out_of_memory, tokens_that_fit  # noqa: E402
from unfooled.resources.causal import CausalLM  # noqa: E402
from unfooled.resources.fillmask import MaskedLM, MaskItem  # noqa: E402
from unfooled.victims.torch.noise import NoisyText  # noqa: E402

TEXTS = [f"{word} film is {other}" for word in PIECES[6:12] for other in PIECES[:5]]
LOW_MEMORY = 4  # rows that fit


@pytest.fixture
def stand_in(request: pytest.FixtureRequest) -> ModuleType:
    if not request.config.getoption("--stand-in-device"):
        pytest.skip("needs pytest --stand-in-device")
    import stand_in

    return stand_in


@pytest.fixture
def here(request: pytest.FixtureRequest) -> None:
    """A test of machines without an accelerator."""
    if request.config.getoption("--stand-in-device") or torch.accelerator.is_available():
        pytest.skip("there is an accelerator")


@pytest.fixture
def bert(tmp_path: Path) -> str:
    folder = save_bert(
        tmp_path / "bert", PIECES[:20], hidden=16, positions=32, kind="BertForSequenceClassification"
    )
    return str(folder)


# -- which -----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("here")
def test_what_is_not_here_is_named_with_what_is() -> None:
    assert (resolved("cpu"), resolved("auto"), resolved("")) == ("cpu", "cpu", "cpu")
    for asked in ("cuda", "cuda:1", "mps"):
        with pytest.raises(UserError, match=rf"no device {asked} that torch can use here\n.*: cpu, or auto"):
            resolved(asked)
    for odd in ("cuda:x", "gpu 1", ":", "cuda:-1"):
        with pytest.raises(UserError, match="is no device"):
            resolved(odd)


@pytest.mark.usefixtures("here")
def test_the_command_line_says_it_in_one_line(tmp_path: Path) -> None:
    data = write_csv(tmp_path / "reviews.csv", sentences(4))
    told = typed("attack", "--model", "fake", "--data", str(data), "--device", "cuda:1", code=2, cwd=tmp_path)
    assert told.stderr.startswith("error: there is no device cuda:1 that torch can use here\n")
    assert "Traceback" not in told.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.usefixtures("here")
def test_automatic_needs_no_torch_where_no_driver_is() -> None:
    script = (
        "import sys, unfooled\nfrom unfooled.device import resolved\n"
        "with unfooled.computing('auto'): print(resolved(), 'torch' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert ran.stdout == "cpu False\n", ran.stderr


def test_what_was_said_ends_with_the_block() -> None:
    before = said()
    with computing("cpu"):
        assert said().device == "cpu"
        with computing(None, None):
            assert said().device == "cpu"
    assert said() == before


def test_several_devices_are_spread_over_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "_accelerators", lambda: ["cuda:0", "cuda:1", "cuda:2"])
    found = []
    for number in ((), (1,), (2,), (3,), (4,)):
        monkeypatch.setattr(multiprocessing.current_process(), "_identity", number)
        found.append(resolved("cuda"))
    assert found == ["cuda:0", "cuda:0", "cuda:1", "cuda:2", "cuda:0"]
    assert resolved("cuda:2") == "cuda:2"
    with pytest.raises(UserError, match="cuda:0, cuda:1, cuda:2, cpu, or auto"):
        resolved("cuda:3")


def test_the_run_says_where_its_models_were(tmp_path: Path, bert: str) -> None:
    from unfooled.runs.file import RunFile

    run = unfooled.attack(bert, [("good", "LABEL_0"), ("dull", "LABEL_1")], "deepwordbug", out=tmp_path / "r")
    file = RunFile.read(run.path)
    assert file.header["environment"]["device"].startswith(resolved())
    assert "precision" not in file.header["identity"]
    model = file.counters()["victim"]["model"]
    assert model["largest"] > 0
    assert model["out_of_memory"] == 0
    file.close()


# -- precision -------------------------------------------------------------------------------------


def test_a_processor_that_would_stop_the_program_is_found_out_beside_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    require_precision.cache_clear()
    crashed = subprocess.CompletedProcess([], -4, "", "")
    monkeypatch.setattr(subprocess, "run", lambda *args, **more: crashed)
    with pytest.raises(UserError, match=r"in bf16 here \(it stops the program with signal 4\)"):
        require_precision("cpu", "bf16")
    require_precision.cache_clear()


def test_what_lies_in_the_users_folder_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torch.py").write_text("open('run', 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    require_precision.cache_clear()
    with contextlib.suppress(UserError):  # whether the processor can is not the question
        require_precision("cpu", "bf16")
    assert not (tmp_path / "run").exists()


def test_a_try_that_does_not_end_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def hangs(command: list[str], **more: Any) -> Any:
        raise subprocess.TimeoutExpired(command, 120)

    require_precision.cache_clear()
    monkeypatch.setattr(subprocess, "run", hangs)
    with pytest.raises(UserError, match="no answer in two minutes"):
        require_precision("cpu", "fp16")
    require_precision.cache_clear()


def test_the_trial_of_recurrent_models_works_where_nothing_is_rounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A refusal is to be the processor's fault, never that of the trial."""
    whole = device._TRY.replace('torch.autocast("cpu", dtype)', "torch.no_grad()")
    assert whole != device._TRY
    monkeypatch.setattr(device, "_TRY", whole)
    require_precision.cache_clear()
    require_precision("cpu", "bf16", recurrent=True)
    require_precision.cache_clear()


def test_no_other_precision() -> None:
    with pytest.raises(UserError, match="choose one of fp32, bf16, fp16"), computing("cpu", "fp8"):
        pass


@pytest.mark.usefixtures("here")
def test_settings_hold_for_whatever_an_attack_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers open their models as the settings say; so does an attack in this process."""
    monkeypatch.setattr(device, "require_precision", lambda device, precision, recurrent=False: None)
    heard: list[device.Compute] = []
    own = registry.load

    def load(kind: str, name: str) -> Any:
        def opened(variant: str) -> Any:
            heard.append(said())
            return encoder()

        return opened if (kind, name) == ("oracle", "encode") else own(kind, name)

    monkeypatch.setattr(registry, "load", load)
    monkeypatch.setattr("unfooled.core.session._fingerprint", lambda name, variant: "toy")
    similar = SentenceSimilarity(
        threshold=0.5, scale="cosine", window=None, encoder="toy", published_for="toy"
    )
    recipe = with_constraint(unfooled.load_recipe("deepwordbug"), similar)
    settings = unfooled.Settings(device="cpu", precision="bf16")
    unfooled.attack("fake", [("a superb film", "positive")], recipe, settings=settings)
    assert set(heard) == {device.Compute("cpu", "bf16")}


def test_portions_compute_where_it_was_said() -> None:
    found: list[str] = []

    def opens() -> Any:
        found.append(said().device)
        return list

    with computing("cpu"):
        job = PortionJob(opens, lambda item, cause: None)
    job.open()  # in the worker, where nobody said anything
    assert found == ["cpu"]


@pytest.mark.processor_only
def test_precision_is_part_of_what_a_run_is(tmp_path: Path, bert: str) -> None:
    try:
        require_precision("cpu", "fp16")
    except UserError as error:
        pytest.skip(error.cause)
    exact: Any = unfooled.load_victim(bert)
    rounded: Any = unfooled.load_victim(bert, precision="fp16")
    assert exact.fingerprint() == unfooled.load_victim(bert, precision="fp32").fingerprint()
    assert exact.fingerprint() != rounded.fingerprint()
    sure, unsure = exact.predict(TEXTS), rounded.predict(TEXTS)
    assert np.abs(sure - unsure).max() < 0.01
    assert not np.array_equal(sure, unsure)
    # Passes with gradients are those of whole numbers.
    assert np.array_equal(exact.gradients(TEXTS[:2])[0].vectors, rounded.gradients(TEXTS[:2])[0].vectors)
    assert rounded.options["precision"] == "fp16"  # so that a worker loads the same
    assert unfooled.Settings(seed=1).identity() == {"seed": 1, "budget": None, "max_words": 5000}
    with computing(None, "fp16"):
        assert unfooled.Settings().identity()["precision"] == "fp16"


# -- passes ----------------------------------------------------------------------------------------


class Full:
    """A model's memory: above `rows` rows a pass fails, as on a device."""

    def __init__(self, model: Any, rows: int) -> None:
        self.model, self.rows, self.failed = model, rows, 0
        self.usual = model.forward

    def __enter__(self) -> Full:
        def forward(*args: Any, **inputs: Any) -> Any:
            if len(inputs.get("input_ids", args[0] if args else ())) > self.rows:
                self.failed += 1
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
            return self.usual(*args, **inputs)

        self.model.forward = forward
        return self

    def __exit__(self, *_: object) -> None:
        self.model.forward = self.usual


@pytest.fixture(params=["bert", "lstm", "gpt2"])
def victim(request: pytest.FixtureRequest) -> Any:
    return tiny(request.param)


def test_a_full_memory_halves_the_pass_and_changes_nothing(victim: Any) -> None:
    expected = victim.predict(TEXTS)
    before = victim.max_tokens
    with Full(victim.model, LOW_MEMORY) as memory:
        assert np.allclose(victim.predict(TEXTS), expected, atol=1e-6)
        first = memory.failed
        assert first == victim.meter.out_of_memory > 0
        assert victim.max_tokens < before
        victim.predict(TEXTS)
        assert memory.failed <= first + 2  # what was learned holds for the next call


def test_so_do_gradients_attention_and_embeddings(victim: Any) -> None:
    texts = TEXTS[:12]
    calls: dict[str, Callable[[], Any]] = {
        "gradients": lambda: [row.vectors for row in victim.gradients(texts)],
        "jacobian": lambda: victim.jacobian(texts),
        "embeddings": lambda: [row.input for row in victim.embeddings(texts)],
        "zeroed": lambda: victim.zeroed([(text, 0) for text in texts]),
        "sentence": lambda: victim.sentence_vectors(texts),
    }
    expected = {name: call() for name, call in calls.items()}
    with Full(victim.model, LOW_MEMORY) as memory:
        for name, call in calls.items():
            victim.max_tokens = 2048
            failed = memory.failed
            for found, known in zip(call(), expected[name], strict=True):
                assert np.allclose(found, known, atol=1e-5)
            assert memory.failed > failed, name


def test_a_pass_in_halves_has_the_same_noise() -> None:
    victim = tiny("bert")

    def items() -> list[NoisyText]:
        return [NoisyText(mark(text), (0, 1), np.random.default_rng(n)) for n, text in enumerate(TEXTS[:8])]

    expected = victim.noisy_logits(items(), sigma=0.5, copies=3)
    with Full(victim.model, 6):
        assert np.allclose(victim.noisy_logits(items(), sigma=0.5, copies=3), expected, atol=1e-5)
    assert victim.meter.out_of_memory


def test_language_models_go_on_in_halves() -> None:
    filler, writer = MaskedLM(*masked()), CausalLM(*causal())
    gaps = [MaskItem(f"{word} ", f" is {other}", 3) for word in PIECES[6:12] for other in PIECES[:6]]
    texts = [f"{word} film is {other}" for word in PIECES[6:12] for other in PIECES[:6]]
    known = filler(gaps), writer(texts)
    with Full(filler.model, 20), Full(writer.model, 8):
        filler.max_tokens = writer.max_tokens = 2048
        assert filler(gaps) == known[0]
        assert [score[1:] for score in writer(texts)] == [score[1:] for score in known[1]]
    assert writer.meter.out_of_memory
    assert filler.meter.out_of_memory


def test_one_text_that_does_not_fit_is_an_error() -> None:
    victim = tiny("bert")
    with Full(victim.model, 0), pytest.raises(torch.OutOfMemoryError):
        victim.predict(TEXTS[:2])


def test_other_errors_are_no_lack_of_memory() -> None:
    assert is_out_of_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"))
    assert is_out_of_memory(RuntimeError("MPS backend out of memory (MPS allocated: 9 GB)"))
    assert not is_out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    assert not is_out_of_memory(MemoryError())


def test_every_sequence_has_its_pass() -> None:
    victim = tiny("bert")
    lengths = [3, 3, 5, 3, 5, 9, 3, 3]
    done: list[int] = []
    failures = iter([True, False, True, False])
    for batch in Passes(victim, like_length(lengths, 1000, most=0)):
        with batch as group:
            if len(group) > 1 and next(failures, False):
                raise torch.OutOfMemoryError("full")
            done += group
    assert sorted(done) == list(range(len(lengths)))


def test_a_processor_keeps_its_pass_size() -> None:
    with computing("cpu"):
        victim = tiny("bert")
    assert tokens_that_fit(victim.model, 123, 16, lambda ids: victim.model(input_ids=ids)) == 123


# -- on the stand-in -------------------------------------------------------------------------------


@pytest.fixture
def small_memory(stand_in: ModuleType) -> Iterator[None]:
    with stand_in.memory_of(400_000):
        yield


def test_the_stand_in_notices_what_is_elsewhere(stand_in: ModuleType) -> None:
    there = torch.ones(3, device=stand_in.NAME)
    tries: list[Callable[[], Any]] = [lambda: there + torch.ones(3), lambda: there[torch.tensor([0])]]
    for mixed in tries:
        with torch.enable_grad(), pytest.raises(stand_in.WrongDeviceError):
            mixed()
    assert len(stand_in.mixed) == 2
    stand_in.mixed.clear()
    assert float((there * torch.tensor(2.0)).sum()) == 6.0  # a single number may join


def test_a_model_is_where_it_was_sent(stand_in: ModuleType, bert: str) -> None:
    there: Any = unfooled.load_victim(bert, device=stand_in.NAME)
    here: Any = unfooled.load_victim(bert, device="cpu")
    assert str(device_of(there.model)) == f"{stand_in.NAME}:0"
    assert str(device_of(here.model)) == "cpu"
    assert np.allclose(there.predict(TEXTS), here.predict(TEXTS), atol=1e-6)
    assert there.fingerprint() == here.fingerprint()
    assert there.apart
    assert not here.apart


@pytest.mark.parametrize("attack", ["deepwordbug", "hotflip", "bae"])
def test_attacks_find_the_same_as_on_the_processor(stand_in: ModuleType, tmp_path: Path, attack: str) -> None:
    from unfooled.core.recipe import load_recipe, with_everywhere

    recipe = load_recipe(attack)
    if attack == "bae":
        from tiny_language_models import save

        language = save(masked(), tmp_path / "masked")
        recipe = with_everywhere(recipe, "masked_lm", str(language))
    victims = {}
    for name in ("cpu", stand_in.NAME):
        with computing(name):
            victims[name] = tiny("bert", classes=2)
    labels = [victims["cpu"].labels[at] for at in victims["cpu"].predict(TEXTS[:10]).argmax(axis=1)]
    rows = list(zip(TEXTS[:10], labels, strict=True))
    found = {
        name: list(
            unfooled.attack(
                victims[name], rows, recipe, device=name, settings=unfooled.Settings(budget=80)
            ).results()
        )
        for name in victims
    }
    told = {name: [(r.key, r.outcome, r.perturbed, r.queries) for r in rows] for name, rows in found.items()}
    assert told["cpu"] == told[stand_in.NAME]


def test_memory_decides_the_size_of_a_pass(stand_in: ModuleType) -> None:
    sizes = []
    for size in (1 << 22, 1 << 25):
        with stand_in.memory_of(size):
            sizes.append(tiny("bert").max_tokens)
    assert sizes[1] >= 4 * sizes[0] > 0
    with computing("cpu"):
        assert tiny("bert").max_tokens == 2048


@pytest.mark.usefixtures("small_memory")
def test_a_small_memory_gives_the_same_answers(stand_in: ModuleType) -> None:
    victim = tiny("bert", max_tokens=4096)
    texts = [f"{word} film is {other}" for word in PIECES for other in PIECES]
    found = victim.predict(texts)
    assert victim.meter.out_of_memory > 0
    with stand_in.memory_of(1 << 30):
        assert np.allclose(tiny("bert", max_tokens=4096).predict(texts), found, atol=1e-6)


def test_workers_have_the_device_too(
    stand_in: ModuleType, tmp_path: Path, bert: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(stand_in.COUNT, "2")
    rows = [(text, f"LABEL_{number % 2}") for number, text in enumerate(TEXTS[:8])]
    with computing("auto"):
        both = [
            list(unfooled.attack(bert, rows, "deepwordbug", out=tmp_path / str(n), workers=n).results())
            for n in (1, 2)
        ]
    assert [(r.key, r.outcome, r.perturbed) for r in both[0]] == [
        (r.key, r.outcome, r.perturbed) for r in both[1]
    ]


@pytest.mark.parametrize("family", ["lstm", "bert-scratch"])
def test_training_and_hardening(stand_in: ModuleType, tmp_path: Path, family: str) -> None:
    from tiny_training import options_of, singles

    options = options_of(family, epochs=1)
    trained = unfooled.train(family, singles(24), tmp_path / "model", options=options)
    assert "valid" in trained.metrics
    hardened = unfooled.harden(
        str(trained.path), singles(24), method="freelb", out=tmp_path / "hard", options={"epochs": 1}
    )
    victim: Any = unfooled.load_victim(str(hardened.path))
    assert victim.apart
