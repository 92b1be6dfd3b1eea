//! M09, X04
use idem_core::idempotent;

trait Receipt {
    fn no(&self) -> u32;
}

impl Receipt for u32 {
    fn no(&self) -> u32 {
        *self
    }
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[idempotent(prefix = "boxed", key = "id", on_duplicate = "reject")]
async fn boxed(id: u32) -> Result<Box<dyn Receipt>, Box<dyn std::error::Error + Send + Sync>> {
    let parsed: u32 = "7".parse()?;
    if id == 0 {
        return Err(Box::new(std::fmt::Error));
    }
    if id == 1 {
        return Ok(Box::new(parsed));
    }
    Ok(Box::new(id))
}

#[idempotent(prefix = "labelled", key = "id")]
async fn labelled(id: u32) -> Result<u32, Failure> {
    'out: {
        if id == 2 {
            break 'out Err("labelled".into());
        }
        Ok(id)
    }
}

#[idempotent(prefix = "returns", key = "id")]
async fn returns(id: u32) -> Result<u32, Failure> {
    return Ok(id);
}

#[idempotent(prefix = "diverges", key = "id")]
async fn diverges(id: u32) -> Result<u32, Failure> {
    loop {
        if id > 0 {
            return Ok(id);
        }
    }
}

#[idempotent(prefix = "never", key = "id", on_duplicate = "reject")]
async fn never(id: u32) -> Result<std::convert::Infallible, Failure> {
    Err(format!("no {id}").into())
}

#[idempotent(prefix = "question", key = "id")]
async fn question(id: &str) -> Result<u32, Failure> {
    let number = id.parse::<u32>()?;
    Ok(number)
}

#[idempotent(prefix = "closure", key = "id")]
async fn closure(id: u32) -> Result<Vec<u32>, Failure> {
    (0..id).map(|n| Ok(n)).collect()
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    idem_core::Idempotency::memory().install().unwrap();
    assert_eq!(boxed(1).await.unwrap().no(), 7);
    assert_eq!(boxed(5).await.unwrap().no(), 5);
    assert!(boxed(0).await.is_err());
    assert!(labelled(2).await.is_err());
    assert_eq!(returns(3).await.unwrap(), 3);
    assert_eq!(diverges(3).await.unwrap(), 3);
    assert!(never(1).await.is_err());
    assert!(question("x").await.is_err());
    assert_eq!(closure(2).await.unwrap(), [0, 1]);
}
