"""One generator of text pieces for each format. Runs only in the child process; libraries are imported when needed."""

import contextlib
import csv
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from documents.attachments.limits import UNPACKED_BYTES, UNPACKED_RATIO

Pieces = Iterator[str]


class Unreadable(Exception):
    """The file has no text that we can give; the message is the reason that people read."""


def pieces_of(path: Path, kind: str) -> Pieces:
    """The text of the file, piece by piece, so that the caller can stop at its budget. Raises `Unreadable`."""
    if kind.startswith("image/"):
        raise Unreadable("an image, shown as one and without text")
    try:
        reader = READERS[kind]
    except KeyError:
        raise Unreadable(_NO_READER.get(kind, "a binary file of an unknown kind")) from None
    return reader(path)


def read_text(path: Path) -> Pieces:
    """Plain text in any encoding; line ends stay as they are."""
    yield decoded(path.read_bytes())


def decoded(raw: bytes) -> str:
    """The text of the bytes: UTF-8 when it is, else what its mark or a detector says."""
    for mark, encoding in (
        (b"\xef\xbb\xbf", "utf-8-sig"),
        (b"\xff\xfe\0\0", "utf-32"),
        (b"\xff\xfe", "utf-16"),
        (b"\xfe\xff", "utf-16"),
    ):
        if raw.startswith(mark):
            return raw.decode(encoding, "replace")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        from charset_normalizer import from_bytes

        best = from_bytes(raw[:1_000_000]).best()  # enough to know the encoding, bounded in time
        if best is None:
            raise Unreadable("text in an encoding that could not be told") from None
        return raw.decode(best.encoding, "replace")


def read_json(path: Path) -> Pieces:
    """JSON as it stands when it is broken or already on several lines, indented when it is one long line."""
    text = decoded(path.read_bytes())
    if "\n" not in text.strip():
        with contextlib.suppress(ValueError, RecursionError):
            text = json.dumps(json.loads(text), ensure_ascii=False, indent=1)
    yield text


def read_table(path: Path, delimiter: str) -> Pieces:
    """A summary line (rows, columns, header), which counts in offsets (D20), then the file's own text."""
    text = decoded(path.read_bytes())
    csv.field_size_limit(len(text) + 1)
    rows, columns, header = 0, 0, []
    for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
        if not row:
            continue
        if not rows:
            header = row
        rows += 1
        columns = max(columns, len(row))
    named = ", ".join(header[:50]) + (f" and {len(header) - 50} more" if len(header) > 50 else "")
    yield f"Table: {max(rows - 1, 0)} rows below the header, {columns} columns. Header: {' '.join(named.split())}\n"
    yield text


def read_html(path: Path) -> Pieces:
    """The page as Markdown, without scripts and styles."""
    from bs4 import BeautifulSoup
    from markdownify import MarkdownConverter

    soup = BeautifulSoup(decoded(path.read_bytes()), "html.parser")
    for part in soup(["script", "style", "template", "noscript"]):
        part.decompose()
    yield re.sub(r"\n{3,}", "\n\n", MarkdownConverter(heading_style="ATX").convert_soup(soup)).strip() + "\n"


def read_pdf(path: Path) -> Pieces:
    """The text of every page under a line that numbers it."""
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(path)  # type: ignore[no-untyped-call]
    except pypdfium2.PdfiumError as error:
        if "assword" in str(error):
            raise Unreadable("an encrypted PDF that asks for a password") from error
        raise Unreadable("a damaged PDF that cannot be opened") from error
    found = False
    for number in range(len(document)):
        page = document[number]
        text = page.get_textpage().get_text_bounded().replace("\r\n", "\n")
        page.close()
        found = found or bool(text.strip())
        yield f"Page {number + 1} of {len(document)}\n\n{text.strip()}\n\n"
    if not found:
        raise Unreadable("a PDF without text, most likely scanned pages")


def read_docx(path: Path) -> Pieces:
    """Paragraphs and tables in their order; headings as Markdown."""
    from docx import Document
    from docx.table import Table

    for block in _opened(Document, path, "Word document").iter_inner_content():
        if isinstance(block, Table):
            for row in block.rows:
                yield "| " + " | ".join(" ".join(cell.text.split()) for cell in row.cells) + " |\n"
            yield "\n"
            continue
        style = (block.style.name or "") if block.style else ""
        level = re.fullmatch(r"Heading (\d)", style)
        yield f"{'#' * int(level[1])} {block.text}\n\n" if level else f"{block.text}\n"


def read_xlsx(path: Path) -> Pieces:
    """Every sheet under its name, a line per row, cells parted by tabs."""
    from openpyxl import load_workbook

    book = _opened(lambda file: load_workbook(file, read_only=True, data_only=True), path, "Excel workbook")
    for sheet in book.worksheets:
        yield f"Sheet: {sheet.title}\n"
        for row in sheet.iter_rows(values_only=True):
            if any(value is not None for value in row):
                yield "\t".join("" if value is None else str(value) for value in row).rstrip("\t") + "\n"
        yield "\n"


def read_pptx(path: Path) -> Pieces:
    """Every slide under its number, then its notes."""
    from pptx import Presentation

    for number, slide in enumerate(_opened(Presentation, path, "PowerPoint presentation").slides, 1):
        yield f"Slide {number}\n\n"
        for shape in slide.shapes:
            yield from _shape(shape)
        if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame.text.strip()):
            yield f"Notes: {notes}\n"
        yield "\n"


def _shape(shape: Any) -> Pieces:
    if shape.has_text_frame and shape.text_frame.text.strip():
        yield shape.text_frame.text.strip() + "\n"
    if getattr(shape, "has_table", False) and shape.has_table:
        for row in shape.table.rows:
            yield "| " + " | ".join(" ".join(cell.text.split()) for cell in row.cells) + " |\n"
    for inner in getattr(shape, "shapes", ()):
        yield from _shape(inner)


def _opened(opener: Callable[[Any], Any], path: Path, what: str) -> Any:
    """Open an office file after looking at what its parts unpack to. By its content: openpyxl would go by the name's end."""
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(part.file_size for part in archive.infolist())
    except (zipfile.BadZipFile, OSError) as error:
        raise Unreadable(f"a damaged {what}") from error
    packed = max(path.stat().st_size, 1)
    if unpacked > UNPACKED_BYTES or (unpacked > 16 * 1024 * 1024 and unpacked > packed * UNPACKED_RATIO):
        raise Unreadable(f"a {what} that unpacks to {unpacked} bytes from {packed}: it looks like a zip bomb")
    try:
        return opener(io.BytesIO(path.read_bytes()))
    except MemoryError:
        raise
    except Exception as error:
        raise Unreadable(f"a damaged {what}") from error


READERS: dict[str, Callable[[Path], Pieces]] = {
    "text/plain": read_text,
    "text/markdown": read_text,
    "text/html": read_html,
    "text/csv": lambda path: read_table(path, ","),
    "text/tab-separated-values": lambda path: read_table(path, "\t"),
    "application/json": read_json,
    "application/pdf": read_pdf,
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": read_docx,
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": read_xlsx,
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": read_pptx,
}
_NO_READER = {
    "application/x-ole-storage": "an old or encrypted Office file; save it as DOCX, XLSX or PPTX without a password",
    "application/zip": "a damaged or unknown archive",
}
