"""PaddleNLP's couplet corpus, from a stand-in of its archive served on the loopback interface."""

import builtins
import hashlib
import io
import sys
import tarfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from paddle_dialog.errors import UserError
from paddle_dialog.tasks.couplet.couplets import Couplet, read_couplets

PAIRS = {
    "train": [("春风，来", "秋雨，去"), ("山高", "水长"), ("好", "。")],
    "dev": [("日", "月")],
    "test": [("天对地", "雨对风")],
}
TOKENS = ["<s>", "</s>", "<unk>", "春", "，"]


def archive(leave_out=""):
    files = {"vocab.txt": "".join(f"{token}\n" for token in TOKENS)}
    for split, pairs in PAIRS.items():
        for side, name in enumerate(("src", "tgt")):
            files[f"{split}_{name}.tsv"] = "".join("\x02".join(pair[side]) + "\n" for pair in pairs)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, text in files.items():
            if name != leave_out:
                info = tarfile.TarInfo(f"couplet/{name}")
                info.size = len(text.encode())
                tar.addfile(info, io.BytesIO(text.encode()))
    return buffer.getvalue()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def server(tmp_path):
    (tmp_path / "served").mkdir()
    handler = partial(Quiet, directory=str(tmp_path / "served"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield httpd
        httpd.shutdown()


def refusal(call, *arguments):
    with pytest.raises(UserError) as caught:
        call(*arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_corpus_and_vocabulary_and_every_failure_to_get_them(tmp_path, server, monkeypatch, caplog):
    # One test, since the import of PaddleNLP is what takes the time.
    monkeypatch.setenv("PPNLP_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    from paddle.utils import download
    from paddlenlp.datasets import couplet, dataset

    served = tmp_path / "served" / "couplet.tar.gz"

    def offer(data, data_home, md5=None):
        served.write_bytes(data)
        monkeypatch.setattr(couplet.Couplet, "MD5", md5 or hashlib.md5(data).hexdigest())
        monkeypatch.setattr(couplet, "DATA_HOME", str(tmp_path / data_home))
        monkeypatch.setattr(dataset, "DATA_HOME", str(tmp_path / data_home))

    monkeypatch.setattr(couplet.Couplet, "URL", f"http://127.0.0.1:{server.server_port}/couplet.tar.gz")
    monkeypatch.setattr(download, "DOWNLOAD_RETRY_LIMIT", 1)
    monkeypatch.setattr("time.sleep", lambda _: None)

    offer(archive(), "other", md5="0" * 32)
    assert "paddlenlp:dev: PaddleNLP could not fetch" in refusal(read_couplets, "paddlenlp:dev")
    offer(archive(leave_out="dev_tgt.tsv"), "partial")
    assert "dev_tgt.tsv" in refusal(read_couplets, "paddlenlp:dev")
    offer(b"not an archive", "broken")
    assert "give a TSV file" in refusal(read_couplets, "paddlenlp")

    offer(archive(), "data")
    with caplog.at_level("WARNING", logger="paddle_dialog"):
        assert read_couplets("paddlenlp") == [Couplet("春风，来", "秋雨，去"), Couplet("山高", "水长")]
    assert "paddlenlp:train: 1 pairs left out" in caplog.text
    served.unlink()  # what was fetched once is not fetched again
    assert read_couplets("paddlenlp:dev") == [Couplet("日", "月")]
    assert read_couplets("paddlenlp:test") == [Couplet("天对地", "雨对风")]


def test_paddlenlp_that_cannot_be_imported(monkeypatch):
    real_import = builtins.__import__

    def broken_import(name, *arguments):
        if name.startswith("paddlenlp"):
            raise AttributeError("module has no\nattribute x")
        return real_import(name, *arguments)

    monkeypatch.delitem(sys.modules, "paddlenlp.datasets", raising=False)
    monkeypatch.setattr(builtins, "__import__", broken_import)
    assert "cannot be imported (module has no attribute x); install" in refusal(
        read_couplets, "paddlenlp:test"
    )
