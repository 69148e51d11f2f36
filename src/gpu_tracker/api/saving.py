"""Documents to files, in the format of their suffix."""

from __future__ import annotations

from ..core.config import check_path
from ..core.errors import TrackerError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from typing import Any


def save(document: Any, path: str | os.PathLike[str]) -> None:
    """Write a document completely or not at all; a file of that name is replaced."""
    from ..exports.draft import drafted
    from ..reports.contract import choose_format, render

    name = check_path("A report", path)
    rendered = render(document, choose_format(type(document).__name__, None, name))
    content = rendered.encode("utf-8", "backslashreplace") if isinstance(rendered, str) else rendered
    try:
        with drafted(name, may_replace=True) as draft, open(draft, "wb") as file:
            file.write(content)
    except OSError as error:
        raise TrackerError(f"Cannot write to {name}: {error.strerror}.") from None
