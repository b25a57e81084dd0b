"""Finding paths by some of their letters: what is found, in which order, and in how many steps."""

import sys
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_agent.ui.fuzzy import CHUNK, LOOKED_AT, SHOWN, Fit, Index, Query, _Chunk, fold

_LETTERS = "abAB_-. éςİ1"
_NAME = st.text(_LETTERS, min_size=1, max_size=6)
_PATH = st.builds(
    lambda names, end: "/".join(names) + end,
    st.lists(_NAME, min_size=1, max_size=4),
    st.sampled_from(["", "/"]),
)
_PATHS = st.lists(_PATH, unique=True, max_size=SHOWN)
_QUERY = st.text(_LETTERS + "/", min_size=1, max_size=5)


def index_of(paths: list[str]) -> Index:
    index = Index()
    index.add(paths)
    return index


def name_of(path: str) -> str:
    return path.removesuffix("/").rpartition("/")[2]


def has_in_order(path: str, letters: str) -> bool:
    """As said in words: capitals count where one is among the letters."""
    if not any(letter.isupper() for letter in letters):
        path, letters = fold(path), fold(letters)
    rest = iter(path)
    return all(letter in rest for letter in letters)


@given(_PATHS, _QUERY)
def test_what_has_the_letters_in_order_is_found_and_nothing_else(paths: list[str], query: str) -> None:
    assert sorted(index_of(paths).search(query)) == sorted(
        path for path in paths if has_in_order(path, query)
    )


@given(_PATHS, _QUERY)
def test_a_better_kind_of_fit_comes_first(paths: list[str], query: str) -> None:
    found = index_of(paths).search(query)
    fits = [fit for path in found if (fit := Query(query).fit(path))]
    kinds = [kind for kind, _ in fits]
    assert len(fits) == len(found)
    assert kinds == sorted(kinds)


@given(_PATHS.filter(bool), st.data())
def test_an_exact_name_is_first(paths: list[str], data: st.DataObject) -> None:
    name = name_of(data.draw(st.sampled_from(paths)))
    first = index_of(paths).search(name)[0]
    assert fold(name_of(first)) == fold(name)
    assert name_of(first) == name or not any(map(str.isupper, name))


@given(_PATHS, _QUERY)
def test_a_query_that_grows_finds_what_it_finds_at_once(paths: list[str], query: str) -> None:
    index = index_of(paths)
    for end in range(1, len(query) + 1):
        assert index.search(query[:end]) == index_of(paths).search(query[:end])


@given(_PATHS, _PATHS, _QUERY)
def test_what_is_added_later_is_found(paths: list[str], more: list[str], query: str) -> None:
    index = index_of(paths)
    index.search(query[:1])
    index.add(more)
    assert set(index.search(query)) == set(index_of([*paths, *more]).search(query))


@given(st.text(), st.text(min_size=1))
def test_no_text_is_too_odd(path: str, query: str) -> None:
    index = index_of([path.replace("\n", "").replace("\t", "")])
    index.search(query)
    Query(query).fit(path)


@pytest.mark.parametrize("query", ["\n", "\t", "a\n", "\na", "a\tb"])
def test_nothing_is_found_across_lines(query: str) -> None:
    assert index_of(["a", "b", "a/b"]).search(query) == []


@given(st.text())
def test_folding_keeps_each_character_in_its_place(text: str) -> None:
    assert len(fold(text)) == len(text)
    assert "".join(map(fold, text)) == fold(text)


@pytest.mark.parametrize(
    ("query", "path", "fit"),
    [
        ("prompt.py", "ui/prompt.py", Fit.EXACT),
        ("ui", "mini_agent/ui/", Fit.EXACT),
        ("ui/", "mini_agent/ui/", Fit.EXACT),
        ("ui/prompt.py", "ui/prompt.py", Fit.EXACT),
        ("pro", "ui/prompt.py", Fit.START),
        ("ui/pro", "ui/prompt.py", Fit.START),
        ("py", "ui/prompt.py", Fit.WORD),
        ("view", "ui/listView.ts", Fit.WORD),
        ("2", "ui/list2.ts", Fit.INSIDE),
        ("rom", "ui/prompt.py", Fit.INSIDE),
        ("tp", "ui/test_prompt.py", Fit.INITIALS),
        ("lvt", "ui/listView.ts", Fit.INITIALS),
        ("agent", "mini_agent/ui/x.py", Fit.PATH_WORD),
        ("ui/pro", "mini_agent/ui/prompt.py", Fit.PATH_WORD),
        ("gent", "mini_agent/ui/x.py", Fit.PATH_INSIDE),
        ("prmpt", "ui/prompt.py", Fit.NAME_LETTERS),
        ("uiprompt", "ui/prompt.py", Fit.PATH_LETTERS),
        ("maprompt", "mini_agent/ui/prompt.py", Fit.PATH_LETTERS),
        ("Readme", "README", None),
        ("readme", "README", Fit.EXACT),
        ("READ", "README", Fit.START),
        ("tpmorp", "prompt", None),
        ("a b", "a b.txt", Fit.START),
        ("1 PM", "Shot 1\u202fPM.png", None),
        ("1 pm", "Shot 1\u202fPM.png", Fit.INSIDE),
        ("οδοσ", "ΟΔΟΣ.txt", Fit.START),
        ("οδοσ", "ΟΔΟΣ", Fit.EXACT),
        ("οδος", "ΟΔΟΣ.txt", Fit.START),
        ("i", "İ", Fit.EXACT),
    ],
)
def test_the_kinds_of_fit(query: str, path: str, fit: Fit | None) -> None:
    found = Query(query).fit(path)
    assert (found and found[0]) == fit
    assert index_of([path]).search(query) == ([path] if found else [])


@pytest.mark.parametrize(
    ("query", "better", "worse"),
    [
        ("view", "a/b/c/view.py", "view/a.py"),
        ("test", "a/b/test_long_name.py", "contest.py"),
        ("app", "src/app.py", "src/deep/app.py"),
        ("app", "app_one.py", "app_eleven.py"),
        ("app", "app_eleven.py", "x/app_1.py"),
        ("src/", "src/z.py", "src/a/b.py"),
        ("prmpt", "prompt.py", "parameters/import.py"),
        ("abc", "x/a_b_c.py", "x/aabbcc.py"),
        ("ace", "x/acxe.py", "x/axcxe.py"),
        ("core", "core/errors.py", "colour_scheme_e.py"),
        ("a", "x/a", "x/b/a"),
        ("b", "b/x", "b/y"),
    ],
)
def test_what_comes_first(query: str, better: str, worse: str) -> None:
    assert index_of([worse, better]).search(query) == [better, worse]


def test_what_was_used_of_late_comes_first_among_equals() -> None:
    index = index_of(["app.py", "x/app.py", "y/app.py", "app_config.py", "z/gone/"])
    recent = ["y/app.py", "app_config.py", "not/there/app.py"]
    assert index.search("app.py", recent) == [
        "y/app.py",
        "not/there/app.py",
        "app.py",
        "x/app.py",
        "app_config.py",
    ]
    assert index.search("", recent)[:4] == [*recent, "app.py"]
    assert index.search("zg", recent) == ["z/gone/"]
    assert index_of(["acxe.py"]).search("ace", ["axcxxe.py"]) == ["axcxxe.py", "acxe.py"]


def test_nothing_typed_gives_what_was_added_first() -> None:
    paths = [f"f{number}" for number in range(CHUNK + 100)]
    assert index_of(paths).search("") == paths[:SHOWN]
    assert Index().search("") == []
    assert Index().search("a") == []


# A large tree

_WORDS = ["core", "agent", "model", "view", "util", "http", "render", "stream", "config", "server"]
_QUERIES = [
    "e",
    "core",
    "vw",
    "model_u",
    "zebra",
    "utilhttp",
    "srvrcfg",
    "core/agent",
    "serverrenderstreamzz",
    "tttt",
]


def tree(count: int) -> list[str]:
    """Names as a large project has them, the near ones first."""
    names = [f"{one}_{two}.{end}" for one, two, end in product(_WORDS, _WORDS, ("py", "ts", "md"))]
    folders = [f"{one}/{two}/{three}/" for one, two, three in product(_WORDS, _WORDS, range(10))]
    return [folder + name for name in names for folder in folders][:count]


def steps(index: Index, query: str) -> int:
    """Calls that Python makes for a search."""
    count = 0

    def step(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(step)
    try:
        index.search(query)
    finally:
        sys.setprofile(None)
    return count


def test_a_search_takes_hardly_more_steps_in_a_large_tree_than_in_a_small_one() -> None:
    """What grows with the tree is left to C, which goes through it in the time that some hundred of these steps take."""
    paths = tree(100_000)
    large, small = index_of(paths), index_of(paths[::2])
    for query in _QUERIES:
        Query(query)  # so that its patterns are compiled
        few, many = steps(small, query), steps(large, query)
        assert many <= 1.5 * few + 1000
        assert many <= 35 * LOOKED_AT


def test_typing_on_looks_only_at_what_was_found() -> None:
    index = index_of([*tree(100_000), "deep/in/zebra_stripes.py", "zebra/crossing"])
    assert len(index.search("zebra")) == 2
    index._chunks[:] = [_Chunk("", "")] * len(index._chunks)
    assert index.search("zebra_s") == ["deep/in/zebra_stripes.py"]
    assert index.search("zebra_stx") == index.search("zebra_stx.") == []
    assert index.search("core") == []  # as said: there is nothing any more


@pytest.mark.parametrize("name", ["core", "core_agent.py", "e", "srv"])
def test_an_exact_name_is_first_behind_thousands_that_fit(name: str) -> None:
    path = f"very/deep/down/here/{name}"
    paths = [f"{folder}/{name}{number}" for folder, number in product("abc", range(2 * LOOKED_AT))]
    assert index_of([*paths, path]).search(name)[0] == path


def test_better_kinds_are_not_crowded_out_by_thousands_of_worse_ones() -> None:
    crowd = [f"p/r/m/p/t/{number}" for number in range(3 * LOOKED_AT)]
    assert index_of([*crowd, "a/b/c/d/e/f/prompt.py"]).search("prmpt")[0] == "a/b/c/d/e/f/prompt.py"
