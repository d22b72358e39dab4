"""GNU Radio and grebe read each other's files and streams: the same samples. Needs GNU Radio 3.10 (on Debian: apt-get install
--no-install-recommends gnuradio) and the Python that it is for; without, nothing is checked.

    /usr/bin/python3 ci/gnu_radio.py target/release/grebe
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

try:
    import numpy
    import pmt
    from gnuradio import blocks, gr, network, zeromq
except ImportError as error:
    print(f"skipped: GNU Radio: {error}")
    sys.exit(0)

RATE_HZ = 48_000
FREQUENCY_HZ = 100e6
LENGTH = 50_000
# Streams of GNU Radio, by the name of the raw file: source, sink, bytes of an item, NumPy's type of
# a component.
STREAMS = {
    "cf32": (blocks.vector_source_c, blocks.vector_sink_c, gr.sizeof_gr_complex, "f4"),
    "cfile": (blocks.vector_source_c, blocks.vector_sink_c, gr.sizeof_gr_complex, "f4"),
    "f32": (blocks.vector_source_f, blocks.vector_sink_f, gr.sizeof_float, "f4"),
    "s16": (blocks.vector_source_s, blocks.vector_sink_s, gr.sizeof_short, "i2"),
}
checks = 0


def check(what, is_good):
    global checks
    if not is_good:
        raise SystemExit(f"FAILED  {what}")
    checks += 1
    print(f"ok      {what}")


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, **options)
    if done.returncode:
        raise SystemExit(f"FAILED  {' '.join(str(word) for word in command)}: {done.stderr.decode()}")
    return done.stdout


def samples(name):
    """Numbers that only exact copies keep: of floating point, every bit of them differs."""
    generator = numpy.random.default_rng(len(name))
    component = STREAMS[name][3]
    if component == "i2":
        return generator.integers(-32768, 32767, LENGTH, "i2", endpoint=True)
    real = generator.normal(size=LENGTH).astype("f4")
    return real if name == "f32" else (real + 1j * generator.normal(size=LENGTH)).astype("c8")


def flow(*chain):
    graph = gr.top_block()
    graph.connect(*chain)
    graph.run()


def read_by_gnuradio(path, name):
    """All samples of a raw file, through a flow graph."""
    _, sink, size, _ = STREAMS[name]
    end = sink()
    flow(blocks.file_source(size, str(path), False), end)
    return numpy.array(end.data(), samples(name).dtype)


def theirs(grebe, folder, name):
    """grebe reads a flow graph's files, raw and SigMF."""
    source, _, size, _ = STREAMS[name]
    sent = samples(name)
    raw, recording = folder / f"theirs.{name}", folder / f"theirs-{name}"
    flow(source(sent.tolist()), blocks.file_sink(size, str(raw)))
    check(f"{name}: GNU Radio's file has the samples", raw.read_bytes() == sent.tobytes())
    is_complex = name.startswith("c")
    text = ("a person", "a test", "none")
    flow(source(sent.tolist()), blocks.sigmf_sink_minimal(size, str(recording), RATE_HZ, FREQUENCY_HZ, *text, is_complex))
    for given, what in ((f"{raw}?rate=48k&frequency=100M", "raw"), (f"{recording}.sigmf-meta", "SigMF")):
        out = folder / f"ours-{name}-{what}.sigmf-meta"
        run(grebe, "convert", given, out)
        check(f"{name}: grebe reads GNU Radio's {what} file", out.with_suffix(".sigmf-data").read_bytes() == sent.tobytes())
        said = json.loads(out.read_text())
        check(f"{name}: ... its rate", said["global"]["core:sample_rate"] == RATE_HZ)
        check(f"{name}: ... its frequency", said["captures"][0]["core:frequency"] == FREQUENCY_HZ)


def ours(grebe, folder, name):
    """GNU Radio reads a recording of the generator, one of a stream, and a raw file."""
    format = {"cfile": "cf32", "s16": "i16"}.get(name, name)
    wave = "qpsk" if name.startswith("c") else "sine"
    settings = ("--format", format, "--wave", wave, "--snr", "20", "--rate", "48k", "--samples", str(LENGTH), "--free-run")
    made = folder / f"sg-{name}.sigmf-meta"
    run(grebe, "sg", *settings, "--to", made)
    expected = numpy.fromfile(made.with_suffix(".sigmf-data"), samples(name).dtype)
    check(f"{name}: grebe sg made them all", len(expected) == LENGTH)

    recorded = folder / f"record-{name}.sigmf-meta"
    run(grebe, "record", "pipe:", recorded, input=run(grebe, "sg", *settings, "--to", "pipe:"))
    raw = folder / f"ours.{'cf32' if name == 'cfile' else name}"
    run(grebe, "convert", made, raw, *(["--overwrite"] if raw.exists() else []))
    for path, what in ((made.with_suffix(".sigmf-data"), "grebe sg's recording"),
                       (recorded.with_suffix(".sigmf-data"), "grebe record's"), (raw, "a raw file of grebe convert")):
        got = read_by_gnuradio(path, name)
        check(f"{name}: GNU Radio reads {what}", got.tobytes() == expected.tobytes())


def integers(grebe, folder):
    """Interleaved integers of receivers, by GNU Radio's conversion and by grebe's."""
    made = folder / "sg-ci16.sigmf-meta"
    run(grebe, "sg", "--format", "ci16", "--wave", "qpsk", "--rate", "48k", "--samples", LENGTH, "--free-run", "--to", made)
    end = blocks.vector_sink_c()
    flow(blocks.file_source(gr.sizeof_short, str(made.with_suffix(".sigmf-data")), False),
         blocks.interleaved_short_to_complex(False, False, 32_768.0), end)
    graph = folder / "convert.toml"
    graph.write_text(
        f'stage = [{{ id = "in", kind = "play", params = {{ file = "{made}", free_run = true }} }},\n'
        '{ id = "floats", kind = "convert", params = { to = "cf32" } },\n'
        f'{{ id = "out", kind = "record", params = {{ file = "{folder}/floats.sigmf-meta" }} }}]\n'
        'edge = [{ from = "in", to = "floats" }, { from = "floats", to = "out" }]\n')
    run(grebe, "run", graph)
    floats = numpy.fromfile(folder / "floats.sigmf-data", "c8")
    check("ci16: grebe and GNU Radio make the same cf32 of it", numpy.array_equal(floats, numpy.array(end.data(), "c8")))


def listening(grebe, uri, file):
    """A recorder, and the port that it listens on."""
    recorder = subprocess.Popen([grebe, "record", uri, file], stderr=subprocess.PIPE, text=True)
    for line in recorder.stderr:
        if line.startswith("listening on "):
            return recorder, int(line.rsplit(":", 1)[1])
    raise SystemExit(f"FAILED  {uri}: it does not listen")


def ended(what, recorder, file, sent):
    recorder.communicate(timeout=60)
    check(f"{what}: it ends", recorder.returncode == 0)
    check(f"{what}: the samples", file.with_suffix(".sigmf-data").read_bytes() == sent.tobytes())


def streams(grebe, folder):
    """GNU Radio's network blocks at the other end of a stream without headers."""
    sent = samples("cf32")
    source = lambda: blocks.vector_source_c(sent.tolist(), False)
    for header, query in ((0, ""), (1, "&seq=0:u64le")):
        file = folder / f"udp-{header}.sigmf-meta"
        recorder, port = listening(grebe, f"udp://127.0.0.1:0?format=cf32&rate=1M{query}", file)
        flow(source(), network.udp_sink(gr.sizeof_gr_complex, 1, "127.0.0.1", port, header, 1472, True))
        # It keeps what does not fill a packet.
        packet = (1472 - 8 * header) // 8
        ended(f"GNU Radio's UDP sink, header {header}", recorder, file, sent[:LENGTH // packet * packet])

    file = folder / "tcp.sigmf-meta"
    recorder, port = listening(grebe, "tcp://127.0.0.1:0?format=cf32&rate=1M&listen", file)
    flow(source(), network.tcp_sink(gr.sizeof_gr_complex, 1, "127.0.0.1", port, 1))
    ended("GNU Radio's TCP sink", recorder, file, sent)


def taken(source, count):
    """Takes `count` items of a source that does not notice the end of its reader."""
    graph, end = gr.top_block(), blocks.vector_sink_c()
    graph.connect(source, end)
    graph.start()
    until = time.monotonic() + 60
    while len(end.data()) < count and time.monotonic() < until:
        time.sleep(0.05)
    graph.stop()
    graph.wait()
    return numpy.array(end.data()[:count], "c8"), end.tags()


def record(grebe, uri, file, count):
    """Records samples of a stream. Returns the recording and the recorder's messages."""
    run(grebe, "record", uri, file, "--samples", count)
    return numpy.fromfile(file.with_suffix(".sigmf-data"), "c8"), json.loads(file.read_text())["captures"]


def player(grebe, recording, uri):
    """A player that waits for its first reader, and the port that it listens on."""
    command = [grebe, "play", recording, "--free-run", "--to", uri]
    playing = subprocess.Popen([str(word) for word in command], stderr=subprocess.PIPE, text=True)
    for line in playing.stderr:
        if line.startswith("listening on "):
            return playing, int(line.rsplit(":", 1)[1])
    raise SystemExit(f"FAILED  {uri}: it does not listen")


def zeromq_in(grebe, folder, kind, tags):
    """GNU Radio's sink, which listens, and a recorder of grebe's."""
    sent = samples("cf32")
    sink = {"sub": zeromq.pub_sink, "pull": zeromq.push_sink}[kind](gr.sizeof_gr_complex, 1, "tcp://127.0.0.1:*", 100, tags)
    told = [gr.tag_utils.python_to_tag((0, pmt.intern(key), pmt.from_double(value), pmt.PMT_F))
            for key, value in (("rx_rate", 1e6), ("rx_freq", FREQUENCY_HZ))]
    # A PUB has sent before anybody listens: its stream goes round, and a reader begins somewhere.
    graph = gr.top_block()
    graph.connect(blocks.vector_source_c(sent.tolist(), True, 1, told), blocks.throttle(gr.sizeof_gr_complex, 2e6), sink)
    graph.start()
    what = f"GNU Radio's {'PUB' if kind == 'sub' else 'PUSH'} sink, tags {tags}"
    try:
        uri = f"zmq://{sink.last_endpoint().split('//')[1]}?type={kind}&format=cf32&rate=1M{'&tags' if tags else ''}"
        got, captures = record(grebe, uri, folder / f"zmq-{kind}-{tags}.sigmf-meta", 2 * LENGTH)
    finally:
        graph.stop()
        graph.wait()
    begin = int(numpy.flatnonzero(sent == got[0])[0])
    check(f"{what}: the samples", got.tobytes() == numpy.roll(numpy.tile(sent, 2), -begin).tobytes())
    if tags:
        # A late reader gets the frequency when the stream repeats.
        check(f"{what}: the frequency", captures[-1]["core:frequency"] == FREQUENCY_HZ)
    else:
        check(f"{what}: without a gap", len(captures) == 1)


def zeromq_out(grebe, folder, kind, tags):
    """A player of grebe's, and GNU Radio's source."""
    sent = samples("cf32")
    recording = folder / "theirs-cf32.sigmf-meta"
    playing, port = player(grebe, recording, f"zmq://127.0.0.1:0?type={kind}&format=cf32&listen{'&tags' if tags else ''}")
    source = {"pub": zeromq.sub_source, "push": zeromq.pull_source}[kind](
        gr.sizeof_gr_complex, 1, f"tcp://127.0.0.1:{port}", 100, tags)
    got, tags_of_it = taken(source, LENGTH)
    playing.communicate(timeout=60)
    what = f"GNU Radio's {'SUB' if kind == 'pub' else 'PULL'} source, tags {tags}"
    check(f"{what}: the samples", got.tobytes() == sent.tobytes())
    if tags:
        said = {pmt.symbol_to_string(tag.key): (tag.offset, pmt.to_python(tag.value)) for tag in tags_of_it}
        check(f"{what}: the rate", said["rx_rate"] == (0, RATE_HZ))
        check(f"{what}: the frequency", said["rx_freq"] == (0, FREQUENCY_HZ))


def osmosdr_client(port, count, file):
    """gr-osmosdr's client of rtl_tcp, in its own process: its source does not notice the end of its reader, and would block the graph."""
    import osmosdr
    client = osmosdr.source(f"numchan=1 rtl_tcp=127.0.0.1:{port}")
    client.set_sample_rate(1e6)
    client.set_center_freq(FREQUENCY_HZ)
    end = blocks.file_sink(gr.sizeof_gr_complex, file)
    end.set_unbuffered(True)
    graph = gr.top_block()
    graph.connect(client, blocks.head(gr.sizeof_gr_complex, count), end)
    graph.start()
    until = time.monotonic() + 60
    while Path(file).stat().st_size < count * gr.sizeof_gr_complex and time.monotonic() < until:
        time.sleep(0.05)
    os._exit(0)


def rtl_tcp_server(grebe, folder):
    """gr-osmosdr receives the recorded samples from grebe's server, each byte as (n - 127.4) / 128."""
    recording, got = folder / "cu8.sigmf-meta", folder / "osmosdr.c8"
    run(grebe, "sg", "--format", "cu8", "--wave", "qpsk", "--rate", "1M", "--samples", 10 * LENGTH, "--free-run", "--to", recording)
    playing = subprocess.Popen([str(grebe), "play", str(recording), "--to", "rtl_tcp://127.0.0.1:0?listen"], stderr=subprocess.PIPE, text=True)
    port = next(int(line.rsplit(":", 1)[1]) for line in playing.stderr if line.startswith("listening on "))
    client = [sys.executable, __file__, "--osmosdr", str(port), str(LENGTH), str(got)]
    done = subprocess.run(client, capture_output=True, text=True, timeout=120)
    playing.kill()
    playing.communicate()
    if "No module named 'osmosdr'" in done.stderr:
        print("skipped: gr-osmosdr is not installed")
        return
    check("gr-osmosdr knows the tuner of our rtl_tcp server", "R820T tuner" in done.stdout + done.stderr)
    bytes_of_it = numpy.round(numpy.fromfile(got, "f4") * 128 + 127.4).astype("u1")
    expected = numpy.fromfile(recording.with_suffix(".sigmf-data"), "u1")[:2 * LENGTH]
    check("... and gets every sample", bytes_of_it.tobytes() == expected.tobytes())


def main(grebe):
    print(f"GNU Radio {gr.version()}, NumPy {numpy.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        for name in STREAMS:
            theirs(grebe, Path(folder), name)
            ours(grebe, Path(folder), name)
        integers(grebe, Path(folder))
        streams(grebe, Path(folder))
        for tags in (False, True):
            for kind in ("sub", "pull"):
                zeromq_in(grebe, Path(folder), kind, tags)
            for kind in ("pub", "push"):
                zeromq_out(grebe, Path(folder), kind, tags)
        rtl_tcp_server(grebe, Path(folder))
    print(f"{checks} passed, 0 failed")


if sys.argv[1] == "--osmosdr":
    osmosdr_client(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
else:
    main(Path(sys.argv[1]).resolve())
