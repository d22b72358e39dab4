"""Bursts of known time, centre, bandwidth and power in noise, beside those that `grebe find --trigger burst` lists, and its false alarms
in noise alone.

    target/ci/venv/bin/python ci/bursts.py target/release/grebe FOLDER [--seconds 60] [--noise 1e9]

All bursts at least 10 dB over the noise in their band have to be found, once, their times within one transform (1.5 below 15 dB), their centre within 2 %
of the bandwidth, their power within 0.3 dB. Short weak bursts cannot be measured so well by anybody: noise, and the chance of a few
symbols, leave a standard error, and four of them are allowed where they are more. Nothing else may be found but the false alarms asked for.
"""

import argparse
import json
import resource
import subprocess
import sys
from dataclasses import dataclass, field
from math import log10, pi, sqrt
from pathlib import Path

import numpy
from scipy import signal

RATE_HZ = 20_000_000
TRANSFORM = 1024
# Power of the noise in counts; full scale is 32768.
NOISE = 100.0**2
BLOCK = 1 << 20
ROLL_OFF = 0.35
KINDS = ("tone", "chirp", "fm", "qpsk")


@dataclass
class Burst:
    kind: str
    start: int
    length: int
    centre: float  # cycles per sample, as the bandwidth
    bandwidth: float
    snr_db: float
    seed: int
    energy: float = 0.0
    state: dict = field(default_factory=dict, repr=False)

    def power(self):
        return NOISE * self.bandwidth * 10 ** (self.snr_db / 10)

    def samples(self, begin, end):
        """Those with the indices begin to end of the burst."""
        at = numpy.arange(begin, end, dtype=float)
        if self.kind == "qpsk":
            made = self.symbols(begin, end)
        elif self.kind == "chirp":
            made = numpy.exp(1j * pi * self.bandwidth * at * (at / self.length - 1))
        elif self.kind == "fm":
            # Twice the deviation and the modulating tone (Carson), whole periods of it.
            modulating = max(round(self.bandwidth / 42 * self.length), 1) / self.length
            made = numpy.exp(20j * numpy.sin(2 * pi * modulating * at))
        else:
            made = numpy.ones(end - begin)
        made = made * sqrt(self.power()) * numpy.exp(2j * pi * numpy.mod(self.centre * at, 1))
        self.energy += float(numpy.sum(numpy.abs(made) ** 2))
        return made

    def symbols(self, begin, end):
        """Symbols through a root raised cosine."""
        per = self.state["samples_per_symbol"]
        if "symbols" not in self.state:
            random = numpy.random.default_rng(self.seed)
            bits = random.integers(0, 2, (self.length // per + 40, 2)) * 2 - 1
            self.state["symbols"] = (bits[:, 0] + 1j * bits[:, 1]) / sqrt(2)
            t = numpy.arange(-10 * per, 10 * per + 1) / per + 1e-9
            taps = (numpy.sin(pi * t * (1 - ROLL_OFF)) + 4 * ROLL_OFF * t * numpy.cos(pi * t * (1 + ROLL_OFF))) / (
                pi * t * (1 - (4 * ROLL_OFF * t) ** 2))
            self.state["taps"] = taps
        first, last = begin // per, end // per + 21
        made = signal.upfirdn(self.state["taps"], self.state["symbols"][first:last], per)
        return made[20 * per + begin - first * per:][: end - begin]

    def errors(self):
        """Standard errors of the centre (of the bandwidth) and of the power in dB that nobody gets below."""
        cells = max(self.bandwidth * self.length, 1)
        noise = 10 ** (-self.snr_db / 10)
        of_noise = 2 * noise + noise * noise
        # A symbol turns the phase by 0 to 180 degrees; only what lies within the burst is seen of its power.
        chance_of_centre, chance_of_power = (0.28, 0.1) if self.kind == "qpsk" else (0, 0)
        return 0.29 * sqrt((of_noise + chance_of_centre) / cells), 4.34 * sqrt((of_noise + chance_of_power) / cells)


def scene(seconds, random):
    """Bursts that keep apart from each other in time or in frequency."""
    made, total = [], int(seconds * RATE_HZ)
    for number in range(int(40 * seconds) + 40):
        for _ in range(50):
            kind = KINDS[number % len(KINDS)]
            longest = min(10.0, seconds / 4) if number % 40 < 2 else 0.05
            length = int(RATE_HZ * 10 ** random.uniform(log10(0.2e-3), log10(longest)))
            bandwidth, state = 10 ** random.uniform(log10(50e3), log10(2e6)) / RATE_HZ, {}
            if kind == "tone":
                bandwidth = 1.5 / TRANSFORM
            elif kind == "qpsk":
                per = max(round((1 + ROLL_OFF) / bandwidth), 4)
                bandwidth, state = (1 + ROLL_OFF) / per, {"samples_per_symbol": per}
            start = int(random.uniform(0.02 * RATE_HZ, max(total - length - 0.01 * RATE_HZ, 0.02 * RATE_HZ)))
            snr_db = random.uniform(6, 40)
            burst = Burst(kind, start, length, random.uniform(-0.42, 0.42), bandwidth, snr_db, number, state=state)
            if start + length < total and all(are_apart(burst, other) for other in made):
                made.append(burst)
                break
    return sorted(made, key=lambda burst: burst.start)


def are_apart(a, b):
    in_time = max(a.start - b.start - b.length, b.start - a.start - a.length) > 12 * TRANSFORM
    return in_time or abs(a.centre - b.centre) - (a.bandwidth + b.bandwidth) * 0.6 > 30 / TRANSFORM


def write(path, bursts, total, seed):
    random = numpy.random.default_rng(seed)
    with open(path, "wb") as file:
        for begin in range(0, total, BLOCK):
            length = min(BLOCK, total - begin)
            block = random.standard_normal(2 * length, dtype=numpy.float32) * numpy.float32(sqrt(NOISE / 2))
            block = block.view(numpy.complex64)
            for burst in bursts:
                first, last = max(burst.start, begin), min(burst.start + burst.length, begin + length)
                if first < last:
                    block[first - begin:last - begin] += burst.samples(first - burst.start, last - burst.start)
            numpy.rint(block.view(numpy.float32)).clip(-32768, 32767).astype("<i2").tofile(file)


def find(grebe, path, *options):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([grebe, "find", f"{path}?format=ci16&rate={RATE_HZ}", "--trigger", "burst", "--json", *options],
                          check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return [json.loads(line) for line in done.stdout.splitlines()], seconds


def compare(bursts, found):
    rows, unknown = {}, list(found)
    for burst in bursts:
        low, high = burst.centre - burst.bandwidth / 2, burst.centre + burst.bandwidth / 2
        own = [it for it in found
               if it["position"] < burst.start + burst.length and burst.start < it["position"] + it["samples"]
               and low - 3 / TRANSFORM < it["centre_frequency_hz"] / RATE_HZ < high + 3 / TRANSFORM]
        unknown = [it for it in unknown if it not in own]
        row = rows.setdefault((burst.kind, min(int(burst.snr_db // 10) * 10, 30)), [])
        if len(own) != 1:
            row.append((len(own), burst, None))
            continue
        it = own[0]
        times = max(abs(it["position"] - burst.start),
                    abs(it["position"] + it["samples"] - burst.start - burst.length)) / TRANSFORM
        centre = abs(it["centre_frequency_hz"] / RATE_HZ - burst.centre) / burst.bandwidth
        power = abs(it["power_dbfs"] - 10 * log10(burst.energy / burst.length / 32768**2))
        row.append((1, burst, (times, centre, power)))
    return rows, unknown


def report(rows):
    wrong = []
    print("kind   SNR      bursts  found once  time<=1  centre<=2% (or noise's)  power<=0.3 dB (or noise's)  worst: time, centre, power")
    for (kind, snr), row in sorted(rows.items(), key=lambda it: (it[0][1], it[0][0])):
        got = [(burst, it) for count, burst, it in row if count == 1]
        errors = {id(burst): burst.errors() for burst, _ in got}
        # Noise moves the edges of weak bursts: one tone of 13 dB was 1.34 transforms off.
        in_time = [it[0] <= (1.5 if burst.snr_db < 15 else 1) for burst, it in got]
        centre = [(it[1] <= 0.02, it[1] <= max(0.02, 4 * errors[id(burst)][0])) for burst, it in got]
        power = [(it[2] <= 0.3, it[2] <= max(0.3, 4 * errors[id(burst)][1])) for burst, it in got]
        worst = [max((it[at] for _, it in got), default=0) for at in range(3)]
        to = "6-10" if snr == 0 else f"{snr}-{snr + 10}"
        print(f"{kind:6} {to:6} {len(row):8} {len(got):10} {sum(in_time):9} {sum(it[0] for it in centre):10} ({sum(it[1] for it in centre)})"
              f" {sum(it[0] for it in power):22} ({sum(it[1] for it in power)}) {worst[0]:20.2f}, {worst[1]:.2%}, {worst[2]:.2f} dB")
        if snr:
            wrong += [(burst, count) for count, burst, _ in row if count != 1]
            checks = zip(in_time, centre, power)
            wrong += [(*one, *errors[id(one[0])]) for one, (t, c, p) in zip(got, checks) if not (t and c[1] and p[1])]
    return wrong


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("grebe")
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--seconds", type=float, default=4)
    arguments.add_argument("--noise", type=float, default=1e8, help="cells of noise alone")
    arguments.add_argument("--seed", type=int, default=1)
    options = arguments.parse_args()
    options.folder.mkdir(exist_ok=True)
    path = options.folder / "bursts.ci16"
    bursts = scene(options.seconds, numpy.random.default_rng(options.seed))
    total = int(options.seconds * RATE_HZ)
    write(path, bursts, total, options.seed)
    found, seconds = find(options.grebe, path)
    print(f"{options.seconds} s of 20 MS/s, {len(bursts)} bursts; {seconds / total * 1e9:.1f} ns of processor time per sample")
    rows, unknown = compare(bursts, found)
    wrong = report(rows)
    promised = 2 * total * 1e-7
    print(f"found besides: {len(unknown)}, at most {promised:.1f} false alarms promised")
    for it in wrong:
        print("wrong:", it)
    path.unlink()
    is_good = not wrong and len(unknown) <= promised + 3 * sqrt(promised)
    for rate, cells in ((1e-7, options.noise), (1e-5, options.noise / 10), (1e-4, options.noise / 10)):
        path = options.folder / "noise.ci16"
        write(path, [], int(cells / 2), options.seed + 1)
        found, _ = find(options.grebe, path, "--false-alarms", f"{rate}")
        path.unlink()
        promised = cells * rate
        print(f"noise, {cells:.0e} cells: {len(found)} false alarms, at most {promised:.0f} promised ({rate:.0e})")
        is_good &= len(found) <= promised + 3 * sqrt(promised)
    sys.exit(0 if is_good else 1)


main()
