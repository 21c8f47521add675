"""FastMCP in front of a server: peer.py limiting|code -- COMMAND…"""

import sys

from fastmcp.experimental.transforms.code_mode import CodeMode
from fastmcp.server import create_proxy
from fastmcp.server.middleware.response_limiting import ResponseLimitingMiddleware

LIMIT = 25_000

mode, _, command, *arguments = sys.argv[1:]
proxy = create_proxy({"mcpServers": {"server": {"command": command, "args": arguments}}})
if mode == "limiting":
    proxy.add_middleware(ResponseLimitingMiddleware(max_size=LIMIT))
else:
    proxy.add_transform(CodeMode())
proxy.run(show_banner=False)
