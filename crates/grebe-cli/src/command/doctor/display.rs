//! Outputs of the scope: display, GPU, terminal.

use std::env;
use std::io::IsTerminal;
use std::path::Path;

use super::check::{Check, installs};

const AREA: &str = "scope";

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![window()];
    checks.extend(gpu().filter(|_| cfg!(feature = "window")));
    checks.push(terminal());
    checks
}

fn window() -> Check {
    const COSTS: &str = "the scope is shown in the terminal, or drawn as a picture (--png)";
    if !cfg!(feature = "window") {
        return Check::missing(
            AREA,
            "window",
            "not in this build (docs/install.md lists builds with it)",
            COSTS,
        );
    }
    if cfg!(any(windows, target_os = "macos")) {
        return Check::ok(AREA, "window", "the system's own");
    }
    let set = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let (server, libraries): (String, &[&str]) = match (set("WAYLAND_DISPLAY"), set("DISPLAY")) {
        (Some(display), _) => (format!("Wayland, {display}"), &["libwayland-client.so", "libxkbcommon.so"]),
        (None, Some(display)) => (format!("X11, {display}"), &["libX11.so", "libxkbcommon-x11.so"]),
        (None, None) => {
            return Check::missing(AREA, "window", "no display (DISPLAY, WAYLAND_DISPLAY)", COSTS);
        }
    };
    match libraries.iter().find(|library| !is_installed(library)) {
        None => Check::ok(AREA, "window", server),
        Some(missing) => Check::missing(AREA, "window", format!("{server}, but no {missing}"), COSTS)
            .fixed_if(installs("libxkbcommon-x11-0 libwayland-client0 libx11-6", "")),
    }
}

/// Whether one of the usual folders has the library, in any version.
fn is_installed(library: &str) -> bool {
    const FOLDERS: [&str; 6] = [
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
        "/usr/lib",
        "/usr/local/lib",
        "/run/opengl-driver/lib",
    ];
    // Systems with other folders are not reported as incomplete.
    if !FOLDERS.iter().any(|folder| folder_has(folder, "libc.so")) {
        return true;
    }
    FOLDERS.iter().any(|folder| folder_has(folder, library))
}

fn folder_has(folder: &str, prefix: &str) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
}

/// Linux only.
fn gpu() -> Option<Check> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let drivers = ["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d", "/run/opengl-driver/share/vulkan/icd.d"];
    let has_vulkan = drivers.iter().any(|folder| Path::new(folder).is_dir());
    Some(match (folder_has("/dev/dri", "renderD"), has_vulkan) {
        (true, true) => Check::ok(AREA, "GPU", "a render device, and a Vulkan driver"),
        (true, false) => {
            Check::limited(AREA, "GPU", "a render device without a Vulkan driver", "drawn through OpenGL")
                .fixed_if(installs("mesa-vulkan-drivers", ""))
        }
        (false, true) => Check::limited(
            AREA,
            "GPU",
            "none; Vulkan in software",
            "a window costs about one core at 60 frames/s",
        ),
        (false, false) => Check::missing(
            AREA,
            "GPU",
            "none, and no Vulkan driver",
            "no window: the terminal and pictures remain",
        )
        .fixed_if(installs("mesa-vulkan-drivers", "")),
    })
}

fn terminal() -> Check {
    if !std::io::stdout().is_terminal() {
        return Check::ok(AREA, "terminal", "not checked: the output is not a terminal");
    }
    let term = env::var("TERM").unwrap_or_default();
    let colours = env::var("COLORTERM").is_ok_and(|value| value == "truecolor" || value == "24bit");
    let utf8 = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(|name| env::var(name).ok().filter(|value| !value.is_empty()))
        .is_some_and(|value| value.to_lowercase().replace('-', "").contains("utf8"));
    let found = format!(
        "{term}, {}, {}",
        if colours { "millions of colours" } else { "16 or 256 colours" },
        if utf8 { "UTF-8" } else { "no UTF-8" }
    );
    if cfg!(windows) || (utf8 && colours) {
        return Check::ok(AREA, "terminal", found);
    }
    if !utf8 {
        return Check::limited(
            AREA,
            "terminal",
            found,
            "the braille dots of the scope may come out as question marks",
        )
        .fixed_by("export LANG=C.UTF-8");
    }
    Check::limited(AREA, "terminal", found, "traces are drawn in 16 colours")
        .fixed_by("export COLORTERM=truecolor")
}
