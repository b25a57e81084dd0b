"""The debug log: redacted as strictly as a message, and still a JSON object a line."""

import json

from record_lives import ran, said

from mini_agent.core.events import Notice, ToolStarted
from mini_agent.record.debug import DebugLog


def test_t7_w11_redaction_never_breaks_a_line(tmp_path):
    log = DebugLog(tmp_path / "logs" / "x.log", ("own secret",))
    texts = [
        'token=abcdefgh\\"rest',
        "api_key: abcdefgh\\",
        '"authorization": "abcdefgh\\\\"',
        "own secret\\",
        "https://user:pa\\ss@host/",
    ]
    for text in texts:
        log.write(Notice(t=1.0, level="info", text=text))
        log.write(said(text))
        log.write(ToolStarted(t=1.0, call_id="c", name="x", arguments={"token": "abcdefgh1", text: text}))
    log.write(ran("c"))
    log.close()
    lines = (tmp_path / "logs" / "x.log").read_text(encoding="utf-8").splitlines()
    told = [json.loads(line) for line in lines]
    assert len(told) == 3 * len(texts) + 1
    assert not any(word in line for line in lines for word in ("abcdefgh", "own secret", "user:"))
    assert told[0]["text"] == 'token=[redacted]"rest'
