"""A Hugging Face classifier whose passes another runtime computes: exported once, its texts read as before.

The copy only says what it thinks of texts: no gradients, no attention, no noise in its embeddings. Whether it
decides as the original does is for whoever has texts to find out (see `runs/backend.py`).
"""

from __future__ import annotations

import contextlib
import logging
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from unfooled.batching import Meter
from unfooled.core.victim import SPECIMEN, Probabilities, Reloadable, TextValue, digest, softmax
from unfooled.device import CPU
from unfooled.errors import MissingExtraError, VictimError
from unfooled.extras import libraries_of
from unfooled.passes import device_of
from unfooled.victims.torch.huggingface import TORCH, HuggingFaceVictim
from unfooled.victims.torch.quiet import quiet
from unfooled.victims.torch.tokens import Tokens, tensors

# From named arrays of whole numbers to logits.
Compute: TypeAlias = Callable[[Mapping[str, Any]], Any]

_BLOCK = 32  # weights that share a scale in 8 bits


class CompiledVictim(Reloadable):
    """A copy of `original` in another runtime: `onnx`, `onnx-8bit` or `openvino`.

    Batches, widths and counters are the original's, so a text's scores do not depend on the texts beside it
    here either.

    Example:

        >>> data = unfooled.load_data("reviews.csv")
        >>> model = unfooled.train("lstm", data, "models/small", valid=0, options={"epochs": 1, "hidden": 8})
        >>> try:
        ...     unfooled.load_victim(str(model.path), backend="tensorrt")
        ... except unfooled.VictimError as error:
        ...     print(error.remedy)
        choose one of torch, onnx, onnx-8bit, openvino
    """

    batch_size = HuggingFaceVictim.batch_size
    capabilities = frozenset({"probabilities"})

    def __init__(self, original: HuggingFaceVictim, backend: str, compute: Compute) -> None:
        self.original = original
        self.backend = backend
        self.name = original.name
        self.labels = original.labels
        self.spec, self.options = original.spec, {**original.options, "backend": backend}
        self._compute = compute

    @property
    def meter(self) -> Meter:
        return self.original.meter

    @property
    def truncated(self) -> int:
        return self.original.truncated

    @property
    def max_tokens(self) -> int:
        return self.original.max_tokens

    def predict(self, texts: Sequence[TextValue], /) -> Probabilities:
        return softmax(self.raw_logits(texts)) if texts else np.zeros((0, len(self.labels)))

    def raw_logits(self, texts: Sequence[TextValue], /) -> Probabilities:
        return self.original.raw_logits(texts, self._run)

    def unread(self, texts: Sequence[TextValue], /) -> list[float]:
        return self.original.unread(texts)

    def fingerprint(self) -> str:
        return digest("backend", self.backend, self.original.fingerprint())

    def _run(self, tokenised: Sequence[Tokens], width: int) -> Any:
        return np.asarray(self._compute(_inputs(self.original, tokenised, width)), dtype=np.float64)


def compiled(original: HuggingFaceVictim, *backends: str) -> dict[str, CompiledVictim]:
    """Copies of a classifier in these runtimes, made from one export."""
    for backend in backends:
        require_backend(backend)
    if str(device_of(original.model)) != CPU:
        raise VictimError(
            f"backends compute on the processor, and {original.name} is on {device_of(original.model)}",
            "pass --device cpu, or leave --backend out",
        )
    for backend in backends:
        _require_libraries(backend)
    with tempfile.TemporaryDirectory() as folder, _silence():
        path = _export(original, Path(folder))
        return {
            backend: CompiledVictim(original, backend, _OPENED[backend](path, original))
            for backend in backends
        }


def available() -> list[str]:
    """The backends whose libraries are installed."""
    found = []
    for backend in _OPENED:
        with contextlib.suppress(MissingExtraError):
            _require_libraries(backend)
            found.append(backend)
    return found


def require_backend(backend: str) -> None:
    if backend not in _OPENED:
        raise VictimError(f"{backend!r} is no backend", f"choose one of {', '.join((TORCH, *_OPENED))}")


def _require_libraries(backend: str) -> None:
    with libraries_of("onnx", "onnx", "onnxscript", "onnxruntime", needed_for=f"the backend {backend}"):
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    if backend == "openvino":
        with libraries_of("openvino", "openvino", needed_for=f"the backend {backend}"):
            import openvino  # noqa: F401


def _inputs(
    original: HuggingFaceVictim, tokenised: Sequence[Tokens], width: int
) -> dict[str, np.ndarray[Any, np.dtype[np.int64]]]:
    """What the exported model reads: always with a mask, since its inputs are fixed."""
    found = {
        name: rows.numpy()
        for name, rows in tensors(tokenised, width, original.padding_id or 0).items()
    }  # fmt: skip
    found.setdefault("attention_mask", np.ones_like(found["input_ids"]))
    return found


def _export(original: HuggingFaceVictim, folder: Path) -> Path:
    """The model as an ONNX file for any number of rows of any width."""
    import torch

    (specimen,), _ = original.tokens([SPECIMEN])
    example = {
        name: torch.from_numpy(rows)
        for name, rows in _inputs(original, [specimen] * 3, len(specimen[0])).items()
    }
    names = list(example)

    class Logits(torch.nn.Module):
        def __init__(self, model: Any) -> None:
            super().__init__()
            self.model = model

        def forward(self, *rows: Any) -> Any:
            return self.model(**dict(zip(names, rows, strict=True))).logits

    path = folder / "model.onnx"
    free = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    try:
        program: Any = torch.onnx.export(
            Logits(original.model).eval(),
            tuple(example.values()),
            dynamo=True,
            dynamic_shapes={"rows": tuple(free for _ in names)},
            input_names=names,
            output_names=["logits"],
            verbose=False,
        )
        program.save(str(path))
    except Exception as error:  # the exporter and its libraries raise nearly anything
        why = " ".join(str(error).split())[:200]
        raise VictimError(
            f"{original.name} cannot be exported: {type(error).__name__}: {why}",
            "leave --backend out: torch runs every model",
        ) from error
    return path


def _onnx(path: Path, _original: HuggingFaceVictim) -> Compute:
    import onnxruntime
    import torch

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda inputs: session.run(None, dict(inputs))[0]


def _onnx_8bit(path: Path, original: HuggingFaceVictim) -> Compute:
    """Weights in 8 bits, a scale for every few of them, and rows of states likewise on their way: a scale
    that all rows of a batch share would let texts change their neighbours' scores."""
    import onnx
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    model = onnx.load(path)
    del model.graph.value_info[:]  # shapes of what is about to be replaced
    quantiser = MatMulNBitsQuantizer(model, bits=8, block_size=_BLOCK, is_symmetric=True, accuracy_level=4)
    quantiser.process()
    small = path.with_name("small.onnx")
    quantiser.model.save_model_to_file(str(small))
    return _onnx(small, original)


def _openvino(path: Path, _original: HuggingFaceVictim) -> Compute:
    import openvino
    import torch

    core = openvino.Core()
    # By itself it would round to 16 bits where the processor says that it can.
    exact = {
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": torch.get_num_threads(),
        "NUM_STREAMS": 1,
    }
    model = core.compile_model(core.read_model(path), "CPU", exact)
    request = model.create_infer_request()
    return lambda inputs: np.array(request.infer(dict(inputs))[model.output(0)])


_OPENED: dict[str, Callable[[Path, HuggingFaceVictim], Compute]] = {
    "onnx": _onnx,
    "onnx-8bit": _onnx_8bit,
    "openvino": _openvino,
}
BACKENDS = (TORCH, *_OPENED)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """No lines of exporters and quantisers: what goes wrong is raised."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with quiet():
            yield
    finally:
        logging.disable(before)
