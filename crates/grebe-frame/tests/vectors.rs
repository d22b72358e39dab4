//! The frames that docs/wire-format.md shows are what this library writes and reads.

use grebe_frame::{
    BatchPool, ClockReading, Complex, Description, DescriptionReader, Frame, HEADER_BYTES, Header, Sample,
    SampleFormat, StreamAnnotation,
};

/// The frames of the page, in order.
fn shown() -> Vec<Vec<u8>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/wire-format.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (_, vectors) = page.split_once("## To check by hand").unwrap();
    let hex = |line: &str| -> Vec<u8> {
        let (_, bytes) = line.trim().split_once("  ").unwrap();
        bytes.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
    };
    vectors
        .split("```")
        .skip(1)
        .step_by(2)
        .map(|block| block.trim().lines().flat_map(hex).collect())
        .collect()
}

/// A frame with a checksum that was not computed, as the page has it.
fn written<T: Sample>(header: &Header, samples: &[T]) -> Vec<u8> {
    let mut batch = BatchPool::new(1, 4096).acquire().unwrap();
    let block = header.block_length_samples as usize;
    batch
        .push::<T>(header, |channel, out| out.copy_from_slice(&samples[channel * block..][..block]))
        .unwrap();
    let mut bytes = batch.chunk()[..header.frame_bytes()].to_vec();
    bytes[36..40].fill(0);
    bytes
}

#[test]
fn the_page_shows_what_is_written_and_read() {
    let shown = shown();
    let first = Header {
        sequence: 5,
        producer_ts_ns: 1_000_000_000,
        channel_count: 2,
        format: SampleFormat::I16,
        block_length_samples: 2,
        sample_rate_hz: 1_000.0,
        sg_drops_total: 0,
        first_sample_index: 10,
    };
    let complex =
        Header { channel_count: 1, format: SampleFormat::Cf32, block_length_samples: 1, ..Header::default() };
    let end = complex.end_of_stream(0);
    let description = Description { name: Some("x".into()), ..Description::default() };
    let mut described = description.frames(&end, 1400).unwrap().remove(0);
    described[36..40].fill(0);
    let label = StreamAnnotation {
        first_sample_index: 1,
        length_samples: 2,
        label: Some("a".into()),
        ..StreamAnnotation::default()
    };
    let timed = Description {
        clock: Some(ClockReading { producer_ts_ns: 1, unix_time_ns: 2, error_ns: Some(3), clock: None }),
        annotations: vec![label],
        ..Description::default()
    };
    let mut timed_frame = timed.frames(&end, 1400).unwrap().remove(0);
    timed_frame[36..40].fill(0);
    let written = [
        written(&first, &[1i16, -1, 256, -32_768]),
        written(&complex, &[Complex::new(0.5f32, -2.0)]),
        written::<Complex<f32>>(&end, &[]),
        described,
        timed_frame,
    ];
    let as_page = |frame: &Vec<u8>| {
        let row = |(at, bytes): (usize, &[u8])| {
            let bytes: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{:>3}  {}\n", at * 8, bytes.join(" "))
        };
        frame.chunks(8).enumerate().map(row).collect::<String>()
    };
    for (number, frame) in written.iter().enumerate() {
        assert_eq!(shown.get(number), Some(frame), "the page should show\n{}", as_page(frame));
    }
    assert_eq!(Frame::parse(&shown[0]).unwrap().header(), first);
    assert_eq!(Frame::parse(&shown[0]).unwrap().channel::<i16>(1).unwrap().as_ref(), [256, -32_768]);
    assert_eq!(Frame::parse(&shown[1]).unwrap().header(), complex);
    assert_eq!(Frame::parse(&shown[2]).unwrap().header(), end);
    assert_eq!(DescriptionReader::default().take(&shown[3]), Ok(Some(description)));
    assert_eq!(DescriptionReader::default().take(&shown[4]), Ok(Some(timed)));
    assert_eq!(shown[2].len(), HEADER_BYTES);
}
