"""A llama.cpp server as a process of its own: `python llama_server.py FILE NAME KEY`.

It prints its address once the model is loaded, and ends when its standard input does, so that it can't outlive the tests.
The server is llama.cpp's own, in C++, out of the package xllamacpp; nothing of it is in Python but this start. It has one
slot, so that a request that is not let go of holds up the next one, and answers without chance.
"""

import os
import sys
from pathlib import Path

import xllamacpp

WINDOW = 2560
"""Tokens: room for the program's own prompt and tools, and little to fill where it is to overflow."""


def parameters(model: str, name: str, key: str) -> xllamacpp.CommonParams:
    """What the server is started with, as llama-server's own options."""
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.model_alias = {name}
    params.api_keys = [key]
    params.offline = True
    params.hostnames = ["127.0.0.1"]
    params.port = 0  # a free one
    params.n_ctx = WINDOW
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1  # two would wait for each other, busily
    params.warmup = False
    params.ui = False
    params.endpoint_metrics = True
    params.enable_reasoning = 0  # but where a request asks for it
    params.sampling.temp = 0
    params.chat_template = Path(__file__).with_name("chat_template.jinja").read_text(encoding="utf-8")
    return params


def main() -> None:
    # The library logs to standard output, which is to carry the address and nothing else.
    address = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    server = xllamacpp.Server(parameters(*sys.argv[1:]))
    print(server.listening_address, file=address, flush=True)
    sys.stdin.buffer.read()
    os._exit(0)  # what is still being generated is of no interest to anyone


if __name__ == "__main__":
    main()
