//! The page in a window, and what a person does with it.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use fantoccini::actions::{InputSource, KeyAction, KeyActions, MouseActions, PointerAction};
use fantoccini::elements::Element;
use fantoccini::{Client as Window, Locator};
use serde_json::Value;

use crate::browser::Driver;
use crate::client::Client;
use crate::server::Service;

const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);

/// A service, and its page in a browser.
#[derive(Debug)]
pub(crate) struct Shop {
    window: Window,
    service: Service,
    _driver: Driver,
}

impl Shop {
    pub(crate) async fn open() -> Result<Self> {
        let service = Service::start()?;
        let driver = Driver::start()?;
        let window = driver.open().await?;
        let shop = Self {
            window,
            service,
            _driver: driver,
        };
        shop.reload().await?;
        Ok(shop)
    }

    pub(crate) async fn reload(&self) -> Result<()> {
        self.window.goto(&self.client().url("/")).await?;
        // The words come from the program, so it runs when they are there.
        self.wait_for("h1", |title| !title.is_empty()).await?;
        Ok(())
    }

    /// What a program sees of the same service.
    pub(crate) fn client(&self) -> Client {
        self.service.client()
    }

    /// Chooses who is logged in.
    pub(crate) async fn log_in(&self, name: &str) -> Result<()> {
        let user = self.find("#user").await?;
        user.select_by_value(name).await?;
        self.wait_for_user(name).await
    }

    /// Waits until the service knows who is logged in.
    pub(crate) async fn wait_for_user(&self, name: &str) -> Result<()> {
        let who = "const done = arguments[0];
            fetch('/session').then((response) => response.json()).then(({ name }) => done(name))";
        let deadline = Instant::now() + PATIENCE;
        while self.window.execute_async(who, Vec::new()).await? != name {
            if Instant::now() >= deadline {
                bail!("{name} is not logged in");
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Creates an order by a click, and gives its number.
    pub(crate) async fn create_order(&self) -> Result<String> {
        self.click("#create button.main").await?;
        self.wait_for("#create-panel .sum", |sum| sum == "1 request → 1 order")
            .await?;
        self.wait_for("#pay-title .chosen", |order_no| !order_no.is_empty())
            .await
    }

    pub(crate) async fn click(&self, css: &str) -> Result<()> {
        self.find(css).await?.click().await?;
        Ok(())
    }

    /// Two clicks as quick as a mouse can.
    pub(crate) async fn double_click(&self, css: &str) -> Result<()> {
        let element = self.find(css).await?;
        let button = fantoccini::actions::MOUSE_BUTTON_LEFT;
        let click = [PointerAction::Down { button }, PointerAction::Up { button }];
        let mouse = MouseActions::new("mouse".to_owned()).then(PointerAction::MoveToElement {
            element,
            duration: None,
            x: 0.0,
            y: 0.0,
        });
        let twice = [click.clone(), click].into_iter().flatten();
        let mouse = twice.fold(mouse, MouseActions::then);
        Ok(self.window.perform_actions(mouse).await?)
    }

    /// Presses and lets go of one key.
    pub(crate) async fn press(&self, key: char) -> Result<()> {
        let keys = KeyActions::new("keyboard".to_owned())
            .then(KeyAction::Down { value: key })
            .then(KeyAction::Up { value: key });
        Ok(self.window.perform_actions(keys).await?)
    }

    /// Waits until the text of an element is as wanted, and gives it.
    pub(crate) async fn wait_for(
        &self,
        css: &str,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let text = self.text(css).await;
            match text {
                Ok(text) if wanted(&text) => return Ok(text),
                seen if Instant::now() >= deadline => bail!("{css}: {seen:?}"),
                _ => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// The text that a person sees, lines and cells parted by a blank.
    pub(crate) async fn text(&self, css: &str) -> Result<String> {
        let text = self.find(css).await?.text().await?;
        Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// How often an element occurs.
    pub(crate) async fn count(&self, css: &str) -> Result<usize> {
        Ok(self.window.find_all(Locator::Css(css)).await?.len())
    }

    /// Runs a line of script on the page.
    pub(crate) async fn ask(&self, script: &str) -> Result<Value> {
        Ok(self.window.execute(script, Vec::new()).await?)
    }

    /// Runs a script on the page, and waits until it calls its `arguments[0]`.
    pub(crate) async fn run(&self, script: &str) -> Result<()> {
        self.window.execute_async(script, Vec::new()).await?;
        Ok(())
    }

    pub(crate) async fn find(&self, css: &str) -> Result<Element> {
        let found = self.window.find(Locator::Css(css)).await;
        found.with_context(|| format!("no {css}"))
    }
}
