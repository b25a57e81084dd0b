"""The permission table, row by row."""

import pytest

from mini_agent.agent.permissions import is_secret, judge


@pytest.mark.parametrize(
    ("effect", "inside", "secret", "ask", "auto"),
    [
        ("reads", True, False, "yes", "yes"),
        ("reads", False, False, "ask", "ask"),
        ("reads", True, True, "ask", "ask"),
        ("writes", True, False, "ask", "yes"),
        ("writes", False, False, "ask", "ask"),
        ("writes", True, True, "ask", "ask"),
        ("runs", True, False, "ask", "ask"),
        ("fetches", True, False, "ask", "ask"),
    ],
)
def test_every_row_of_the_table(effect, inside, secret, ask, auto):
    for mode, expected in (("ask", ask), ("auto", auto)):
        verdict, reason = judge(effect, mode, inside=inside, secret=secret)
        assert verdict == expected
        assert bool(reason) == (verdict == "ask")


@pytest.mark.parametrize(
    "path",
    [
        "/w/.env",
        ".env.local",
        "prod.env",
        "/home/u/.ssh/id_rsa",
        "id_ed25519_sk",
        "/home/u/.ssh/config",
        "server.PEM",
        "a/.netrc",
        "/x/credentials",
        ".aws/config",
        "/w/.git/hooks/pre-commit",
        "secrets.toml",
    ],
)
def test_files_that_hold_secrets(path):
    assert is_secret(path)


@pytest.mark.parametrize("path", [".env.example", "environment.py", "keyboard.py", "README.md", "id_rsa.pub"])
def test_files_that_do_not(path):
    assert not is_secret(path)
