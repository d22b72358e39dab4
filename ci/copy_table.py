#!/usr/bin/env python3
"""Trees over an emulated link, each way to copy them in turn: rows for docs/benchmarks-trees.md. Linux, root.

    cargo build --release
    sudo ci/copy_table.py target/release/grebe ./wanlink --trees 2000x4K --link 100,250,0.01 --rounds 3

The emulator is a program that makes two network namespaces, NAME-a and NAME-b (198.18.0.1 and .2), with a link between them of
--rate Mbit/s, --delay ms each way, --loss and --queue; it removes both when it is interrupted. A real sshd runs in one, ssh and everything
else in the other. Needs openssh-server and, for their rows, rsync, rclone, tar. Rows with missing programs are skipped, with a message.
Every received tree is compared with the sent one, byte by byte. Bytes on the wire are counted by the device of the sending namespace.
"""

import argparse
import filecmp
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

NAME = f"cp{os.getpid()}"
THERE = "198.18.0.2"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("grebe", type=Path)
    parser.add_argument("wanlink", type=Path)
    parser.add_argument("--link", default="100,250,0.01", help="Mbit/s, round trip in ms, loss")
    parser.add_argument("--trees", default="2000x4K", help="FILESxBYTES, FILESxFROM-TO, by commas; K and M are 1024")
    parser.add_argument("--ways", default="ssh,grebe,grebe-one,tar,rsync,scp,rclone", help="by commas, in this order")
    parser.add_argument("--congestion", default="bbr,cubic", help="of TCP, by commas")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit-s", type=float, default=120, help="what takes longer is given up, and not tried again")
    parser.add_argument("--dir", type=Path, default=Path("/dev/shm"), help="where trees lie")
    options = parser.parse_args()
    rate, rtt_ms, loss = (float(number) for number in options.link.split(","))
    with tempfile.TemporaryDirectory(dir=options.dir, prefix="grebe-copy-") as folder:
        room = Room(Path(folder))
        for tree in options.trees.split(","):
            files, total = room.plant(tree)
            print(f"\n{files} files, {total / 1e6:.1f} MB, over {rate:g} Mbit/s, {rtt_ms:g} ms, {loss * 100:g} %; load {os.getloadavg()[0]:.1f}\n")
            print("| | median, s | runs | on the wire / files |\n|---|--:|---|--:|", flush=True)
            for row in rows(options, room, total, rate, rtt_ms, loss):
                print(row, flush=True)
            print(f"\nload {os.getloadavg()[0]:.1f}")


def rows(options, room, total, rate, rtt_ms, loss):
    ways = [way for way in options.ways.split(",")]
    kinds = [(way, tcp) for way in ways for tcp in (options.congestion.split(",") if way in BY_TCP else [""])]
    runs = {kind: [] for kind in kinds}
    for round_number in range(options.rounds):
        for kind in kinds:
            way, tcp = kind
            if any(isinstance(run, str) for run in runs[kind]):
                continue
            if why := Link.refuses(tcp or "bbr"):
                runs[kind].append(why)
                continue
            with Link(options.wanlink, rate, rtt_ms, loss, seed=round_number + 1, tcp=tcp or "bbr") as link:
                runs[kind].append(run_one(options, room, link, way))
    for (way, tcp), measured in runs.items():
        name = f"{NAMES[way]}{', ' + tcp.upper() if tcp else ''}"
        wrong = next((run for run in measured if isinstance(run, str)), None)
        if wrong:
            yield f"| {name} | | {wrong} | |"
            continue
        seconds = [run[0] for run in measured]
        wire = statistics.median(run[1] for run in measured)
        wire = f"{wire / total:.3f}" if total else f"{wire / 1e6:.3f} MB"
        each = ", ".join(f"{value:.2f}" for value in seconds)
        yield f"| {name} | {statistics.median(seconds):.2f} | {each} | {'' if way == 'ssh' else wire} |"


def run_one(options, room, link, way):
    """Seconds and bytes on the wire, or the reason of the failure."""
    if way in ("rsync", "rclone", "tar") and not shutil.which(way):
        return f"{way} is not installed"
    with room.sshd(link):
        command = room.command(way, options.grebe.resolve())
        source = room.one if way == "grebe-one" else room.tree
        before, began = link.sent_bytes(), time.monotonic()
        try:
            done = subprocess.run(link.inside("a") + command, capture_output=True, timeout=options.limit_s)
        except subprocess.TimeoutExpired:
            return f"not done after {options.limit_s:g} s"
        took, sent = time.monotonic() - began, link.sent_bytes() - before
        if done.returncode != 0:
            return f"failed: {done.stderr.decode(errors='replace').strip().splitlines()[-1:]}"
        wrong = None if way == "ssh" else difference(source, room.arrived)
        shutil.rmtree(room.arrived, ignore_errors=True)
        return wrong or (took, sent)


class Room:
    """The folder of trees and keys."""

    def __init__(self, folder):
        self.folder, self.tree, self.arrived = folder, folder / "tree", folder / "arrived"
        self.one = folder / "one"
        for key in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True)
        Path("/run/sshd").mkdir(exist_ok=True)
        (folder / "ssh_config").write_text(
            f"Host *\n IdentityFile {folder}/user\n IdentitiesOnly yes\n IdentityAgent none\n BatchMode yes\n"
            f" UserKnownHostsFile {folder}/known\n StrictHostKeyChecking no\n LogLevel ERROR\n Compression no\n"
        )
        host = (folder / "host.pub").read_text().split()
        (folder / "known").write_text(f"{THERE} {host[0]} {host[1]}\n")
        (folder / "sshd_config").write_text(
            f"ListenAddress {THERE}\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/user.pub\nPidFile none\nUsePAM no\n"
            "StrictModes no\nPasswordAuthentication no\nUseDNS no\nPermitRootLogin prohibit-password\n"
            f"Subsystem sftp internal-sftp\nSetEnv XDG_STATE_HOME={folder}/state\n"
        )

    def plant(self, tree):
        """Files of incompressible bytes, a thousand per directory; and one file of the same size."""
        for old in (self.tree, self.one):
            shutil.rmtree(old, ignore_errors=True)
        count, sizes = tree.split("x")
        least, _, most = sizes.partition("-")
        least, most = size(least), size(most or least)
        draw, total = random.Random(7), 0
        for number in range(int(count)):
            folder = self.tree / f"{number // 1000:03}"
            if number % 1000 == 0:
                folder.mkdir(parents=True)
            # As many small files as large ones, in their logarithms.
            bytes_ = least if least == most else int(least * (most / least) ** draw.random())
            (folder / f"{number}.bin").write_bytes(draw.randbytes(bytes_))
            total += bytes_
        self.one.mkdir()
        with open(self.one / "one.bin", "wb") as file:
            for start in range(0, total, 1 << 20):
                file.write(draw.randbytes(min(1 << 20, total - start)))
        return int(count), total

    def command(self, way, grebe):
        ssh = ["ssh", "-F", str(self.folder / "ssh_config")]
        to, words = f"{THERE}:{self.arrived}", " ".join(ssh)
        cp = [str(grebe), "cp", "--no-config", "-q", "--ssh", words, "--remote-path", str(grebe), "-a"]
        tar = f"tar -C {self.tree} -cf - . | {words} {THERE} 'mkdir {self.arrived} && tar -C {self.arrived} -xf -'"
        sftp = f":sftp,host={THERE},user=root,key_file={self.folder}/user,known_hosts_file={self.folder}/known:{self.arrived}"
        return {
            "ssh": ssh + [THERE, "true"],
            "grebe": cp + [f"{self.tree}/", to],
            "grebe-one": cp + [f"{self.one}/", to],
            "tar": ["sh", "-c", tar],
            "rsync": ["rsync", "-a", "-e", words, f"{self.tree}/", to],
            "scp": ["scp", "-q", "-r", "-p", "-F", str(self.folder / "ssh_config"), str(self.tree), to],
            "rclone": ["rclone", "copy", "--config", "/dev/null", "--transfers", "16", "--checkers", "16", str(self.tree), sftp],
        }[way]

    def sshd(self, link):
        return Kept(link.inside("b") + ["/usr/sbin/sshd", "-D", "-f", str(self.folder / "sshd_config")], lambda: link.listens(22))


class Kept:
    """A program that runs while it is needed."""

    def __init__(self, command, is_ready):
        self.command, self.is_ready = command, is_ready

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        until = time.monotonic() + 15
        while not self.is_ready():
            if self.process.poll() is not None or time.monotonic() > until:
                self.process.kill()
                raise SystemExit(f"{self.command} is not ready: {self.process.stderr.read().decode()}")
            time.sleep(0.02)
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT if "wanlink" in self.command[0] else signal.SIGTERM)
        self.process.wait()


class Link(Kept):
    """The emulator, and both ends set up for long distances."""

    def __init__(self, program, rate, rtt_ms, loss, seed, tcp):
        arguments = ["--name", NAME, "--rate", rate, "--delay", rtt_ms / 2, "--loss", loss, "--seed", seed]
        super().__init__([str(Path(program).resolve())] + [str(word) for word in arguments], self.is_up)
        self.tcp = tcp

    def __enter__(self):
        super().__enter__()
        for side in "ab":
            for setting in [
                "net.ipv4.tcp_rmem=4096 131072 67108864",
                "net.ipv4.tcp_wmem=4096 16384 67108864",
                f"net.ipv4.tcp_congestion_control={self.tcp}",
            ]:
                subprocess.run(self.inside(side) + ["sysctl", "-qw", setting], check=True)
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        self.process.wait()

    @staticmethod
    def refuses(tcp):
        """The reason why a namespace cannot use this congestion control, if any."""
        allowed = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").read_text().split()
        return None if tcp in allowed else f"not allowed: sysctl -w net.ipv4.tcp_allowed_congestion_control='{' '.join([*allowed, tcp])}'"

    def inside(self, side):
        return ["ip", "netns", "exec", f"{NAME}-{side}"]

    def is_up(self):
        told = [subprocess.run(self.inside(side) + ["ip", "-o", "addr"], capture_output=True, text=True) for side in "ab"]
        return all(f"198.18.0.{number}" in it.stdout for number, it in enumerate(told, 1))

    def listens(self, port):
        told = subprocess.run(self.inside("b") + ["cat", "/proc/net/tcp"], capture_output=True, text=True).stdout
        return any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A" for line in told.splitlines()[1:])

    def sent_bytes(self, side="a"):
        told = subprocess.run(self.inside(side) + ["ip", "-s", "-j", "link", "show", "wan0"], capture_output=True, text=True)
        return json.loads(told.stdout)[0]["stats64"]["tx"]["bytes"]


def difference(tree, arrived):
    """The difference between the trees, if any."""
    for folder, folders, files in os.walk(tree):
        other = arrived / Path(folder).relative_to(tree)
        if not other.is_dir() or sorted(os.listdir(other)) != sorted(folders + files):
            return f"it did not arrive: {other.name}"
        _, wrong, odd = filecmp.cmpfiles(folder, other, files, shallow=False)
        if wrong or odd:
            return f"it arrived otherwise: {wrong[:3]} {odd[:3]}"
    return None


def size(text):
    return int(float(text.rstrip("KM")) * {"K": 1 << 10, "M": 1 << 20}.get(text[-1], 1))


BY_TCP = ("tar", "rsync", "scp", "rclone")
NAMES = {
    "ssh": "`ssh host true`",
    "grebe": "grebe cp",
    "grebe-one": "grebe cp, one file of as many bytes",
    "tar": "tar over ssh",
    "rsync": "rsync",
    "scp": "scp",
    "rclone": "rclone, 16 at a time",
}

if __name__ == "__main__":
    main()
