//! Number of kills per test.

/// Kills of each test; more of them: `GREBE_KILLS=100 cargo test -p grebe-cli --test command recording:: -- --nocapture`.
pub(crate) fn kills() -> u32 {
    number("GREBE_KILLS").unwrap_or(4) as u32
}

/// Plays stories with kills, in parallel because they mostly wait. `GREBE_KILLS=100` plays 100. A failing story names its
/// seed, and `GREBE_KILLS_SEED` plays only that one.
pub(crate) fn play_stories(play: impl Fn(u64) + Sync) {
    if let Some(seed) = number("GREBE_KILLS_SEED") {
        return play(seed);
    }
    let (stories, play) = (number("GREBE_KILLS").unwrap_or(12), &play);
    std::thread::scope(|scope| {
        for lane in 0..LANES {
            scope.spawn(move || (lane..stories).step_by(LANES as usize).for_each(play));
        }
    });
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Stories at a time.
const LANES: u64 = 3;
