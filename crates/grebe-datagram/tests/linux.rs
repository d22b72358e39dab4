//! Tests Linux features: offload in both directions, drop counters, timestamps, forced buffers.
#![cfg(target_os = "linux")]

use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use grebe_datagram::{Congestion, Gso, Options, Receiver, Sender};

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

fn pair(options: &Options) -> (Receiver<Vec<u8>>, Sender) {
    let receiver = Receiver::bind(LOOPBACK, options).unwrap();
    let sender = Sender::connect(receiver.local_addr().unwrap(), options).unwrap();
    (receiver, sender)
}

fn short() -> Options {
    Options { recv_timeout: Duration::from_millis(20), ..Options::default() }
}

/// Whether another program emulates the kernel: qemu-user does not know these socket options.
fn is_emulated() -> bool {
    cfg!(target_arch = "aarch64")
        && std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains("vendor_id"))
}

#[test]
fn equal_datagrams_cross_in_few_kernel_buffers() {
    let (mut receiver, mut sender) = pair(&short());
    let data = vec![7_u8; 92 * 1_400];
    let mut batch = sender.batch();
    batch.push_run(&data, 1_400).unwrap();
    batch.flush().unwrap();
    drop(batch);
    if sender.gso() == Gso::Disabled {
        return;
    }
    assert_eq!(sender.gso(), Gso::Active);
    assert_eq!((sender.counters().messages, sender.counters().syscalls), (2, 1));
    let outcome = receiver.recv(|| Some(vec![0; 65_536]), |_, _| None).unwrap();
    assert_eq!((outcome.datagrams, outcome.slots), (92, 2));
}

/// Hides `recvmmsg` from this thread, like filters of containers.
fn hide_recvmmsg() {
    let op = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let number = libc::SYS_recvmmsg as u32;
    let mut filter = [
        op(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        op(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, number),
        op(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
        op(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the kernel copies the program, which lives until then.
    let answers = unsafe {
        [
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
            libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program, 0, 0),
        ]
    };
    assert_eq!(answers, [0, 0]);
}

#[test]
fn joined_datagrams_are_told_apart_where_the_call_for_several_is_hidden() {
    if is_emulated() {
        return;
    }
    let (mut receiver, mut sender) = pair(&short());
    let data = vec![7_u8; 40 * 1_400 + 100];
    let mut batch = sender.batch();
    batch.push_run(&data, 1_400).unwrap();
    batch.flush().unwrap();
    drop(batch);
    hide_recvmmsg();
    let (mut datagrams, mut bytes) = (0, 0);
    while datagrams < 41 {
        let outcome = receiver.recv(|| Some(vec![0; 65_536]), |_, _| None).unwrap();
        assert!(outcome.datagrams > 0, "{datagrams} came");
        (datagrams, bytes) = (datagrams + outcome.datagrams, bytes + outcome.bytes);
    }
    assert_eq!((datagrams, bytes), (41, data.len()));
}

#[test]
fn drops_count_from_zero_and_need_no_later_datagram() {
    if is_emulated() {
        return;
    }
    let options = Options { recv_buffer_bytes: 8_192, force_buffers: false, gso: false, ..short() };
    let (mut receiver, mut sender) = pair(&options);
    // The first reading is a baseline.
    let outcome = receiver.recv(|| Some(vec![0; 65_536]), |_, _| None).unwrap();
    assert_eq!(outcome.kernel_drops, Some(0));
    let data = vec![1_u8; 1_400];
    let mut batch = sender.batch();
    for _ in 0..100 {
        batch.push(&data, &[]).unwrap();
    }
    batch.flush().unwrap();
    drop(batch);
    let (mut datagrams, mut events) = (0, Vec::new());
    let mut drops = None;
    let until = Instant::now() + Duration::from_millis(2_600);
    while Instant::now() < until {
        let outcome = receiver.recv(|| Some(vec![0; 65_536]), |_, _| None).unwrap();
        datagrams += outcome.datagrams;
        events.extend(outcome.congestion);
        drops = outcome.kernel_drops;
    }
    assert!(datagrams < 100);
    assert_eq!(drops, Some(100 - datagrams as u64), "each dropped buffer held one datagram");
    assert_eq!(events, [Congestion::Began, Congestion::Cleared]);
}

#[test]
fn a_connected_receiver_counts_drops_too() {
    if is_emulated() {
        return;
    }
    let options = Options { recv_buffer_bytes: 8_192, force_buffers: false, gso: false, ..short() };
    let (mut receiver, mut sender) = pair(&options);
    let port = sender.local_addr().unwrap().port();
    receiver.connect(([127, 0, 0, 1], port).into()).unwrap();
    let data = vec![1_u8; 1_400];
    let mut drops = 0;
    // The counter arrives with a datagram queued after the drop.
    for _ in 0..2 {
        let mut batch = sender.batch();
        for _ in 0..100 {
            batch.push(&data, &[]).unwrap();
        }
        drop(batch);
        let outcome = receiver.recv(|| Some(vec![0; 65_536]), |_, _| None).unwrap();
        drops = outcome.kernel_drops.unwrap();
        while receiver.try_recv(|| Some(vec![0; 65_536]), |_, _| None).unwrap().datagrams > 0 {}
    }
    assert!(drops > 0);
}

/// A datagram carries the count at its queueing: in a batch across an overflow, the first shows no drop, the
/// last does.
#[test]
fn the_count_of_a_batch_is_that_of_its_last_message() {
    if is_emulated() {
        return;
    }
    let options =
        Options { recv_buffer_bytes: 8_192, force_buffers: false, gso: false, gro: false, ..short() };
    let (mut receiver, mut sender) = pair(&options);
    let mut send = |count: usize| {
        let mut batch = sender.batch();
        (0..count).for_each(|_| batch.push(&[1; 1_400], &[]).unwrap());
    };
    send(100);
    // Room for one more, which is queued after the drops. The kernel returns room in quarters of the buffer.
    let mut slots = vec![vec![0; 65_536]; 3].into_iter();
    let first = receiver.try_recv(|| slots.next(), |_, _| None).unwrap();
    assert_eq!((first.datagrams, first.kernel_drops), (3, Some(0)));
    send(1);
    let rest = receiver.try_recv(|| Some(vec![0; 65_536]), |_, _| None).unwrap();
    assert!(rest.datagrams > 1, "a batch on both sides of the drops");
    assert_eq!(rest.kernel_drops, Some(101 - 3 - rest.datagrams as u64));
}

#[test]
fn signals_neither_end_nor_shorten_a_wait() {
    extern "C" fn nothing(_: libc::c_int) {}
    // Without SA_RESTART, so that system calls return EINTR.
    // SAFETY: all zeros is a valid `sigaction`, the handler does nothing, and the pointers live through the call.
    let installed = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as *const () as usize;
        libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut())
    };
    assert_eq!(installed, 0);
    let (mut receiver, sender) = pair(&Options {
        recv_timeout: Duration::from_secs(5),
        latency: Duration::ZERO,
        ..Options::default()
    });
    // SAFETY: asks for this thread's own handle.
    let receiving = unsafe { libc::pthread_self() };
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                // SAFETY: that thread outlives this scope.
                unsafe { libc::pthread_kill(receiving, libc::SIGUSR1) };
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        for round in 0..50_u8 {
            // Sent after the wait begins, on a socket that needs nothing of this thread.
            let (data, to) = ([round; 700], receiver.local_addr().unwrap());
            let socket = sender.try_clone_socket().unwrap();
            let sending = scope.spawn(move || {
                std::thread::sleep(Duration::from_millis(2));
                socket.send_to(&data, to).or_else(|_| socket.send(&data)).unwrap();
            });
            let mut seen = Vec::new();
            let outcome = receiver
                .recv(
                    || Some(vec![0; 65_536]),
                    |slot, received| {
                        seen.extend_from_slice(&slot[..received.len]);
                        Some(slot)
                    },
                )
                .unwrap();
            assert_eq!((outcome.datagrams, seen), (1, vec![round; 700]), "waited for, round {round}");
            sending.join().unwrap();
        }
        over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn the_kernels_arrival_time_is_available_on_request() {
    if is_emulated() {
        return;
    }
    let (mut receiver, mut sender) = pair(&Options { timestamps: true, ..short() });
    sender.batch().push(&[1; 600], &[]).unwrap();
    let mut seen = None;
    receiver
        .recv(
            || Some(vec![0; 65_536]),
            |_, received| {
                seen = received.timestamp;
                None
            },
        )
        .unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    assert!(now.abs_diff(seen.unwrap()) < Duration::from_secs(60));
}

#[test]
fn a_multicast_group_is_joined_and_received() {
    if is_emulated() {
        return;
    }
    let group: SocketAddr = "239.255.77.1:0".parse().unwrap();
    let options =
        Options { multicast_interface: grebe_datagram::Interface::Address([127, 0, 0, 1].into()), ..short() };
    let mut receiver = Receiver::bind(group, &options).unwrap();
    let to = SocketAddr::new(group.ip(), receiver.local_addr().unwrap().port());
    let mut sender = Sender::unconnected(SocketAddr::from(([0, 0, 0, 0], 0)), &options).unwrap();
    sender.batch().push_to(to, &[9; 64], &[8; 1_000]).unwrap();
    let outcome = receiver.recv(|| Some(vec![0; 65_536]), |_, _| None).unwrap();
    assert_eq!((outcome.datagrams, outcome.bytes), (1, 1_064));
}

#[test]
fn a_granted_buffer_is_read_back() {
    let asked = Options { recv_buffer_bytes: 1 << 30, force_buffers: false, ..short() };
    let receiver: Receiver<Vec<u8>> = Receiver::bind(LOOPBACK, &asked).unwrap();
    let granted = receiver.granted();
    let limit: usize =
        std::fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap().trim().parse().unwrap();
    assert_eq!(granted.granted_bytes, limit.min(1 << 30));
    assert_eq!(granted.is_clamped(), limit < 1 << 30);
}

#[test]
fn a_sender_without_a_receiver_continues_after_refusals() {
    let (receiver, mut sender) = pair(&short());
    drop(receiver);
    let data = vec![1_u8; 1_400];
    for _ in 0..20 {
        let mut batch = sender.batch();
        batch.push(&data, &[]).unwrap();
        batch.flush().unwrap();
    }
    assert!(sender.counters().refused > 0);
    assert_eq!(sender.counters().datagrams, 20);
}
