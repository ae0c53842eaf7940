"""A Ray cluster of a head and two nodes of one processor on this machine. It prints the head's address, kills a node
where it reads "kill", and ends with its stdin."""

import os
import signal
import sys

os.environ["RAY_BACKEND_LOG_LEVEL"] = "error"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
from ray.cluster_utils import Cluster  # noqa: E402

port = int(sys.argv[1])
memory = 100 * 2**20
cluster = Cluster(initialize_head=True, head_node_args={
    "num_cpus": 0, "object_store_memory": memory, "ray_client_server_port": port, "include_dashboard": False})
nodes = [cluster.add_node(num_cpus=1, object_store_memory=memory) for _ in range(2)]
cluster.wait_for_nodes()
print(f"ray://127.0.0.1:{port}", flush=True)
for line in sys.stdin:
    if line.strip() == "kill":
        node = nodes.pop()
        for kind in node.all_processes.values():
            for info in kind:
                os.kill(info.process.pid, signal.SIGKILL)
        print("killed", flush=True)
cluster.shutdown()
