"""Stands for Ray in quick tests of the driver: its cluster are two threads of this process. STUB names what goes wrong,
and the file STUB_PEAK gets the largest number of tasks at once and of bytes on the board."""

import concurrent.futures
import json
import os
import time

fault = os.environ.get("STUB", "")
threads = concurrent.futures.ThreadPoolExecutor(2)
peak = {"tasks": 0, "bytes": 0}
running = set()
back = [0.0]  # when the nodes are alive again
calls = []
__version__ = "0"


class exceptions:
    class RayError(Exception):
        pass

    class RayActorError(RayError):
        pass

    class OutOfMemoryError(RayError):
        pass

    class RayTaskError(RayError):
        def __init__(self, cause):
            super().__init__(str(cause))
            self.cause = cause


def init(address="", **_):
    calls.append("init")
    address = os.environ.get("RAY_ADDRESS", address)
    if fault == "local" and address != "local":
        raise RuntimeError(f"the address is {address!r}")
    if fault == "no cluster":
        raise RuntimeError("Version mismatch")
    if fault == "busy" and len(calls) == 1:
        raise ConnectionAbortedError("Proxy failed to Connect to backend!")


def shutdown():
    pass


def nodes():
    alive = time.monotonic() >= back[0]
    return [{"Alive": alive, "Resources": {"CPU": 1.0}}] * 2 + [{"Alive": False, "Resources": {"GPU": 8.0}}]


def put(value):
    return value


def get(ref):
    if isinstance(ref, exceptions.RayError):
        raise ref
    if not isinstance(ref, concurrent.futures.Future):
        return ref
    running.discard(ref)
    return ref.result()


def wait(refs, num_returns, timeout):
    done, _ = concurrent.futures.wait(refs, timeout)
    return list(done), []


def note(what, value):
    peak[what] = max(peak[what], value)
    with open(os.environ["STUB_PEAK"], "w") as f:
        json.dump(peak, f)


class Method:
    def __init__(self, f):
        self.f = f

    def remote(self, *args):
        if fault == "board":  # each call of it is lost once
            calls.append(self.f.__name__)
            if calls.count(self.f.__name__) == 1:
                return exceptions.OutOfMemoryError("killed")
        return self.f(*args)


class Actor:
    """The board."""

    def __init__(self, made):
        self.made, self.take = made, Method(made.take)
        self.put = Method(self.count)

    def count(self, *args):
        room = self.made.put(*args)
        note("bytes", sum(len(data) for _, files in self.made.news.values() for data in files.values()))
        return room


class Remote:
    def __init__(self, f):
        self.f = f

    def options(self, **_):
        return self

    def remote(self, *args):
        if isinstance(self.f, type):
            return Actor(self.f())
        ref = threads.submit(attempt, self.f, *args)
        running.add(ref)
        note("tasks", len(running))
        return ref


def remote(**_):
    return Remote


def attempt(call, plan, number, kept, board, cpus):
    if fault == "outside":
        return {"../outside": b""}
    if fault == "frozen":  # the first attempt is on a node that is given up, and wakes when the second is on its way
        board.put.remote((number[0], 1), [f"attempt 1, heard in {number[1]}"], {"checkpoint": b"%d" % number[1]})
        time.sleep(.5)
        if number[1] == 1:
            raise exceptions.RayError("the node died")
    if fault == "all lost":
        if number[1] == 1:
            back[0] = time.monotonic() + 1
            raise exceptions.RayError("the node died")
        time.sleep(max(0, back[0] - time.monotonic()))
    try:
        return call(plan, number, kept, board, cpus)
    except Exception as e:
        raise exceptions.RayTaskError(e) from None
