//! Derivation on its way to JavaScript: texts that `npm/src/derive.ts` takes apart. The engine owns log and state.
#![allow(dead_code, reason = "until the engine calls every one of these")]

use crate::core::derive::{Deriver, EventSource, Update};

/// Returns `{"keep":n,"messages":[…]}`, or an empty text when nothing changed.
pub(crate) fn update_text(log: &dyn EventSource, state: &mut Deriver) -> String {
    let Update { keep, messages, changed, .. } = state.update(log);
    if changed { format!("{{\"keep\":{keep},\"messages\":{messages}}}") } else { String::new() }
}
