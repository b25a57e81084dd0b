"""Walking real trees: what is named, in which order, under whose rules."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mini_agent.workspace import walk as walk_module
from mini_agent.workspace.walk import Walk, global_excludes

posix = pytest.mark.skipif(os.name == "nt", reason="names, links and pipes of a POSIX system")
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = Path(os.path.realpath(tmp_path)) / "ws"
    folder.mkdir()
    return folder


def plant(root: Path, files: Mapping[str, str]) -> None:
    """Makes files with their text, and empty folders (names that end in a slash)."""
    for name, text in files.items():
        path = root / name
        (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        if not name.endswith("/"):
            path.write_bytes(os.fsencode(text))


def walked(walk: Walk) -> list[str]:
    return [path for item in walk for path in item]


def git_environ(home: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "USERPROFILE": str(home),
        "GIT_CONFIG_NOSYSTEM": "1",
    }


def git(folder: Path, *arguments: str) -> bytes:
    return subprocess.run(
        ["git", *arguments], cwd=folder, env=git_environ(folder), check=True, capture_output=True
    ).stdout


def test_near_folders_come_first_each_in_the_order_of_its_names(root: Path) -> None:
    plant(root, {"b/z": "", "b/a/q": "", "a/": "", "c": "", ".hidden": "", ".config/x": "", "B": ""})
    assert list(Walk(root)) == [
        [".config/", ".hidden", "B", "a/", "b/", "c"],
        [".config/x"],
        [],
        ["b/a/", "b/z"],
        ["b/a/q"],
    ]


def test_what_the_rules_leave_out_is_counted_and_not_entered(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(
        root, {".gitignore": "build/\n*.log\n", "build/a/b": "", "x.log": "", "src/y.log": "", "src/a.py": ""}
    )
    entered: list[str] = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda folder: (entered.append(folder), scandir(folder))[1])
    walk = Walk(root)
    assert walked(walk) == [".gitignore", "src/", "src/a.py"]
    assert walk.ignored == 3
    assert entered == [f"{root.as_posix()}/", f"{root.as_posix()}/src/"]


def test_folders_have_rules_of_their_own(root: Path) -> None:
    plant(
        root,
        {
            ".gitignore": "*.log\n/only\n",
            "only": "",
            "sub/only": "",
            "sub/.gitignore": "!keep.log\n/here\ndir/\n",
            "sub/keep.log": "",
            "sub/drop.log": "",
            "sub/here": "",
            "sub/deep/here": "",
            "sub/deep/dir/x": "",
            "sub/deep/keep.log": "",
            "keep.log": "",
            "dir/x": "",
        },
    )
    assert walked(Walk(root)) == [
        ".gitignore",
        "dir/",
        "sub/",
        "dir/x",
        "sub/.gitignore",
        "sub/deep/",
        "sub/keep.log",
        "sub/only",
        "sub/deep/here",
        "sub/deep/keep.log",
    ]


# Against git

_NAMES = ["a", "b", "ab", "a.b", "x.log", "-", "[a]", "a b", "#a", "!a", "A"]
_PARTS = [
    *[
        "a",
        "b",
        "ab",
        ".b",
        "*",
        "**",
        "/",
        "?",
        "[ab]",
        "[!a]",
        "[^]a]",
        "[a-b]",
        "[b-a]",
        "[[:alpha:]]",
        "[[:x:]]",
    ],
    *["[-a]", "[\\]]", "[", "]", "\\a", "\\*", "\\", "!", "#", " ", "\\ ", ".log", "-"],
]


def _can_be_compared(rule: str) -> bool:
    """Not a slash in brackets or behind a backslash: git has a meaning for it, and we do not, since no name has one. Not
    `a**/b`: git takes the two stars for any number of folders there, although its manual says that they are like one.
    """
    in_brackets = "".join(part.partition("]")[0] for part in rule.split("[")[1:])
    return (
        "\\/" not in rule and "/" not in in_brackets and not re.search(r"[^/*]\*\*", rule.removeprefix("!"))
    )


_RULES = st.lists(
    st.tuples(
        st.sampled_from(["", "", "!", "/", "a/", "!a/"]),
        st.lists(st.sampled_from(_PARTS), max_size=5).map("".join),
        st.sampled_from(["", "", "/", "/*", "/**"]),
    )
    .map("".join)
    .filter(_can_be_compared),
    max_size=6,
)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = Path(os.path.realpath(tmp_path_factory.mktemp("repository")))
    git(root, "init", "-q")
    for folder in "", "a", "b", "ab", "a/a", "a/b", "a/b/a", "b/x.log", "a b":
        (root / folder).mkdir(exist_ok=True, parents=True)
    for folder in [root, *(path for path in root.rglob("*") if ".git" not in path.parts)]:
        for name in _NAMES:
            if folder.is_dir() and not (folder / name).exists():
                (folder / name).touch()
    return root


@needs_git
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(top=_RULES, nested=_RULES, excluded=_RULES)
def test_it_leaves_out_what_git_leaves_out(
    repository: Path, top: list[str], nested: list[str], excluded: list[str]
) -> None:
    (repository / ".gitignore").write_text("\n".join(top))
    (repository / "a" / ".gitignore").write_text("\n".join(nested))
    (repository / ".git" / "info" / "exclude").write_text("\n".join(excluded))
    listed = git(repository, "ls-files", "-o", "--exclude-standard", "-z").decode().split("\0")[:-1]
    assert sorted(path for path in walked(Walk(repository)) if not path.endswith("/")) == sorted(listed)


@needs_git
def test_nothing_that_a_repository_names_is_run(root: Path, tmp_path: Path) -> None:
    """A folder that somebody else has packed can have a configuration that git obeys (core.fsmonitor and others)."""
    git(root, "init", "-q")
    plant(root, {"a": "", "run": f"#!/bin/sh\ntouch '{tmp_path}/ran'\n", "evil-excludes": "a\n"})
    (root / "run").chmod(0o755)
    git(root, "config", "core.fsmonitor", str(root / "run"))
    git(root, "config", "core.excludesFile", str(root / "evil-excludes"))
    excludes = global_excludes(git_environ(tmp_path), root)
    assert "a" in walked(Walk(root, excludes=excludes))
    assert not (tmp_path / "ran").exists()


# Repositories around and inside


def test_a_workspace_deep_in_a_repository_obeys_its_rules(root: Path) -> None:
    plant(
        root,
        {
            ".git/info/exclude": "*.tmp\n",
            ".gitignore": "/ws/src/gen\n*.log\n",
            "ws/.gitignore": "!keep.log\n",
            "ws/src/gen/x": "",
            "ws/src/a.log": "",
            "ws/src/keep.log": "",
            "ws/src/a.tmp": "",
            "ws/src/a.py": "",
        },
    )
    assert walked(Walk(root / "ws" / "src")) == ["a.py", "keep.log"]


def test_without_a_repository_nothing_above_the_workspace_counts(root: Path) -> None:
    plant(root, {".gitignore": "*\n", "ws/a": ""})
    assert walked(Walk(root / "ws")) == ["a"]


@pytest.mark.parametrize("ignored", ["*", "/ws/", "/ws/inner/", "in*"])
def test_a_workspace_that_is_ignored_itself_is_walked(root: Path, ignored: str) -> None:
    """As in a home folder that is a repository and ignores all but a few files."""
    plant(
        root,
        {
            ".git/": "",
            ".gitignore": f"{ignored}\n",
            "ws/inner/a": "",
            "ws/inner/.gitignore": "b",
            "ws/inner/b": "",
        },
    )
    assert walked(Walk(root / "ws" / "inner")) == [".gitignore", "a"]


def test_a_repository_inside_has_its_own_rules_only(root: Path) -> None:
    plant(
        root,
        {
            ".git/": "",
            ".gitignore": "*.log\n",
            "vendor/lib/.git/info/exclude": "*.tmp\n",
            "vendor/lib/a.log": "",
            "vendor/lib/sub/a.tmp": "",
            "vendor/a.log": "",
        },
    )
    inside = ["vendor/lib/a.log", "vendor/lib/sub/"]
    assert walked(Walk(root)) == [".gitignore", "vendor/", "vendor/lib/", *inside]
    assert walked(Walk(root, root / "vendor" / "lib")) == inside


@pytest.mark.parametrize("commondir", [None, "../..\n"])
def test_a_worktree_obeys_the_exclude_file_of_its_repository(root: Path, commondir: str | None) -> None:
    main = root / "main.git"
    own = main / "worktrees" / "w"
    plant(own, {"HEAD": ""} if commondir is None else {"HEAD": "", "commondir": commondir})
    plant(own if commondir is None else main, {"info/exclude": "*.tmp\n"})
    plant(root, {"w/.git": "gitdir: ../main.git/worktrees/w\n", "w/a.tmp": "", "w/a": ""})
    assert walked(Walk(root / "w")) == ["a"]


@pytest.mark.parametrize(
    "text", ["", "gitdir: ", "gitdir: ../nowhere", "gitdir: a\0b", "\udcff", "gitdir: .git"]
)
def test_a_broken_git_file_is_no_trouble(root: Path, text: str) -> None:
    plant(root, {".git": text, "a": "", ".gitignore": "b", "b": ""})
    assert walked(Walk(root)) == [".gitignore", "a"]


@pytest.mark.parametrize(
    ("start", "found"),
    [
        ("src", ["src/a.py", "src/deep/", "src/deep/b.py"]),
        ("src/deep", ["src/deep/b.py"]),
        ("build", ["build/deep/", "build/x.log", "build/deep/y"]),
        ("build/deep", ["build/deep/y"]),
    ],
)
def test_g17_what_is_named_is_walked_also_where_it_is_ignored(
    root: Path, start: str, found: list[str]
) -> None:
    plant(
        root,
        {
            ".gitignore": "build\n*.log\n",
            "build/x.log": "",
            "build/deep/y": "",
            "src/x.log": "",
            "src/a.py": "",
            "src/deep/b.py": "",
        },
    )
    assert walked(Walk(root, root / start)) == found


def test_a_start_outside_is_refused(root: Path) -> None:
    with pytest.raises(ValueError, match="not inside"):
        Walk(root, root.parent / "ws-evil")


# The user's own rules


def test_the_users_rules_are_the_weakest(root: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("*.swp\n*.bak\n")
    plant(root, {"a.swp": "", "a.bak": "", "sub/b.swp": "", ".gitignore": "!*.bak\n"})
    assert walked(Walk(root, excludes=tmp_path / "mine")) == [".gitignore", "a.bak", "sub/"]
    assert "a.swp" in walked(Walk(root, excludes=tmp_path / "missing"))


@needs_git
@pytest.mark.parametrize(("value", "expected"), [("~/mine", "mine"), (None, ".config/git/ignore")])
def test_git_tells_where_the_users_rules_are(
    root: Path, tmp_path: Path, value: str | None, expected: str
) -> None:
    if value:
        (tmp_path / ".gitconfig").write_text(f"[core]\n\texcludesFile = {value}\n")
    assert global_excludes(git_environ(tmp_path), root) == tmp_path / expected


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"HOME": "/home/u"}, "/home/u/.config/git/ignore"),
        ({"USERPROFILE": "/home/u"}, "/home/u/.config/git/ignore"),
        ({"HOME": "/home/u", "XDG_CONFIG_HOME": "/conf"}, "/conf/git/ignore"),
        ({}, None),
    ],
)
def test_without_git_they_are_where_they_are_by_default(
    root: Path, environ: dict[str, str], expected: str | None
) -> None:
    environ = {**environ, "PATH": str(root / "no-programs")}
    assert global_excludes(environ, root) == (expected and Path(expected))


@posix
@pytest.mark.parametrize("path", ["{root}/bin", "bin", ".", "{link}", "elsewhere"])
def test_a_git_that_lies_in_the_workspace_or_wherever_one_is_is_not_run(
    root: Path, path: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = f"#!/bin/sh\ntouch '{tmp_path}/ran'\necho /evil\n"
    plant(tmp_path, {"ws/bin/git": program, "elsewhere/git": program})
    for folder in root / "bin", tmp_path / "elsewhere":
        (folder / "git").chmod(0o755)
    (tmp_path / "link").symlink_to(root / "bin")
    monkeypatch.chdir({".": root / "bin", "elsewhere": tmp_path}.get(path, root))
    environ = {"PATH": path.format(root=root, link=tmp_path / "link"), "HOME": "/home/u"}
    assert global_excludes(environ, root) == Path("/home/u/.config/git/ignore")
    assert not (tmp_path / "ran").exists()


@posix
@pytest.mark.parametrize("program", ["#!/bin/sh\nexit 1", "#!/bin/sh\nkill -9 $$", "no program", "#!/gone"])
def test_a_git_that_fails_is_as_none(root: Path, tmp_path: Path, program: str) -> None:
    plant(tmp_path, {"bin/git": program})
    (tmp_path / "bin" / "git").chmod(0o755)
    environ = {"PATH": str(tmp_path / "bin"), "HOME": "/home/u"}
    assert global_excludes(environ, root) == Path("/home/u/.config/git/ignore")


@posix
def test_git_gets_no_keys(root: Path, tmp_path: Path) -> None:
    plant(tmp_path, {"bin/git": f"#!/bin/sh\nexport -p > '{tmp_path}/seen'\n"})
    (tmp_path / "bin" / "git").chmod(0o755)
    global_excludes({"PATH": f"{tmp_path / 'bin'}", "HOME": "/home/u", "SOME_API_KEY": "secret"}, root)
    seen = (tmp_path / "seen").read_text()
    assert "/home/u" in seen
    assert "secret" not in seen


# Links, and other things that are no files


@posix
def test_g08_links_are_named_and_not_followed(root: Path) -> None:
    plant(root, {"sub/a": "", "../outside/secret": ""})
    for name, target in {
        "loop": ".",
        "sub/up": "..",
        "out": "../outside",
        "gone": "nowhere",
        "file": "sub/a",
    }.items():
        (root / name).symlink_to(target)
    assert walked(Walk(root)) == ["file", "gone", "loop", "out", "sub/", "sub/a", "sub/up"]


@posix
def test_for_the_rules_a_link_to_a_folder_is_no_folder(root: Path) -> None:
    plant(root, {"sub/a": "", ".gitignore": "folder/\nfile"})
    (root / "folder").symlink_to("sub")
    (root / "file").symlink_to("sub/a")
    assert walked(Walk(root)) == [".gitignore", "folder", "sub/", "sub/a"]


@posix
def test_what_is_no_file_is_left_out_and_waited_for_by_nobody(root: Path) -> None:
    plant(root, {"a": "", "sub/b": "", ".git/info/": ""})
    for name in "pipe", "sub/.gitignore", ".git/info/exclude":
        os.mkfifo(root / name)
    assert walked(Walk(root, excludes=root / "pipe")) == ["a", "sub/", "sub/b"]


@posix
def test_a_gitignore_that_is_a_link_is_not_obeyed(root: Path) -> None:
    plant(root, {"rules": "a\n", "a": ""})
    (root / ".gitignore").symlink_to("rules")
    assert walked(Walk(root)) == [".gitignore", "a", "rules"]


def test_a_gitignore_that_is_a_folder_is_a_folder(root: Path) -> None:
    plant(root, {".gitignore/a": ""})
    assert walked(Walk(root)) == [".gitignore/", ".gitignore/a"]


# What goes wrong


def test_a_folder_that_cannot_be_read_is_counted(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(root, {"a/x": "", "b/y": "", "c/z": ""})
    scandir = os.scandir

    def guarded(folder: str) -> "os._ScandirIterator[str]":
        if folder.endswith("/b/"):
            raise PermissionError(13, "Permission denied", folder)
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", guarded)
    walk = Walk(root)
    assert walked(walk) == ["a/", "b/", "c/", "a/x", "c/z"]
    assert walk.unreadable == 1


@pytest.mark.skipif(sys.platform != "linux", reason="file names that are any bytes")
def test_names_that_are_not_utf_8_lead_to_their_files(root: Path) -> None:
    folder = os.fsencode(root) + b"/\xff"
    Path(os.fsdecode(folder)).mkdir()
    for name in b"\xfe\n", b"\xe9.log", "é".encode():
        Path(os.fsdecode(folder + b"/" + name)).write_bytes(name)
    (root / ".gitignore").write_bytes(b"\xe9*\n")
    found = walked(Walk(root))
    assert [os.fsencode(path) for path in found] == [
        b".gitignore",
        b"\xff/",
        b"\xff/\xc3\xa9",
        b"\xff/\xfe\n",
    ]
    assert all((root / path).exists() for path in found)


def test_a_deep_tree_is_walked_to_its_end(root: Path) -> None:
    deep = "/".join(["d"] * 200)
    plant(root, {f"{deep}/a": ""})
    assert walked(Walk(root))[-1] == f"{deep}/a"


def test_a_folder_that_is_gone_is_empty(root: Path) -> None:
    walk = Walk(root / "gone")
    assert walked(walk) == []
    assert walk.unreadable == 1


# Its end


@pytest.mark.parametrize(("most", "is_cut"), [(0, True), (1, True), (4, True), (5, False), (6, False)])
def test_it_ends_by_itself_and_says_so(root: Path, most: int, is_cut: bool) -> None:
    plant(root, {"a/x": "", "a/y": "", "b": "", "c": ""})
    walk = Walk(root, most=most)
    assert walked(walk) == ["a/", "b", "c", "a/x", "a/y"][:most]
    assert walk.is_cut is is_cut


def test_a_folder_with_too_much_in_it_ends_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(root, {f"f{number}": "" for number in range(20)} | {"a/": ""})
    monkeypatch.setattr(walk_module, "_MOST_ENTRIES", 10)
    walk = Walk(root)
    assert len(walked(walk)) == 10
    assert walk.is_cut


def test_it_reads_no_further_than_it_is_asked(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(root, {"a/b/c/d": "", "x/": "", "y/": ""})
    read: list[str] = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda folder: (read.append(folder), scandir(folder))[1])
    items = iter(Walk(root))
    assert next(items) == ["a/", "x/", "y/"]
    assert len(read) == 1
