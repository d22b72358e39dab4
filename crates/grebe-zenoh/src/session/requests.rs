//! Readers' requests for datagrams.

use std::net::IpAddr;
use std::time::Duration;

use zenoh::Wait;
use zenoh::query::{ConsolidationMode, QueryTarget, Queryable};

use super::failure::failed;
use super::lab::Lab;
use crate::error::Error;
use crate::name::StreamName;
use crate::request::{Answer, Request};
use crate::what::UDP;

/// Answers requests until it is dropped.
#[derive(Debug)]
pub struct Requests {
    _answers: Queryable<()>,
    _lab: Lab,
}

impl Requests {
    pub(super) fn take(
        lab: &Lab,
        name: &StreamName,
        answer: impl Fn(&Request) -> Answer + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let key = format!("{UDP}{}/{name}", lab.id());
        let answer_key = key.clone();
        let queryable = lab.0.session.declare_queryable(&key).complete(true).callback(move |query| {
            let asked = query.payload().map(|payload| payload.to_bytes());
            // Unreadable requests come from other programs or from a later grebe.
            let request = asked.and_then(|asked| Request::parse(&asked).ok());
            let answer = request.map_or(Answer::Unknown, |request| answer(&request));
            // The reader may be gone.
            let _ = query.reply(&answer_key, answer.to_json()).wait();
        });
        let queryable = queryable.wait().map_err(failed(&format!("send {name} by UDP on request")))?;
        Ok(Self { _answers: queryable, _lab: lab.clone() })
    }
}

/// Sends a request to the producer with this session.
pub(super) fn request(
    lab: &Lab,
    session: &str,
    name: &StreamName,
    request: &Request,
    timeout: Duration,
) -> Result<Option<Answer>, Error> {
    let asked = lab.0.session.get(format!("{UDP}{session}/{name}")).payload(request.to_json());
    let asked = asked.target(QueryTarget::All).consolidation(ConsolidationMode::None).timeout(timeout);
    let answers = asked.wait().map_err(failed(&format!("request {name} by UDP")))?;
    let mut read = answers.iter().filter_map(|answer| {
        let sample = answer.into_result().ok()?;
        Answer::parse(&sample.payload().to_bytes()).ok()
    });
    Ok(read.next())
}

/// Addresses of this host for other hosts.
pub(super) fn own_addresses() -> Vec<IpAddr> {
    let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
    let own = interfaces.iter().map(if_addrs::Interface::ip);
    let mut own: Vec<IpAddr> = own
        .filter(|ip| match ip {
            IpAddr::V4(ip) => !ip.is_loopback() && !ip.is_link_local(),
            IpAddr::V6(ip) => !ip.is_loopback() && !ip.is_unicast_link_local(),
        })
        .collect();
    own.sort_by_key(IpAddr::is_ipv6);
    own.dedup();
    own
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::SessionOptions;

    #[test]
    fn a_request_comes_to_the_producer_and_its_answer_back() {
        let lab = Lab::open(&SessionOptions::default()).unwrap();
        let name = format!("test-{}/requests", std::process::id()).parse().unwrap();
        let at = vec!["192.0.2.7:5000".parse().unwrap()];
        let ask = Request::Ask { at, is_near: true };
        let expected = ask.clone();
        let ask_within = Duration::from_secs(10);
        let requests = lab.take_requests(&name, move |request| {
            assert_eq!(*request, expected);
            Answer::Sends { frames: 7 }
        });
        let answer = lab.request(&lab.id(), &name, &ask, ask_within).unwrap();
        assert_eq!(answer, Some(Answer::Sends { frames: 7 }));
        drop(requests.unwrap());
        assert_eq!(lab.request(&lab.id(), &name, &ask, ask_within).unwrap(), None, "nobody answers any more");
    }

    #[test]
    fn own_addresses_are_those_that_others_reach() {
        assert!(own_addresses().iter().all(|ip| !ip.is_loopback() && !ip.is_unspecified()));
    }
}
