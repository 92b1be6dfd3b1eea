//! Messages: what a broker delivers twice, late or broken is done once, and nothing is lost.

mod broken_off;
mod crashes;
mod database;
mod duplicates;
mod locked;
mod nats;
mod outage;
mod overtaken;
mod poison;
mod recovered;
mod restart;
mod rig;
mod spoilt;
mod stored;
