"""Recordings of every format that NumPy and PyPI's sigmf write, converted by grebe, and read again by both: the same numbers."""

import subprocess
import sys
from pathlib import Path

import numpy
import sigmf

FORMATS = {
    "ri8": "i1", "ru8": "u1", "ri16": "i2", "ri32": "i4", "rf32": "f4", "rf64": "f8",
    "ci8": "i1", "cu8": "u1", "ci16": "i2", "cf32": "f4",
}
CHANNELS = (1, 2, 9)
LENGTH = 1000


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
    info = {"core:datatype": datatype, "core:sample_rate": 48_000, "core:num_channels": values.shape[1]}
    recording = sigmf.SigMFFile(data_file=data, global_info=info)
    recording.add_capture(0, {"core:frequency": 1e8})
    recording.tofile(path, overwrite=True)


def check(path, numpy_name, values):
    """A recording holds these numbers, as NumPy reads its data, and as sigmf reads all of it (in single precision)."""
    exact = numpy.fromfile(path.with_suffix(".sigmf-data"), numpy.dtype(numpy_name).newbyteorder("<"))
    assert exact.tobytes() == values.tobytes(), f"{path}: other samples"
    # Opening checks the sum.
    recording = sigmf.fromfile(path)
    recording.validate()
    recording.autoscale = False
    assert recording.get_captures()[0]["core:frequency"] == 1e8, f"{path}: another frequency"
    single = values.astype("f4")
    expected = single[..., 0] if values.shape[2] == 1 else single[..., 0] + 1j * single[..., 1]
    got = numpy.reshape(recording.read_samples(), expected.shape)
    assert numpy.array_equal(got, expected), f"{path}: sigmf reads other samples"


def main(grebe, folder):
    folder.mkdir(exist_ok=True)
    for datatype, numpy_name in FORMATS.items():
        for channels in CHANNELS:
            values = numbers(datatype, numpy_name, channels)
            for order in ("le", "be") if values.itemsize > 1 else ("",):
                name = f"{datatype}_{order}" if order else datatype
                theirs, ours = folder / f"np-{name}-{channels}.sigmf-meta", folder / f"{name}-{channels}.sigmf-meta"
                swapped = values.astype(values.dtype.newbyteorder(">" if order == "be" else "<"))
                write(theirs, name, swapped)
                subprocess.run([grebe, "convert", theirs, ours], check=True, capture_output=True)
                if channels == 2:
                    for channel in range(channels):
                        part = ours.with_name(f"{name}-{channels}_ch{channel + 1}.sigmf-meta")
                        check(part, numpy_name, numpy.ascontiguousarray(values[:, channel : channel + 1]))
                else:
                    check(ours, numpy_name, values)


main(sys.argv[1], Path(sys.argv[2]))
