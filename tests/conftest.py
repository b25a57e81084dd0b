"""What holds for every test: nothing but loopback is reached, and nothing of the user's own settings is seen."""

import os
import runpy
from pathlib import Path

import pytest

GUARD = Path(__file__).parent / "guard"
# Loaded by its path, because an interpreter may have a sitecustomize of its own under that name.
runpy.run_path(str(GUARD / "sitecustomize.py"))

OURS = ("MINI_AGENT_", "DEMO_")


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Each test starts with an empty home of its own and without keys, proxies or our variables."""
    for name in list(os.environ):
        if name.startswith(OURS) or name.endswith("_API_KEY") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("MINI_AGENT_HOME", str(tmp_path_factory.mktemp("home")))
    monkeypatch.setenv("PYTHONPATH", str(GUARD))
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
