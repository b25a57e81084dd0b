"""The programs that `terminal.py` measures, each set up to ask a provider on loopback."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FLOOR = """
import json, os, socket, sys, termios, tty
body = b'{"model": "stub", "stream": true, "messages": []}'
saved = termios.tcgetattr(0)
tty.setcbreak(0)
os.write(1, b"> ")
while os.read(0, 1) not in b"\\r\\n":
    pass
link = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
link.sendall(b"POST /v1/chat/completions HTTP/1.1\\r\\ncontent-length: %d\\r\\n\\r\\n%b" % (len(body), body))
held = b""
try:
    while piece := link.recv(65536):
        *lines, held = (held + piece).split(b"\\n")
        for line in lines:
            if line.startswith(b"data: {"):
                for choice in json.loads(line[6:])["choices"]:
                    os.write(1, choice["delta"].get("content", "").encode())
except KeyboardInterrupt:
    link.close()
os.write(1, b"\\n> ")
os.read(0, 1)
termios.tcsetattr(0, termios.TCSADRAIN, saved)
"""

CODEX_PROMPT = "\u203a "
CODEX = """
model = "stub"
model_provider = "stub"
check_for_update_on_startup = false
approval_policy = "never"
sandbox_mode = "read-only"
[model_providers.stub]
name = "stub"
base_url = "{url}"
wire_api = "responses"
[projects."{folder}"]
trust_level = "trusted"
[analytics]
enabled = false
"""

LLM = """
- model_id: stub
  model_name: stub
  api_base: "{url}"
"""


class Program(NamedTuple):
    """prompt: what a row of the screen begins with once one can type. stop: the key that ends an answer."""

    name: str
    command: list[str]
    environment: dict[str, str]
    prompt: str = "> "
    stop: bytes = b"\x03"


def programs(port: int, folder: Path, codex: str | None, llm: str | None) -> Iterator[Program]:
    """What is there to be measured, set up in `folder`; they work in the folder `work` in it."""
    url = f"http://127.0.0.1:{port}/v1"
    yield Program("floor", [sys.executable, "-I", "-c", FLOOR, str(port)], {})
    ours = {"MINI_AGENT_HOME": str(folder / "mini"), "MINI_AGENT_BASE_URL": url, "MINI_AGENT_MODEL": "stub"}
    yield Program("mini-agent", [str(Path(sys.executable).with_name("mini-agent"))], ours)
    if codex:
        home = folder / "codex"
        home.mkdir()
        (home / "config.toml").write_text(CODEX.format(url=url, folder=folder / "work"))
        yield Program("codex", [codex], {"CODEX_HOME": str(home)}, CODEX_PROMPT, b"\x1b")
    if llm:
        home = folder / "llm"
        home.mkdir()
        (home / "extra-openai-models.yaml").write_text(LLM.format(url=url))
        their = {"LLM_USER_PATH": str(home), "OPENAI_API_KEY": "none"}
        yield Program("llm", [llm, "chat", "-m", "stub"], their)
