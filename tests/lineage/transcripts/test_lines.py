"""T1, T3: lines split on LF only, half a line waits, and nothing stops the reading."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineage.transcripts.lines import Fault, Line, LineSplitter, decode_object
from tests.lineage.transcripts.reading import SAMPLES


def split(data: bytes, *cuts: int, longest: int = 1000) -> list[Line]:
    splitter = LineSplitter(longest=longest)
    edges = [0, *sorted(cuts), len(data)]
    return [line for start, end in pairwise(edges) for line in splitter.feed(data[start:end])]


def test_only_a_line_feed_ends_a_line() -> None:
    text = '{"a":"one\u2028two\u2029three\u0085four"}\r'.encode()
    (line,) = split(text + b"\n")
    assert line.value == {"a": "one\u2028two\u2029three\u0085four"}
    assert (line.offset, line.size, line.raw) == (0, len(text) + 1, text)


def test_half_a_line_waits_for_its_rest() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b'{"a":1}\n{"b"') == split(b'{"a":1}\n')
    assert splitter.offset == 8
    (line,) = splitter.feed(b":2}\n")
    assert (line.offset, line.size, line.value) == (8, 8, {"b": 2})


def test_a_whole_object_at_the_end_needs_no_line_feed() -> None:
    splitter = LineSplitter()
    splitter.feed(b'{"a":1}\n{"b":2}')
    last = splitter.last()
    assert last is not None
    assert (last.offset, last.size, last.value) == (8, 7, {"b": 2})
    assert splitter.feed(b"\n")[0].fault == Fault.BLANK


@pytest.mark.parametrize("rest", [b'{"b":', b'{"b":2} x', b"3", b"null", b"[1]", b"  "])
def test_anything_else_at_the_end_waits(rest: bytes) -> None:
    splitter = LineSplitter()
    splitter.feed(b'{"a":1}\n' + rest)
    assert splitter.last() is None
    assert splitter.offset == 8


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        (b"", Fault.BLANK),
        (b"  \t", Fault.BLANK),
        (b"not json", Fault.MALFORMED),
        (b'{"a":', Fault.MALFORMED),
        (b"[1,2]", Fault.NOT_AN_OBJECT),
        (b'"text"', Fault.NOT_AN_OBJECT),
        (b"null", Fault.NOT_AN_OBJECT),
        (b"[" * 100_000, Fault.MALFORMED),
    ],
)
def test_a_line_that_is_no_object_says_why(raw: bytes, fault: Fault) -> None:
    assert decode_object(raw) == (None, fault)


def test_the_lenient_decoder_takes_what_transcripts_hold() -> None:
    assert decode_object(b'{"a":"\\ud83d"}') == ({"a": "\ud83d"}, None)
    assert decode_object(b'{"a":"\xff"}') == ({"a": "\ufffd"}, None)
    assert decode_object(b'{"a":Infinity}') == ({"a": float("inf")}, None)


def test_a_line_over_the_cap_is_counted_and_the_next_is_read() -> None:
    data = b'{"a":"' + b"x" * 1000 + b'"}\n{"b":2}\n'
    long, short = split(data, *range(0, len(data), 100), longest=1000)
    assert (long.fault, long.raw, long.size) == (Fault.TOO_LONG, b"", 1009)
    assert (short.offset, short.value) == (1009, {"b": 2})


def test_a_line_at_the_cap_is_read() -> None:
    data = b'{"a":"' + b"x" * 992 + b'"}\n'
    assert split(data, longest=1000)[0].fault is None
    assert split(data, longest=999)[0].fault == Fault.TOO_LONG


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=8))
def test_chunks_never_change_the_lines(data: bytes, cuts: list[int]) -> None:
    assert split(data, *(cut for cut in cuts if cut <= len(data)), longest=40) == split(data, longest=40)


def test_lines_and_what_waits_are_the_whole_file() -> None:
    data = (SAMPLES / "claude/syn-02-irregular.jsonl").read_bytes()
    splitter = LineSplitter()
    lines = splitter.feed(data)
    assert len(lines) == 30
    assert b"".join(line.raw + b"\n" for line in lines) + data[splitter.offset :] == data
    assert not data[splitter.offset :].endswith(b"\n")
