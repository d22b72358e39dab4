"""Blocks of GNU Radio 3.10 for grebe's streams: a source and a sink.

    from gnuradio import gr
    from grebe.gnuradio import sink, source

    graph = gr.top_block()
    graph.connect(source("udp://:5000"), ..., sink("shm://out", rate=1e6))

Both name a stream as ``grebe.open`` and ``grebe.publish`` do, shared memory and recordings included. A port carries one channel. 
Tags mark the samples at which the rate (``rx_rate``), the frequency (``rx_freq``) and the time (``rx_time``) change, and the
samples missing before a sample (``gap``).

``python3 -m grebe.gnuradio`` prints the folder of their descriptions for GNU Radio Companion.
"""

from __future__ import annotations

from ._blocks import TYPES, sink, source

__all__ = ["TYPES", "sink", "source"]
