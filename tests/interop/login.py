"""The official Python client logs in with nothing but the URL: login.py <url> [<document>]"""

import asyncio
import re
import sys
from urllib.parse import parse_qs, urlparse

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

CALLBACK = "http://127.0.0.1/callback"


class Storage:
    """The tokens and the registration, which a host would store on disk."""

    tokens = None
    client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


class Browser:
    """Keeps cookies, follows redirects and allows what it is asked, until back at the client."""

    answer = None

    async def go(self, url):
        async with httpx2.AsyncClient(trust_env=False) as http:
            response = await http.get(url)
            for _ in range(20):
                if "location" in response.headers:
                    url = str(response.url.join(response.headers["location"]))
                    if url.startswith(CALLBACK):
                        self.answer = parse_qs(urlparse(url).query)
                        return
                    response = await http.get(url)
                    continue
                ticket = re.search('name="ticket" value="([^"]+)"', response.text)
                if not ticket:
                    raise RuntimeError(f"{response.url}: {response.status_code} {response.text}")
                form = {"ticket": ticket[1], "decision": "allow"}
                origin = f"{response.url.scheme}://{response.url.netloc.decode()}"
                response = await http.post(response.url, data=form, headers={"origin": origin})
        raise RuntimeError("too many redirects")

    async def come_back(self):
        answer = {name: values[0] for name, values in self.answer.items()}
        return AuthorizationCodeResult(
            code=answer["code"], state=answer.get("state"), iss=answer.get("iss")
        )


async def main(url, document=None):
    storage, browser = Storage(), Browser()
    metadata = OAuthClientMetadata(
        client_name="Larder interop",
        redirect_uris=[CALLBACK],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
        token_endpoint_auth_method="none",
    )
    auth = OAuthClientProvider(
        url, metadata, storage, browser.go, browser.come_back, client_metadata_url=document
    )
    async with create_mcp_http_client(auth=auth) as http:
        async with Client(streamable_http_client(url, http_client=http)) as client:
            text = "written by Python"
            created = await client.call_tool(
                "create_resource", {"uri": "notes://interop", "text": text}
            )
            assert not created.is_error, created
            read = await client.call_tool("read_resource", {"uri": "notes://interop"})
            assert text in read.content[0].text, read
    assert not document or storage.client.client_id == document, storage.client
    print(f"Python: {storage.tokens.scope}")


asyncio.run(main(*sys.argv[1:]))
