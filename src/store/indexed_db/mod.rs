//! IndexedDB: one database, one object store, keys as text and values as bytes.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use js_sys::{Array, Uint8Array};
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{Event, IdbDatabase};

use self::fault::Fault;
pub(crate) use self::transaction::JsBatch;
use super::{Backend, Batch, Entries, ListOptions, LocalFuture, closed};
use crate::core::error::{Error, Kind, Result};

mod fault;
mod open;
mod transaction;

/// How a database is opened.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The database's name.
    pub name: String,
    /// Waits for the disk, not only for the operating system.
    pub strict: bool,
    /// How long opening may take.
    pub open_timeout_ms: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { name: "sessionlog".into(), strict: false, open_timeout_ms: 10_000.0 }
    }
}

/// A store in an IndexedDB database; clones share the connection.
#[derive(Clone)]
pub struct IndexedDb(Rc<Inner>);

struct Inner {
    settings: Settings,
    connection: RefCell<Option<Connection>>,
    closed: Cell<bool>,
}

/// A live handle and the functions that listen to its end.
struct Connection {
    db: IdbDatabase,
    _handlers: [Closure<dyn FnMut(Event)>; 2],
}

impl IndexedDb {
    /// Opens the database.
    pub async fn open(settings: Settings) -> Result<Self> {
        let store = IndexedDb(Rc::new(Inner { settings, connection: RefCell::new(None), closed: Cell::new(false) }));
        store.connect().await.map_err(|fault| fault.error)?;
        Ok(store)
    }

    /// Returns the live handle, or opens a new one.
    async fn connect(&self) -> std::result::Result<IdbDatabase, Fault> {
        if self.0.closed.get() {
            return Err(Fault::fatal(closed()));
        }
        if let Some(live) = self.live() {
            return Ok(live);
        }
        let db = open::open(&self.0.settings.name, self.0.settings.open_timeout_ms).await?;
        self.check_store(&db)?;
        if self.0.closed.get() {
            db.close();
            return Err(Fault::fatal(closed()));
        }
        if let Some(live) = self.live() {
            // Another call was faster.
            db.close();
            return Ok(live);
        }
        let handlers = end_handlers(&db, &Rc::downgrade(&self.0));
        *self.0.connection.borrow_mut() = Some(Connection { db: db.clone(), _handlers: handlers });
        Ok(db)
    }

    fn live(&self) -> Option<IdbDatabase> {
        self.0.connection.borrow().as_ref().map(|connection| connection.db.clone())
    }

    fn check_store(&self, db: &IdbDatabase) -> std::result::Result<(), Fault> {
        if db.object_store_names().contains(open::STORE) {
            return Ok(());
        }
        db.close();
        Err(Fault::fatal(Error::new(Kind::Corrupt, "the database was not made by this library")))
    }

    /// Drops a handle that no longer works.
    fn drop_handle(&self) {
        drop_connection(&self.0);
    }

    /// Reads one value.
    pub(crate) async fn read(&self, key: &JsValue) -> Result<Option<Uint8Array>> {
        let first = match self.connect().await {
            Ok(db) => transaction::get(&db, key).await,
            Err(fault) => Err(fault),
        };
        match first {
            Err(fault) if fault.retry => {
                self.drop_handle();
                let db = self.connect().await.map_err(|fault| fault.error)?;
                transaction::get(&db, key).await.map_err(|fault| fault.error)
            }
            other => other.map_err(|fault| fault.error),
        }
    }

    /// Reads a range as pairs.
    pub(crate) async fn read_range(&self, start: &str, end: &str, options: ListOptions) -> Result<Array> {
        let first = match self.connect().await {
            Ok(db) => transaction::list(&db, start, end, options).await,
            Err(fault) => Err(fault),
        };
        match first {
            Err(fault) if fault.retry => {
                self.drop_handle();
                let db = self.connect().await.map_err(|fault| fault.error)?;
                transaction::list(&db, start, end, options).await.map_err(|fault| fault.error)
            }
            other => other.map_err(|fault| fault.error),
        }
    }

    /// Carries out a batch; a handle that died or an abort nobody asked for is tried once more.
    pub(crate) async fn write(&self, batch: &JsBatch) -> Result<()> {
        let first = match self.connect().await {
            Ok(db) => transaction::transact(&db, batch, self.0.settings.strict).await,
            Err(fault) => Err(fault),
        };
        match first {
            Err(fault) if fault.retry => self.write_again(batch).await,
            other => other.map_err(|fault| fault.error),
        }
    }

    /// Returns the live handle, for a caller that issues a batch itself and comes back with what went wrong.
    pub(crate) fn handle(&self) -> Option<IdbDatabase> {
        self.live().filter(|_| !self.0.closed.get())
    }

    /// Carries out a batch that a caller tried in vain: on a new handle, and done when the store holds it already.
    pub(crate) async fn write_again(&self, batch: &JsBatch) -> Result<()> {
        self.drop_handle();
        let db = self.connect().await.map_err(|fault| fault.error)?;
        match transaction::transact(&db, batch, self.0.settings.strict).await {
            // The abort may have come after the data was in: then the check fails because of our own write.
            Err(fault) if fault.error.kind() == Kind::Conflict && self.stands(batch).await? => Ok(()),
            other => other.map_err(|fault| fault.error),
        }
    }

    /// Says whether the store looks as it would after this batch.
    async fn stands(&self, batch: &JsBatch) -> Result<bool> {
        let db = self.connect().await.map_err(|fault| fault.error)?;
        for (key, value) in &batch.puts {
            let found = transaction::get(&db, key).await.map_err(|fault| fault.error)?;
            if !found.is_some_and(|found| transaction::same_bytes(value, Some(&found))) {
                return Ok(false);
            }
        }
        for key in batch.deletes.iter().filter(|key| !batch.puts.iter().any(|(put, _)| put == *key)) {
            if transaction::get(&db, key).await.map_err(|fault| fault.error)?.is_some() {
                return Ok(false);
            }
        }
        Ok(!batch.puts.is_empty())
    }

    /// Closes the handle; later calls fail with `disposed`.
    pub(crate) fn shut(&self) {
        self.0.closed.set(true);
        self.drop_handle();
    }
}

/// Closes the handle and forgets it, so that the next call opens a new one.
fn drop_connection(inner: &Inner) {
    let gone = inner.connection.borrow_mut().take();
    if let Some(connection) = gone {
        connection.db.set_onclose(None);
        connection.db.set_onversionchange(None);
        connection.db.close();
    }
}

/// Listens to what ends a handle: the browser closing it, and another tab that wants to upgrade or delete.
fn end_handlers(db: &IdbDatabase, inner: &Weak<Inner>) -> [Closure<dyn FnMut(Event)>; 2] {
    let make = || {
        let inner = Weak::clone(inner);
        Closure::<dyn FnMut(Event)>::new(move |_: Event| {
            if let Some(inner) = inner.upgrade() {
                drop_connection(&inner);
            }
        })
    };
    let handlers = [make(), make()];
    let [close, version] = &handlers;
    db.set_onclose(close.as_ref().dyn_ref());
    db.set_onversionchange(version.as_ref().dyn_ref());
    handlers
}

impl Backend for IndexedDb {
    fn get<'a>(&'a self, key: &'a str) -> LocalFuture<'a, Option<Vec<u8>>> {
        Box::pin(async move { Ok(self.read(&key.into()).await?.map(|bytes| bytes.to_vec())) })
    }

    fn list<'a>(&'a self, start: &'a str, end: &'a str, options: ListOptions) -> LocalFuture<'a, Entries> {
        Box::pin(async move {
            let pairs = self.read_range(start, end, options).await?;
            Ok(pairs.iter().map(|pair| entry_of(&pair.unchecked_into())).collect())
        })
    }

    fn transact(&self, batch: Batch) -> LocalFuture<'_, ()> {
        Box::pin(async move { self.write(&to_js(&batch)).await })
    }

    fn close(&self) -> LocalFuture<'_, ()> {
        self.shut();
        Box::pin(std::future::ready(Ok(())))
    }
}

fn entry_of(pair: &Array) -> (String, Vec<u8>) {
    let value: Uint8Array = pair.get(1).unchecked_into();
    (pair.get(0).as_string().unwrap_or_default(), value.to_vec())
}

fn to_js(batch: &Batch) -> JsBatch {
    let bytes = |value: &Vec<u8>| Uint8Array::from(value.as_slice());
    JsBatch {
        checks: batch.checks.iter().map(|(key, value)| (key.into(), value.as_ref().map(bytes))).collect(),
        puts: batch.puts.iter().map(|(key, value)| (key.into(), bytes(value).into())).collect(),
        deletes: batch.deletes.iter().map(JsValue::from).collect(),
    }
}
