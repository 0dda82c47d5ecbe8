"""The retention: how long data is kept, how much there is, and its removal."""

from __future__ import annotations

from typing import Annotated

from pydantic import AwareDatetime

from control_plane.contract.declarations.operation import LONGEST, About, Command, NoDoor, Operation
from control_plane.contract.documents.base import Document, Request

SERVERS_OWN = NoDoor("it is about the whole installation, for its administrators")


class RetentionRequest(Request):
    dry_run: Annotated[bool, About("dry run", "Only say what would be removed.", flag="--dry-run")] = False


class HeldDocument(Document):
    """What is held of one kind."""

    kind: Annotated[str, About("kind")]
    """readings (of code hosts), services (other orders of the control plane itself), steps, logs (the outputs of
    calls), work (patches and bundles), raw events (reports that could not be processed), audit log, all blobs."""
    setting: Annotated[str, About("setting")]
    """The variable that sets how much is kept."""
    kept: Annotated[str, About("kept")]
    """How long or how much: a number of days or MiB, or unlimited."""
    rows: Annotated[int, About("rows")]
    """Of services and readings: orders; of all blobs: files."""
    bytes: Annotated[int | None, About("bytes")]
    """Of rows: the characters of their JSON text; null if that is not counted."""
    oldest: Annotated[AwareDatetime | None, About("oldest")]


class RemovedDocument(Document):
    """What was, or would be, removed of one kind."""

    kind: Annotated[str, About("kind")]
    """As in what is held; and unnamed files: blobs on the disk that no row has named for 7 days."""
    rows: Annotated[int, About("rows")]
    bytes: Annotated[int, About("bytes")]
    """Of files, only of those that nothing else names."""


SHOW = Operation(
    name="show_retention",
    role="admin",
    everywhere=True,
    in_organization=False,
    route="GET /retention",
    errors=(403,),
    answer=list[HeldDocument],
    answers_within=LONGEST,
    summary="Show how long each kind of data is kept, and how much there is",
    tool=SERVERS_OWN,
    command=Command(
        "retention show",
        "Show how long each kind of data is kept, and how much there is.",
        "fleet retention show",
        columns=("kind", "kept", "rows", "bytes", "oldest", "setting"),
    ),
)
RUN = Operation(
    name="run_retention",
    role="admin",
    everywhere=True,
    in_organization=False,
    route="POST /retention/run",
    errors=(403,),
    request=RetentionRequest,
    answer=list[RemovedDocument],
    answers_within=LONGEST,
    summary="Remove what has been kept long enough",
    more="The supervisor does the same every ten minutes. Nothing that is needed is removed.",
    tool=NoDoor("removal is left to people"),
    command=Command(
        "retention run",
        "Remove now what has been kept long enough, as the supervisor does every ten minutes.",
        "fleet retention run --dry-run",
        columns=("kind", "rows", "bytes"),
    ),
)
