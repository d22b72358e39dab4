"""grebe's blocks for GNU Radio, in flow graphs of GNU Radio's: the same samples, tags and gaps. Needs GNU Radio 3.10 and, for its Python, the wheel.

    ci/gnu_radio.sh target/release/grebe
"""

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

try:
    import grebe
    import numpy
    import pmt
    from gnuradio import blocks, gr
    from grebe.gnuradio import sink, source
except ImportError as error:
    print(f"skipped: blocks for GNU Radio: {error}")
    sys.exit(0)

LENGTH = 200_000
SINKS = {"complex": blocks.vector_sink_c, "float": blocks.vector_sink_f, "int": blocks.vector_sink_i,
         "short": blocks.vector_sink_s, "byte": blocks.vector_sink_b}
checks = 0


def check(what, is_good):
    global checks
    if not is_good:
        raise SystemExit(f"FAILED  {what}")
    checks += 1
    print(f"ok      {what}")


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"FAILED  {' '.join(str(word) for word in command)}: {done.stderr}")


def flow(*chain):
    graph = gr.top_block()
    graph.connect(*chain)
    graph.run()


def tag(offset, key, value):
    return gr.tag_utils.python_to_tag((offset, pmt.intern(key), value, pmt.PMT_F))


def tags_of(end):
    return [(tag.offset, pmt.symbol_to_string(tag.key), pmt.to_python(tag.value)) for tag in end.tags()]


def complex_samples():
    generator = numpy.random.default_rng(1)
    return (generator.normal(size=LENGTH) + 1j * generator.normal(size=LENGTH)).astype("c8")


def recorded(folder):
    """Tags become metadata of a recording, and return from it."""
    sent, file = complex_samples(), folder / "recorded.sigmf-meta"
    told = [tag(1_000, "rx_freq", pmt.from_double(433e6)), tag(100_000, "gap", pmt.from_uint64(777)),
            tag(150_000, "somebody's", pmt.from_long(1))]
    flow(blocks.vector_source_c(sent.tolist(), False, 1, told), sink(str(file), 1e6, description={"core:frequency": 1e8}))
    check("a sink records all samples", numpy.fromfile(file.with_suffix(".sigmf-data"), "c8").tobytes() == sent.tobytes())
    gaps = [(gap.position, gap.samples) for gap in grebe.Recording(file).gaps]
    check("... and the gap that a tag told of", gaps == [(100_000, 777)])

    for zeros in (False, True):
        end = blocks.vector_sink_c()
        flow(source(str(file), zeros=zeros), end)
        missing = 777 if zeros else 0
        expected = numpy.concatenate([sent[:100_000], numpy.zeros(missing, "c8"), sent[100_000:]])
        check(f"a source, zeros={zeros}: the samples", numpy.array(end.data(), "c8").tobytes() == expected.tobytes())
        said = [(offset, key, value) for offset, key, value in tags_of(end) if key != "rx_time"]
        told = [(0, "rx_rate", 1e6), (0, "rx_freq", 1e8), (1_000, "rx_rate", 1e6), (1_000, "rx_freq", 433e6), (100_000, "gap", 777),
                (100_000 + missing, "rx_rate", 1e6), (100_000 + missing, "rx_freq", 433e6)]
        check("... and its tags", sorted(said) == sorted(told))


def types(grebe_command, folder):
    """Every format as the equal type, and scaled to floating point."""
    for format, exact, scale in (("cf32", "complex", None), ("f32", "float", None), ("i32", "int", 2**31), ("i16", "short", 2**15),
                                 ("i8", "byte", 2**7), ("ci16", "sc16", 2**15), ("ci8", "sc8", 2**7)):
        file = folder / f"types-{format}.sigmf-meta"
        wave = "qpsk" if format.startswith("c") else "sine"
        run(grebe_command, "sg", "--format", format, "--wave", wave, "--rate", "1M", "--samples", LENGTH, "--free-run", "--to", file)
        data = file.with_suffix(".sigmf-data").read_bytes()
        end = {"sc16": lambda: blocks.vector_sink_s(2), "sc8": lambda: blocks.vector_sink_b(2)}.get(exact) or SINKS[exact]
        end = end()
        flow(source(str(file), exact), end)
        dtype = {"sc16": "i2", "short": "i2", "sc8": "i1", "byte": "i1", "int": "i4", "float": "f4", "complex": "c8"}[exact]
        got = numpy.array(end.data())
        got = got.astype("u1").view("i1") if dtype == "i1" else got.astype(dtype)
        check(f"{format} as {exact}", got.tobytes() == data)
        if scale:
            floating = "complex" if format.startswith("c") else "float"
            end = SINKS[floating]()
            flow(source(str(file), floating), end)
            got = numpy.array(end.data(), "c8" if floating == "complex" else "f4").view("f4")
            expected = numpy.frombuffer(data, dtype).astype("f4") * numpy.float32(1 / scale)
            check(f"{format} as {floating}", got.tobytes() == expected.tobytes())
        again = folder / f"again-{format}.sigmf-meta"
        flow(source(str(file), exact), sink(str(again), 1e6, exact))
        check(f"{exact} through a sink", again.with_suffix(".sigmf-data").read_bytes() == data)


def between_processes(grebe_command, folder):
    """Shared memory from a flow graph to a recorder and back, and datagrams, two channels side by side."""
    sent = complex_samples()
    name, file = f"shm://gr-grebe-{os.getpid()}", folder / "shm.sigmf-meta"
    recorder = subprocess.Popen([grebe_command, "record", name, file], stderr=subprocess.PIPE, text=True)
    graph = gr.top_block()
    out = sink(f"{name}?wait=1", 1e6, channels=2)
    graph.connect(blocks.vector_source_c(sent.tolist()), (out, 0))
    graph.connect(blocks.vector_source_c(sent[::-1].tolist()), (out, 1))
    graph.run()
    recorder.communicate(timeout=60)
    check("a recorder of the sink's shared memory ends", recorder.returncode == 0)
    parts = sorted(folder.glob("shm*.sigmf-data"))
    check("... with both channels", [numpy.fromfile(part, "c8").tobytes() for part in parts] == [sent.tobytes(), sent[::-1].tobytes()])

    collection = next(folder.glob("shm*.sigmf-collection"))
    for uri, extra in ((f"{name}-back", ["--free-run"]), ("udp://127.0.0.1:0", ["--speed", "0.5"])):
        if uri.startswith("shm"):
            player = subprocess.Popen([grebe_command, "play", collection, *extra, "--to", f"{uri}?wait=1"], stderr=subprocess.DEVNULL)
            block = source(uri, channels=2, policy="block", wait=True, timeout=60)
        else:
            block = source(uri, channels=2, policy="block")
            player = subprocess.Popen([grebe_command, "play", collection, *extra, "--to", f"udp://{block.address}"], stderr=subprocess.DEVNULL)
        ends = [blocks.vector_sink_c(), blocks.vector_sink_c()]
        graph = gr.top_block()
        for port, end in enumerate(ends):
            graph.connect((block, port), end)
        graph.run()
        player.wait(timeout=60)
        check(f"a source from {uri}: ends well", player.returncode == 0 and block.error is None)
        got = [numpy.array(end.data(), "c8") for end in ends]
        lost = sum(value for _, key, value in tags_of(ends[0]) if key == "gap")
        check(f"... {lost} of {LENGTH} lost, and told", len(got[0]) + lost == LENGTH and len(got[1]) == len(got[0]))
        # Where nothing was lost, as in shared memory, all of it is the same.
        check("... the samples", lost > 0 and not uri.startswith("shm") or [part.tobytes() for part in got] == [sent.tobytes(), sent[::-1].tobytes()])


def mistakes(folder):
    """A failure is reported and ends the graph."""
    file = str(folder / "recorded.sigmf-meta")
    for settings, says in (({"type": "short"}, "give complex"), ({"channels": 2}, "give channels=1")):
        block = source(file, **settings)
        graph = gr.top_block()
        for port in range(settings.get("channels", 1)):
            graph.connect((block, port), blocks.null_sink(2 if "type" in settings else 8))
        ended = threading.Thread(target=graph.run)
        ended.start()
        ended.join(60)
        check(f"{settings}: {block.error}", not ended.is_alive() and says in str(block.error))
    try:
        source(file, "double")
    except grebe.UsageError as error:
        check(f"a type that there is not: {error}", "complex, float" in str(error))


def companion(folder):
    """A flow graph of GNU Radio Companion with both blocks is compiled and run."""
    blocks_path = subprocess.run([sys.executable, "-m", "grebe.gnuradio"], capture_output=True, text=True, check=True).stdout.strip()
    states = "states: {coordinate: [8, 8], rotation: 0, state: enabled}"
    (folder / "companion.grc").write_text(
        f"options:\n  parameters: {{id: companion, generate_options: no_gui, run_options: run, output_language: python}}\n  {states}\n"
        f"blocks:\n- name: reads\n  id: grebe_source\n  parameters: {{uri: '{folder}/types-ci16.sigmf-meta', type: sc16}}\n  {states}\n"
        f"- name: writes\n  id: grebe_sink\n  parameters: {{uri: '{folder}/companion.sigmf-meta', rate: '1e6', type: sc16}}\n  {states}\n"
        "connections:\n- [reads, '0', writes, '0']\nmetadata: {file_format: 1}\n")
    subprocess.run(["grcc", "-o", folder, folder / "companion.grc"], env={**os.environ, "GRC_BLOCKS_PATH": blocks_path},
                   check=True, capture_output=True)
    run(sys.executable, folder / "companion.py")
    same = (folder / "companion.sigmf-data").read_bytes() == (folder / "types-ci16.sigmf-data").read_bytes()
    check("GNU Radio Companion knows the blocks", same)


def main(grebe_command):
    with tempfile.TemporaryDirectory() as folder:
        recorded(Path(folder))
        types(grebe_command, Path(folder))
        between_processes(grebe_command, Path(folder))
        mistakes(Path(folder))
        companion(Path(folder))
    print(f"{checks} passed, 0 failed")


main(Path(sys.argv[1]).resolve())
