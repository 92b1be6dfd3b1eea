//! What is behind an error.

use std::error::Error;

/// What an error says, and then what its sources say: "the statement failed" names the place, and
/// the database's own words the reason.
#[must_use]
pub fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let said = source.to_string();
        // Many end with the words of their source.
        if !text.ends_with(&said) {
            text = format!("{text}: {said}");
        }
        next = source.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database;
    use crate::orders::{self, Draft};

    #[tokio::test]
    async fn a_statement_that_failed_says_why() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let pool = database::sqlite(&folder.path().join("orders.sqlite")).await?;
        sqlx::raw_sql("DROP TABLE orders").execute(&pool).await?;
        let draft = Draft {
            request_id: "r-1".into(),
            item: "tea".into(),
            quantity: 1,
            amount_cents: 420,
        };
        let failed = orders::insert_or_get(&pool, &draft).await.unwrap_err();
        let text = causes(&failed);
        let place = "the order can not be stored: the statement failed: ";
        assert!(text.starts_with(place), "{text}");
        assert!(text.ends_with("no such table: orders"), "{text}");
        assert_eq!(text.matches("no such table").count(), 1, "{text}");
        Ok(())
    }
}
