//! Stage two: what was meant, checked. Nothing here is optional because it was not looked at.

mod call;
mod policy;
mod token;
mod tx;
mod value;

use proc_macro2::{Span, TokenStream};
use syn::{LitStr, Path};

pub(crate) use call::{OnError, Results, readable};
pub(crate) use policy::Setting;
pub(crate) use tx::Tx;
pub(crate) use value::{Part, Source, Value};

use crate::args::{Args, LOCKED, Words};
use crate::mistakes::Mistakes;
use crate::signature::{Function, Item};

/// A guarded function.
pub(crate) struct Model {
    /// Whether a lock guards it, which has no results and nobody to ask.
    pub(crate) is_locked: bool,
    pub(crate) function: Function,
    /// The runtime crate.
    pub(crate) krate: Path,
    pub(crate) prefix: LitStr,
    /// The parts of the key; with a token, its subject.
    pub(crate) key: Vec<Part>,
    pub(crate) token: Option<Value>,
    /// The characters that the template uses as literals.
    pub(crate) punctuation: String,
    pub(crate) fingerprint: Vec<Value>,
    pub(crate) policy: Vec<Setting>,
    pub(crate) results: Results,
    pub(crate) engine: Option<TokenStream>,
    /// The call to `recover`, without its `.await`.
    pub(crate) recover: Option<TokenStream>,
    pub(crate) detach: bool,
    pub(crate) tx: Option<Tx>,
}

impl Model {
    pub(crate) fn new(
        words: &'static Words,
        args: TokenStream,
        item: TokenStream,
    ) -> syn::Result<Self> {
        let mut mistakes = Mistakes::default();
        let args = Args::parse(args, words, &mut mistakes);
        require(&args, &mut mistakes);
        let function = mistakes
            .keep(Item::parse(words.name, item))
            .map(|item| Function::new(item, &mut mistakes));
        let model = Self::check(words, &args, function, &mut mistakes);
        mistakes.finish(model)
    }

    fn check(
        words: &Words,
        args: &Args,
        function: Option<Function>,
        mistakes: &mut Mistakes,
    ) -> Option<Self> {
        let prefix = args
            .prefix
            .as_ref()
            .and_then(|given| mistakes.keep(policy::prefix(given)));
        let is_locked = words.name == LOCKED.name;
        let policy = policy::settings(args, is_locked, mistakes);
        let (mut key, punctuation) = value::key(args, function.as_ref(), mistakes);
        let presented = token::presented(args, function.as_ref(), mistakes);
        key.extend(presented.subject);
        let fingerprint = value::fingerprint(args, function.as_ref(), mistakes);
        let results = call::results(args, is_locked, function.as_ref(), mistakes);
        let krate = mistakes.keep(call::krate(args));
        let recover = call::recover(args, function.as_ref(), mistakes);
        let detach = call::detach(args, function.as_ref(), mistakes);
        // A lock keeps nothing that could commit with it.
        let guarded = function.as_ref().filter(|_| !is_locked);
        let tx = tx::tx(args, guarded, mistakes);
        let function = function?;
        let engine = args
            .engine
            .as_ref()
            .map(|given| value::placed(&given.value, &function));
        Some(Self {
            is_locked,
            function,
            krate: krate?,
            prefix: prefix?,
            key,
            token: presented.token,
            punctuation,
            fingerprint,
            policy,
            results,
            engine,
            recover,
            detach,
            tx,
        })
    }
}

/// Says what is missing, unless another mistake (a misspelt name) already explains it.
fn require(args: &Args, mistakes: &mut Mistakes) {
    if !mistakes.is_empty() {
        return;
    }
    if args.prefix.is_none() {
        mistakes.at(
            Span::call_site(),
            "`prefix` is missing: the business type, as in prefix = \"order:pay\"",
        );
    }
    if args.key.is_none() && args.token.is_none() && args.subject.is_none() {
        mistakes.at(Span::call_site(), "`key` is missing: what tells one request from another, as in key = \"request.order_no\"");
    }
}
