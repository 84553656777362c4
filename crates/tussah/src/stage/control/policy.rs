//! Control laws from papers and other systems, implemented as controllers.
//!
//! The default controllers use some of these laws. The others exist for comparison, and for
//! services that were tuned with them. The documentation of each controller names its source.

mod aspen;
mod by_class;
mod cinnamon;
mod codel;
mod gradient;
mod input_rate;
mod outgoing_bound;
mod red;
mod response_mean;
mod response_p90;
mod seda_batch;
mod seda_servlets;
mod threshold;

pub use self::aspen::{Aspen, AspenConfig};
pub use self::by_class::ByClass;
pub use self::cinnamon::{COHORTS, Cinnamon, CinnamonConfig};
pub use self::codel::{Codel, CodelConfig};
pub use self::gradient::{Gradient, GradientConfig};
pub use self::input_rate::InputRate;
pub use self::outgoing_bound::OutgoingBound;
pub use self::red::{Red, RedConfig};
pub use self::response_mean::{ResponseMean, ResponseMeanConfig};
pub use self::response_p90::{ResponseP90, ResponseP90Config};
pub use self::seda_batch::{SedaBatch, SedaBatchConfig};
pub use self::seda_servlets::{SedaServlets, SedaServletsConfig};
pub use self::threshold::Threshold;
