"""The real servers, each with the command that starts it."""

import os
import shutil
from pathlib import Path

from workspace import ROOT

HERE = Path(__file__).resolve().parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "bench"
UPSTREAMS = ROOT / "tests/upstreams/node_modules/@modelcontextprotocol"
PLAYWRIGHT = HERE / "node_modules/@playwright/mcp/cli.js"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def command(name, folder):
    """The command of a server, or None where it cannot run here."""
    python = TARGET / "context-venv/bin"
    return {
        "filesystem": ["node", UPSTREAMS / "server-filesystem/dist/index.js", folder],
        "everything": ["node", UPSTREAMS / "server-everything/dist/index.js"],
        "memory": ["env", f"MEMORY_FILE_PATH={folder}/memory.jsonl", "node", UPSTREAMS / "server-memory/dist/index.js"],
        "git": [python / "mcp-server-git"],
        # This release needs an older SDK than the others.
        "sqlite": [TARGET / "context-sqlite-venv/bin/mcp-server-sqlite", "--db-path", folder / "shop.db"],
        "excel": [python / "excel-mcp-server", "stdio"],
        "time": [python / "mcp-server-time", "--local-timezone", "UTC"],
        "fetch": [python / "mcp-server-fetch", "--ignore-robots-txt", "--allow-private-ips"],
        "playwright": CHROMIUM
        and ["node", PLAYWRIGHT, "--headless", "--isolated", "--no-sandbox", "--executable-path", CHROMIUM],
    }[name]
