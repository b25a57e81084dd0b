"""What is taken out of texts: rather too much where people read, only what is certain where a model reads it again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_agent.core.redact import begun_key, redact, without_keys

KEYS = [
    "sk-0123456789abcdef0123456789abcdef",
    "sk-proj-Ab3dEf5hIj7lMn9pQrSt-uVwXyZ_0123456789",
    "sk-ant-api03-abcDEF1234567890_-xyzXYZ7890",
    "sk-or-v1-" + "0a1b" * 16,
    "xai-" + "a1B2" * 20,
    "gsk_" + "aB3" * 17,
    "AIzaSy" + "A1b2-_d4" * 4 + "x",
]
TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.x-y_z"
SOURCE = [
    "token: identifier_of_a_token",
    'api_key = os.environ["SOME_API_KEY"]',
    "Authorization: Bearer {token}",
    "Bearer authentication is what it is called",
    "https://user:password@example.org/path",
    "pip install sk-learn-contrib-extras",
    "sk-learn-experiments-2024",
    "<b class='tok-keyword-operator key-navigation-button'>",
    "disk-a1b2c3d4e5f6a7b8c9d0",
]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("remove", [redact, without_keys])
@pytest.mark.parametrize("frame", ["{}", "KEY={}\n", 'a "{}", b', "x:{}/y"])
def test_t7_what_is_shaped_like_a_key_goes_and_what_stands_around_it_stays(key, remove, frame):
    assert remove(frame.format(key)) in {frame.format("[redacted]"), frame.format("[redacted]/y")}


@pytest.mark.parametrize("remove", [redact, without_keys])
def test_t7_a_bearer_token_goes_and_the_word_stays(remove):
    assert remove(f"authorization said Bearer {TOKEN}, then") == "authorization said Bearer [redacted], then"


@pytest.mark.parametrize("text", SOURCE)
def test_what_only_speaks_of_secrets_is_given_back_to_a_model_unchanged(text):
    assert without_keys(text) == text


@pytest.mark.parametrize(
    "text", ["token: identifier_of_a_token", "https://user:password@example.org", "key-abcdefghijklmn"]
)
def test_what_people_read_is_redacted_on_a_suspicion(text):
    assert "[redacted]" in redact(text)


@pytest.mark.parametrize("remove", [redact, without_keys])
def test_t7_a_known_secret_goes_whatever_it_looks_like_the_longest_first(remove):
    secrets = ["pass word", "pass word, longer"]
    assert remove("<pass word, longer> <pass word>", secrets) == "<[redacted]> <[redacted]>"


def test_a_word_that_serves_as_a_key_does_not_spoil_a_journal():
    assert without_keys("ollama serve", ["ollama", ""]) == "ollama serve"
    assert redact("ollama serve", ["ollama"]) == "[redacted] serve"


SECRET = "of no Shape: 42!"
ENDINGS = st.sampled_from([*KEYS, SECRET, f"Bearer {TOKEN}"])


@given(st.text("a1 -_=", max_size=8), ENDINGS, st.data())
def test_t7_a_key_that_comes_in_two_parts_is_seen_coming(before, key, data):
    marked = {"AIza": 2, "gsk_": 2, "Bear": 6}.get(key[:4], 1)  # from here on it can be told from a word
    part = key[: data.draw(st.integers(marked, len(key) - 1))]
    assert begun_key(f"{before} {part}", [SECRET]) >= len(part)


@pytest.mark.parametrize(
    "text", ["", "half an answer", "grass", "an answer that ends. ", "完成了", "of no Shape: 4, no"]
)
def test_text_that_begins_no_key_has_not_to_wait(text):
    assert begun_key(text, [SECRET]) == 0
