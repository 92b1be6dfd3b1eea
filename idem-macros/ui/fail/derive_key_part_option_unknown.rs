use idem_core::KeyPart;

#[derive(KeyPart)]
#[key_part(rename = "order")]
struct OrderNo(String);

fn main() {}
