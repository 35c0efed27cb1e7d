//! What the sessions of one store share, and how sessions are made.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{Function, Uint8Array};
use wasm_bindgen::prelude::*;

use super::cost::RawPriceTable;
use super::engine::RawSession;
use super::error::throw;
use crate::core::cost::PriceTable;
use crate::core::error::{Error, Kind, Result};
use crate::core::id::IdSource;
use crate::core::json::{self, Object, Surrogates, Value};
use crate::core::log::Salt;
use crate::core::session::{self, Session};

/// Random bytes are drawn in pieces of this size: one call to JavaScript per piece, not per event.
const POOL_BYTES: u32 = 4096;

/// What the sessions of one store share: ids, salts, the caller's random source.
#[wasm_bindgen]
pub struct RawEnv {
    shared: Rc<Shared>,
}

/// The inside of an environment.
pub(super) struct Shared {
    random: Option<Function>,
    ids: RefCell<Option<IdSource>>,
    pool: RefCell<Vec<u8>>,
    pub(super) prices: RefCell<Rc<PriceTable>>,
    /// Where the lines of a write are made.
    pub(super) scratch: RefCell<String>,
}

impl Shared {
    /// Draws bytes; no borrow is held while the caller's function runs.
    fn refill(&self) -> std::result::Result<(), JsValue> {
        let mut fresh = vec![0; POOL_BYTES as usize];
        match &self.random {
            Some(random) => {
                let bytes = Uint8Array::new_with_length(POOL_BYTES);
                random.call1(&JsValue::NULL, &bytes)?;
                bytes.copy_to(&mut fresh);
            }
            None => getrandom::fill(&mut fresh)
                .map_err(|_| throw(Error::new(Kind::Unavailable, "this environment has no source of randomness")))?,
        }
        self.pool.borrow_mut().extend_from_slice(&fresh);
        Ok(())
    }

    pub(super) fn take<const N: usize>(&self) -> std::result::Result<[u8; N], JsValue> {
        if self.pool.borrow().len() < N {
            self.refill()?;
        }
        let mut pool = self.pool.borrow_mut();
        let rest = pool.len().saturating_sub(N);
        let mut out = [0; N];
        out.iter_mut().zip(pool.drain(rest..)).for_each(|(to, from)| *to = from);
        Ok(out)
    }

    pub(super) fn with_ids<T>(&self, work: impl FnOnce(&mut IdSource) -> T) -> std::result::Result<T, JsValue> {
        if self.ids.borrow().is_none() {
            let seed = u64::from_be_bytes(self.take()?);
            *self.ids.borrow_mut() = Some(IdSource::new(seed));
        }
        let mut ids = self.ids.borrow_mut();
        Ok(work(ids.get_or_insert_with(|| IdSource::new(0))))
    }

    /// Draws salts for up to `count` events of a load or seed in one go.
    pub(super) fn salts(&self, count: usize) -> std::result::Result<std::vec::IntoIter<Salt>, JsValue> {
        (0..count).map(|_| self.take()).collect::<std::result::Result<Vec<Salt>, JsValue>>().map(Vec::into_iter)
    }
}

#[wasm_bindgen]
impl RawEnv {
    /// Makes an environment; `random` fills an array with random bytes.
    #[wasm_bindgen(constructor)]
    pub fn new(random: Option<Function>) -> std::result::Result<RawEnv, JsValue> {
        let prices = RefCell::new(PriceTable::builtin().map_err(throw)?);
        let shared =
            Shared { random, ids: RefCell::default(), pool: RefCell::default(), prices, scratch: RefCell::default() };
        Ok(RawEnv { shared: Rc::new(shared) })
    }

    /// Sets the prices that steps are priced with from now on; what is stored keeps its price.
    pub fn set_prices(&self, prices: &RawPriceTable) {
        *self.shared.prices.borrow_mut() = prices.table().clone();
    }

    /// Makes an id of 16 hexadecimal digits.
    pub fn new_id(&self) -> std::result::Result<String, JsValue> {
        self.shared.with_ids(session::new_id)
    }

    /// Makes an empty session; `options` is JSON text `{cwd?, parentSession?, createdAt}`.
    pub fn create(&self, id: &str, options: &str) -> std::result::Result<RawSession, JsValue> {
        let header = header(id, options).map_err(throw)?;
        Ok(self.wrap(Session::new(header)))
    }

    /// Makes a session from its stored header (JSON text), under another id when one is given; the events before `first` are
    /// given later (`prepend`).
    pub fn open(
        &self,
        header: &str,
        id: Option<String>,
        first: Option<f64>,
    ) -> std::result::Result<RawSession, JsValue> {
        let header = json::parse(header, Surrogates::Replace).map_err(throw)?;
        match header {
            Value::Object(mut header) => {
                if let Some(id) = id {
                    header.set("id", id);
                }
                Ok(self.wrap(Session::starting_at(header, first.unwrap_or(0.0) as u64)))
            }
            _ => Err(throw(Error::new(Kind::Corrupt, "a session header must be an object"))),
        }
    }
}

impl RawEnv {
    fn wrap(&self, session: Session) -> RawSession {
        RawSession::wrap(self.shared.clone(), session)
    }
}

/// Makes a header; `options` is JSON text.
pub(super) fn header(id: &str, options: &str) -> Result<Object> {
    let options = json::parse(options, Surrogates::Refuse)?;
    let text = |key: &str| options.get(key).and_then(Value::as_str);
    let created_at = options.get("createdAt").and_then(Value::as_i64);
    let created_at = created_at.ok_or_else(|| Error::new(Kind::InvalidArgument, "createdAt must be a whole number"))?;
    session::header(id, created_at, text("cwd"), text("parentSession"))
}
