"""Paged reading: each boundary of D20, and the two budgets of D19."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.errors import DomainError
from documents.attachments.injection import Attached, inject
from documents.attachments.limits import INJECTION_CHARS, LONGEST_PAGE, PAGE_CHARS
from documents.attachments.names import new_name
from documents.attachments.reading import TOOL, Page, read_page
from documents.attachments.sidecar import EXTRACTED, NO_REASON, UNREADABLE, Meta, write_sidecar


def extracted(folder: Path, text: str, *, truncated: bool = False) -> str:
    name, source = new_name("a.txt"), folder / "text"
    source.write_text(text, newline="")
    meta = Meta(status=EXTRACTED, chars=len(text), truncated=truncated, reason=None, media_type="text/plain", sha256="")
    write_sidecar(folder, name, meta, source)
    return name


TEXT = "aé€😀\r\n" * 20_000  # 120,000 code points


@pytest.mark.parametrize(
    ("offset", "limit", "effective", "length", "following"),
    [
        (0, None, PAGE_CHARS, PAGE_CHARS, PAGE_CHARS),
        (0, 0, PAGE_CHARS, PAGE_CHARS, PAGE_CHARS),
        (0, -1, PAGE_CHARS, PAGE_CHARS, PAGE_CHARS),
        (0, 1, 1, 1, 1),
        (5, LONGEST_PAGE, LONGEST_PAGE, LONGEST_PAGE, LONGEST_PAGE + 5),
        (0, LONGEST_PAGE + 1, LONGEST_PAGE, LONGEST_PAGE, LONGEST_PAGE),
        (0, 10**12, LONGEST_PAGE, LONGEST_PAGE, LONGEST_PAGE),
        (119_999, 8000, 8000, 1, None),
        (120_000, 8000, 8000, 0, None),
        (112_000, 8000, 8000, 8000, None),
        (111_999, 8000, 8000, 8000, 119_999),
        ("10", "20.0", 20, 20, 30),
        (10.0, 20.0, 20, 20, 30),
    ],
)
def test_a_page(
    tmp_path: Path, offset: object, limit: object, effective: int, length: int, following: int | None
) -> None:
    name = extracted(tmp_path, TEXT)
    page = read_page(folder=tmp_path, name=name, offset=offset, limit=limit)
    start = int(float(str(offset)))
    assert page == Page(
        name=name,
        status=EXTRACTED,
        offset=start,
        limit=effective,
        total_chars=120_000,
        truncated=following is not None,
        next_offset=following,
        text=TEXT[start : start + length],
    )


def test_following_next_offset_reads_the_whole_text(tmp_path: Path) -> None:
    name = extracted(tmp_path, TEXT)
    parts, offset = [], 0
    while True:
        page = read_page(folder=tmp_path, name=name, offset=offset, limit=33_333)
        parts.append(page.text)
        if page.next_offset is None:
            break
        offset = page.next_offset
    assert "".join(parts) == TEXT


@pytest.mark.parametrize(
    ("offset", "limit", "code"),
    [(-1, 8000, "negative_offset"), (120_001, 8000, "offset_past_end"), ("x", 8, "malformed_number"),
     (1.5, 8, "malformed_number"), (True, 8, "malformed_number"), (0, "many", "malformed_number"),
     (None, 8, "malformed_number"), (2**60, 8, "malformed_number"), ("1" * 30, 8, "malformed_number")],
)  # fmt: skip
def test_refusals(tmp_path: Path, offset: object, limit: object, code: str) -> None:
    name = extracted(tmp_path, TEXT)
    with pytest.raises(DomainError) as refused:
        read_page(folder=tmp_path, name=name, offset=offset, limit=limit)
    assert refused.value.code == code
    if code == "offset_past_end":
        assert refused.value.facts["total_chars"] == 120_000


def test_the_order_of_refusals(tmp_path: Path) -> None:
    """D20: negative offset before the disk is touched, then the sidecar, then unreadable, then the end."""
    missing, unreadable = new_name("a.txt"), new_name("b.png")
    meta = Meta(status=UNREADABLE, chars=0, truncated=False, reason=None, media_type="image/png", sha256="")
    write_sidecar(tmp_path, unreadable, meta)

    def code_of(folder: Path, name: str, offset: int) -> str:
        with pytest.raises(DomainError) as refused:
            read_page(folder=folder, name=name, offset=offset)
        return refused.value.code

    assert code_of(tmp_path / "no folder", missing, -1) == "negative_offset"
    assert code_of(tmp_path, missing, 5) == "pending"
    assert code_of(tmp_path, unreadable, 5) == "unreadable"
    with pytest.raises(DomainError, match=NO_REASON):
        read_page(folder=tmp_path, name=unreadable)


def test_a_cut_extraction_says_so_on_every_page(tmp_path: Path) -> None:
    name = extracted(tmp_path, TEXT, truncated=True)
    assert read_page(folder=tmp_path, name=name).extract_truncated
    assert read_page(folder=tmp_path, name=name, offset=120_000).extract_truncated


def test_an_empty_text_has_one_empty_page(tmp_path: Path) -> None:
    name = extracted(tmp_path, "")
    page = read_page(folder=tmp_path, name=name)
    assert (page.text, page.total_chars, page.truncated) == ("", 0, False)


def attached(name: str, chars: int, **more: object) -> Attached:
    values = {"status": EXTRACTED, "chars": chars, **more}
    return Attached(name=name, filename="plan.txt", media_type="text/plain", **values)  # type: ignore[arg-type]


def test_a_list_lines_cursor_is_where_reading_goes_on(tmp_path: Path) -> None:
    """D19: the tool is called with what the line prints."""
    name = extracted(tmp_path, TEXT)
    (injected,) = inject(
        [attached(name, len(TEXT))], lambda n, limit: read_page(folder=tmp_path, name=n, limit=limit).text
    )
    line = injected.text.splitlines()[-1]
    assert TOOL in line
    offset = int(line.split("offset=")[1].rstrip("."))
    shown = line.split("name=")[1].split(",")[0]
    assert offset == injected.carried < len(TEXT)
    assert "offset=0" in injected.line
    assert f"of {len(TEXT)} characters" in injected.line
    page = read_page(folder=tmp_path, name=shown, offset=offset)
    assert page.text == TEXT[offset : offset + PAGE_CHARS]


def test_what_does_not_fit_gets_a_line_from_its_begin() -> None:
    one, two = "1" * 32 + ".txt", "2" * 32 + ".txt"
    injected = inject([attached(one, INJECTION_CHARS), attached(two, 5)], lambda name, limit: "x" * limit)
    assert [found.carried for found in injected] == [INJECTION_CHARS, 0]
    assert injected[1].text == injected[1].line
    assert "offset=0" in injected[1].text
    assert "offset=" not in injected[0].text


def test_pending_and_unreadable_ones_get_a_line_with_the_reason() -> None:
    found = inject(
        [
            attached("a", 0, status="pending"),
            attached("b", 0, status=UNREADABLE),
            attached("c", 0, status=UNREADABLE, reason="an image"),
        ],
        lambda name, limit: "",
    )
    for one, reason in zip(found, ("still being extracted", NO_REASON, "an image"), strict=True):
        assert f"Attachment {one.name} (plan.txt, text/plain): no text, {reason}." == one.text == one.line


@given(st.lists(st.integers(0, 60), max_size=6), st.integers(0, 120))
def test_the_injection_budget_is_never_passed(sizes: list[int], budget: int) -> None:
    items = [attached(f"{number:032x}.txt", size) for number, size in enumerate(sizes)]
    injected = inject(items, lambda name, limit: "x" * limit, budget)
    assert sum(found.carried for found in injected) == min(budget, sum(sizes))
    for item, found in zip(items, injected, strict=True):
        assert (f"offset={found.carried}." in found.text) == (found.carried < item.chars)
