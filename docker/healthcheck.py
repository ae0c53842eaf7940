"""Says whether JupyterLab answers on JUPYTER_PORT, by HTTP: exit status 0 or 1.

Its version is told to anybody, without the token. Under another ServerApp.base_url, as NOTEBOOK_ARGS may say, it
answers that there is no such page, which is an answer too.
"""

import os
import sys
import urllib.error
import urllib.request

url = f"http://127.0.0.1:{os.environ.get('JUPYTER_PORT') or 8888}/api"
try:
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=4):
        pass
except urllib.error.HTTPError as answer:
    sys.exit(answer.code >= 500)
except OSError as error:
    print(f"{url}: {error}")
    sys.exit(1)
