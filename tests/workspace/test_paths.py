"""Inside or outside: by where a path leads, never by how it is spelled."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mini_agent.core.errors import ToolError
from mini_agent.workspace.paths import Workspace

posix = pytest.mark.skipif(os.name == "nt", reason="paths of a POSIX system")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace `ws` with every kind of link, and neighbours whose names begin like its own."""
    top = Path(os.path.realpath(tmp_path_factory.mktemp("house")))
    root = top / "ws"
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "file").write_text("inside")
    for name in "ws-evil", "ws.bak", "home":
        (top / name).mkdir()
        (top / name / "secret").write_text("outside")
    links = {
        "root": "/",
        "out": "../ws-evil",
        "out_file": "../ws-evil/secret",
        "dangling_out": "../ws-evil/new",
        "dangling_in": "sub/new",
        "in": "sub",
        "in_file": "../ws/file",
        "chain": "out",
        "loop": "loop",
        "ring": "gnir",
        "gnir": "ring",
        "sub/up": "..",
        "sub/deep/out": "../../../ws.bak",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    (top / "alias").symlink_to("ws")
    return top


@pytest.fixture
def workspace(house: Path) -> Workspace:
    return Workspace(house / "ws", home=house / "home")


OUT = {
    "root/tmp/evil": "/tmp/evil",
    "out": "../ws-evil",
    "out/new/file": "../ws-evil/new/file",
    "out_file": "../ws-evil/secret",
    "dangling_out": "../ws-evil/new",
    "dangling_out/more": "../ws-evil/new/more",
    "chain/x": "../ws-evil/x",
    "sub/deep/out/x": "../ws.bak/x",
    "in/deep/out": "../ws.bak",
    "missing/../out/x": "../ws-evil/x",
}
IN = {
    "file": "file",
    "in_file": "file",
    "in/new": "sub/new",
    "dangling_in": "sub/new",
    "sub/up/file": "file",
    "out/../ws/file": "file",
    "missing/folder/file": "missing/folder/file",
    "missing/../file": "file",
    ".": ".",
    "./sub//deep/": "sub/deep",
}


@pytest.mark.parametrize(("path", "leads_to"), OUT.items())
def test_g08_links_that_lead_out_are_outside(workspace: Workspace, path: str, leads_to: str) -> None:
    expected = Path(os.path.realpath(workspace.root / leads_to))
    for spelled in path, str(workspace.root / path):
        assert workspace.resolve(spelled) == expected
        assert not workspace.is_inside(spelled)


@pytest.mark.parametrize(("path", "leads_to"), IN.items())
def test_g08_links_that_stay_in_are_inside(workspace: Workspace, path: str, leads_to: str) -> None:
    for spelled in path, str(workspace.root / path):
        assert workspace.resolve(spelled) == workspace.root / leads_to
        assert workspace.is_inside(spelled)


def test_g08_a_workspace_reached_by_a_link_is_the_same_workspace(house: Path) -> None:
    workspace = Workspace(house / "alias")
    assert workspace.root == house / "ws"
    for path in house / "alias" / "file", house / "ws" / "file":
        assert workspace.resolve(str(path)) == house / "ws" / "file"
        assert workspace.is_inside(path)


@pytest.mark.parametrize(
    "path", ["loop/../out_file", "ring/../out", "ring/x/../../out_file", "sub/../gnir/../out/x"]
)
def test_g08_a_link_behind_a_circle_is_not_taken_for_inside(workspace: Workspace, path: str) -> None:
    """Newer Pythons follow what comes behind the circle, older ones stop there and are refused: it is outside for both."""
    try:
        assert not workspace.resolve(path).is_relative_to(workspace.root)
    except ToolError as error:
        assert "circle" in str(error)  # noqa: PT017  whether it is raised depends on the Python
    assert not workspace.is_inside(path)


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../x",
        "../ws-evil/secret",
        "sub/../../ws.bak",
        "sub/deep/../../../home/secret",
        "/etc/passwd",
        "/",
    ],
)
def test_g09_what_goes_up_and_out_is_outside(workspace: Workspace, path: str) -> None:
    assert workspace.resolve(path) == Path(os.path.realpath(workspace.root / path))
    assert not workspace.is_inside(path)


@pytest.mark.parametrize("suffix", ["-evil", ".bak", "-evil/secret", " ", "2/x"])
def test_g09_a_name_that_begins_alike_is_outside(workspace: Workspace, suffix: str) -> None:
    assert not workspace.is_inside(f"{workspace.root}{suffix}")


@pytest.mark.parametrize("path", ["~", "~/secret", "~//secret", "~/../ws-evil/secret"])
def test_g09_the_users_home_is_what_a_tilde_means(workspace: Workspace, house: Path, path: str) -> None:
    assert workspace.resolve(path) == Path(os.path.normpath(f"{house}/home/{path[1:]}"))
    assert not workspace.is_inside(path)


def test_g09_a_tilde_without_a_known_home_is_refused(house: Path) -> None:
    with pytest.raises(ToolError, match="whole path"):
        Workspace(house / "ws").resolve("~/secret")


@pytest.mark.parametrize("path", ["~root/.ssh/id", "~nobody/x"])
def test_g09_another_users_home_is_refused(workspace: Workspace, path: str) -> None:
    with pytest.raises(ToolError, match="whole path"):
        workspace.resolve(path)


@pytest.mark.parametrize("path", ["~$letter.docx", "~backup", "sub/~", "x~"])
def test_g09_a_tilde_in_a_file_name_is_a_tilde(workspace: Workspace, path: str) -> None:
    assert workspace.resolve(path) == workspace.root / path


@pytest.mark.parametrize("path", ["", " ", "\n\t", "a\0b", "\0", "\ud800", "a/\udfff\ud800"])
def test_g09_what_can_not_be_a_path_is_refused_in_words(workspace: Workspace, path: str) -> None:
    with pytest.raises(ToolError) as caught:
        workspace.resolve(path)
    str(caught.value).encode()
    assert not workspace.is_inside(path)


@posix
@pytest.mark.parametrize("path", ["C:\\x", "c:/x", "D:\\", "\\\\server\\share\\x"])
def test_g09_a_path_of_another_system_is_refused(workspace: Workspace, path: str) -> None:
    with pytest.raises(ToolError, match="Windows"):
        workspace.resolve(path)
    assert not workspace.is_inside(path)


def test_a_name_too_long_is_a_path_all_the_same(workspace: Workspace) -> None:
    assert workspace.is_inside("x" * 5000)


def test_a_workspace_that_is_gone_still_knows_its_paths(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "gone")
    assert workspace.is_inside("a/b")
    assert not workspace.is_inside("../a")


def test_the_root_of_the_disk_may_be_the_workspace() -> None:
    assert Workspace(Path("/")).is_inside("/etc")


@pytest.mark.parametrize(
    ("path", "shown"),
    [("sub/deep", "sub/deep"), (".", "."), ("out_file", "{top}/ws-evil/secret"), ("/", "/")],
)
@posix
def test_a_path_is_shown_short_inside_and_whole_outside(
    workspace: Workspace, house: Path, path: str, shown: str
) -> None:
    assert workspace.relative(workspace.resolve(path)) == shown.format(top=house)


@posix
def test_a_path_that_is_not_utf8_is_shown_fit_to_be_sent(workspace: Workspace) -> None:
    assert workspace.relative(workspace.resolve(os.fsdecode(b"caf\xe9"))) == "caf\ufffd"


NAMES = ["..", ".", "", "sub", "deep", "up", "file", "missing", "in", "out", "chain", "loop", "ring", "root"]
NAMES += ["dangling_out", "dangling_in", "in_file", "out_file", "ws", "ws-evil", "secret", "~", "etc"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=250, deadline=None)
@given(st.lists(st.sampled_from(NAMES), min_size=1, max_size=8), st.booleans())
def test_g08_g09_nothing_outside_is_ever_inside(
    workspace: Workspace, names: list[str], absolute: bool
) -> None:
    """The system itself is asked where the path leads, by the inode at its end."""
    path = f"{workspace.root}/{'/'.join(names)}" if absolute else "/".join(names)
    try:
        real = workspace.resolve(path)
    except ToolError:
        assert not workspace.is_inside(path)
        return
    inside = workspace.is_inside(path)
    assert inside == real.is_relative_to(workspace.root) == workspace.is_inside(real)
    for step in [real, *real.parents]:
        assert not step.is_symlink() or not step.exists()  # what still is a link leads nowhere
    spelled = workspace.root / path
    if not path.startswith("~") and spelled.exists():
        assert real.samefile(spelled)
        assert inside == any(folder.samefile(workspace.root) for folder in [real, *real.parents])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text())
def test_g09_any_text_is_a_path_or_is_refused(workspace: Workspace, path: str) -> None:
    try:
        real = workspace.resolve(path)
    except ToolError as error:
        message = str(error)
    else:
        message = workspace.relative(real)
        assert real.is_absolute()
    message.encode()
