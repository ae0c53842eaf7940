"""Says whether JupyterLab answers on JUPYTER_PORT, by HTTP or, with a certificate, HTTPS: exit status 0 or 1.

Its version is told to anybody, without the token. Under another ServerApp.base_url, as NOTEBOOK_ARGS may say, it
answers that there is no such page, which is an answer too.
"""

import os
import ssl
import sys
import urllib.error
import urllib.request

address = f"127.0.0.1:{os.environ.get('JUPYTER_PORT') or 8888}/api"
unverified = ssl._create_unverified_context()  # no certificate is one for 127.0.0.1
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}),
                                     urllib.request.HTTPSHandler(context=unverified))
schemes = ["http", "https"]
if "certfile" in os.environ.get("NOTEBOOK_ARGS", ""):
    schemes = ["https"]  # else each check is a warning in the log
for scheme in schemes:
    try:
        with opener.open(f"{scheme}://{address}", timeout=4):
            sys.exit(0)
    except urllib.error.HTTPError as answer:
        sys.exit(answer.code >= 500)
    except OSError as error:
        failure = f"{scheme}://{address}: {error}"
        if not isinstance(error, ConnectionResetError):  # it hangs up on a question that is not encrypted
            break
print(failure)
sys.exit(1)
