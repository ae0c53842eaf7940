"""Does a list of tasks on a Ray cluster: `python driver.py JOB`, where JOB is the file that package cluster writes.

A task is a call of one program, with its name in GOBNN_TASK; it writes into the folder GOBNN_TASK_FOLDER. What lies
there is brought home as it changes, so that a task whose node dies goes on elsewhere from its last checkpoint. On
stdout stand events, a line of JSON each; stdin is open as long as the caller lives.
"""

import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "error")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_CLIENT_INITIAL_CONNECTION_TIMEOUT_S", "20")  # a busy head takes its time
import ray  # noqa: E402
import ray.exceptions  # noqa: E402

EVERY = 2.0  # seconds between two looks at a task's folder
TRIES = 3  # of a task whose program fails; a lost node is no try
LOST = 20  # nodes that a task may lose
AT_ONCE = 1000  # tasks are handed over


def say(event, task="", text=""):
    print(json.dumps({"event": event, "task": task, "text": text}), flush=True)


class Board:
    """What tasks have said and kept since the last look, on the head node."""

    def __init__(self):
        self.news = {}

    def put(self, task, lines, files):
        before, kept = self.news.get(task, ([], None))
        self.news[task] = ((before + lines)[-200:], files if files is not None else kept)

    def take(self):
        news, self.news = self.news, {}
        return news


def pack(folder):
    """The files of a folder, by their names, and what tells whether they have changed."""
    files, seen = {}, []
    for path in sorted(pathlib.Path(folder).rglob("*")):
        with contextlib.suppress(FileNotFoundError):  # where it is being replaced
            if path.is_file():
                seen.append((str(path), path.stat().st_mtime_ns, path.stat().st_size))
                files[str(path.relative_to(folder))] = path
    return files, seen


def read(files):
    content = {}
    for name, path in files.items():
        with contextlib.suppress(FileNotFoundError):
            content[name] = path.read_bytes()
    return content


def write(folder, content):
    """Puts files into a folder, each whole or not at all, and takes others away."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in content.items():
        path = folder / name
        if not path.resolve().is_relative_to(folder.resolve()):
            raise ValueError(f"a node sends a file called {name!r}")
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(path.name + ".new")
        new.write_bytes(data)
        os.replace(new, path)
    for path in folder.rglob("*"):
        if path.is_file() and str(path.relative_to(folder)) not in content:
            path.unlink()


def call(job, task, kept, shipped, board):
    """Runs the program for a task, in a Ray worker; returns the files of its folder."""
    place = pathlib.Path(tempfile.gettempdir()) / f"gobnn-{os.getuid()}-{job['hash']}"  # of this very program and its files
    if not place.is_dir():
        own = tempfile.mkdtemp(dir=place.parent)
        for (name, want), data in zip(job["files"], ray.get(list(shipped))):
            if hashlib.sha256(data).hexdigest() != want:
                raise ValueError(f"{name} arrived with another hash than {want}")
            path = pathlib.Path(own) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            path.chmod(0o755)
        with contextlib.suppress(OSError):  # where another task was first
            os.rename(own, place)
        shutil.rmtree(own, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="gobnn-task-") as folder:
        write(folder, kept)
        try:
            environ = dict(os.environ, GOBNN_TASK=task, GOBNN_TASK_LIST=job["list"], GOBNN_TASK_FOLDER=folder,
                           GOBNN_TASK_STDIN="1")
            child = subprocess.Popen([str(place / job["program"])] + job["args"], cwd=place, env=environ, text=True,
                                     errors="replace", stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.PIPE)
        except OSError as e:
            raise RuntimeError(f"the program does not run on {os.uname().machine} {os.uname().sysname}: {e}") from None
        lines, told, last = [], 0, pack(folder)[1]
        ear = threading.Thread(target=lambda: lines.extend(line.rstrip("\n") for line in child.stderr))
        ear.start()
        try:
            while True:
                try:
                    child.wait(EVERY)
                    break
                except subprocess.TimeoutExpired:
                    files, seen = pack(folder)
                    if len(lines) > told or seen != last:
                        said = lines[told:]
                        ray.get(board.put.remote(task, said, read(files) if seen != last else None))
                        drop = max(0, told + len(said) - 40)  # the last lines stay, for a task that fails
                        del lines[:drop]
                        told, last = told + len(said) - drop, seen
        finally:
            child.kill()
            ear.join()
        if child.returncode:
            raise RuntimeError("\n".join(lines[-40:]) or f"exit status {child.returncode}")
        if lines[told:]:
            board.put.remote(task, lines[told:], None)
        return read(pack(folder)[0])


def ends_with_caller():
    sys.stdin.read()
    threading.Timer(10, os._exit, (1,)).start()
    ray.shutdown()  # a cluster of this machine ends with it
    os._exit(1)


def main(path):
    job = json.loads(pathlib.Path(path).read_text())
    threading.Thread(target=ends_with_caller, daemon=True).start()
    try:
        context = ray.init(address=job["address"] or None, log_to_driver=False, configure_logging=False,
                           include_dashboard=None if job["address"] else False)
    except Exception as e:
        say("broken", text=f"Ray {ray.__version__} finds no cluster of its version at {job['address'] or 'home'}: {e}")
        return
    say("cluster", text=getattr(context, "dashboard_url", None) or "")
    home = pathlib.Path(job["folder"])
    shipped = [ray.put(pathlib.Path(source).read_bytes()) for source in job["sources"]]
    board = ray.remote(num_cpus=0, resources={"node:__internal_head__": .001})(Board).remote()
    waiting, running, faults = job.pop("tasks"), {}, {}
    remote = ray.remote(max_retries=0)(call)

    def begin(task):
        kept = read(pack(home / task["name"])[0])
        options = remote.options(num_cpus=task["cpus"], num_gpus=task["gpus"])
        running[options.remote(job, task["name"], kept, shipped, board)] = task

    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            begin(waiting.pop(0))
        ray.wait(list(running), num_returns=1, timeout=1)
        done, _ = ray.wait(list(running), num_returns=len(running), timeout=0)
        for name, (lines, files) in ray.get(board.take.remote()).items():
            for line in lines:
                say("line", name, line)
            if files is not None:
                write(home / name, files)
        try:
            results = ray.get(done)
        except ray.exceptions.RayError:
            results = [None] * len(done)
        for ref, result in zip(done, results):
            task = running.pop(ref)
            name = task["name"]
            try:
                write(home / name, ray.get(ref) if result is None else result)
                (home / (name + ".done")).touch()
                say("done", name)
            except ray.exceptions.RayError as e:
                own = isinstance(e, ray.exceptions.RayTaskError)  # the program's fault; else the node is lost
                faults[name, own] = faults.get((name, own), 0) + 1
                again = faults[name, own] < (TRIES if own else LOST)
                say(("again" if own else "lost") if again else "failed", name,
                    str(e.cause) if own else str(e).split("\n")[0])
                if again:
                    waiting.append(task)
    say("end")


try:
    main(sys.argv[1])
except Exception as e:
    say("broken", text=f"{type(e).__name__}: {e}")
