"""A Ray cluster of a head and two nodes of one processor on this machine. It prints the head's address, does to the
last node what it reads ("kill", "freeze" or "thaw", or "add", a new one), says so, and ends with its stdin. Nodes that
do not answer for about ten seconds are dead to the head."""

import os
import pathlib
import signal
import socket
import sys

os.environ["RAY_BACKEND_LOG_LEVEL"] = "error"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
from ray.cluster_utils import Cluster  # noqa: E402


def ports(*names):
    """Free ports: a node that finds its own gives up on a busy machine, where its agents are long in telling them."""
    sockets = [socket.socket() for _ in names]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    found = {name: s.getsockname()[1] for name, s in zip(names, sockets)}
    for s in sockets:
        s.close()
    return found


def processes(node):
    """What the node consists of: its processes, their children and theirs."""
    known = {info.process.pid for kind in node.all_processes.values() for info in kind}
    size = 0
    while size < len(known):
        size = len(known)
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                pid, parent = int(stat.parent.name), int(stat.read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if parent in known:
                known.add(pid)
    return known


common = {"object_store_memory": 100 * 2**20}
agents = "dashboard_agent_listen_port", "metrics_agent_port", "metrics_export_port", "runtime_env_agent_port"
cluster = Cluster(initialize_head=True, head_node_args={
    "num_cpus": 0, "include_dashboard": False, **common, **ports("ray_client_server_port", *agents),
    "_system_config": {"health_check_period_ms": 1000, "health_check_timeout_ms": 5000,
                       "health_check_failure_threshold": 2}})
nodes = []


def add():
    nodes.append(cluster.add_node(num_cpus=1, **common, **ports(*agents)))


add()
add()
cluster.wait_for_nodes()
print(f"ray://127.0.0.1:{cluster.head_node._ray_params.ray_client_server_port}", flush=True)
for line in sys.stdin:
    if line.strip() == "add":
        add()
    else:
        for pid in processes(nodes[-1]):
            os.kill(pid, {"kill": signal.SIGKILL, "freeze": signal.SIGSTOP, "thaw": signal.SIGCONT}[line.strip()])
    print(line.strip(), flush=True)
cluster.shutdown()
