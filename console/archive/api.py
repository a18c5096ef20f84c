"""`GET /api/roots/{id}/export` (CONTRACT, C5)."""

from collections.abc import AsyncIterator
from typing import IO

from django.http import HttpRequest, StreamingHttpResponse
from ninja import Router

from console.answers import who_of
from console.archive.exporting import export_for
from console.crossing import crossed

router = Router(tags=["export"])

BLOCK = 256 * 1024  # bytes that are in memory for one download


@router.get("/roots/{root}/export")
def get_export(request: HttpRequest, root: int) -> StreamingHttpResponse:
    """The whole tree as the file that `manage.py restore` reads, for owners of the root."""
    file = export_for(who=who_of(request), root=root)
    size = file.seek(0, 2)
    file.seek(0)
    return StreamingHttpResponse(
        _Blocks(file),
        content_type="application/zip",
        headers={"Content-Length": str(size), "Content-Disposition": f'attachment; filename="root-{root}.zip"'},
    )


class _Blocks:
    """Asynchronous, since the server would gather the blocks of any other iterator before it sends the first. Django closes it
    with the answer, also when nobody has read from it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.close = file.close

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while block := await crossed(self._file.read, BLOCK):
            yield block
