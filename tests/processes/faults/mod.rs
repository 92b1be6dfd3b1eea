//! What a server, and the wire to it, can do to a guarded call.

mod apart;
mod frozen;
mod late;
mod lost;
mod refusing;
mod restarted;
