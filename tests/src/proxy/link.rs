//! One connection through the proxy.

use std::io;
use std::net::SocketAddr;

use tokio::net::TcpStream;

use super::Mode;
use super::conversation::Conversation;
use super::lane::{Direction, Lane};
use super::switch::Switch;

/// Serves one client until either side, or a switch, ends it.
pub(super) async fn run(
    client: TcpStream,
    upstream: SocketAddr,
    switch: &Switch,
) -> io::Result<()> {
    let cuts = switch.cuts();
    match switch.mode_that(|mode| mode != Mode::Hold).await {
        Mode::Cut => Ok(()),
        hole if hole.is_hole() => {
            // Its bytes stay in the kernel's buffer, which the client cannot tell from a hole.
            switch.mode_that(|mode| !mode.is_hole()).await;
            Ok(())
        }
        _ => join(client, TcpStream::connect(upstream).await?, switch, cuts).await,
    }
}

async fn join(client: TcpStream, server: TcpStream, switch: &Switch, cuts: u64) -> io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let conversation = Conversation::default();
    let lane = |direction| Lane {
        direction,
        switch,
        conversation: &conversation,
    };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::select! {
        end = lane(Direction::Requests).run(from_client, to_server) => end,
        end = lane(Direction::Replies).run(from_server, to_client) => end,
        () = switch.cut_after(cuts) => Ok(()),
        () = robbed(switch, &conversation) => Ok(()),
    }
}

/// Waits until what was lost on this connection closes it.
async fn robbed(switch: &Switch, conversation: &Conversation) {
    let closes = |mode: Mode| !mode.is_hole() && conversation.is_robbed();
    switch.mode_that(closes).await;
}
