"""Python code that runs within grebe's calls: signal handlers, finalisers, other threads, forks. None deadlocks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import pytest


def run(code: str, seconds: float = 60) -> str:
    """Output of a program in its own process; the stacks of its threads if it hangs."""
    head = f"""
        import faulthandler, gc, os, signal, sys, threading, time
        import grebe
        import numpy as np
        faulthandler.dump_traceback_later({seconds}, exit=True)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        uri = "shm://reentry-{os.getpid()}-" + str(os.getpid())

        def later(seconds, number=signal.SIGALRM):
            threading.Timer(seconds, os.kill, (os.getpid(), number)).start()
    """
    program = textwrap.dedent(head) + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=seconds + 60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("wait", ["out.write(np.zeros(1000, 'i2'))", "fill()"])
def test_a_handler_uses_the_publisher_that_waits(wait: str) -> None:
    said = run(f"""
        def fill():
            with out.block(1000) as a:
                a[:] = 1

        def handler(*_):
            print(out.index, out.stats()["copied_blocks"])
            for use in [lambda: out.write(np.zeros(1, "i2")), lambda: out.drop(1), lambda: out.describe({{}}), fill]:
                try:
                    use()
                except grebe.Error as error:
                    print("handler" in str(error))
            out.close()

        signal.signal(signal.SIGALRM, handler)
        out = grebe.publish(uri, rate=0.1, dtype="i16", pace=True)
        later(0.3)
        try:
            {wait}
        except grebe.Error as error:
            print("was closed" in str(error))
        out.close()
    """)
    assert said.split() == ["0", "0", "True", "True", "True", "True", "True"]


def test_a_handler_closes_the_stream_that_is_read() -> None:
    for read in ("next(stream)", "stream.read(10)", "stream._wait(0.5)"):
        run(f"""
            signal.signal(signal.SIGALRM, lambda *_: (stream.stats(), stream.close()))
            out = grebe.publish(uri, rate=1, dtype="i16")
            stream = grebe.open(uri)
            later(0.3)
            try:
                {read}
            except StopIteration:
                pass
        """)


def test_python_that_runs_in_the_midst_of_a_read_comes_back_in() -> None:
    """As a finaliser, which the garbage collector may run at any allocation; here at that of an error."""
    said = run("""
        def gap_error(found, made=grebe._errors._gap_error):
            for use in [stream.stats, stream.poll, stream.close]:
                try:
                    use()
                except grebe.Error as error:
                    print("finaliser" in str(error))
            return made(found)

        grebe._errors._gap_error = gap_error
        out = grebe.publish(uri, rate=1e6, dtype="i16")
        stream = grebe.open(uri, timeout=20)
        out.write(np.zeros(10, "i2"))
        out.drop(1)
        out.write(np.ones(10, "i2"))
        try:
            stream.read(20)
        except grebe.GapError as error:
            print(error.missing)
        print(stream.read(10).sum())
    """)
    assert said.split() == ["True", "True", "True", "1", "10"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
def test_a_fork_while_other_threads_read_and_write() -> None:
    """A child inherits held locks, and no thread releases them."""
    run("""
        out = grebe.publish(uri, rate=0.1, dtype="i16", pace=True)
        stream = grebe.open(uri)

        def end(work):
            try:
                work()
            except (grebe.Error, StopIteration):
                pass

        threads = [threading.Thread(target=end, args=(work,), daemon=True) for work in [lambda: next(stream), lambda: out.write(np.zeros(1000, "i2"))]]
        for thread in threads:
            thread.start()
        for _ in range(20):
            time.sleep(0.01)
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                refused = 0
                stream.close()  # there is nothing of it here
                for use in [stream.stats, lambda: next(stream), lambda: out.index, out.stats, lambda: out.drop(1), out.close]:
                    try:
                        use()
                    except grebe.Error as error:
                        refused += "before the process forked" in str(error)
                os._exit(0 if refused == 6 else 3)
            _, status = os.waitpid(child, 0)
            assert os.waitstatus_to_exitcode(status) == 0
        os._exit(0)
    """)


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="Windows")
def test_ctrl_c_ends_the_wait_for_another_threads_write() -> None:
    said = run("""
        out = grebe.publish(uri, rate=0.1, dtype="i16", pace=True)
        thread = threading.Thread(target=out.write, args=(np.zeros(1000, "i2"),), daemon=True)
        thread.start()
        time.sleep(0.1)
        for use in [lambda: out.write(np.zeros(1, "i2")), lambda: out.index, out.close]:
            later(0.2, signal.SIGINT)
            try:
                use()
            except KeyboardInterrupt:
                print("interrupted", flush=True)
        os._exit(0)
    """)
    assert said.split() == ["interrupted"] * 3
