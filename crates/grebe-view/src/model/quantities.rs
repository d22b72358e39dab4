//! Which measurements stand in the table: of all channels, or of one alone.

use grebe_scope::Quantity;

use crate::data::math::LANES;

/// Some of the sixteen measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QuantitySet(u16);

/// The measurements that were chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChosenQuantities {
    all: QuantitySet,
    /// Of channels that have a choice of their own.
    own: [Option<QuantitySet>; LANES],
}

impl QuantitySet {
    pub(crate) fn has(self, quantity: Quantity) -> bool {
        self.0 & bit(quantity) != 0
    }

    /// Their names, as in `--measure json`.
    pub(crate) fn names(self) -> Vec<String> {
        Quantity::ALL.into_iter().filter(|&quantity| self.has(quantity)).map(name).collect()
    }

    /// Those of these names; a name that is none is passed over.
    pub(crate) fn named(names: &[String]) -> QuantitySet {
        let is_named = |quantity: &Quantity| names.contains(&name(*quantity));
        QuantitySet(Quantity::ALL.into_iter().filter(is_named).map(bit).fold(0, |set, bit| set | bit))
    }
}

impl ChosenQuantities {
    pub(crate) fn of(&self, channel: usize) -> QuantitySet {
        self.own[channel % LANES].unwrap_or(self.all)
    }

    pub(crate) fn has_own(&self, channel: usize) -> bool {
        self.own[channel % LANES].is_some()
    }

    /// Switches a measurement of the channel over: its own, or that of all channels.
    pub(crate) fn toggle(&mut self, channel: usize, quantity: Quantity) {
        let set = self.own[channel % LANES].as_mut().unwrap_or(&mut self.all);
        set.0 ^= bit(quantity);
    }

    /// A choice of its own for the channel, which begins as that of all, or none any more.
    pub(crate) fn toggle_own(&mut self, channel: usize) {
        let own = &mut self.own[channel % LANES];
        *own = if own.is_some() { None } else { Some(self.all) };
    }

    /// Those that any of the channels has, in the order of the table.
    pub(crate) fn columns(&self, channels: impl Iterator<Item = usize>) -> Vec<Quantity> {
        let any = channels.fold(0, |any, channel| any | self.of(channel).0);
        Quantity::ALL.into_iter().filter(|&quantity| any & bit(quantity) != 0).collect()
    }

    pub(crate) fn of_all(&self) -> QuantitySet {
        self.all
    }

    pub(crate) fn own(&self, channel: usize) -> Option<QuantitySet> {
        self.own[channel % LANES]
    }

    pub(crate) fn set(&mut self, all: Option<QuantitySet>, own: impl Iterator<Item = Option<QuantitySet>>) {
        self.all = all.unwrap_or(USUAL);
        self.own.iter_mut().zip(own).for_each(|(place, own)| *place = own);
    }
}

impl Default for ChosenQuantities {
    fn default() -> ChosenQuantities {
        ChosenQuantities { all: USUAL, own: [None; LANES] }
    }
}

fn name(quantity: Quantity) -> String {
    quantity.name().replace(' ', "_")
}

const fn bit(quantity: Quantity) -> u16 {
    1 << quantity as u16
}

/// What stands in the table until somebody chooses.
const USUAL: QuantitySet = QuantitySet(
    bit(Quantity::PeakToPeak)
        | bit(Quantity::Mean)
        | bit(Quantity::Rms)
        | bit(Quantity::AcRms)
        | bit(Quantity::Frequency)
        | bit(Quantity::Period)
        | bit(Quantity::Duty)
        | bit(Quantity::RiseTime)
        | bit(Quantity::FallTime),
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_of_all_channels_until_one_has_its_own() {
        let mut chosen = ChosenQuantities::default();
        chosen.toggle(0, Quantity::Overshoot);
        assert!(chosen.of(3).has(Quantity::Overshoot));
        chosen.toggle_own(3);
        chosen.toggle(3, Quantity::Overshoot);
        chosen.toggle(3, Quantity::Top);
        assert!(!chosen.of(3).has(Quantity::Overshoot) && chosen.of(0).has(Quantity::Overshoot));
        let columns = chosen.columns([0, 3].into_iter());
        assert_eq!(columns.len(), 11, "{columns:?}");
        assert!(!chosen.columns([0].into_iter()).contains(&Quantity::Top));
        chosen.toggle_own(3);
        assert_eq!(chosen.of(3), chosen.of(0));
    }

    #[test]
    fn every_measurement_is_found_again_by_its_name() {
        for quantity in Quantity::ALL {
            let set = QuantitySet(bit(quantity));
            assert_eq!(QuantitySet::named(&set.names()), set, "{quantity:?}");
        }
        assert_eq!(QuantitySet::named(&["nonsense".into()]).names(), Vec::<String>::new());
    }
}
