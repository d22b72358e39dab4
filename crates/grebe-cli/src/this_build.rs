//! Version, commit, target and features of this build.

use std::sync::OnceLock;

/// Version of the package.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Target of the compiler, such as `x86_64-unknown-linux-musl`.
pub(crate) const TARGET: &str = env!("GREBE_TARGET");

/// The version with the commit and the features, in two lines.
pub(crate) fn long_version() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| format!("{VERSION} ({})\nfeatures: {}", build(), features()))
}

/// Commit, profile and target.
pub(crate) fn build() -> String {
    let commit = option_env!("GREBE_COMMIT").map(|commit| format!("commit {commit}, ")).unwrap_or_default();
    format!("{commit}{} build for {TARGET}", env!("GREBE_PROFILE"))
}

/// The included features, and the others.
pub(crate) fn features() -> String {
    let named = |is_built_in| {
        let names: Vec<_> =
            FEATURES.iter().filter(|(_, is)| *is == is_built_in).map(|(name, _)| *name).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    match (named(true), named(false)) {
        (Some(with), None) => with,
        (Some(with), Some(without)) => format!("{with}; without {without}"),
        (None, without) => format!("none; without {}", without.unwrap_or_default()),
    }
}

const FEATURES: [(&str, bool); 4] = [
    ("window", cfg!(feature = "window")),
    ("zenoh", cfg!(feature = "zenoh")),
    ("mqtt", cfg!(feature = "mqtt")),
    ("accessibility", cfg!(feature = "accessibility")),
];
