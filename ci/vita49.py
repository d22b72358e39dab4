"""grebe and others read each other's VITA-49 packets: another implementation (peers/vita49), and Wireshark's dissector where tshark is.

    ci/vita49.sh target/release/grebe
"""

import collections
import json
import random
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

RATE_HZ, FREQUENCY_HZ, LENGTH, PACKET = 1_000_000, 433_000_000, 60_000, 300
checks = 0


def check(what, is_good):
    global checks
    if not is_good:
        raise SystemExit(f"FAILED  {what}")
    checks += 1
    print(f"ok      {what}")


def listening(command):
    """A program and its listening port."""
    program = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in program.stdout:
        if line.startswith("listening on "):
            return program, int(line.rsplit(":", 1)[1])
    raise SystemExit(f"FAILED  {command[0]}: it does not listen")


def theirs(grebe, peer, folder):
    """grebe records the crate's packets: samples, rate, frequency, time, and each missing packet."""
    sent = random.Random(1).randbytes(4 * LENGTH)
    (folder / "sent.ci16").write_bytes(sent)
    lost = [7, 40, 41, 42, *range(100, 120)]  # more than the packet count can tell
    recording = folder / "theirs.sigmf-meta"
    recorder, port = listening([grebe, "record", "vrt://127.0.0.1:0", recording, "--samples", LENGTH - PACKET * len(lost)])
    subprocess.run([peer, "send", f"127.0.0.1:{port}", folder / "sent.ci16", *map(str, lost)], check=True)
    recorder.communicate(timeout=60)
    check("their packets: the recording ends well", recorder.returncode == 0)
    packets = [sent[at : at + 4 * PACKET] for at in range(0, len(sent), 4 * PACKET)]
    expected = b"".join(packet for number, packet in enumerate(packets) if number not in lost)
    check("... the samples", recording.with_suffix(".sigmf-data").read_bytes() == expected)
    said = json.loads(recording.read_text())
    captures = said["captures"]
    check("... rate and frequency", (said["global"]["core:sample_rate"], captures[0]["core:frequency"]) == (RATE_HZ, FREQUENCY_HZ))
    check("... their time", captures[0]["core:datetime"].startswith("2025-06-15T15:06:40"))
    indices = [capture["core:global_index"] - captures[0]["core:global_index"] for capture in captures]
    check("... every gap", indices == [0, 8 * PACKET, 43 * PACKET, 120 * PACKET])


def ours(grebe, peer, folder):
    """The crate reads grebe's packets, with the context."""
    recording, got = folder / "ours.sigmf-meta", folder / "got.ci16"
    subprocess.run([grebe, "convert", f"{folder}/sent.ci16?rate=1M&frequency=433M", recording], check=True, capture_output=True)
    receiver, port = listening([peer, "recv", got])
    subprocess.run([grebe, "play", recording, "--speed", "0.2", "--to", f"vrt://127.0.0.1:{port}"], check=True, capture_output=True)
    said = receiver.communicate(timeout=60)[0].splitlines()
    check("our packets: they read them without a count that is missing", receiver.returncode == 0)
    check("... the samples", got.read_bytes() == recording.with_suffix(".sigmf-data").read_bytes())
    contexts = {tuple(float(number) for number in line.split()[1:]) for line in said if line.startswith("context")}
    check("... rate and frequency", contexts == {(RATE_HZ, FREQUENCY_HZ)})


def dissected(grebe, folder):
    """Wireshark's dissector accepts grebe's packets, and shows the same fields."""
    if not shutil.which("tshark"):
        print("skipped: Wireshark's dissector: tshark is not installed")
        return
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    listener.bind(("127.0.0.1", 0))
    listener.settimeout(60)
    to = f"vrt://127.0.0.1:{listener.getsockname()[1]}?stream=0x1f"
    for profile in ("", "&profile=difi"):
        playing = subprocess.Popen([grebe, "play", folder / "ours.sigmf-meta", "--speed", "0.2", "--to", to + profile], stderr=subprocess.DEVNULL)
        capture = folder / "packets.pcap"
        with capture.open("wb") as file:
            file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_536, 101))  # raw IPv4
            count = 0
            while packet := listener.recv(65_536):
                head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 28 + len(packet), 0, 0, 64, 17, 0, b"\x7f\0\0\1", b"\x7f\0\0\1")
                head += struct.pack(">HHHH", 5_000, 4_991, 8 + len(packet), 0)
                file.write(struct.pack("<IIII", 0, count, len(head + packet), len(head + packet)) + head + packet)
                count += 1
        playing.wait(timeout=60)
        fields = ["vrt.type", "vrt.sid", "vrt.seq", "_ws.malformed"]
        words = ["tshark", "-r", capture, "-d", "udp.port==4991,vrt", "-T", "fields", *(word for field in fields for word in ("-e", field))]
        lines = [line.split("\t") for line in subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()]
        what = f"Wireshark, {profile[1:] or 'VITA-49.2'}"
        check(f"{what}: {count} packets, none malformed", len(lines) == count and not any(line[3] for line in lines))
        kinds = collections.Counter(int(line[0], 0) for line in lines)
        check(f"{what}: samples and context", set(kinds) == {1, 4} and kinds[1] > kinds[4])
        check(f"{what}: the stream", {int(line[1], 0) for line in lines} == {0x1F})
        counts = [int(line[2], 0) for line in lines if int(line[0], 0) == 1]
        check(f"{what}: the counts follow each other", all((one + 1) % 16 == two for one, two in zip(counts, counts[1:])))


def main(grebe, peer):
    with tempfile.TemporaryDirectory() as folder:
        theirs(grebe, peer, Path(folder))
        ours(grebe, peer, Path(folder))
        dissected(grebe, Path(folder))
    print(f"{checks} passed, 0 failed")


main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
