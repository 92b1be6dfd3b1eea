//! The attribute, end to end: that every shape of function behaves as the plain one, once.

mod detach;
mod errors;
mod keys;
mod methods;
mod options;
mod shapes;
mod shop;
mod sizes;
mod traits;
