//! Records in this process.
