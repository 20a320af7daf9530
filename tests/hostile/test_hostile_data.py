# ruff: noqa: E501  # a table of cases, one in a line
"""Broken and hostile data files: each is read right, or refused in a sentence, in bounded memory and time.

What may cost memory, or never end, is read by a process of its own whose memory is bounded: a file that is
swallowed ends it with an error that is no sentence.
"""

from __future__ import annotations

import codecs
import gzip
import json
import os
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hostile import some
from places import SUPPORT
from unfooled.data.loading import load_data
from unfooled.errors import UserError
from unfooled.report.diffs import visible
from unfooled.translation.parallel import load_parallel

PLAIN = "text,label\ngood film,1\nbad film,0\n"
LINES = '{"text": "good film", "label": 1}\n{"text": "bad film", "label": 0}\n'
MEMORY = 2_000 << 20  # of addresses, of which libraries take many that they do not use
MOST_MEGABYTES = 700

APART = (" MB", " GB", "million", "that grows", "every row", "pipe", "endless", "terminal", "memory", "deep")

Build = Callable[[Path], Path]


class Case(NamedTuple):
    name: str
    build: Build
    expected: str  # "2 rows", "1 of 2 rows bad", or what the refusal says
    options: tuple[tuple[str, Any], ...] = ()
    parallel: bool = False

    @property
    def apart(self) -> bool:
        """Whether it may cost memory or never end: then it is read by a process of its own."""
        return any(word in self.name for word in APART)


def file(name: str, content: bytes | str) -> Build:
    def build(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return build


def packed(name: str, piece: bytes, times: int = 1, first: bytes = b"") -> Build:
    """Gzip data of many equal members: gigabytes that are made, and stored, in no time."""

    def build(folder: Path) -> Path:
        path = folder / name
        path.write_bytes((gzip.compress(first) if first else b"") + gzip.compress(piece) * times)
        return path

    return build


def parquet(make: Callable[[Any, Any, Path], None]) -> Build:
    def build(folder: Path) -> Path:
        pyarrow = pytest.importorskip("pyarrow")
        writer = pytest.importorskip("pyarrow.parquet")
        make(pyarrow, writer, folder / "a.parquet")
        return folder / "a.parquet"

    return build


def with_note(note: bytes) -> Build:
    def make(arrow: Any, writer: Any, path: Path) -> None:
        table = arrow.table({"text": ["good film", "bad film"], "label": [1, 0]})
        writer.write_table(table.replace_schema_metadata({b"huggingface": note}), path)

    return parquet(make)


def of_columns(**columns: Any) -> Build:
    def make(arrow: Any, writer: Any, path: Path) -> None:
        writer.write_table(arrow.table(columns), path)

    return parquet(make)


def arrow_type(kind: Callable[[Any], Any], values: list[Any]) -> Build:
    def make(arrow: Any, writer: Any, path: Path) -> None:
        table = arrow.table({"text": arrow.array(values, type=kind(arrow)), "label": [1, 0]})
        writer.write_table(table, path)

    return parquet(make)


def cut(build: Build, keep: float) -> Build:
    def make(folder: Path) -> Path:
        path = build(folder)
        content = path.read_bytes()
        path.write_bytes(content[: int(len(content) * keep)])
        return path

    return make


def patched(build: Build, at: int, new: bytes) -> Build:
    def make(folder: Path) -> Path:
        path = build(folder)
        content = bytearray(path.read_bytes())
        start = at if at >= 0 else len(content) + at
        content[start : start + len(new)] = new
        path.write_bytes(content)
        return path

    return make


def long_texts_stored_once(arrow: Any, writer: Any, path: Path) -> None:
    """A file of a few MB whose every row points to the same long text: 8 GB when all are written out."""
    text = os.urandom(2 << 20).hex()
    values = arrow.DictionaryArray.from_arrays(arrow.array([0] * 2000, arrow.int32()), [text])
    writer.write_table(arrow.table({"text": values, "label": arrow.array([0, 1] * 1000)}), path)


def growing_parquet(arrow: Any, writer: Any, path: Path) -> None:
    text = "x" * (100 << 20)
    writer.write_table(arrow.table({"text": [text, text[1:]], "label": [0, 1]}), path, compression="zstd")


def names_twice(arrow: Any, writer: Any, path: Path) -> None:
    table = arrow.Table.from_arrays(
        [arrow.array(["a"])] * 2 + [arrow.array([1])], names=["text", "text", "label"]
    )
    writer.write_table(table, path)


def no_utf8(arrow: Any, writer: Any, path: Path) -> None:
    bytes_ = arrow.array([b"good \xff", b"bad \xfe"], arrow.binary())
    table = arrow.table({"text": bytes_.view(arrow.string()), "label": [1, 0]})
    writer.write_table(table, path)


def saved(change: Callable[[Path], object]) -> Build:
    """A folder of the `datasets` library, then changed."""

    def build(folder: Path) -> Path:
        datasets = pytest.importorskip("datasets")
        datasets.disable_progress_bars()
        path = folder / "saved"
        datasets.Dataset.from_dict({"text": ["good film", "bad film"], "label": [1, 0]}).save_to_disk(path)
        change(path)
        return path

    return build


def named(labels: bytes, content: bytes | None = None, special: str = "") -> Build:
    def build(folder: Path) -> Path:
        path = folder / "set"
        path.mkdir()
        (path / "labels.json").write_bytes(labels)
        if special:
            os.mkfifo(path / special)
        else:
            (path / "test.jsonl.gz").write_bytes(gzip.compress(content or LINES.encode()))
        return path

    return build


def fifo(folder: Path) -> Path:
    os.mkfifo(folder / "a.csv")
    return folder / "a.csv"


def fifo_in_folder(path: Path) -> None:
    arrow = next(path.glob("*.arrow"))
    arrow.unlink()
    os.mkfifo(arrow)


def link_to(target: str) -> Build:
    def build(folder: Path) -> Path:
        (folder / "a.csv").symlink_to(target)
        return folder / "a.csv"

    return build


def unreadable(folder: Path) -> Path:
    if os.geteuid() == 0:
        pytest.skip("root may read every file")
    path = file("a.csv", PLAIN)(folder)
    path.chmod(0)
    return path


def folder_in_place(name: str) -> Build:
    def build(folder: Path) -> Path:
        (folder / name).mkdir()
        return folder / name

    return build


def zip_file(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "a.csv.gz", "w") as archive:
        archive.writestr("a.csv", PLAIN)
    return folder / "a.csv.gz"


def sides(left: bytes, right: bytes, ending: str = "") -> Build:
    def build(folder: Path) -> Path:
        for name, content in ((f"a.en{ending}", left), (f"a.de{ending}", right)):
            (folder / name).write_bytes(gzip.compress(content) if ending else content)
        return Path(f"{folder}/a.en{ending},{folder}/a.de{ending}")

    return build


def gzip_with_wrong_sum() -> bytes:
    content = gzip.compress(PLAIN.encode())
    return content[:-8] + struct.pack("<II", zlib.crc32(b"other"), len(PLAIN))


MB = b"x" * (1 << 20)
HEADER = b"text,label\n"
ODD = "".join(chr(code) for code in (0x202E, 0x200B, 0x1B, 0x07, 0x2066))
ENCODING = "encoding"

CASES = [
    # -- marks and encodings
    Case("utf-8 mark", file("a.csv", codecs.BOM_UTF8 + PLAIN.encode()), "2 rows"),
    Case("utf-8 mark twice", file("a.csv", codecs.BOM_UTF8 * 2 + PLAIN.encode()), "2 rows"),
    Case("utf-8 mark in json", file("a.jsonl", codecs.BOM_UTF8 + LINES.encode()), "2 rows"),
    Case("utf-16 with mark", file("a.csv", PLAIN.encode("utf-16")), "pass --encoding utf-16"),
    Case("utf-16 with mark, named", file("a.csv", PLAIN.encode("utf-16")), "2 rows", ((ENCODING, "utf-16"),)),
    Case("utf-16-le without mark", file("a.csv", PLAIN.encode("utf-16-le")), "pass --encoding utf-16-le"),
    Case("utf-16-be without mark", file("a.csv", PLAIN.encode("utf-16-be")), "pass --encoding utf-16-be"),
    Case("utf-16-le without mark in json", file("a.jsonl", LINES.encode("utf-16-le")), "pass --encoding utf-16-le"),
    Case("utf-16-be without mark read as utf-16", file("a.csv", PLAIN.encode("utf-16-be")),
         "pass --encoding utf-16-be", ((ENCODING, "utf-16"),)),
    Case("utf-16-le without mark read as utf-16", file("a.csv", PLAIN.encode("utf-16-le")), "pass --encoding utf-16-le",
         ((ENCODING, "utf-16"),)),
    Case("utf-16-le without mark read as latin-1", file("a.csv", PLAIN.encode("utf-16-le")),
         "pass --encoding utf-16-le", ((ENCODING, "latin-1"),)),
    Case("utf-8 read as utf-16", file("a.csv", PLAIN), "pass --encoding utf-8", ((ENCODING, "utf-16"),)),
    Case("utf-32 with mark", file("a.csv", PLAIN.encode("utf-32")), "pass --encoding utf-32"),
    Case("utf-32-be without mark", file("a.csv", PLAIN.encode("utf-32-be")), "pass --encoding utf-32-be"),
    Case("packed utf-16 without mark", packed("a.csv.gz", PLAIN.encode("utf-16-le")),
         "pass --encoding utf-16-le"),
    Case("half a utf-16 character", file("a.csv", PLAIN.encode("utf-16")[:-1]), "is not valid utf-16",
         ((ENCODING, "utf-16"),)),
    Case("latin-1", file("a.csv", "text,label\nnaïve film,1\nbad,0\n".encode("latin-1")), "byte 13"),
    Case("latin-1, named", file("a.csv", "text,label\nnaïve film,1\nbad,0\n".encode("latin-1")), "2 rows",
         ((ENCODING, "latin-1"),)),
    *(Case(f"encoding {name!r}", file("a.csv", PLAIN), "there is no encoding", ((ENCODING, name),))
      for name in ("hex", "rot13", "base64", "zlib", "undefined", "idna", "punycode", "unicode_escape",
                   "", "utf-8\0", "x" * 5000, "../../etc/passwd", "ütf-8", "utf 8; rm", "aliases")),
    # -- odd characters
    Case("a zero in a text", file("a.csv", "text,label\ngood\0film,1\nbad,0\n"), "2 rows"),
    Case("nothing but zeros", file("a.csv", b"\0" * 5000), "cannot tell|no rows|looks like|empty"),
    Case("half a surrogate pair in a text", file("a.jsonl", '{"text": "a \\ud800", "label": 1}\n' + LINES),
         "1 of 3 rows bad"),
    Case("half a surrogate pair in a label", file("a.jsonl", '{"text": "a", "label": "\\ud800"}\n' + LINES),
         "1 of 3 rows bad"),
    Case("half a surrogate pair in a column", file("a.jsonl", '{"text\\ud800": "a", "label": "1"}\n'),
         "half of a surrogate pair", (("text", "text\ud800"),)),
    Case("a surrogate in utf-8", file("a.csv", b"text,label\n\xed\xa0\x80,1\n"), "is not valid utf-8"),
    Case("labels that reverse a line", file("a.csv", f"text,label\ngood,{ODD}\nbad,0\n"), "2 rows"),
    Case("a column that reverses a line", file("a.csv", f"{ODD},b,c\n1,2,3\n"), "cannot tell"),
    Case("noncharacters", file("a.csv", "text,label\n\ufffe\uffff\U0010ffff,1\nbad,0\n"), "2 rows"),
    # -- lines and cells
    Case("mixed line ends", file("a.csv", "text,label\r\ngood,1\nbad,0\rdull,0\r\n"), "3 rows"),
    Case("bare carriage returns", file("a.csv", PLAIN.replace("\n", "\r")), "2 rows"),
    Case("bare carriage returns in json", file("a.jsonl", LINES.replace("\n", "\r")), "2 rows"),
    Case("unicode line ends", file("a.csv", "text,label\ngood\u2028film\x85,1\nbad,0\n"), "2 rows"),
    Case("no last line end", file("a.csv", PLAIN.rstrip()), "2 rows"),
    Case("an unclosed mark", file("a.csv", 'text,label\n"good,1\n' + "bad,0\n" * 9), "never closed"),
    Case("an unclosed mark in 20 MB", file("a.csv", 'text,label\n"good,1\n' + "bad,0\n" * 3_500_000), "not closed within"),
    Case("ragged rows", file("a.csv", "text,label\ngood,1\nbad\nbad,0,1\n"), "2 of 3 rows bad"),
    Case("a field of 100 MB", file("a.csv", b"text,label\n" + MB * 100 + b",1\n"), "line 2 is too long"),
    Case("a quoted field of 100 MB", file("a.csv", b'text,label\n"' + (MB[:-1] + b"\n") * 100 + b'",1\n'),
         "not closed within"),
    Case("a line of 100 MB of json", file("a.jsonl", b'{"text": "' + MB * 100 + b'", "label": 1}\n'), "too long"),
    Case("a million columns", file("a.csv", ",".join(f"c{i}" for i in range(1_000_000)) + "\n"), "1,000,000 columns"),
    Case("15 million empty columns", file("a.csv", "," * 15_000_000 + "\n"), "15,000,001 columns"),
    Case("a million columns of json", file("a.jsonl", json.dumps(dict.fromkeys(map(str, range(1_000_000)), 1))),
         "columns"),
    Case("column names twice", file("a.csv", "text,text,label\na,b,1\n"), "'text' occurs twice"),
    Case("empty column names", file("a.csv", ",,\na,b,1\n"), "cannot tell"),
    Case("an empty file", file("a.csv", ""), "the file is empty"),
    Case("an empty file of json", file("a.jsonl", ""), "the file is empty"),
    Case("an empty packed file", file("a.csv.gz", b""), "the file is empty"),
    Case("blank lines only", file("a.csv", "\n" * 1000), "the file is empty"),
    Case("a header only", file("a.csv", "text,label\n"), "there are no rows"),
    Case("tab-separated with bare marks", file("a.tsv", 'text\tlabel\n"good film\t1\nbad" film\t0\n'), "2 rows"),
    # -- JSON
    Case("deep json", file("a.jsonl", "[" * 200_000 + "]" * 200_000 + "\n" + LINES), "1 of 3|JSON array"),
    Case("deep json in a field", file("a.jsonl", '{"text": ' + "[" * 100_000 + "]" * 100_000 + "}\n" + LINES),
         "1 of 3 rows bad"),
    Case("a json array", file("a.json", json.dumps([{"text": "a", "label": 1}])), "one JSON array"),
    Case("nan labels", file("a.jsonl", '{"text": "a", "label": NaN}\n' + LINES), "1 of 3 rows bad"),
    Case("infinite labels", file("a.jsonl", '{"text": "a", "label": 1e999}\n{"text": "b", "label": 0}\n'), "2 rows"),
    Case("true and false", file("a.jsonl", '{"text": "a", "label": true}\n{"text": "b", "label": false}\n'), "2 rows"),
    Case("float labels", file("a.jsonl", '{"text": "a", "label": 1.0}\n{"text": "b", "label": 0.5}\n'), "2 rows"),
    Case("giant numbers", file("a.jsonl", '{"text": "a", "label": ' + "9" * 5000 + "}\n" + LINES), "1 of 3 rows bad"),
    Case("large numbers", file("a.jsonl", '{"text": "a", "label": ' + "9" * 1500 + "}\n" + LINES), "1 of 3 rows bad"),
    Case("objects as texts", file("a.jsonl", '{"text": {"a": 1}, "label": 1}\n' + LINES), "1 of 3 rows bad"),
    Case("lists as labels", file("a.jsonl", '{"text": "a", "label": [1]}\n' + LINES), "1 of 3 rows bad"),
    Case("missing keys", file("a.jsonl", '{"text": "a"}\n{"label": 1}\n' + LINES), "2 of 4 rows bad"),
    Case("words, not objects", file("a.jsonl", "1\nnull\n" + LINES), "2 of 4 rows bad"),
    Case("texts as labels", file("a.jsonl", "".join(json.dumps({"text": "a", "label": "long " * 400}) + "\n" for _ in range(3))),
         "2,000 characters|1,999 characters"),
    # -- gzip
    Case("a packed line of 2 GB", packed("a.jsonl.gz", MB, 2048, b'{"text": "'), "too long|more than 200 times"),
    Case("2 GB of packed rows", packed("a.csv.gz", b"good film,1\n" * 87_000, 2048, HEADER), "more than 200 times"),
    Case("2 GB of packed blank lines", packed("a.csv.gz", b"\n" * (1 << 20), 2048, HEADER), "more than 200 times"),
    Case("a packed side of 1 GB", packed("a.en.gz", b"a dog\n" * 170_000, 1024), "more than 200 times",
         parallel=True),
    Case("truncated gzip", file("a.csv.gz", gzip.compress(PLAIN.encode())[:-9]), "damaged gzip data"),
    Case("gzip with a wrong sum", file("a.csv.gz", gzip_with_wrong_sum()), "damaged gzip data"),
    Case("gzip of gzip", file("a.csv.gz", gzip.compress(gzip.compress(PLAIN.encode()))), "this is gzip data, not text"),
    Case("gzip under another name", file("a.csv", gzip.compress(PLAIN.encode())), "this is gzip data, not text"),
    Case("zip renamed", zip_file, "begins like a zip archive"),
    Case("text renamed to gzip", file("a.csv.gz", PLAIN), "damaged gzip data"),
    Case("several gzip members", file("a.csv.gz", gzip.compress(b"text,label\n") + gzip.compress(b"good,1\nbad,0\n")), "2 rows"),
    Case("rubbish after gzip", file("a.csv.gz", gzip.compress(PLAIN.encode()) + b"rubbish"), "damaged gzip data"),
    # -- Parquet
    Case("parquet note that is no json", with_note(b"{"), "note about columns cannot be read"),
    Case("parquet note that is no text", with_note(b"\xff\xfe\x00"), "note about columns cannot be read"),
    Case("parquet note of a list", with_note(b"[1]"), "note about columns cannot be read"),
    Case("parquet note of deep json", with_note(b"[" * 100_000), "note about columns cannot be read"),
    Case("parquet note with odd names", with_note(json.dumps({"info": {"features": {"label": {"names": 3}}}}).encode()),
         "note about columns cannot be read"),
    Case("parquet note with odd features", with_note(json.dumps({"info": {"features": [1]}}).encode()),
         "note about columns cannot be read"),
    Case("parquet note with names", with_note(json.dumps({"info": {"features": {"label": {"names": ["n", "p"]}}}}).encode()),
         "2 rows"),
    Case("parquet cut in half", cut(of_columns(text=["a", "b"], label=[1, 0]), 0.5), "cannot be read as Parquet"),
    Case("parquet without an end", cut(of_columns(text=["a", "b"], label=[1, 0]), 0.99), "cannot be read as Parquet"),
    Case("parquet with a wrong length", patched(of_columns(text=["a", "b"], label=[1, 0]), -8, b"\xff\xff\xff\x7f"),
         "cannot be read as Parquet"),
    Case("parquet with damaged pages", patched(of_columns(text=["a", "b"], label=[1, 0]), 4, b"\xff" * 40),
         "cannot be read as Parquet"),
    Case("parquet marked as encrypted", patched(of_columns(text=["a", "b"], label=[1, 0]), -4, b"PARE"),
         "cannot be read as Parquet"),
    Case("parquet of nothing", file("a.parquet", b""), "cannot be read as Parquet"),
    Case("parquet of its name only", file("a.parquet", b"PAR1PAR1"), "cannot be read as Parquet"),
    Case("csv renamed to parquet", file("a.parquet", PLAIN), "cannot be read as Parquet"),
    Case("parquet renamed to csv", file("a.csv", b"PAR1" + PLAIN.encode()), "this is a Parquet file"),
    Case("parquet with lists", arrow_type(lambda pa: pa.list_(pa.string()), [["a"], ["b"]]), "a list where a text"),
    Case("parquet with structs", arrow_type(lambda pa: pa.struct([("x", pa.int8())]), [{"x": 1}] * 2), "a dict where a text"),
    Case("parquet with bytes", arrow_type(lambda pa: pa.binary(), [b"a", b"b"]), "a bytes where a text"),
    Case("parquet with a dictionary", arrow_type(lambda pa: pa.dictionary(pa.int8(), pa.string()), ["a", "b"]), "2 rows"),
    Case("parquet with times out of range", arrow_type(lambda pa: pa.timestamp("s"), [1 << 50, 1]), "cannot be read|2 rows"),
    Case("parquet without values", arrow_type(lambda pa: pa.null(), [None, None]), "none of the 2 rows"),
    Case("parquet that is no utf-8", parquet(no_utf8), "cannot be read as Parquet"),
    Case("parquet with a name twice", parquet(names_twice), "'text' occurs twice"),
    Case("parquet that grows", parquet(growing_parquet), "more than 200 times|too long"),
    Case("parquet with a long text in every row", parquet(long_texts_stored_once), "2000 rows"),
    # -- what is no file
    Case("a folder called csv", folder_in_place("a.csv"), "this folder holds no data set"),
    Case("an empty folder", folder_in_place("set"), "this folder holds no data set"),
    Case("a pipe", fifo, "not a regular file"),
    Case("endless zeros", link_to("/dev/zero"), "not a regular file"),
    Case("a terminal", link_to("/dev/tty"), "not a regular file|cannot be opened"),
    Case("memory of the process", link_to("/proc/self/mem"), "cannot be read|empty|valid utf-8"),
    Case("a link to itself", link_to("a.csv"), "no such file|cannot be opened"),
    Case("a link to nothing", link_to("nowhere"), "no such file"),
    Case("no right to read", unreadable, "cannot be read"),
    Case("a name that is too long", lambda folder: Path("x" * 5000 + ".csv"), "cannot be opened"),
    Case("a home of nobody", lambda folder: Path("~nobody-at-all/a.csv"), "cannot be opened|no such file"),
    Case("a zero in the name", lambda folder: Path("a\0b.csv"), "no such file|cannot be opened"),
    Case("a line end in the name", file("a\nerror: all is well\n.csv", PLAIN), "2 rows"),
    Case("escape characters in the name", file("\x1b[31mred\x1b[0m.csv", "text,label\n"), "there are no rows"),
    Case("a name that is no utf-8", lambda folder: file(os.fsdecode(b"\xff\xfe.csv"), PLAIN)(folder), "2 rows"),
    # -- folders
    Case("classes that are no json", named(b"{"), "broken JSON"),
    Case("classes in deep json", named(b"[" * 200_000), "broken JSON"),
    Case("classes that are no list", named(b'{"a": 1}'), "a list of the classes' names"),
    Case("classes of 2 MB", named(b'["' + b"x" * (2 << 20) + b'"]'), "no list of classes"),
    Case("a pipe in a named set", named(b'["n", "p"]', special="test.jsonl.gz"), "not a regular file"),
    Case("a saved folder with a pipe", saved(fifo_in_folder), "not a regular file"),
    Case("a saved folder with a broken table", saved(lambda p: next(p.glob("*.arrow")).write_bytes(b"rubbish")),
         "cannot be read as a saved data set"),
    Case("a saved folder without a table", saved(lambda p: next(p.glob("*.arrow")).unlink()),
         "cannot be read as a saved data set"),
    Case("a saved folder with broken notes", saved(lambda p: (p / "state.json").write_text("[" * 100_000)),
         "cannot be read as a saved data set"),
    Case("a saved folder with strange notes", saved(lambda p: (p / "dataset_info.json").write_text('{"features": 3}')),
         "cannot be read as a saved data set"),
    # -- parallel text
    Case("sides of different length", sides(b"a\nb\n", b"x\n"), "they are not parallel", parallel=True),
    Case("a side in utf-16", sides("a dog\na cat\n".encode("utf-16-le"), b"x\ny\n"), "pass --encoding", parallel=True),
    Case("a side that is no utf-8", sides(b"a\n\xff\n", b"x\ny\n"), "is not valid utf-8", parallel=True),
    Case("a damaged packed side", sides(b"a\nb\n", b"x\ny\n", ".gz"), "2 rows", parallel=True),
    Case("a side of one long line", sides(b"x" * (17 << 20), b"y\n"), "too long", parallel=True),
]  # fmt: skip

SCRIPT = """
import json, resource, sys
given = json.load(sys.stdin)
resource.setrlimit(resource.RLIMIT_AS, (given["memory"], given["memory"]))
sys.path[:0] = given["folders"]
from test_hostile_data import said_of
said = said_of(given["path"], given["options"], parallel=given["parallel"])
# What `getrusage` tells includes the memory of the process that started this one.
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:"))
json.dump({"said": said, "megabytes": int(peak) >> 10}, sys.stdout)
"""


def said_of(path: str, options: dict[str, Any], *, parallel: bool) -> str:
    """What becomes of the file: its rows, counted, or the refusal as the command line shows it."""
    try:
        loaded = load_parallel(path, **options) if parallel else load_data(path, **options)
        problems = [bool(example.problem) for example in loaded]
        loaded.fingerprint()
    except UserError as error:
        return visible(str(error))
    return f"{sum(problems)} of {len(problems)} rows bad" if any(problems) else f"{len(problems)} rows"


def in_a_process(
    path: str, options: dict[str, Any], *, parallel: bool, script: str = SCRIPT
) -> dict[str, Any]:
    here = Path(__file__).parent
    given = {"path": path, "options": options, "parallel": parallel, "memory": MEMORY}
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps(given | {"folders": [str(here), str(SUPPORT)]}),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.hostile("data files")
@pytest.mark.parametrize(
    "case", some(CASES, few=8), ids=lambda case: case.name.encode("unicode_escape").decode()[:60]
)
def test_a_hostile_file_is_read_right_or_refused_in_a_sentence(case: Case, tmp_path: Path) -> None:
    path = str(case.build(tmp_path))
    if case.apart:
        found = in_a_process(path, dict(case.options), parallel=case.parallel)
        assert found["megabytes"] < MOST_MEGABYTES
        said = found["said"]
    else:
        said = said_of(path, dict(case.options), parallel=case.parallel)
    assert any(part in said for part in case.expected.split("|")), said[:2000]
    assert len(said) < 6000
    assert not any(ord(char) < 32 and char not in "\n\t" for char in said)


def test_the_bound_on_memory_is_felt(tmp_path: Path) -> None:
    """Otherwise the cases above would show nothing."""
    greedy = SCRIPT.replace("said = ", "held = b'x' * (2 << 30); said = ")
    with pytest.raises(AssertionError, match="MemoryError"):
        in_a_process("a.csv", {}, parallel=False, script=greedy)


def test_there_are_many_cases() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    assert len(CASES) >= 60
