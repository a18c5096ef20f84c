"""Extraction: every format, every bad file of its kind, and the limits of the child (D18, D22)."""

import json
from pathlib import Path

import pytest

from documents.attachments.extraction.child import extract
from documents.attachments.extraction.parent import extract_once
from documents.attachments.limits import EXTRACTION_CHARS
from documents.attachments.names import is_issued, new_name
from documents.attachments.sidecar import EXTRACTED, UNREADABLE, Meta, open_sidecar, sidecar_path, write_sidecar
from tests.documents.attachments.files import (
    PNG,
    docx_bytes,
    docx_with_entities,
    encrypted_pdf_bytes,
    pdf_bytes,
    pptx_bytes,
    put,
    xlsx_bytes,
    zip_bomb_bytes,
)

LAUGHS = ['l0 "ha"', *(f'l{n} "{f"&l{n - 1};" * 10}"' for n in range(1, 10))]  # would be two thousand million letters


def text_of(
    tmp_path: Path, filename: str, content: bytes, limit: int = EXTRACTION_CHARS
) -> tuple[dict[str, object], str]:
    """What the child makes of a file, in this process."""
    source, out = put(tmp_path, f"source-{filename}", content), tmp_path / "out"
    out.write_text("")
    facts = extract(source, filename, out, limit)
    return facts, out.read_bytes().decode()


@pytest.mark.parametrize(
    ("filename", "content", "expected"),
    [
        ("a.txt", b"plain\r\ntext\r", "plain\r\ntext\r"),
        ("a.md", "# Überschrift\n".encode(), "# Überschrift\n"),
        ("bom.txt", "\ufeffmarked".encode(), "marked"),
        ("utf16.txt", "sechzehn é".encode("utf-16"), "sechzehn é"),
        ("be.txt", b"\xfe\xff" + "groß".encode("utf-16-be"), "groß"),
        ("utf32.txt", "\ufeffzweiunddreißig".encode("utf-32-le"), "zweiunddreißig"),
        ("latin.txt", ("Die Prüfung fällt schön aus. Größe über alles. " * 20).encode("latin-1"),
         "Die Prüfung fällt schön aus. Größe über alles. " * 20),
        ("a.json", b'{"b":1,"a":[2]}', '{\n "b": 1,\n "a": [\n  2\n ]\n}'),
        ("broken.json", b'{"b":', '{"b":'),
        ("nul.py", b"\xef\xbb\xbfa\0b", "a�b"),
        ("a.csv", b"name,price\r\nsmall,4\r\nlarge,9\r\n",
         "Table: 2 rows below the header, 2 columns. Header: name, price\nname,price\r\nsmall,4\r\nlarge,9\r\n"),
        ("a.tsv", b"name\tprice\nsmall\t4\n",
         "Table: 1 rows below the header, 2 columns. Header: name, price\nname\tprice\nsmall\t4\n"),
        ("a.html", b"<html><head><style>p{}</style></head><body><h1>Hi</h1><script>x()</script><p>one</p></body></html>",
         "# Hi\n\none\n"),
        ("a.pdf", pdf_bytes("First page", "Second"), "Page 1 of 2\n\nFirst page\n\nPage 2 of 2\n\nSecond\n\n"),
        ("a.docx", docx_bytes(), "# Release plan\n\nÜnïcode prose.\n| left | right |\n\n"),
        ("a.xlsx", xlsx_bytes(), "Sheet: Prices\nparcel\tprice\nsmall\t4.5\n\n"),
        ("a.pptx", pptx_bytes(), "Slide 1\n\nWhy it was slow\n38 queries\nNotes: Say who measured.\n\n"),
        ("wrong.pdf", b"not a pdf at all", "not a pdf at all"),
        ("wrong.txt", pdf_bytes("In a PDF"), "Page 1 of 1\n\nIn a PDF\n\n"),
        ("wrong.docx", pdf_bytes("In a PDF"), "Page 1 of 1\n\nIn a PDF\n\n"),
        ("table.docx", xlsx_bytes(), "Sheet: Prices\nparcel\tprice\nsmall\t4.5\n\n"),
        ("table", xlsx_bytes(), "Sheet: Prices\nparcel\tprice\nsmall\t4.5\n\n"),
        ("words.xlsx", docx_bytes(), "# Release plan\n\nÜnïcode prose.\n| left | right |\n\n"),
        ("slides.txt", pptx_bytes(), "Slide 1\n\nWhy it was slow\n38 queries\nNotes: Say who measured.\n\n"),
        ("page.pdf", b"<p>not a page of a PDF</p>", "<p>not a page of a PDF</p>"),
        ("text.xlsx", b"just text", "just text"),
        ("photo.png", b"no picture", "no picture"),
        ("deep.json", b"[" * 100_000, "[" * 100_000),
        ("open.csv", b'a,"b\n', 'Table: 0 rows below the header, 2 columns. Header: a, b\na,"b\n'),
        ("cut16.txt", "abc".encode("utf-16")[:-1], "ab\ufffd"),
        ("mark.txt", b"\xef\xbb\xbf", ""),
        ("outside.docx", docx_with_entities('x SYSTEM "file:///etc/passwd"', text="&x;"), "\n"),
    ],
)  # fmt: skip
def test_each_format_gives_its_text(tmp_path: Path, filename: str, content: bytes, expected: str) -> None:
    facts, text = text_of(tmp_path, filename, content)
    assert (facts["status"], facts["reason"]) == (EXTRACTED, None)
    assert text == expected
    assert facts["chars"] == len(expected)


@pytest.mark.parametrize(
    ("filename", "content", "reason"),
    [
        ("empty.txt", b"", "an empty file"),
        ("empty.pdf", b"", "an empty file"),
        ("empty.docx", b"", "an empty file"),
        ("empty.csv", b"", "an empty file"),
        ("photo.png", PNG, "an image"),
        ("photo.pdf", PNG, "an image"),
        ("cut.png", PNG[:20], "an image"),
        ("photo.txt", PNG, "an image"),
        ("cut.pdf", pdf_bytes("First page")[:200], "a damaged PDF"),
        ("locked.pdf", encrypted_pdf_bytes(), "asks for a password"),
        ("scan.pdf", pdf_bytes(""), "without text"),
        ("headless.pdf", b"%PDF-1.4\n%%EOF", "a damaged PDF"),
        ("cut.docx", docx_bytes()[:3000], "archive"),
        ("cut.xlsx", xlsx_bytes()[:-30], "archive"),
        ("cut.pptx", pptx_bytes()[:9000], "archive"),
        ("nul.csv", b"a,b\n1,\0002\n", "binary"),
        ("old.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "Office file"),
        ("program.bin", bytes(range(256)) * 20, "binary"),
        ("bomb.docx", zip_bomb_bytes(), "zip bomb"),
        ("bomb.xlsx", zip_bomb_bytes("xl/workbook.xml"), "zip bomb"),
        ("bomb.pptx", zip_bomb_bytes("ppt/presentation.xml"), "zip bomb"),
        ("laughs.docx", docx_with_entities(*LAUGHS, text="&l9;"), "a damaged Word document"),
    ],
)
def test_each_bad_file_is_a_status_with_its_reason(tmp_path: Path, filename: str, content: bytes, reason: str) -> None:
    facts, _ = text_of(tmp_path, filename, content)
    assert facts["status"] == UNREADABLE
    assert reason in str(facts["reason"])
    assert (facts["chars"], facts["truncated"]) == (0, False)


@pytest.mark.parametrize(("count", "truncated"), [(99, False), (100, False), (101, True)])
def test_the_extraction_budget_counts_code_points(tmp_path: Path, count: int, truncated: bool) -> None:
    """D19."""
    facts, text = text_of(tmp_path, "a.txt", ("é" * count).encode(), limit=100)
    assert (facts["chars"], facts["truncated"]) == (min(count, 100), truncated)
    assert text == "é" * min(count, 100)


def test_a_real_child_writes_the_sidecar_once(tmp_path: Path) -> None:
    """D18: also when the original is gone later."""
    name = new_name("plan.md")
    put(tmp_path, name, "Grüße\r\n".encode())
    meta = extract_once(folder=tmp_path, name=name, filename="plan.md")
    assert (meta.status, meta.chars, meta.media_type) == (EXTRACTED, 7, "text/markdown")
    (tmp_path / name).unlink()
    assert extract_once(folder=tmp_path, name=name, filename="plan.md") == meta
    first, _, text = sidecar_path(tmp_path, name).read_bytes().partition(b"\n")
    assert json.loads(first)["sha256"] == meta.sha256
    assert text == "Grüße\r\n".encode()
    assert [path.name for path in tmp_path.iterdir()] == [sidecar_path(tmp_path, name).name]


def test_a_child_that_takes_too_long_is_killed(tmp_path: Path) -> None:
    """D22."""
    name = new_name("slow.txt")
    put(tmp_path, name, b"text")
    meta = extract_once(folder=tmp_path, name=name, filename="slow.txt", seconds=0)
    assert meta.status == UNREADABLE
    assert meta.reason is not None
    assert "took longer" in meta.reason


def test_a_vanished_upload_is_a_status(tmp_path: Path) -> None:
    meta = extract_once(folder=tmp_path, name=new_name("a.txt"), filename="a.txt")
    assert (meta.status, meta.reason) == (UNREADABLE, "the uploaded file is gone")


def test_the_index_finds_every_block(tmp_path: Path) -> None:
    """D20: a page far inside costs no more than one at the begin."""
    text = "aé€😀" * 50_000
    source = tmp_path / "text"
    source.write_text(text, newline="")
    meta = Meta(status=EXTRACTED, chars=len(text), truncated=False, reason=None, media_type="text/plain", sha256="")
    name = new_name("a.txt")
    write_sidecar(tmp_path, name, meta, source)
    sidecar = open_sidecar(tmp_path, name)
    assert sidecar is not None
    for offset in (0, 1, 65_535, 65_536, 65_537, 131_071, 131_072, 199_999, 200_000):
        assert sidecar.read(offset, 9) == text[offset : offset + 9]


@pytest.mark.parametrize(
    "name",
    [
        "",
        "a.txt",
        "../" + "a" * 32 + ".txt",
        "A" * 32 + ".txt",
        "a" * 32,
        "a" * 32 + ".t/x",
        "a" * 32 + ".txt\n",
        "a" * 31 + ".txt",
    ],
)
def test_only_names_of_ours_have_the_form(name: str) -> None:
    """D21."""
    assert is_issued("a" * 32 + ".txt")
    assert not is_issued(name)


@pytest.mark.parametrize(
    "filename", ["plan.MD", "no extension", "a.tar.gz", "x." + "y" * 40, "../../etc/passwd", "é.ü"]
)
def test_names_are_the_servers(filename: str) -> None:
    assert is_issued(new_name(filename))


def test_names_do_not_repeat() -> None:
    assert len({new_name("a.txt") for _ in range(100)}) == 100
