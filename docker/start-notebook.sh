#!/bin/bash
# Starts JupyterLab on the user's folder, into which the project's notebooks and a template are copied, but for those
# already there.
# Arguments go to JupyterLab, and so does NOTEBOOK_ARGS. The port is no argument: JUPYTER_PORT is what the check below
# and the health check know, and what compose.yaml publishes.
set -euo pipefail

work=${GOBNN_WORK:-/home/jovyan/work}
for notebook in /opt/gobnn/notebooks/*.ipynb /opt/gobnn/notebooks/work/template.ipynb; do
	[[ -e $work/${notebook##*/} ]] || cp --no-preserve=mode "$notebook" "$work/" ||
		echo "gobnn: $work/${notebook##*/} could not be written" >&2
done

# shellcheck disable=SC2086 # several arguments
for argument in ${NOTEBOOK_ARGS:-} "$@"; do
	case $argument in
	--port | --port=* | --*.port | --*.port=*)
		echo "gobnn: $argument: the port is told by a variable, as with \`-e JUPYTER_PORT=8889 -p 8889:8889\`" >&2
		exit 2 ;;
	esac
done
port=${JUPYTER_PORT:-8888}
[[ $port =~ ^[0-9]+$ ]] && ((10#$port >= 1 && 10#$port <= 65535)) ||
	{ echo "gobnn: JUPYTER_PORT=$port: a port is a number from 1 to 65535" >&2; exit 2; }
python3 - "$port" <<'PYTHON' || exit 1
import socket, sys
with socket.socket() as s:
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        s.bind(("0.0.0.0", int(sys.argv[1])))
    except OSError as error:
        sys.exit(f"gobnn: port {sys.argv[1]} cannot be used ({error.strerror}): take another one, as with "
                 "`-e JUPYTER_PORT=8889 -p 8889:8889`")
PYTHON
[[ -n ${JUPYTER_TOKEN:-} ]] || unset JUPYTER_TOKEN # set and empty, JupyterLab would let everybody in: now it makes one

for hook in /usr/local/bin/before-notebook.d/*.sh; do
	[[ -e $hook ]] && source "$hook"
done
cd "$work"
# shellcheck disable=SC2086 # several arguments
exec python -m jupyterlab ${NOTEBOOK_ARGS:-} "$@"
