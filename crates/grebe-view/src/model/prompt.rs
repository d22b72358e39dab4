//! The prompt, a line of typed text: a time of the trigger, the path of a file.

use super::action::Question;
use super::open::{NO_FINDER, Prompt};
use super::paths::{completed, matches};
use super::receiver::Tunable;
use super::trigger_time::{parse_pulse, pulse_text};
use super::view_model::ViewModel;
use crate::data::trigger::TriggerKind;
use grebe_scope::{Engineering, parse_quantity};

impl ViewModel {
    pub(super) fn ask(&mut self, question: Question) {
        let settings = &self.controls.trigger.settings;
        let unit = self.seen.picture.axis_unit();
        let text = match (question, settings.kind) {
            (Question::File, _) if self.options.open.is_none() => {
                return self.say("no file can be opened from here".into());
            }
            (Question::File, _) => String::new(),
            (Question::Find, _) if !self.has_finder() => return self.say(NO_FINDER.into()),
            (Question::Find, _) => self.find_words(),
            (Question::Tuning(what), _) => match &self.options.receiver {
                Some(receiver) => (receiver.tuned)().text(what),
                None => return self.say("this stream has no receiver that can be tuned".into()),
            },
            (Question::Annotation, _) => String::new(),
            (Question::AnnotationWords, _) => match self.annotation_words() {
                Some(words) => words,
                None => {
                    return self.say("no annotation is chosen: take one from the table first (F4)".into());
                }
            },
            (Question::AnnotationFilter, _) => self.open.annotations.filter.clone(),
            (Question::SymbolRate, _) => {
                let rate = self.controls.symbol_rate_hz;
                rate.map_or(String::new(), |hz| Engineering::new(hz, "Hz").digits(9).to_string())
            }
            (_, TriggerKind::Pulse) => pulse_text(settings.pulse_min_s, settings.pulse_max_s, unit),
            (_, TriggerKind::Dropout) => settings
                .dropout_s
                .map_or(String::new(), |time| Engineering::new(time, unit).digits(9).to_string()),
            _ => {
                return self.say("pulse and dropout have a time to set: choose one of them first (b)".into());
            }
        };
        self.open.prompt = Some(Prompt { question, text, refused: None });
    }

    /// The question, in words.
    pub(crate) fn question_words(&self) -> &'static str {
        let Some(prompt) = &self.open.prompt else { return "" };
        match (prompt.question, self.controls.trigger.settings.kind) {
            (Question::File, _) => "open a file (tab completes)",
            (Question::Find, _) => {
                "search the whole history, with the options of grebe find; empty: end the search"
            }
            (Question::Tuning(what), _) => what.question(),
            (Question::Annotation, _) => {
                "name of the annotation; after a semicolon a comment, and a colour such as #ff8800"
            }
            (Question::AnnotationWords, _) => "name; comment #colour",
            (Question::AnnotationFilter, _) => "words of the annotations to list; empty: all",
            (Question::SymbolRate, _) => {
                "symbols per second, such as 100k, a point each; empty: every sample"
            }
            (_, TriggerKind::Pulse) => {
                "pulse width: 20u is a maximum, 1m.. a minimum, 20u..1m both; empty: a division"
            }
            _ => "time without a crossing, such as 20u or 1.5 ms; empty: a division",
        }
    }

    /// Completions of the answer.
    pub(crate) fn candidates(&self) -> Vec<String> {
        match &self.open.prompt {
            Some(Prompt { question: Question::File, text, .. }) => matches(text),
            _ => Vec::new(),
        }
    }

    /// Changes the typed text.
    pub(crate) fn type_text(&mut self, change: impl FnOnce(&mut String)) {
        if let Some(Prompt { text, refused, .. }) = &mut self.open.prompt {
            change(text);
            *refused = None;
        }
    }

    pub(crate) fn complete(&mut self) {
        if let Some(Prompt { question: Question::File, text, refused }) = &mut self.open.prompt {
            (*text, *refused) = (completed(text), None);
        }
    }

    /// Takes the answer: either it is done, or an error is shown and the prompt stays open.
    pub(crate) fn answer(&mut self) {
        let Some(Prompt { question, text, .. }) = self.open.prompt.take() else { return };
        let answered = match question {
            Question::TriggerTime => self.set_trigger_time(&text),
            Question::SymbolRate => self.set_symbol_rate(&text),
            Question::File => self.open_file(&text),
            Question::Find => self.begin_find(&text),
            Question::Tuning(what) => self.tune(what, &text),
            Question::Annotation => self.finish_annotation(&text),
            Question::AnnotationWords => self.reword_annotation(&text),
            Question::AnnotationFilter => {
                self.open.annotations.filter = text.clone();
                Ok(())
            }
        };
        if let Err(why) = answered {
            self.open.prompt = Some(Prompt { question, text, refused: Some(why) });
        }
        self.seen.hud_made_ns = 0;
    }

    fn set_symbol_rate(&mut self, text: &str) -> Result<(), String> {
        let text = text.trim();
        let rate = parse_quantity(text, "Hz").filter(|hz| *hz > 0.0);
        if rate.is_none() && !text.is_empty() {
            return Err(format!("invalid rate {text}: use a value such as 100k or 1.2 MHz"));
        }
        self.controls.symbol_rate_hz = rate;
        self.controls.show.xy = true;
        Ok(())
    }

    fn tune(&mut self, what: Tunable, text: &str) -> Result<(), String> {
        let Some(receiver) = &self.options.receiver else { return Ok(()) };
        (receiver.tune)((receiver.tuned)().with(what, text)?)
    }

    fn set_trigger_time(&mut self, text: &str) -> Result<(), String> {
        let unit = self.seen.picture.axis_unit();
        let settings = &mut self.controls.trigger.settings;
        let text = text.trim();
        if settings.kind == TriggerKind::Pulse {
            let (min, max) = parse_pulse(text, unit)?;
            (settings.pulse_min_s, settings.pulse_max_s) = (min, max);
            return Ok(());
        }
        let time = parse_quantity(text, unit).filter(|time| *time > 0.0);
        if time.is_none() && !text.is_empty() {
            return Err(format!("invalid time {text}: use a value such as 20u or 1.5 ms"));
        }
        settings.dropout_s = time;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
