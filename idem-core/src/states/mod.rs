//! The states of a business object, which of them may follow which, and one change at a time.
//!
//! [`States`] is an enum with a code for each state and the states that may come next, written
//! once, in the type, and checked by the compiler. [`diagram`](States::diagram) draws it.
//!
//! With the feature of a database, `Transition` changes the state of a row because of an event, in
//! your transaction, and knows the event when it is delivered again.

#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod answer;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod change;
mod diagram;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod error;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod names;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod statements;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod transition;

use std::fmt::Debug;

#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub use self::answer::{Answer, Cause};
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub use self::error::TransitionError;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub use self::transition::Transition;

/// An enum of the states that a business object can be in. Derive it:
///
/// # Examples
/// ```
/// use idem_core::States;
///
/// #[derive(Debug, Clone, Copy, PartialEq, Eq, States)]
/// enum Ticket {
///     #[state(code = 1, to(Used, Refunded))]
///     Sold,
///     #[state(code = 2)]
///     Used,
///     #[state(code = 3)]
///     Refunded,
/// }
///
/// assert_eq!(Ticket::Sold.successors(), [Ticket::Used, Ticket::Refunded]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no states",
    label = "not an enum of states",
    note = "put `#[derive(Debug, Clone, Copy, PartialEq, Eq, idem_core::States)]` on it, and `#[state(code = 1, to(…))]` on each variant"
)]
pub trait States: Copy + Eq + Debug + Send + Sync + 'static {
    /// Every state, in the order in which they are declared.
    const ALL: &'static [Self];

    /// The number by which it is kept.
    fn code(self) -> i16;

    /// The state that is kept by this number.
    fn from_code(code: i16) -> Option<Self>;

    /// What people read.
    fn name(self) -> &'static str;

    /// The states that may come next; none, if it is an end.
    fn successors(self) -> &'static [Self];

    /// Whether `to` may come next. A state may follow itself only if it says so.
    fn can_become(self, to: Self) -> bool {
        self.successors().contains(&to)
    }

    /// A diagram for [Mermaid](https://mermaid.js.org/syntax/stateDiagram.html). The states to
    /// which no other leads are beginnings, those without successors are ends.
    ///
    /// # Examples
    /// ```
    /// # use idem_core::States;
    /// #[derive(Debug, Clone, Copy, PartialEq, Eq, States)]
    /// enum Ticket {
    ///     #[state(code = 1, name = "verkauft", to(Used))]
    ///     Sold,
    ///     #[state(code = 2, name = "已使用")]
    ///     Used,
    /// }
    ///
    /// let expected = r#"stateDiagram-v2
    ///     state "verkauft" as s1
    ///     state "已使用" as s2
    ///     [*] --> s1
    ///     s1 --> s2
    ///     s2 --> [*]
    /// "#;
    /// assert_eq!(Ticket::diagram(), expected);
    /// ```
    #[must_use]
    fn diagram() -> String {
        diagram::draw::<Self>()
    }
}
