//! Texts for a person who sees no signal yet, or uses the scope for the first time.

use grebe_flow::monotonic_ns;

use super::seen::hud::RunState;
use super::view_model::ViewModel;

impl ViewModel {
    /// The lines in place of missing traces: the reason, and the remedy.
    pub(crate) fn empty_lines(&self) -> Vec<String> {
        match (self.seen.picture.stream, self.seen.hud.state) {
            (Some(_), _) => {
                vec!["every channel is switched off: press 1 \u{2026} 8, or 9 for the next eight".into()]
            }
            (None, RunState::Ended) => vec!["the stream ended without a sample".into()],
            _ => {
                let waiting = [format!("waiting for {}", self.seen.hud.source)];
                let open = self.options.open.as_ref().map(|_| "O opens a file, ? shows all keys".to_owned());
                waiting.into_iter().chain(self.seen.hud.advice.clone()).chain(open).collect()
            }
        }
    }

    /// Shows the most important keys to a person without a saved session.
    pub(super) fn greet(&mut self) {
        if self.options.session.is_none() && self.options.keep_session.is_some() {
            let text =
                "? shows all keys \u{b7} space pauses \u{b7} + and - change the time span \u{b7} q quits";
            // Longer than other messages, because nothing waits for it.
            self.open.message = Some((text.into(), monotonic_ns() + GREETING_NS));
        }
    }
}

/// Additional time compared with other messages.
const GREETING_NS: u64 = 14_000_000_000;

#[cfg(test)]
mod tests {
    use crate::data::feed::ScopeFeed;
    use crate::data::status::SourceStatus;
    use crate::model::options::ViewOptions;
    use crate::model::session::Session;
    use crate::model::view_model::ViewModel;
    use crate::testing::sine_batch;

    fn options() -> ViewOptions {
        ViewOptions::new(|| SourceStatus {
            name: "udp://:5000".into(),
            advice: Some("grebe sg --to udp://127.0.0.1:5000  sends something here".into()),
            ..SourceStatus::default()
        })
    }

    #[test]
    fn who_waits_is_told_how_to_send_and_no_longer_once_something_came() {
        let (mut feed, link) = ScopeFeed::new(1 << 20);
        let mut model = ViewModel::new(link, options(), crate::png::encode);
        assert_eq!(model.empty_lines().len(), 2);
        assert!(model.empty_lines()[1].contains("--to udp://127.0.0.1:5000"));
        feed.ingest(&sine_batch(0, 1, 100, 1e3)).unwrap();
        feed.finish();
        model.request(10);
        model.refresh();
        assert!(model.seen.hud.advice.is_none());
        assert!(model.empty_lines()[0].contains("switched off"));
    }

    #[test]
    fn only_who_was_never_here_is_greeted() {
        let greeting = |session: Option<Session>, keeps: bool| {
            let (_, link) = ScopeFeed::new(1 << 20);
            let mut options = options();
            options.session = session;
            options.keep_session = if keeps { Some(Box::new(|_| {})) } else { None };
            let mut model = ViewModel::new(link, options, crate::png::encode);
            model.refresh();
            model.seen.hud.notice.clone()
        };
        assert!(greeting(None, true).unwrap().contains("? shows all keys"));
        assert_eq!(greeting(Some(Session::default()), true), None);
        assert_eq!(greeting(None, false), None);
    }
}
