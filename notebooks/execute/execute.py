"""Executes a notebook in the kernel named gobnn and writes it with its outputs.

    python execute.py SOURCE TARGET FOLDER SECONDS

SOURCE is run with FOLDER as working folder, a cell at most SECONDS (0: no limit). TARGET gets all cells that ran, also where
one fails. Each line that begins with MARK is an event in JSON, for the program that reads this one's output; exit status 3
says that a cell failed. SIGTERM interrupts the cell, as Jupyter's stop button does, so that its run is kept.
"""

import asyncio
import json
import signal
import sys
import time

import nbclient
import nbformat
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

MARK = "gobnn-event "


def tell(**event):
    print(MARK + json.dumps(event), flush=True)


def main(source, target, folder, seconds):
    notebook = nbformat.read(source, as_version=4)
    began = {}

    def stop():
        asyncio.ensure_future(client.km.interrupt_kernel())

    def start(cell, cell_index):
        # nbclient's own handler ends the kernel at once, before a cell has written its checkpoint
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
        began[cell_index] = time.monotonic()
        tell(event="start", cell=cell_index, cells=len(notebook.cells))

    def end(cell, cell_index, execute_reply):
        tell(event="end", cell=cell_index, seconds=time.monotonic() - began[cell_index])

    client = nbclient.NotebookClient(
        notebook,
        kernel_name="gobnn",
        timeout=float(seconds) or None,
        startup_timeout=120,
        record_timing=False,  # times would change the file at every run
        coalesce_streams=True,  # so would the pieces in which what a cell prints arrives
        extra_arguments=["-raw_error"],  # a compiler's message as text, not as a page
        resources={"metadata": {"path": folder}},
        on_cell_start=start,
        on_cell_executed=end,
    )
    failure = None
    try:
        client.execute()
    except CellExecutionError as error:
        failure = error.ename + ": " + error.evalue
    except CellTimeoutError:
        failure = f"it took more than {float(seconds):.0f} s, the longest a cell may (-timeout 0: no limit)"
    except DeadKernelError as error:
        failure = str(error)
    if failure is not None:
        tell(event="failed", cell=max(began, default=0), error=failure)
    nbformat.write(notebook, target)
    return 0 if failure is None else 3


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
