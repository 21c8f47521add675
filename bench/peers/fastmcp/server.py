"""FastMCP: server.py stateless|sessions"""

import socket
import sys

import uvicorn
from fastmcp import FastMCP

mcp = FastMCP("bench")


@mcp.tool
def echo(text: str) -> str:
    """Returns its text."""
    return text


app = mcp.http_app(path="/mcp", stateless_http=sys.argv[1] == "stateless", json_response=True)
listener = socket.create_server(("127.0.0.1", 0))
port = listener.getsockname()[1]
print(f"fastmcp listening on http://127.0.0.1:{port}/mcp", file=sys.stderr, flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])
