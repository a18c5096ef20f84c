"""The limits of attachments, each with its reason (D19, D20, D22)."""

UPLOAD_BYTES = 64 * 1024 * 1024  # one file: a long scanned PDF; kept on disk, never in memory
EXTRACTION_CHARS = 16 * 1024 * 1024  # code points of a sidecar's text: bounds the disk, not a request (D19)
INJECTION_CHARS = 64 * 1024  # code points that all attachments of one request bring along (D19)
PICTURE_BYTES = 5 * 1024 * 1024  # a picture that is shown to a model: providers refuse larger ones
NAMED = 50  # attachments that one input names: more would be list lines without end
PAGE_CHARS = 8000  # a page when no limit is given: a few thousand tokens (D20)
LONGEST_PAGE = 65_536  # a page at most; a larger limit is clamped and the answer says so (D20)
INDEX_STEP = 65_536  # code points between two byte offsets of the sidecar's index (D20)

CHILD_SECONDS = 120  # by the clock: a PDF can loop
CHILD_CPU_SECONDS = 60
CHILD_MEMORY = 1_536 * 1024 * 1024  # address space: libraries alone map several hundred MiB
UNPACKED_BYTES = 512 * 1024 * 1024  # of an office file's parts together: a zip bomb has more
UNPACKED_RATIO = 200  # unpacked to packed, above 16 MiB: text rarely shrinks further
REASON_CHARS = 300
FILENAME_CHARS = 255
