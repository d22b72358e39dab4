"""Recordings of every format by NumPy and PyPI's sigmf, converted by grebe, and read again by both: the numbers are equal. Those that
fit into a WAV are read by SciPy, and by sox where it is installed.

Also their annotations, with grebe's changes: complete from file to file, and in a stream as far as streams carry them.
"""

import json
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy
import sigmf
from scipy.io import wavfile

FORMATS = {
    "ri8": "i1", "ru8": "u1", "ri16": "i2", "ri32": "i4", "rf32": "f4", "rf64": "f8",
    "ci8": "i1", "cu8": "u1", "ci16": "i2", "cf32": "f4",
}
CHANNELS = (1, 2, 9)
LENGTH = 1000
ANNOTATIONS = [
    {
        "core:sample_start": 10, "core:sample_count": 200, "core:label": "burst", "core:comment": "A comment.",
        "core:generator": "formats.py", "core:uuid": "9e3a0c3c-6f4e-4f63-9f0a-2f7d5f1f9d10",
        "core:freq_lower_edge": 99_900_000.0, "core:freq_upper_edge": 100_100_000.0,
    },
    {"core:sample_start": 10, "core:sample_count": 1, "core:label": "another"},
    {"core:sample_start": 995, "core:sample_count": 5, "core:comment": "to the end", "test:level": 3},
]
TOLD = ("core:sample_start", "core:sample_count", "core:label", "core:comment", "core:generator", "core:uuid",
        "core:freq_lower_edge", "core:freq_upper_edge")


def numbers(datatype, numpy_name, channels):
    """By sample, channel and component."""
    shape = (LENGTH, channels, 2 if datatype[0] == "c" else 1)
    generator = numpy.random.default_rng(channels)
    if numpy_name[0] == "f":
        return generator.normal(size=shape).astype(numpy_name)
    limits = numpy.iinfo(numpy_name)
    return generator.integers(limits.min, limits.max, shape, numpy_name, endpoint=True)


def write(path, datatype, values):
    """A recording by sigmf."""
    data = path.with_suffix(".sigmf-data")
    values.tofile(data)
    info = {
        "core:datatype": datatype, "core:sample_rate": 48_000, "core:num_channels": values.shape[1],
        "core:extensions": [{"name": "test", "version": "1.0.0", "optional": True}],
    }
    recording = sigmf.SigMFFile(data_file=data, global_info=info)
    recording.add_capture(0, {"core:frequency": 1e8, "core:datetime": "2026-01-02T03:04:05.000000Z"})
    for annotation in ANNOTATIONS:
        more = dict(annotation)
        start, count = more.pop("core:sample_start"), more.pop("core:sample_count")
        recording.add_annotation(start, count, more)
    recording.tofile(path, overwrite=True)


def check(path, numpy_name, values, annotations=ANNOTATIONS):
    """A recording holds these numbers, as NumPy reads its data, and as sigmf reads all of it (in single precision)."""
    exact = numpy.fromfile(path.with_suffix(".sigmf-data"), numpy.dtype(numpy_name).newbyteorder("<"))
    assert exact.tobytes() == values.tobytes(), f"{path}: other samples"
    # Opening checks the sum.
    recording = sigmf.fromfile(path)
    recording.validate()
    recording.autoscale = False
    capture = recording.get_captures()[0]
    assert capture["core:frequency"] == 1e8, f"{path}: another frequency"
    assert capture["core:datetime"] == "2026-01-02T03:04:05.000000Z", f"{path}: {capture['core:datetime']}"
    assert recording.get_annotations() == annotations, f"{path}: {recording.get_annotations()}"
    single = values.astype("f4")
    expected = single[..., 0] if values.shape[2] == 1 else single[..., 0] + 1j * single[..., 1]
    got = numpy.reshape(recording.read_samples(), expected.shape)
    assert numpy.array_equal(got, expected), f"{path}: sigmf reads other samples"


def played(grebe, path, to):
    """Through a pipe, at a hundred times its speed."""
    player = subprocess.Popen([grebe, "play", path, "--to", "pipe:", "--speed", "100"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    subprocess.run([grebe, "record", "pipe:", to], stdin=player.stdout, check=True, capture_output=True)
    player.stdout.close()
    assert player.wait() == 0, f"{path} was not played"


def heard(wav, numpy_name, values):
    """A WAV of these numbers; of complex ones I and Q are its two channels."""
    expected = values.reshape(LENGTH, -1).squeeze()
    with warnings.catch_warnings():
        # It does not know the chunk `auxi`.
        warnings.simplefilter("ignore", wavfile.WavFileWarning)
        rate_hz, got = wavfile.read(wav)
    assert rate_hz == 48_000 and numpy.array_equal(got, expected), f"{wav}: SciPy reads other samples"
    if not shutil.which("sox"):
        print(f"skipped: sox, which is not installed, does not read {wav.name}")
        return
    raw = ["-t", "raw", "-e", "floating-point" if numpy_name[0] == "f" else "signed", "-b", str(8 * values.itemsize), "-"]
    # sox turns the middle of an unsigned u1 file into 0.
    got = numpy.frombuffer(subprocess.run(["sox", "-D", wav, *raw], check=True, capture_output=True).stdout, numpy_name.replace("u", "i"))
    middle = 128 if numpy_name == "u1" else 0
    # Inside, sox has 32 bits.
    limit = 1e-6 if numpy_name[0] == "f" else 0
    expected = numpy.clip(expected, -1, 1 - 2**-31) if limit else expected.astype("i8") - middle
    assert numpy.abs(got.reshape(expected.shape) - expected).max() <= limit, f"{wav}: sox reads other samples"


def annotated(grebe, path):
    """Adds, edits and deletes annotations of a recording by sigmf, and moves them through a label file; sigmf validates each, and the rest stays."""
    def annotate(*arguments):
        subprocess.run([grebe, "annotate", path, *arguments], check=True, capture_output=True)

    def recorded():
        meta = sigmf.fromfile(path)
        meta.validate()
        others = json.loads(path.read_text())
        annotations = others.pop("annotations")
        others["global"]["core:extensions"] = [it for it in others["global"]["core:extensions"] if it["name"] != "presentation"]
        assert meta.get_annotations() == annotations
        return others, annotations

    before, there = recorded()
    annotate("--add", "red", "--position", "500", "--samples", "20", "--band", "99.8M..100.1M", "--color", "#ff0000")
    annotate("--edit", "1", "--comment", "edited")
    labels = path.with_suffix(".csv")
    annotate("--export", labels)
    annotate("--delete", ",".join(str(number + 1) for number in range(len(there) + 1)))
    assert recorded() == (before, [])
    annotate("--import", labels)
    red = {
        "core:sample_start": 500, "core:sample_count": 20, "core:label": "red", "core:generator": "grebe annotate",
        "core:freq_lower_edge": 99.8e6, "core:freq_upper_edge": 100.1e6, "presentation:color": "#ff0000",
    }
    there[0]["core:comment"] = "edited"
    expected = sorted([*there, red], key=lambda it: it["core:sample_start"])
    assert recorded() == (before, expected), recorded()


def beside(grebe, folder):
    """The file of annotations beside a file that has none is metadata to sigmf."""
    raw = folder / "beside.ci16"
    raw.write_bytes(bytes(400))
    name = f"{raw}?rate=48k"
    subprocess.run([grebe, "annotate", name, "--add", "a", "--start", "1ms", "-d", "500us"], check=True, capture_output=True)
    meta = json.loads((folder / "beside.ci16.sigmf-annotations").read_text())
    described = sigmf.SigMFFile(metadata=meta)
    described.validate()
    assert described.get_annotations()[0]["core:sample_start"] == 48, meta
    assert described.get_global_field("core:dataset") == "beside.ci16", meta


def main(grebe, folder):
    folder.mkdir(exist_ok=True)
    theirs = folder / "annotated.sigmf-meta"
    write(theirs, "ci16_le", numbers("ci16", "i2", 1))
    annotated(grebe, theirs)
    beside(grebe, folder)
    for datatype, numpy_name in FORMATS.items():
        for channels in CHANNELS:
            values = numbers(datatype, numpy_name, channels)
            for order in ("le", "be") if values.itemsize > 1 else ("",):
                name = f"{datatype}_{order}" if order else datatype
                theirs, ours = folder / f"np-{name}-{channels}.sigmf-meta", folder / f"{name}-{channels}.sigmf-meta"
                swapped = values.astype(values.dtype.newbyteorder(">" if order == "be" else "<"))
                write(theirs, name, swapped)
                subprocess.run([grebe, "convert", theirs, ours], check=True, capture_output=True)
                wav = ours.with_suffix(".wav")
                # WAV has no signed bytes.
                if datatype[1:] != "i8" and (datatype[0] == "r" or channels == 1):
                    subprocess.run([grebe, "convert", theirs, wav], check=True, capture_output=True)
                    heard(wav, numpy_name, values)
                if channels == 2:
                    for channel in range(channels):
                        part = ours.with_name(f"{name}-{channels}_ch{channel + 1}.sigmf-meta")
                        check(part, numpy_name, numpy.ascontiguousarray(values[:, channel : channel + 1]))
                else:
                    check(ours, numpy_name, values)
                    streamed = folder / f"{name}-{channels}-played.sigmf-meta"
                    played(grebe, theirs, streamed)
                    told = [{key: it[key] for key in TOLD if key in it} for it in ANNOTATIONS]
                    check(streamed, numpy_name, values, told)


main(sys.argv[1], Path(sys.argv[2]))
