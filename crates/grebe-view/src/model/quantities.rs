//! The measurements of the table: those of all channels, or a channel's own.

use grebe_scope::Quantity;

use crate::data::lane::{LaneId, PerLane};

/// A set of measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QuantitySet(u32);

/// The selected measurements.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChosenQuantities {
    all: QuantitySet,
    /// Sets of lanes with their own selection.
    own: PerLane<QuantitySet>,
}

impl QuantitySet {
    pub(crate) fn has(self, quantity: Quantity) -> bool {
        self.0 & bit(quantity) != 0
    }

    /// Their names, as in `--measure json`.
    pub(crate) fn names(self) -> Vec<String> {
        Quantity::ALL.into_iter().filter(|&quantity| self.has(quantity)).map(name).collect()
    }

    /// Parses names; unknown names are ignored.
    pub(crate) fn named(names: &[String]) -> QuantitySet {
        let is_named = |quantity: &Quantity| names.contains(&name(*quantity));
        QuantitySet(Quantity::ALL.into_iter().filter(is_named).map(bit).fold(0, |set, bit| set | bit))
    }
}

impl ChosenQuantities {
    pub(crate) fn of(&self, lane: LaneId) -> QuantitySet {
        self.own(lane).unwrap_or(self.all)
    }

    pub(crate) fn has_own(&self, lane: LaneId) -> bool {
        self.own(lane).is_some()
    }

    /// Toggles a measurement of the lane: in its own set, or in that of all.
    pub(crate) fn toggle(&mut self, lane: LaneId, quantity: Quantity) {
        let set = self.own.get_mut(lane).unwrap_or(&mut self.all);
        set.0 ^= bit(quantity);
    }

    /// Gives the lane its own set, a copy of that of all, or removes it.
    pub(crate) fn toggle_own(&mut self, lane: LaneId) {
        if self.own.remove(lane).is_none() {
            self.own.insert(lane, self.all);
        }
    }

    /// The measurements of any of the lanes, in the order of the table.
    pub(crate) fn columns(&self, lanes: impl Iterator<Item = LaneId>) -> Vec<Quantity> {
        let any = lanes.fold(0, |any, lane| any | self.of(lane).0);
        Quantity::ALL.into_iter().filter(|&quantity| any & bit(quantity) != 0).collect()
    }

    pub(crate) fn of_all(&self) -> QuantitySet {
        self.all
    }

    pub(crate) fn own(&self, lane: LaneId) -> Option<QuantitySet> {
        self.own.get(lane).copied()
    }

    pub(crate) fn set(
        &mut self,
        all: Option<QuantitySet>,
        own: impl IntoIterator<Item = (LaneId, QuantitySet)>,
    ) {
        self.all = all.unwrap_or(USUAL);
        self.own = own.into_iter().collect();
    }

    /// Lanes with their own set.
    pub(crate) fn with_own(&self) -> impl Iterator<Item = LaneId> {
        self.own.iter().map(|(lane, _)| lane)
    }
}

impl Default for ChosenQuantities {
    fn default() -> ChosenQuantities {
        ChosenQuantities { all: USUAL, own: PerLane::default() }
    }
}

fn name(quantity: Quantity) -> String {
    quantity.name().replace(' ', "_")
}

const fn bit(quantity: Quantity) -> u32 {
    1 << quantity as u32
}

/// Default measurements of the table.
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
        let [first, third] = [0, 3].map(LaneId::real);
        let mut chosen = ChosenQuantities::default();
        chosen.toggle(first, Quantity::Overshoot);
        assert!(chosen.of(third).has(Quantity::Overshoot));
        chosen.toggle_own(third);
        chosen.toggle(third, Quantity::Overshoot);
        chosen.toggle(third, Quantity::Top);
        assert!(!chosen.of(third).has(Quantity::Overshoot) && chosen.of(first).has(Quantity::Overshoot));
        let columns = chosen.columns([first, third].into_iter());
        assert_eq!(columns.len(), 11, "{columns:?}");
        assert!(!chosen.columns([first].into_iter()).contains(&Quantity::Top));
        chosen.toggle_own(third);
        assert_eq!(chosen.of(third), chosen.of(first));
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
