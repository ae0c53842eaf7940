"""Does lists of tasks on a Ray cluster. Package cluster writes the job, a line of JSON, to stdin, then the tasks of
each list as a line, and ends it when there are no more; on stdout stand events, a line of JSON each. A task is a call
of one program, with its name in GOBNN_TASK; it writes into the folder GOBNN_TASK_FOLDER. What lies there is brought
home as it changes, so that a task whose node dies goes on elsewhere from its last checkpoint."""

import collections, contextlib, errno, hashlib, json, os, pathlib, queue, re, shutil, signal, sys, tempfile, threading
import time
from subprocess import PIPE, Popen

os.environ.pop("RAY_ADDRESS", None)  # Ray would take it in place of the address that is given
import ray

EVERY = 2.0  # seconds between two looks at a task's folder
PACE = 0.5  # seconds between two looks at the board: many messages cost as much as one
TRIES = 3  # of a task whose program fails, but two if it fails in the same way; a lost node is no try
LOST = 20  # nodes that a task may lose
LONELY = 60  # seconds between two reports that no node is left for tasks
UNFIT = 69  # exit status of a program whose node can do none of the tasks
AT_ONCE = 1000  # tasks are handed over
RESULT = 2**30  # bytes that a task's folder may hold: it goes through the memory of a node and of this machine
HELD = 2**28  # bytes of all tasks' checkpoints that wait in the head's memory


def send(event, task="", text=""):
    print(json.dumps({"event": event, "task": task, "text": text}), flush=True)


class Board:
    """Lines and files of running attempts at tasks since the last look, on the head node."""

    def __init__(self):
        self.news = {}

    def put(self, attempt, lines, files):
        """Returns whether there was room for the files."""
        before, kept = self.news.pop(attempt, ([], {}))
        held = sum(len(data) for _, others in self.news.values() for data in others.values())
        room = held == 0 or held + sum(len(data) for data in files.values()) <= HELD
        self.news[attempt] = (before + lines)[-200:], files if files and room else kept
        return room

    def take(self):
        news, self.news = self.news, {}
        return news


def answer(ref, none):
    """The answer of the board; none if it was lost, as where the head is short of memory: then it begins anew."""
    try:
        return ray.get(ref)
    except (ray.exceptions.RayActorError, ray.exceptions.OutOfMemoryError):
        return none


def pack(folder):
    """The files of a folder by their names, with size, time and inode, by which a change is seen."""
    files = {}
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # where it is being replaced
            if path.is_file():
                stat = path.stat()
                files[str(path.relative_to(folder))] = path, stat.st_size, stat.st_mtime_ns, stat.st_ino
    if (total := sum(file[1] for file in files.values())) > RESULT:
        raise ValueError(f"{folder} has {total} bytes, and a task may keep {RESULT}: write what is larger elsewhere")
    return files


def read(files):
    content = {}
    for name, file in files.items():
        with contextlib.suppress(FileNotFoundError):
            content[name] = file[0].read_bytes()
    return content


def write(folder, content):
    """Puts files into a folder, all of them or none, and takes others away."""
    new = folder.parent / ".new"
    shutil.rmtree(new, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in content.items():
        if not (folder / name).resolve().is_relative_to(folder.resolve()):
            raise ValueError(f"a node sends a file called {name!r}")
        for path in folder / name, new / name:
            path.parent.mkdir(parents=True, exist_ok=True)
        try:
            path.write_bytes(data)
        except OSError as e:
            raise OSError(e.errno, e.strerror, str(folder / name)) from None
    for name in content:
        os.replace(new / name, folder / name)
    for name in pack(folder).keys() - content.keys():
        (folder / name).unlink()
    shutil.rmtree(new, ignore_errors=True)


def fetch(place, job, shipped, own):
    """Puts the program into a place that tasks share, where it is not there yet or has changed, and gives its path."""
    place.mkdir(mode=0o700, exist_ok=True)
    if place.lstat().st_uid != os.getuid():
        raise PermissionError(errno.EPERM, "this folder is somebody else's", str(place))
    if digest(place / "program") != job["hash"]:
        write(own, {"program": ray.get(shipped)})
        if digest(own / "program") != job["hash"]:
            raise ValueError(f"the program arrived with another hash than {job['hash']}")
        (own / "program").chmod(0o755)
        os.replace(own / "program", place / "program")
    return place / "program"


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def follow(stream, lines):
    """Appends the lines of a stream to a list as they come, in a thread that ends with the stream."""
    reader = threading.Thread(target=lines.extend, args=[iter(lambda: stream.readline(10_000), "")], daemon=True)
    reader.start()
    return reader


def fault(status, errors, output):
    """How a program ended without its task done: its exit status, and its last lines on stderr and stdout."""
    if status > 0:
        return "\n".join(errors) or f"exit status {status}"
    end = "ended with status 0 before its task was done: on a node, too, it must come to cluster.Run with the same list"
    if status < 0:
        end = f"was ended by signal {-status} ({signal.strsignal(-status)})"
        end += ", as the system ends what takes too much memory" if -status == signal.SIGKILL else ""
    return "\n".join([line.rstrip("\n") for line in output] + errors + [f"the program {end}"])


def call(plan, attempt, kept, board, cpus):
    """Runs the program for a task, in a Ray worker; returns the files of its folder. Threads decide the bits of sums, so
    that a task has as many on every node."""
    job, shipped = plan
    with tempfile.TemporaryDirectory(prefix="gobnn-task-") as own:
        folder, finished = pathlib.Path(own) / "files", pathlib.Path(own) / "files.done"
        place = pathlib.Path(tempfile.gettempdir()) / f"gobnn-{os.getuid()}-{job['hash'][:16]}"
        program = fetch(place, job, shipped, pathlib.Path(own) / "program")
        write(folder, kept)
        last, tail, ended = pack(folder), [], False
        fresh, output = collections.deque(maxlen=200), collections.deque(maxlen=5)
        environ = dict(os.environ, GOBNN_TASK=attempt[0], GOBNN_TASK_FOLDER=str(folder), NPROC=str(cpus),
                       **job["environ"])
        try:
            child = Popen([program, *job["args"]], cwd=place, env=environ, errors="replace", stdin=PIPE, stdout=PIPE,
                          stderr=PIPE)
        except OSError as e:
            raise OSError(e.errno, f"{e.strerror}: the program is not for node {os.uname().nodename}, which is "
                          f"{os.uname().machine}") from None
        readers = follow(child.stderr, fresh), follow(child.stdout, output)
        try:
            while not ended:
                readers[0].join(EVERY)  # ends with the program; child.wait(EVERY) would look for that 20 times a second
                ended = not readers[0].is_alive() or child.poll() is not None
                for reader in readers if ended else ():
                    reader.join(1)
                errors = [fresh.popleft().rstrip("\n") for _ in range(len(fresh))]
                tail = (tail + errors)[-40:]
                if ended and child.wait() is not None and not finished.exists():
                    error = RuntimeError(fault(child.returncode, tail, output))
                    error.errno = errno.ENOEXEC if child.returncode == UNFIT else 0
                    raise error
                files = pack(folder)
                changed = files != last and not ended
                put = board.put.remote(attempt, errors, read(files) if changed else {}) if errors or changed else None
                if put is not None and answer(put, False):
                    last = files
            return read(files)
        finally:
            child.kill()


def read_lists(lines):
    for line in sys.stdin:
        lines.put(json.loads(line))
    threading.Timer(10, os._exit, (1,)).start()
    ray.shutdown()  # a cluster of this machine ends with it
    os._exit(1)


def main():
    lines = queue.SimpleQueue()
    threading.Thread(target=read_lists, args=[lines], daemon=True).start()
    job = lines.get()
    options = {"address": job["address"], "log_to_driver": False, "configure_logging": False}
    if job["address"] == "local":
        options["include_dashboard"] = False
    try:
        ray.init(**options)
    except ConnectionAbortedError:  # a busy head gives up a caller whose server there is not ready in 30 seconds
        ray.init(**options)
    home, waiting, running = pathlib.Path(job["folder"]), collections.deque(lines.get()), {}
    attempts, faults = collections.Counter(), collections.Counter()
    most, lonely = 0, -LONELY
    plan = ray.put((job, ray.put(pathlib.Path(job["program"]).read_bytes())))
    board = ray.remote(num_cpus=0, max_restarts=-1, resources={"node:__internal_head__": .001})(Board).remote()
    remote = ray.remote(max_retries=0)(call)
    while True:
        while not waiting and not running:
            send("end")
            waiting.extend(lines.get())
        nodes = [int(n["Resources"].get("CPU", 0)) for n in ray.nodes() if n["Alive"]]
        most = max([most, *nodes])
        while waiting and len(running) < AT_ONCE:
            name, cpus = waiting[0]
            files = pack(home / name)
            if files and len(running) > sum(nodes):
                break  # kept files wait at home, and not in the head's memory
            waiting.popleft()
            if cpus > most:
                send("failed", name, f"it asks for {cpus} CPUs, and no node of this cluster has more than {most}")
                continue
            attempts[name] += 1
            begin = remote.options(num_cpus=cpus).remote
            running[begin(plan, (name, attempts[name]), read(files), board, cpus)] = name, cpus
        alone = [name for name, cpus in running.values() if cpus > max(nodes, default=0)]
        if alone and time.monotonic() - lonely >= LONELY:
            lonely = time.monotonic()
            send("line", text=f"all nodes that can do task {alone[0]!r} are lost: {len(alone)} tasks wait for one")
        done, _ = ray.wait(list(running), num_returns=len(running), timeout=PACE) if running else ([], [])
        for (name, number), (printed, files) in answer(board.take.remote(), {}).items():
            if number == attempts[name]:  # else it was on a node that was given up, and has come back
                for line in printed:
                    send("line", name, line)
                if files:
                    write(home / name, files)
        for ref in done:
            name, cpus = running.pop(ref)
            try:
                files = ray.get(ref)
            except ray.exceptions.RayError as e:
                own = isinstance(e, ray.exceptions.RayTaskError)  # the program's fault; else the node is lost
                if own and getattr(e.cause, "errno", 0) == errno.ENOEXEC:
                    raise e.cause from None  # so it would be for each task
                why = str(e.cause) if own else str(e).split("\n")[0]
                word = re.sub(r"gobnn-task-\w+", "", why).split("\n")[-1]  # without the name of a folder of this try
                faults.update([(name, own), (name, word)])
                again = faults[name, own] < (TRIES if own else LOST) and not (own and faults[name, word] > 1)
                send(("again" if own else "lost") if again else "failed", name, why)
                if again:
                    waiting.append((name, cpus))
            else:
                write(home / name, files)
                (home / (name + ".done")).touch()
                send("done", name)


try:
    main()
except Exception as e:
    send("broken", text=str(e) if isinstance(e, (OSError, RuntimeError)) else f"{type(e).__name__}: {e}")
