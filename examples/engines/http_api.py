"""A search server with an HTTP API, asked for JSON.

    export SEARCH_URL=https://search.example.org/api
    ranktilt audit DIR -r engine:http_api:search@100

Run it in the folder of this file, or copy the file to yours.
"""

import os


def search(query: str, k: int) -> list[tuple[str, float]]:
    import json
    from urllib.parse import urlencode
    from urllib.request import Request, urlopen

    url = f"{os.environ['SEARCH_URL']}?{urlencode({'q': query, 'size': k})}"
    token = os.environ.get("SEARCH_TOKEN")
    request = Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    with urlopen(request, timeout=20) as answer:
        return [(hit["id"], hit["score"]) for hit in json.load(answer)["hits"]]
