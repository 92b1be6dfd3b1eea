//! The attribute, end to end: that every shape of function behaves as the plain one, once.

mod detach;
mod keys;
mod options;
mod shapes;
mod shop;
mod sizes;
mod traits;
