"""What a file is, by its content first and its name second: a wrong extension misleads nobody."""

import zipfile
from pathlib import Path

_IMAGES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
)
_OFFICE = {
    "word/document.xml": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xl/workbook.xml": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "ppt/presentation.xml": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
}
_BY_EXTENSION = {
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "json": "application/json",
    "htm": "text/html",
    "html": "text/html",
    "md": "text/markdown",
    "markdown": "text/markdown",
}
_OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# Control characters that plain text has no use for; their presence means that a file is something else.
_BINARY = bytes(set(range(32)) - set(b"\t\n\v\f\r\b\x1a\x1b"))


def media_type(path: Path, filename: str) -> str:
    """The media type of the file; `application/octet-stream` for what holds no text and is no image."""
    with path.open("rb") as file:
        head = file.read(8192)
    for signature, kind in _IMAGES:
        if head.startswith(signature):
            return kind
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    if b"%PDF-" in head[:1024]:
        return "application/pdf"
    if head.startswith(_OLD_OFFICE):
        return "application/x-ole-storage"
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zip_type(path)
    if _looks_binary(head):
        return "application/octet-stream"
    return _BY_EXTENSION.get(Path(filename).suffix.lower().lstrip("."), "text/plain")


def _zip_type(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
    except (zipfile.BadZipFile, OSError, ValueError):
        return "application/zip"
    return next((kind for part, kind in _OFFICE.items() if part in names), "application/zip")


def _looks_binary(head: bytes) -> bool:
    if head.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")):
        return False  # a byte order mark: text, whatever else is in it
    if b"\0" in head:
        return not _looks_utf16(head)
    return len(head.translate(None, _BINARY)) < len(head) * 0.95


def _looks_utf16(head: bytes) -> bool:
    """Text in UTF-16 without a mark: nearly every second byte is zero."""
    even, odd = head[::2].count(0), head[1::2].count(0)
    return max(even, odd) > len(head) * 0.3 and min(even, odd) < len(head) * 0.02
