"""The whole program against a real server: a question on the command line, an answer on standard output."""

import json

import pytest
from programs import run
from real_server import KEY, MODEL

pytestmark = pytest.mark.real


@pytest.mark.parametrize("arguments", [[], ["--no-stream"]], ids=["streamed", "whole"])
def test_0_the_program_answers(real_server, api, arguments, tmp_path):
    result = run(
        "-p",
        "Say hi",
        "--output-format",
        "json",
        "--max-tokens",
        "8",
        *arguments,
        cwd=tmp_path,
        env={
            "MINI_AGENT_PROFILE": "llama.cpp",
            "MINI_AGENT_BASE_URL": real_server.base_url,
            "MINI_AGENT_API": api,
            "MINI_AGENT_MODEL": MODEL,
            "MINI_AGENT_API_KEY": KEY,
        },
    )
    assert result.returncode == 0
    assert result.stderr in ("", "mini-agent: the answer was cut at max_tokens\n")
    said = json.loads(result.stdout)
    assert (said["reason"], said["error"]) == ("done", None)
    assert said["text"].strip()
    assert said["usage"]["input_tokens"] > 500
