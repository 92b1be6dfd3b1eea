//! Codes of both signs, names of any script, raw identifiers, loops, ends.

mod states {
    use idem_core::States;

    #[derive(Debug, Clone, Copy, PartialEq, Eq, States)]
    pub enum Order {
        #[state(code = 1, name = "待支付", to(Paid, r#Try, Cancelled))]
        Created,
        #[state(code = 2, to(Paid, Shipped))]
        Paid,
        #[state(code = 3i16)]
        #[state(name = "on its way")]
        Shipped,
        #[state(code = -1, to())]
        Cancelled,
        #[state(code = -32768, to(Paid,))]
        r#Try,
    }
}

mod renamed {
    pub use idem_core as idem;
}

// Nothing of the prelude is needed.
#[allow(dead_code)]
mod shadowed {
    struct Option;
    struct Some;
    #[allow(non_camel_case_types)]
    struct i16;
    #[allow(non_camel_case_types)]
    struct str;

    #[derive(Debug, Clone, Copy, PartialEq, Eq, crate::renamed::idem::States)]
    #[state(crate = crate::renamed::idem)]
    pub enum Switch<const N: usize> {
        #[state(code = 0, to(On))]
        Off,
        #[state(code = 1, to(Off))]
        On,
    }
}

use idem_core::States;
use states::Order;

fn main() {
    assert_eq!(Order::ALL.len(), 5);
    for order in Order::ALL {
        assert_eq!(Order::from_code(order.code()), Some(*order));
    }
    assert_eq!(Order::from_code(7), None);
    assert_eq!(Order::Created.name(), "待支付");
    assert_eq!(Order::r#Try.name(), "Try");
    assert_eq!(Order::Shipped.name(), "on its way");
    assert_eq!(Order::Created.successors(), [Order::Paid, Order::r#Try, Order::Cancelled]);
    assert!(Order::Paid.can_become(Order::Paid));
    assert!(!Order::Shipped.can_become(Order::Shipped));
    assert!(shadowed::Switch::<3>::Off.can_become(shadowed::Switch::On));
}
