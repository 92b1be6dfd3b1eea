use super::{Path, Piece, Step, Template, snake_case};

fn steps(text: &str) -> Vec<Step> {
    Path::parse(text).unwrap().steps
}

fn mistake(text: &str) -> String {
    Template::parse(text).unwrap_err()
}

#[test]
fn each_kind_of_step_is_read() {
    assert_eq!(steps("request"), []);
    assert_eq!(steps("self.tenant"), [Step::Field("tenant".into())]);
    assert_eq!(steps("pair.0.1"), [Step::Element(0), Step::Element(1)]);
    assert_eq!(steps("r#type.id()"), [Step::Call("id".into())]);
    assert_eq!(
        steps("request.coupon?.codes[12][\"a b\"]"),
        [
            Step::Field("coupon".into()),
            Step::Try,
            Step::Field("codes".into()),
            Step::At(12),
            Step::Entry("a b".into()),
        ]
    );
}

#[test]
fn a_template_keeps_literals_and_lists_its_punctuation() {
    let template = Template::parse("user-{a.b}:{{x}}/{c}").unwrap();
    let texts: Vec<&str> = template
        .pieces
        .iter()
        .map(|piece| match piece {
            Piece::Literal(text) => text.as_str(),
            Piece::Path(path) => path.text.as_str(),
        })
        .collect();
    assert_eq!(texts, ["user-", "a.b", ":{x}/", "c"]);
    assert_eq!(template.punctuation, "-:{}/");
}

#[test]
fn a_name_in_brackets_may_hold_what_ends_a_placeholder() {
    for name in ["}", "a:b", "{", "}{:"] {
        let template = Template::parse(&format!("{{map[\"{name}\"]}}/{{b}}")).unwrap();
        let [Piece::Path(path), ..] = template.pieces.as_slice() else {
            panic!("{template:?}");
        };
        assert_eq!(path.steps, [Step::Entry(name.into())]);
    }
}

// K11
#[test]
fn a_sharp_inside_a_template_is_itself() {
    assert_eq!(Template::parse("#{a}#{b}").unwrap().punctuation, "#");
}

#[test]
fn a_broken_text_says_what_to_write() {
    for (text, says) in [
        ("", "an empty key"),
        ("request..id", "found `.`"),
        ("request.", "ends too early"),
        ("request.order-no", "`-` can not stand here"),
        ("request order", "can not stand here"),
        ("request.a²", "`²` can not stand here"),
        ("request.²", "found `²`"),
        ("request._", "no name of a field"),
        ("request.self", "no name of a field"),
        ("request.crate()", "no name of a field"),
        ("{request[\"a}", "`\"` is missing"),
        ("request[x]", "a number or a quoted name"),
        ("request[0", "`]` is missing"),
        ("request[\"a]", "`\"` is missing"),
        ("request.find(1)", "takes no arguments"),
        ("7.x", "an argument's name"),
        ("request[99999999999999999999999]", "too large"),
        ("{request.id", "is not closed"),
        ("request.id}", "closes nothing"),
        ("{}", "is empty"),
        ("{{x}}", "names no argument"),
        ("{a:03}", "takes no format"),
        ("{a}{b}", "touch"),
        ("{a}x{b}", "no punctuation"),
        ("{a} {b}", "can not hold ' '"),
        ("{a}~{b}", "can not hold '~'"),
        ("#request.orderNo", "here it is \"request.order_no\""),
        ("#{request.orderNo + ''}", "Spring"),
        (
            "#user.id + ':' + #request.orderNo",
            "here it is \"{user.id}:{request.order_no}\"",
        ),
        ("{#request.orderNo}", "here it is \"request.order_no\""),
    ] {
        let mistake = mistake(text);
        assert!(mistake.contains(says), "{text}: {mistake}");
    }
}

#[test]
fn names_are_turned_into_ours() {
    assert_eq!(snake_case("orderNo"), "order_no");
    assert_eq!(snake_case("order_no"), "order_no");
    assert_eq!(snake_case("ID"), "i_d");
}
