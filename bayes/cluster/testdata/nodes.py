"""A Ray cluster of a head and two nodes of one processor on this machine. It prints the head's address, does to the
last node what it reads ("kill", "freeze", "thaw" as soon as it is dead to the head, or "add", a new one), says so, and
ends with its stdin. Nodes that do not answer for about ten seconds are dead to the head."""

import os
import pathlib
import signal
import socket
import sys
import time

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


def dead(node):
    return any(n["NodeID"] == node.node_id and not n["Alive"] for n in cluster.global_state.node_table())


common = {"object_store_memory": 100 * 2**20, "include_dashboard": False}
agents = "dashboard_agent_listen_port", "metrics_agent_port", "metrics_export_port", "runtime_env_agent_port"
cluster, nodes = Cluster(), []


def add(cpus=1, more=(), **options):
    """A node; the first is the head. On a busy machine Ray gives up waiting for one, which is then tried again."""
    for _ in range(5):
        try:
            return nodes.append(cluster.add_node(num_cpus=cpus, **common, **options, **ports(*agents, *more)))
        except Exception as e:
            print(e, file=sys.stderr)
    sys.exit("no node starts")


add(0, ["ray_client_server_port"], _system_config={
    "health_check_period_ms": 1000, "health_check_timeout_ms": 5000, "health_check_failure_threshold": 2})
add()
add()
cluster.wait_for_nodes()
print(f"ray://127.0.0.1:{cluster.head_node._ray_params.ray_client_server_port}", flush=True)
for line in sys.stdin:
    if line.strip() == "add":
        add()
    else:
        while line.strip() == "thaw" and not dead(nodes[-1]):
            time.sleep(0.2)
        for pid in processes(nodes[-1]):
            os.kill(pid, {"kill": signal.SIGKILL, "freeze": signal.SIGSTOP, "thaw": signal.SIGCONT}[line.strip()])
    print(line.strip(), flush=True)
cluster.shutdown()
