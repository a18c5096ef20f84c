"""Files of every kind for the tests, made here: nothing binary lies in the repository."""

import io
import zipfile
from pathlib import Path
from typing import Any


def pdf_bytes(*pages: str) -> bytes:
    """A small PDF with one line of text on each page."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    kids = []
    for text in pages:
        stream = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET"
        kids.append(f"{len(objects) + 1} 0 R")
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {len(objects) + 2} 0 R"
            " /Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    out, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode()
    start = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    out += b"".join(f"{offset:010} 00000 n \n".encode() for offset in offsets)
    return out + f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n".encode()


def encrypted_pdf_bytes() -> bytes:
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf_bytes("secret"))))
    writer.encrypt("a password", algorithm="RC4-128")
    return _saved(writer.write)


def docx_bytes() -> bytes:
    from docx import Document

    document = Document()
    document.add_heading("Release plan", 1)
    document.add_paragraph("Ünïcode prose.")
    table = document.add_table(rows=1, cols=2)
    table.cell(0, 0).text, table.cell(0, 1).text = "left", "right"
    return _saved(document.save)


def xlsx_bytes() -> bytes:
    from openpyxl import Workbook
    from openpyxl.worksheet.worksheet import Worksheet

    book = Workbook()
    sheet = book.active
    assert isinstance(sheet, Worksheet)
    sheet.title = "Prices"
    sheet.append(["parcel", "price"])
    sheet.append(["small", 4.5])
    return _saved(book.save)


def pptx_bytes() -> bytes:
    from pptx import Presentation

    show = Presentation()
    slide = show.slides.add_slide(show.slide_layouts[1])
    slide.shapes.title.text = "Why it was slow"
    slide.placeholders[1].text = "38 queries"
    slide.notes_slide.notes_text_frame.text = "Say who measured."
    return _saved(show.save)


def zip_bomb_bytes(part: str = "word/document.xml") -> bytes:
    """An office file of which that part would unpack to 600 MiB of one letter."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        with archive.open(part, "w", force_zip64=True) as file:
            for _ in range(600):
                file.write(b"a" * (1 << 20))
    return out.getvalue()


def docx_with_entities(*entities: str, text: str) -> bytes:
    """A Word file whose text is made of entities of its own, as attacks on readers of XML have them."""
    named = "".join(f"<!ENTITY {entity}>" for entity in entities)
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    body = f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"
    document = (
        f'<?xml version="1.0"?><!DOCTYPE d [{named}]><w:document xmlns:w="{space}"><w:body>{body}</w:body></w:document>'
    )
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(docx_bytes())) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, document if name == "word/document.xml" else old.read(name))
    return out.getvalue()


PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63606060000000040001f61738550000000049454e44ae426082"
)


def put(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def _saved(save: Any) -> bytes:
    out = io.BytesIO()
    save(out)
    return out.getvalue()
