"""The change that the demo model makes to a file, from what a read_file result shows of it."""

import re

_NOTE = re.compile(r"\[(?:Lines \d+-\d+[;:]|The file is empty\.|\ufffd stands for).*\]")
_EDITED = re.compile(r"Edited by the demo model(?:, (\d{1,9}) times)?")

_COMMENTS = (
    (("py", "sh", "toml", "yaml", "yml", "rb", "cfg", "ini"), ("# ", "")),
    (("js", "ts", "tsx", "jsx", "go", "rs", "c", "h", "cpp", "java", "kt", "swift", "cs"), ("// ", "")),
    (("md", "html", "xml", "svg"), ("<!-- ", " -->")),
    (("css",), ("/* ", " */")),
    (("json",), ('"', '"')),  # a string alone is a JSON document
)


def file_lines(content: str) -> list[str]:
    """The lines of a file as a read_file result shows them, without the note that may stand behind them."""
    lines = content.removesuffix("\n").split("\n")
    return lines[:-1] if _NOTE.fullmatch(lines[-1]) else lines


def edit_of(path: str, lines: list[str]) -> tuple[str, str] | None:
    """A text that is in `lines` exactly once, and what to put in its place; None where there is no such text.

    A line is added at the end, where a comment can't fall into a string, a header or a block. One that is there from an
    earlier edit is counted up instead. JSON has no comments, and a line too many would break it.
    """
    if path.lower().endswith(".json"):
        return None
    content = "\n".join(lines)
    for line in lines:
        if (found := _EDITED.search(line)) and content.find(line) == content.rfind(line):
            times = int(found[1] or 1) + 1
            return line, line.replace(found[0], f"Edited by the demo model, {times} times", 1)
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    for count in range(1, min(len(lines), 20) + 1):
        old = "\n".join(lines[-count:])
        if old.strip() and content.find(old) == content.rfind(old):
            return old, f"{old}\n{comment(path, 'Edited by the demo model')}"
    return None


def comment(path: str, words: str) -> str:
    """`words` as a comment in the language of `path`; as a line of text where it has none."""
    suffix = path.rpartition(".")[2].lower()
    opening, closing = next((marks for suffixes, marks in _COMMENTS if suffix in suffixes), ("", ""))
    return f"{opening}{words}{closing}"
