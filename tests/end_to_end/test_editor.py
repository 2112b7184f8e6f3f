"""``tilewright lsp`` driven by pygls's own client, as an editor drives it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

pytest.importorskip("pygls", reason="the extra lsp is not installed")

from lsprotocol import types
from pygls.lsp.client import LanguageClient

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "16_older_names.py"
SECONDS = 60


class Editor(LanguageClient):
    def __init__(self) -> None:
        super().__init__("editor", "1")
        self.arrived: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()

        @self.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def received(params: types.PublishDiagnosticsParams) -> None:
            self.arrived.put_nowait(params)

    async def problems(self, version: int) -> list[types.Diagnostic]:
        while True:
            params = await asyncio.wait_for(self.arrived.get(), SECONDS)
            if params.version == version:
                return list(params.diagnostics)

    def change(self, uri: str, version: int, text: str) -> None:
        document = types.VersionedTextDocumentIdentifier(version=version, uri=uri)
        change = types.TextDocumentContentChangeWholeDocument(text=text)
        self.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))


def driven(go: Callable[[Editor], Awaitable[None]]) -> None:
    async def session() -> None:
        editor = Editor()
        await editor.start_io(sys.executable, "-m", "tilewright", "lsp", "--stdio")
        try:
            told = await editor.initialize_async(types.InitializeParams(capabilities=types.ClientCapabilities()))
            assert told.server_info is not None and told.server_info.name == "tilewright"
            editor.initialized(types.InitializedParams())
            await go(editor)
            await editor.shutdown_async(None)
        finally:
            editor.exit(None)
            await editor.stop()

    asyncio.run(asyncio.wait_for(session(), 4 * SECONDS))


def test_an_editor_session(tmp_path: Path) -> None:
    text = EXAMPLE.read_text()
    script = tmp_path / "add.py"
    script.write_text("the file on disk is older than the editor's text")
    uri = script.as_uri()
    number = next(place for place, line in enumerate(text.splitlines()) if "result = " in line)
    column = text.splitlines()[number].index("result")

    async def go(editor: Editor) -> None:
        document = types.TextDocumentItem(uri=uri, language_id="python", version=1, text=text)
        editor.text_document_did_open(types.DidOpenTextDocumentParams(document))
        assert await editor.problems(1) == []

        place = types.TextDocumentIdentifier(uri), types.Position(number, column)
        hover = await editor.text_document_hover_async(types.HoverParams(*place))
        assert hover is not None and isinstance(hover.contents, types.MarkupContent)
        assert "**cycles**" in hover.contents.value and "math" in hover.contents.value
        assert "slot 0" in hover.contents.value and "DST slots per tile" in hover.contents.value

        found = await editor.text_document_implementation_async(types.ImplementationParams(*place))
        assert isinstance(found, list) and found
        lines = [(Path(each.uri.removeprefix("file://")), each.range.start.line) for each in found]
        assert any("_tiles(" in path.read_text().splitlines()[line] for path, line in lines if path.name == "compute.cpp")

        editor.change(uri, 2, text.replace(".store(", ".stroe(", 1))
        (problem,) = await editor.problems(2)
        assert problem.range.start.line == number + 1 and problem.source == "tilewright" and "did you mean" in problem.message
        assert str(problem.code).startswith("TW")
        # The last good text still answers.
        assert await editor.text_document_hover_async(types.HoverParams(*place)) is not None

        editor.change(uri, 3, text + "\nx = (")
        assert [each.code for each in await editor.problems(3)] == ["TW605"]
        editor.change(uri, 4, text + "\n# well again")
        assert await editor.problems(4) == []

    driven(go)


def test_files_without_kernels_are_not_run(tmp_path: Path) -> None:
    uri = (tmp_path / "plain.py").as_uri()

    async def go(editor: Editor) -> None:
        text = f"open({str(tmp_path / 'ran')!r}, 'w')\n"
        document = types.TextDocumentItem(uri=uri, language_id="python", version=7, text=text)
        editor.text_document_did_open(types.DidOpenTextDocumentParams(document))
        assert await editor.problems(7) == []

    driven(go)
    assert not (tmp_path / "ran").exists()
