//! The fused chains of a graph whose modules the compiler knows.

use std::any::Any;

use super::Graph;
use crate::flow::args::Args;
use crate::flow::install::Planned;
use crate::flow::module::Module;
use crate::flow::way::Way;

impl Graph {
    /// Sets the `Way` by which the instance with this name, or each of its shards, sends items. If
    /// no instance has this name, or its module is not `M`, this method has no effect.
    #[doc(hidden)]
    pub fn fuse<M: Module, W: Way>(&mut self, name: &str) {
        let Ok(places) = self.place(name) else {
            return;
        };
        for named in &mut self.instances[places] {
            let any: &mut dyn Any = &mut *named.instance;
            if let Some(planned) = any.downcast_mut::<Planned<M>>() {
                let planned = std::mem::replace(planned, Planned::new(Args::new()));
                named.instance = Box::new(planned.by::<W>());
            }
        }
    }
}
