//! Output of boards and loggers.

use super::{Input, Inputs, Is};

fn times(count: u32, line: impl Fn(u32) -> String) -> String {
    (0..count).map(|at| line(at) + "\n").collect()
}

pub(super) fn inputs() -> Vec<Input> {
    let mut all = Inputs::new("lines");
    all.right("&rate=1k", "1,2\n3,4\n", Is(1e3, 2, 2));
    all.right("&rate=1k", "1 2\n3 4\n", Is(1e3, 2, 2));
    all.right("&rate=1k", "1\t2\r\n3\t4\r\n", Is(1e3, 2, 2));
    all.right("&rate=1k", "a,b\n1,2\n3,4\n", Is(1e3, 2, 2));
    all.right("&rate=1k", "a:1,b:2\na:3,b:4\n", Is(1e3, 2, 2));
    all.right("&rate=1k", "a=1 b=2\na=3 b=4\n", Is(1e3, 2, 2));
    all.right("&rate=1k", "(1, 2)\n(3, 4)\n", Is(1e3, 2, 2));
    all.right("&rate=1k", "[1, 2]\n[3, 4]\n", Is(1e3, 2, 2));
    all.right("&rate=1k", "$1,2*\n$3,4*\n", Is(1e3, 2, 2));
    all.right("&rate=1k", "{\"a\":1,\"b\":2}\n{\"a\":3,\"b\":4}\n", Is(1e3, 2, 2));
    all.right("&rate=1k", ">a:1\n>a:3\n", Is(1e3, 2, 1));
    all.right("&rate=1k", times(50, |at| format!(">a:{at}\n>b:1627551892437:2{at}.0§°C|g")), Is(1e3, 100, 2));
    all.right("&rate=1k", "24.0°C 40%\n24.5°C 41%\n", Is(1e3, 2, 2));
    all.right("&rate=1k", "\u{feff}1,2\n3,4\n", Is(1e3, 2, 2));
    all.right("&rate=1k", "\u{1b}[32m1,2\u{1b}[0m\n3,4\n", Is(1e3, 2, 2));
    all.right("&rate=1k&channels=x,y", "1,2\n3,4\n", Is(1e3, 2, 2));

    let boot =
        "ets Jul 29 2019\nrst:0x1 (POWERON_RESET),boot:0x13\nload:0x3fff0030,len:1184\n1,2\n3,4\n5,6\n";
    all.noted("&rate=1k", boot, Is(1e3, 3, 2), "such as");
    all.noted("&rate=1k", "1,2\nhello\n3,4\n", Is(1e3, 2, 2), "hello");
    all.noted("&rate=1k", "a:1,a:2\na:3,a:4\n", Is(1e3, 2, 1), "a stands twice");
    for (rate_hz, decimals) in [(860, 0), (2_000, 0), (5_000, 0), (500, 1)] {
        let text = times(4_000, |at| {
            format!("time_ms:{:.decimals$},a:{at}", f64::from(at) * 1e3 / f64::from(rate_hz))
        });
        all.noted("", text, Is(f64::from(rate_hz), 4_000, 1), "");
    }
    let unix = times(1_000, |at| format!("t:{}.{:06},a:{at}", 1_766_147_454, at * 500));
    all.noted("", unix, Is(2e3, 1_000, 1), "");
    let first = times(100, |at| format!("{},{}", at * 10, at % 7));
    all.noted("&rate=1k", first, Is(1e3, 100, 2), "if it is the time");
    let dated = times(100, |at| format!("2026-09-24 12:00:{:02}.{:03},{at}", at / 50, at % 50 * 20));
    all.noted("", dated, Is(50.0, 100, 1), "no time zone; read as UTC");
    all.right(
        "",
        times(100, |at| format!("12:00:{:02}.{:03} -> {at}", at / 50, at % 50 * 20)),
        Is(50.0, 100, 1),
    );
    all.noted("", times(100, |at| format!("{},1", at * at)), Is(0.0, 100, 2), "add rate=100");
    all.refused("&rate=1k", "nothing here\nat all\n", "2 invalid lines skipped", None);
    all.list
}
