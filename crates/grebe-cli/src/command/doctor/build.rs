//! Version, build and features of this command.

use super::check::Check;
use crate::{report, this_build};

const AREA: &str = "grebe";

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::ok(AREA, "version", this_build::VERSION),
        Check::ok(AREA, "build", this_build::build()),
        Check::ok(AREA, "features", this_build::features()),
        Check::ok(AREA, "system", report::system()),
    ]
}
