//! Starts the command that its arguments spell, prints its process id and reads stdin to the end:
//! stands for a test that is killed while its servers run.

use std::env;
use std::io;

use anyhow::{Context, Result};
use idem_tests::process::{Process, tied};

fn main() -> Result<()> {
    let mut arguments = env::args_os().skip(1);
    let mut command = tied(arguments.next().context("no command")?);
    command.args(arguments);
    let child = Process::start(command)?;
    println!("{}", child.id());
    io::read_to_string(io::stdin())?;
    Ok(())
}
