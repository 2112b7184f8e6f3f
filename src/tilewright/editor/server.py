"""``tilewright lsp``: a language server over standard input and output.

Errors appear as one types, hovering over a line shows its DST slots, cycles and decisions, and "go to implementation" opens the
C++ that was emitted for it. Other language servers for Python go on beside it.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path

from tilewright.editor.analysis import Analysis, Problem, analysed, explained
from tilewright.package import version

QUIET = 0.4  # seconds without a key before a text is looked at
SOURCE = "tilewright"
SEVERITIES = {"error": types.DiagnosticSeverity.Error, "warning": types.DiagnosticSeverity.Warning}


class Server(LanguageServer):
    """``quiet``: seconds without a key before a text is looked at. ``only_saved``: only when it is opened or saved."""

    def __init__(self, *, quiet: float = QUIET, only_saved: bool = False) -> None:
        super().__init__("tilewright", version())  # pyright: ignore[reportUnknownMemberType] - theirs
        self.quiet = quiet
        self.only_saved = only_saved
        self.known: dict[str, Analysis] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="tilewright-cpp-")

    def look_at(self, uri: str, *, after: float = 0.0) -> None:
        """The newest text counts: what is under way for an older one ends."""
        running = self._tasks.pop(uri, None)
        if running is not None:
            running.cancel()
        self._tasks[uri] = asyncio.get_running_loop().create_task(self._analyse(uri, after))

    async def _analyse(self, uri: str, after: float) -> None:
        await asyncio.sleep(after)
        document = self.workspace.get_text_document(uri)
        path = Path(to_fs_path(uri) or "script.py")
        if not uses_kernels(document.source):
            self._publish(uri, document.version, Analysis())
            return
        found = await explained(path, document.source)
        if found is None:
            return  # it took too long, or said nothing: what was known stays
        folder = Path(self._folder.name) / f"{abs(hash(uri)):x}"
        self._publish(uri, document.version, analysed(found, path, folder))

    def _publish(self, uri: str, number: int | None, found: Analysis) -> None:
        # While a text has errors its kernels are not compiled: what hovers knew of the last good one stays.
        last = self.known.get(uri, Analysis())
        keep = found.problems and not found.hovers
        self.known[uri] = Analysis(problems=found.problems, hovers=last.hovers, emitted=last.emitted) if keep else found
        diagnostics = [shown(each) for each in found.problems]
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri=uri, diagnostics=diagnostics, version=number))

    def forget(self, uri: str) -> None:
        running = self._tasks.pop(uri, None)
        if running is not None:
            running.cancel()
        self.known.pop(uri, None)
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri=uri, diagnostics=[]))


def uses_kernels(text: str) -> bool:
    """Whether a file is worth running: one that names none of the languages has no kernels."""
    return any(word in text for word in ("ttl", "tilelang", "tilewright"))


def shown(problem: Problem) -> types.Diagnostic:
    line = problem.line - 1
    return types.Diagnostic(
        range=types.Range(types.Position(line, problem.column - 1), types.Position(line, problem.end_column - 1)),
        message=problem.message,
        severity=SEVERITIES.get(problem.severity, types.DiagnosticSeverity.Information),
        code=problem.code,
        source=SOURCE,
        related_information=[
            types.DiagnosticRelatedInformation(_location(Path(file), number), message) for message, file, number in problem.notes
        ],
    )


def _location(file: Path, line: int) -> types.Location:
    start = types.Position(max(line - 1, 0), 0)
    return types.Location(uri=from_fs_path(str(file)) or "", range=types.Range(start, start))


def make(*, quiet: float = QUIET, only_saved: bool = False) -> Server:
    server = Server(quiet=quiet, only_saved=only_saved)

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def opened(params: types.DidOpenTextDocumentParams) -> None:  # pyright: ignore[reportUnusedFunction]
        server.look_at(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: types.DidChangeTextDocumentParams) -> None:  # pyright: ignore[reportUnusedFunction]
        if not server.only_saved:
            server.look_at(params.text_document.uri, after=server.quiet)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def saved(params: types.DidSaveTextDocumentParams) -> None:  # pyright: ignore[reportUnusedFunction]
        server.look_at(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    async def closed(params: types.DidCloseTextDocumentParams) -> None:  # pyright: ignore[reportUnusedFunction]
        server.forget(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:  # pyright: ignore[reportUnusedFunction]
        text = server.known.get(params.text_document.uri, Analysis()).hovers.get(params.position.line + 1)
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text)) if text else None

    @server.feature(types.TEXT_DOCUMENT_IMPLEMENTATION)
    def implementation(params: types.ImplementationParams) -> list[types.Location]:  # pyright: ignore[reportUnusedFunction]
        places = server.known.get(params.text_document.uri, Analysis()).emitted.get(params.position.line + 1, ())
        return [_location(place.file, place.line) for place in places]

    return server
