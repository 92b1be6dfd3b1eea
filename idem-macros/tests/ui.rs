//! Wrong uses give one clear error at the right token; right uses compile and run.

#[test]
fn each_mistake_is_one_error_at_its_token() {
    trybuild::TestCases::new().compile_fail("ui/fail/*.rs");
}

#[test]
fn each_shape_of_function_compiles_and_runs() {
    trybuild::TestCases::new().pass("ui/pass/*.rs");
}
