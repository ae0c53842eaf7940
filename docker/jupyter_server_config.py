"""JupyterLab in a container: reached from outside it, on one port, with a token."""

import os

c = get_config()  # noqa: F821
c.ServerApp.ip = "0.0.0.0"
c.ServerApp.port = int(os.environ.get("JUPYTER_PORT") or 8888)
c.ServerApp.port_retries = 0  # another port than the published one would not be reached
c.ServerApp.open_browser = False
c.ServerApp.root_dir = os.environ.get("GOBNN_WORK", "/home/jovyan/work")
c.FileContentsManager.delete_to_trash = False
c.KernelSpecManager.ensure_native_kernel = False
