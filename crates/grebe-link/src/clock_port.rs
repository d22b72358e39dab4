//! Offers this host's clock to receivers of a stream stamped by it.

use std::net::IpAddr;
use std::sync::Arc;

use grebe_clock::{HostClock, Responder};
use grebe_flow::{clock_id, monotonic_ns};
use grebe_frame::Description;

use grebe_process::stream::is_same;

/// Clock that stamps the streams of this host.
pub(super) fn host_clock() -> HostClock {
    HostClock { id: clock_id(), now_ns: monotonic_ns }
}

/// Adds a clock query port to descriptions of streams with this host's times. The first such description
/// starts the answering thread.
#[derive(Debug, Default)]
pub struct ClockPort {
    /// Address for receivers; `None` if none is on another host.
    at: Option<IpAddr>,
    responder: Option<Responder>,
    /// Last description: the original, and the one with the port.
    said: Option<[Arc<Description>; 2]>,
}

impl ClockPort {
    /// Answers at this address of the host.
    pub fn at(address: IpAddr) -> Self {
        Self { at: Some(address).filter(|address| !address.is_loopback()), ..Self::default() }
    }

    /// Description for receivers.
    pub(super) fn described(&mut self, description: &Arc<Description>) -> Arc<Description> {
        if let Some([known, told]) = &self.said
            && is_same(Some(known), Some(description))
        {
            return told.clone();
        }
        let told = match self.port_for(description) {
            None => description.clone(),
            clock_port => Arc::new(Description { clock_port, ..(**description).clone() }),
        };
        self.said = Some([description.clone(), told.clone()]);
        told
    }

    fn port_for(&mut self, description: &Description) -> Option<u16> {
        let at = self.at?;
        if description.axis_clock() != Some(clock_id()) {
            return None;
        }
        if self.responder.is_none() {
            // Without a socket or thread, nobody measures this clock, and everything else continues.
            self.responder = Responder::start(at, host_clock()).ok();
            self.at = self.at.filter(|_| self.responder.is_some());
        }
        self.responder.as_ref().map(Responder::port)
    }
}

#[cfg(test)]
mod tests {
    use grebe_frame::ClockReading;

    use super::*;

    fn stamped_by(clock: Option<u64>) -> Arc<Description> {
        let clock = ClockReading { producer_ts_ns: 1, unix_time_ns: 2, error_ns: None, clock };
        Arc::new(Description { clock: Some(clock), ..Description::default() })
    }

    #[test]
    fn the_clock_port_is_named_for_receivers_of_this_clocks_stamps() {
        let elsewhere = IpAddr::from([0, 0, 0, 0]);
        let mut port = ClockPort::at(elsewhere);
        let ours = stamped_by(Some(clock_id()));
        let told = port.described(&ours);
        assert!(told.clock_port.is_some_and(|port| port > 0));
        assert!(Arc::ptr_eq(&port.described(&ours), &told), "made once");
        for other in [stamped_by(Some(!clock_id())), stamped_by(None), Arc::default()] {
            assert_eq!(port.described(&other).clock_port, None);
        }
        let mut here = ClockPort::at(IpAddr::from([127, 0, 0, 1]));
        assert_eq!(here.described(&ours).clock_port, None);
        assert!(here.responder.is_none());
    }
}
