"""Rules of .gitignore files, as gitignore(5) has them; `test_walk.py` holds them against git itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_agent.workspace.ignore import Ignore


def left_out(rules: str, path: str, ignore: Ignore | None = None) -> bool:
    """Whether a walk would leave `path` out: it, or a folder on the way."""
    ignore = (ignore or Ignore()).with_rules(rules, "")
    parts = path.split("/")
    steps = ["/".join(parts[:count]) + "/" for count in range(1, len(parts))]
    if parts[-1]:
        steps.append(path)
    return any(
        ignore.leaves_out(step, step.rstrip("/").rpartition("/")[2] + "/" * (step[-1] == "/"))
        for step in steps
    )


@pytest.mark.parametrize(
    ("rules", "out", "kept"),
    [
        ("a", ["a", "a/", "x/a", "a/x", "x/y/a/z"], ["b", "ab", "x/ba"]),
        ("a/", ["a/", "x/a/", "a/x"], ["a", "x/a"]),
        ("/a", ["a", "a/x"], ["x/a"]),
        ("x/a", ["x/a", "x/a/b"], ["a", "y/x/a"]),
        ("*.log", [".log", "a.log", "x/a.log", "a.log/"], ["a.logs", "log", "a.log.txt"]),
        ("*.log/", ["a.log/", "x/a.log/b"], ["a.log"]),
        ("x/*", ["x/a", "x/b/c"], ["x/", "y/x/a"]),
        ("x/*.py", ["x/a.py"], ["x/y/a.py", "a.py"]),
        ("a?c", ["abc", "x/a-c"], ["ac", "abbc"]),
        ("a*b*c", ["abc", "axxbxxc", "abbcc"], ["ab", "acb"]),
        ("[ab]x", ["ax", "bx"], ["cx", "x"]),
        ("[!ab]x", ["cx"], ["ax"]),
        ("[^ab]x", ["cx"], ["bx"]),
        ("[a-c]x", ["bx"], ["dx", "-x"]),
        ("[]-]x", ["]x", "-x"], ["ax"]),
        ("[c-a]x", [], ["ax", "bx"]),
        ("[[:digit:]a]x", ["1x", "ax"], [":x", "bx"]),
        ("[[:nonsense:]]x", [], ["nx", ":x"]),
        ("[ab", [], ["a", "[ab"]),
        ("**/a", ["a", "x/a", "x/y/a"], ["xa"]),
        ("a/**", ["a/x", "a/x/y"], ["a/", "x/a/y"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["ab", "a/xb", "x/a/b"]),
        ("**/a/**/b/**/c", ["a/b/c", "x/a/y/b/z/c", "a/a/b/b/c"], ["b/a/c", "a/c"]),
        ("a**b", ["ab", "axb"], ["a/b"]),
        ("**", ["a", "x/y"], []),
        (r"\#a", ["#a"], ["a"]),
        (r"\!a", ["!a"], ["a"]),
        (r"a\*", ["a*"], ["ab"]),
        ("a\\", [], ["a", "a\\"]),
        ("# a", [], ["a", "# a"]),
        ("a  ", ["a"], ["a  "]),
        ("a\\ ", ["a "], ["a"]),
        ("a b", ["a b"], ["a"]),
        ("\ta", ["\ta"], ["a"]),
        ("\n\n/\n!\n", [], ["a", "a/"]),
        ("//a\nb//\nc//d\n//**", [], ["a", "b/", "c/d"]),
        ("a\r\nb\r\n", ["a", "b"], ["a\r"]),
        ("\ufeffa", ["a"], []),
        ("ä*", ["ärger"], ["arger"]),
        ("\udcff*", ["\udcffx"], ["x"]),
    ],
)
def test_what_a_rule_leaves_out(rules: str, out: list[str], kept: list[str]) -> None:
    assert [path for path in out if not left_out(rules, path)] == []
    assert [path for path in kept if left_out(rules, path)] == []


@pytest.mark.parametrize(
    ("rules", "out", "kept"),
    [
        ("*.log\n!keep.log", ["a.log"], ["keep.log", "x/keep.log"]),
        ("!keep.log\n*.log", ["keep.log"], []),
        ("*\n!*/\n!*.py", ["a.txt", "x/a.txt"], ["x/", "a.py", "x/y/a.py"]),
        ("a/\n!a/b", ["a/b"], []),  # what is in a folder that is left out does not come back
        ("a/*\n!a/b", ["a/c"], ["a/b"]),
        ("/*\n!/src", ["docs/a"], ["src/a"]),
        ("*.d\n!a.d/", ["b.d", "a.d/b.d/"], ["a.d/x"]),
    ],
)
def test_the_last_rule_that_fits_decides(rules: str, out: list[str], kept: list[str]) -> None:
    test_what_a_rule_leaves_out(rules, out, kept)


def test_rules_of_a_folder_are_stronger_than_those_above_it() -> None:
    above = Ignore().with_rules("*.log\n/x/b\n", "")
    ignore = above.with_rules("!a.log\n/b\n", "x/")
    assert not ignore.leaves_out("x/a.log", "a.log")
    assert ignore.leaves_out("x/c.log", "c.log")
    assert ignore.leaves_out("x/b", "b")
    assert not ignore.leaves_out("x/y/b", "b")
    assert above.leaves_out("x/a.log", "a.log")  # and change nothing there


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("*a" * 60 + "b", "a" * 250),
        ("*a" * 60 + "/b", "a" * 250 + "/c"),
        ("**/a/" * 40 + "b", "a/" * 250 + "c"),
        ("**/*a*a*a*a/" * 10 + "b", ("a" * 30 + "/") * 100 + "c"),
        ("[a-z]*" * 60 + "!", "a" * 250),
        ("?*" * 60 + "!", "a" * 250),
    ],
)
def test_a_hostile_rule_takes_no_longer_than_others(rule: str, path: str) -> None:
    """Where it does, this never comes back."""
    assert not Ignore().with_rules(rule, "").leaves_out(path, path.rpartition("/")[2])


@given(st.text(alphabet=st.sampled_from("ab/*?[]!^-\\#: \t\r\n.é\udc80")))
def test_no_text_is_too_odd(rules: str) -> None:
    ignore = Ignore().with_rules(rules, "x/")
    ignore.leaves_out("x/a/b", "b")
    ignore.leaves_out("x/a/b/", "b/")
