//! A sender and a receiver of VITA-49 packets by the crate `vita49`, for ci/vita49.py.
//!
//! ```text
//! peers-vita49 send HOST:PORT FILE LOST...   sends complex 16-bit samples, little-endian in the file, 300 a packet, without the packets of these numbers
//! peers-vita49 recv FILE                     prints its address, and writes all samples until a silence of 2 s
//! ```

use std::error::Error;
use std::net::UdpSocket;
use std::time::Duration;

use vita49::prelude::*;

const STREAM: u32 = 0x1234_5678;
const SAMPLES: usize = 300;
const RATE_HZ: f64 = 1e6;
const FREQUENCY_HZ: f64 = 433e6;
/// Complex, of two 16-bit integers.
const CI16: u64 = 0x2000_03cf_0000_0000;
const FIRST_SECOND: u32 = 1_750_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["send", to, file, ref lost @ ..] => {
            let lost: Vec<usize> = lost.iter().map(|number| number.parse()).collect::<Result<_, _>>()?;
            send(to, &std::fs::read(file)?, &lost)
        }
        ["recv", file] => receive(file),
        _ => Err("send HOST:PORT FILE LOST..., or recv FILE".into()),
    }
}

fn send(to: &str, samples: &[u8], lost: &[usize]) -> Result<(), Box<dyn Error>> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    let mut packet = Vrt::new_context_packet();
    packet.set_stream_id(Some(STREAM));
    stamp(&mut packet, 0)?;
    let context = packet.payload_mut().context_mut()?;
    context.set_sample_rate_sps(Some(RATE_HZ));
    context.set_rf_ref_freq_hz(Some(FREQUENCY_HZ));
    context.set_bandwidth_hz(Some(0.8e6));
    context.set_signal_data_payload_format(Some(CI16));
    packet.update_packet_size();
    socket.send_to(&packet.to_bytes()?, to)?;
    for (number, samples) in samples.chunks(4 * SAMPLES).enumerate() {
        let mut packet = Vrt::new_signal_data_packet();
        packet.set_stream_id(Some(STREAM));
        stamp(&mut packet, (number * SAMPLES) as u64)?;
        packet.header_mut().set_packet_count((number % 16) as u8);
        packet.set_signal_payload(swapped(samples))?;
        packet.update_packet_size();
        if !lost.contains(&number) {
            socket.send_to(&packet.to_bytes()?, to)?;
            std::thread::sleep(Duration::from_micros(200));
        }
    }
    Ok(())
}

/// UTC, and picoseconds.
fn stamp(packet: &mut Vrt, sample: u64) -> Result<(), VitaError> {
    let rate = RATE_HZ as u64;
    packet.set_integer_timestamp(Some(FIRST_SECOND + (sample / rate) as u32), Tsi::Utc)?;
    packet.set_fractional_timestamp(Some(sample % rate * (1_000_000_000_000 / rate)), Tsf::RealTimePs)
}

fn receive(file: &str) -> Result<(), Box<dyn Error>> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    println!("listening on {}", socket.local_addr()?);
    let (mut bytes, mut samples, mut next) = ([0; 65_536], Vec::new(), None);
    while let Ok(length) = socket.recv(&mut bytes) {
        socket.set_read_timeout(Some(Duration::from_secs(2)))?;
        // The end of a stream.
        if length == 0 {
            break;
        }
        let packet = Vrt::try_from(&bytes[..length])?;
        if let Ok(context) = packet.payload().context() {
            let of = |value: Option<f64>| value.unwrap_or(f64::NAN);
            println!("context {} {}", of(context.sample_rate_sps()), of(context.rf_ref_freq_hz()));
            continue;
        }
        let count = packet.header().packet_count();
        if next.is_some_and(|next| next != count) {
            return Err(format!("packet {count} instead of {next:?}").into());
        }
        next = Some((count + 1) % 16);
        samples.extend(swapped(packet.signal_payload()?));
    }
    std::fs::write(file, &samples)?;
    Ok(())
}

/// 16-bit numbers in the other order of bytes.
fn swapped(bytes: &[u8]) -> Vec<u8> {
    bytes.chunks_exact(2).flat_map(|pair| [pair[1], pair[0]]).collect()
}
