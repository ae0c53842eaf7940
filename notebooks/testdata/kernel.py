"""Speaks to the notebooks' kernel as JupyterLab does.

    python kernel.py complete
    python kernel.py run
    python kernel.py stop CHECKPOINT

complete prints what Tab and Shift-Tab answer, in JSON. run runs the cell of standard input and prints what it says and
the HTML that it shows. stop reads a cell from standard input, whose run is kept in the file CHECKPOINT; it stops the cell
ten times by the stop button and kills the kernel ten times, each time at another step, and runs it again until it is done.
Each line of it begins with "stopped " or "killed ", and exit status 1 says that a step was lost or that bits differ.
"""

import json
import os
import random
import re
import signal
import struct
import sys
import time

from jupyter_client.manager import start_new_kernel


class Kernel:
    def __init__(self):
        self.manager, self.client = start_new_kernel(kernel_name="gobnn", startup_timeout=120)

    def complete(self, code):
        return self.client.complete(code, len(code), reply=True, timeout=60)["content"]["matches"]

    def inspect(self, code):
        return self.client.inspect(code, len(code), detail_level=0, reply=True, timeout=60)["content"]

    def run(self, code, at=None, disturb=None):
        """Runs a cell: its text, whether it succeeded, and the steps that it showed. disturb is called once, when the cell
        has shown a step of at least at."""
        request = self.client.execute(code, store_history=False)
        text, shown = "", []
        limit = time.monotonic() + 300
        while time.monotonic() < limit:
            try:
                message = self.client.get_iopub_msg(timeout=1)
            except Exception:  # Empty
                if not self.manager.is_alive():
                    return text, False, shown
                continue
            if message["parent_header"].get("msg_id") != request:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "stream":
                text += content["text"]
                shown = [int(n) for n in re.findall(r"^at (\d+)$", text, re.M)]
                if disturb and shown and shown[-1] >= at:
                    what, disturb = disturb, None
                    what()
            elif kind == "error":
                text += "\n".join(content["traceback"])
            elif kind == "display_data":
                text += content["data"].get("text/html", "")
            elif kind == "status" and content["execution_state"] == "idle":
                reply = self.client.get_shell_msg(timeout=60)
                return text, reply["content"]["status"] == "ok", shown
        sys.exit(f"the cell took more than 300 s; it said: {text}")

    def interrupt(self):
        self.manager.interrupt_kernel()

    def kill(self):
        """Ends the kernel and its cell at once, as the power button does: both are in one process group."""
        os.killpg(os.getpgid(self.manager.provisioner.pid), signal.SIGKILL)

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


def complete():
    kernel = Kernel()
    try:
        code = 'import "gobnn/bayes"\n%%\nbayes.'
        matches = []
        for _ in range(15):  # gopls reads the modules first
            matches = kernel.complete(code)
            if matches:
                break
            time.sleep(2)
        print(json.dumps({
            "matches": matches,
            "narrowed": kernel.complete(code + "Lay"),
            "documentation": kernel.inspect(code + "Layers").get("data", {}),
            "nothing": kernel.inspect('%%\nnosuch').get("data", {}),
        }))
    finally:
        kernel.close()


def run():
    kernel = Kernel()
    try:
        print(kernel.run(sys.stdin.read())[0])
    finally:
        kernel.close()


def kept(checkpoint):
    """The step of a checkpoint, whose first bytes are the length of a header in JSON."""
    with open(checkpoint, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    return json.loads(header["__metadata__"]["gobnn"])["head"]["step"]


def stop(checkpoint):
    code = sys.stdin.read()
    kernel = Kernel()
    dice = random.Random(1)

    def result(text):
        found = re.search(r"^completed after (\d+) steps: ([0-9a-f]{64})$", text, re.M)
        if not found:
            sys.exit(f"the cell did not complete: {text}")
        return int(found[1]), found[2]

    try:
        steps, bits = result(kernel.run(code)[0])
        print(f"undisturbed: {steps} steps, {bits}", flush=True)
        for i in range(20):
            killed = i % 2 == 1
            os.remove(checkpoint)
            at = dice.randrange(1, steps * 3 // 4)
            text, succeeded, shown = kernel.run(code, at, kernel.kill if killed else kernel.interrupt)
            if succeeded or re.search("^completed", text, re.M):
                sys.exit(f"the cell was not stopped at step {at}: {text}")
            if killed:
                kernel.client.stop_channels()
                kernel = Kernel()
            step = kept(checkpoint)
            if not killed and step < shown[-1]:
                sys.exit(f"stopped after step {shown[-1]}, the checkpoint has step {step}")
            text, _, resumed = kernel.run(code)
            print(f"{'killed' if killed else 'stopped'} at step {shown[-1]}: kept {step}, resumed from {resumed[0]}", flush=True)
            if not step <= resumed[0] <= step + 64:  # the most steps of a call
                sys.exit(f"the checkpoint has step {step}, and the run went on from {resumed[0]}")
            if result(text) != (steps, bits):
                sys.exit(f"another result than the undisturbed run's: {text}")
    finally:
        kernel.close()


if __name__ == "__main__":
    {"complete": complete, "run": run, "stop": stop}[sys.argv[1]](*sys.argv[2:])
