"""`@path` in a message."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_agent.ui.mentions import LONGEST, Mention, Typed, mentions, typed, written


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("@a.py", ["a.py"]),
        ("see @a.py.", ["a.py"]),
        ("is it @a.py? or @b.py!", ["a.py", "b.py"]),
        ("(see @a.py), [@b.py], {@c}", ["a.py", "b.py", "c"]),
        ("@a.py,@b.py;@c.py", ["a.py", "b.py", "c.py"]),
        ("@a.py: what is it…", ["a.py"]),
        ("@what… is it", ["what"]),
        ("@page(1).png and @[id]/page.tsx", ["page(1).png", "[id]/page.tsx"]),
        ("(@app/(group)) @x[1] @y{}", ["app/(group)", "x[1]", "y{}"]),
        ("@src/", ["src/"]),
        ("@../x.png @/abs/x.png @~/x.png", ["../x.png", "/abs/x.png", "~/x.png"]),
        ("@C:\\x\\y.png", ["C:\\x\\y.png"]),
        ("@icon@2x.png", ["icon@2x.png"]),
        ('@"a b.py" @\'it"s\' "@c"', ["a b.py", 'it"s', "c"]),
        ('@"a.", then', ["a."]),
        ("first\n@a\n\t@b", ["a", "b"]),
        ("読む @図.png、そして\uff08@b.py\uff09。", ["図.png", "b.py"]),
        ("@.gitignore @.env.", [".gitignore", ".env"]),
        ("the agent's @a.py's", ["a.py"]),
    ],
)
def test_what_is_mentioned(text: str, paths: list[str]) -> None:
    assert [mention.path for mention in mentions(text)] == paths


@pytest.mark.parametrize(
    "text",
    [
        "a@b.de",
        "a.b+c@d.org, <x_1@y.z>, é@b.de, mailto:a@b.de",
        "@",
        "@ a",
        "@. @.. @... @) @!?",
        '@"" @"a\nb" @" "',
        "@@ -1,3 +1,4 @@",
        "node_modules/@types/x and a\\@b",
        '$@ "$@" #@x HEAD@{1}',
        "`@a` and ``x ` @b``",
        "```python\n@decorator\ndef f(): ...\n```",
        "text\n  ~~~~\n@a\n~~~\n@b",
        "```\n@in a fence that is still open",
        "@" + "a" * (LONGEST + 1),
    ],
)
def test_what_is_no_mention(text: str) -> None:
    assert mentions(text) == []


def test_what_stands_behind_code_counts_again() -> None:
    text = "```\n@no\n```\n@yes `@no` @too\n~~~ x\n@no\n~~~~\n@end"
    assert [mention.path for mention in mentions(text)] == ["yes", "too", "end"]


def test_it_says_what_stands_in_the_text() -> None:
    assert mentions('(@a.py, @"b c").') == [Mention("@a.py", "a.py"), Mention('@"b c"', "b c")]


_ODD = st.text(st.sampled_from("ab@./\\\"'`~ \n()[]{},:;!?*é图\uff0c。_-$#\u202f"), max_size=40)
_NAME = st.text(st.sampled_from("ab@./ \"'()[],:;!?é图\uff0c。_-~\u202f"), min_size=1, max_size=12)


@given(_ODD)
def test_any_text_has_its_mentions_in_it_in_order(text: str) -> None:
    at = 0
    for mention in mentions(text):
        at = text.index(mention.raw, at) + len(mention.raw)
        assert mention.raw[0] == "@"
        assert mention.path.strip()
        assert mention.path in mention.raw


@given(
    _NAME,
    st.sampled_from([("", ""), ("see ", " now"), ("(", ")."), ("\n", "\n"), ('"', '"'), ("a, ", ", b")]),
)
def test_what_is_written_for_a_path_is_read_as_it(path: str, around: tuple[str, str]) -> None:
    before, after = around
    mention = written(path)
    if mention is None:
        assert not path.strip() or ('"' in path and "'" in path)
    else:
        assert mentions(f"{before}{mention}{after}") == [Mention(mention, path)]


@pytest.mark.parametrize("path", ["", " ", "a`b", "a\nb", "\"'", "a" * (LONGEST + 1)])
def test_what_cannot_be_written(path: str) -> None:
    assert written(path) is None


@given(st.text(st.sampled_from("ab.+%-_1é"), min_size=1), st.text(st.sampled_from("ab.-1"), min_size=1))
def test_an_address_is_never_a_mention(user: str, host: str) -> None:
    assert mentions(f"write to {user}@{host}, or <{user}@{host}>.") == []
    assert typed(f"{user}@{host}") is None


@pytest.mark.parametrize(
    ("before", "found"),
    [
        ("@", Typed(1, "")),
        ("see @a", Typed(2, "a")),
        ("(@src/", Typed(5, "src/")),
        ("@a.", Typed(3, "a.")),
        ('x @"a b', Typed(5, "a b")),
        ("@'it\"s", Typed(6, 'it"s')),
        ('@"', Typed(2, "")),
        ("@a @b", Typed(2, "b")),
        ("@a b", None),
        ('@"a" b', None),
        ('@"a"', None),
        ("a@b", None),
        ("", None),
        ("@a\n", None),
        ("```\n@prop", None),
        ("```\nx\n```\n@prop", Typed(5, "prop")),
        ("`@x", None),
        ("`x` @a", Typed(2, "a")),
        ("@" + "a" * LONGEST, Typed(LONGEST + 1, "a" * LONGEST)),
        ("a " * LONGEST + "@b", Typed(2, "b")),
    ],
)
def test_the_one_that_is_being_typed(before: str, found: Typed | None) -> None:
    assert typed(before) == found


@given(_NAME)
def test_what_is_written_is_recognised_as_far_as_it_is_typed(path: str) -> None:
    mention = written(path)
    if mention is None:
        return
    quoted = mention[1] in "\"'"
    for end in range(1 + quoted, len(mention) - quoted + 1):
        assert typed(f"see {mention[:end]}") == Typed(end, mention[1 + quoted : end])


@pytest.mark.parametrize(
    "text", [":@", "@ ", ",@", "@a)", "@" + ")" * 50, "`@a", '@"', "``` @x\n", "~~~\n", "` `` "]
)
def test_a_large_paste_takes_no_longer_than_its_length(text: str) -> None:
    """Where it does, this never comes back."""
    mentions(text * 20_000)
    typed(text * 20_000)
