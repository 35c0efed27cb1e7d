//! The files of the private file system, inside a worker: handles with synchronous access.

use js_sys::{Promise, Reflect};
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{
    DomException, FileSystemDirectoryHandle, FileSystemFileHandle, FileSystemGetDirectoryOptions,
    FileSystemGetFileOptions, FileSystemReadWriteOptions, FileSystemSyncAccessHandle, StorageManager,
};

use super::{LogFile, Opfs};
use crate::core::error::{Error, Kind, Result};

/// How often a file that another one holds is asked for, and how long between.
const TRIES: u32 = 10;
const PAUSE_MS: f64 = 60.0;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = setTimeout)]
    fn set_timeout(work: &JsValue, ms: f64) -> JsValue;
}

/// A file open for synchronous access.
#[derive(Debug)]
pub struct SyncFile(FileSystemSyncAccessHandle);

fn fault(thrown: JsValue) -> Error {
    let exception = thrown.dyn_ref::<DomException>();
    let name = exception.map_or_else(String::new, DomException::name);
    let kind = match name.as_str() {
        "QuotaExceededError" => Kind::Quota,
        "NoModificationAllowedError" => Kind::Locked,
        "SecurityError" | "NotSupportedError" => Kind::Unavailable,
        "InvalidStateError" => Kind::Disposed,
        _ => Kind::Storage,
    };
    let message = exception.map_or_else(|| "the file could not be used".into(), DomException::message);
    Error::new(kind, format!("OPFS: {message}")).with("name", name)
}

fn at(position: u64) -> FileSystemReadWriteOptions {
    let options = FileSystemReadWriteOptions::new();
    options.set_at(position as f64);
    options
}

impl LogFile for SyncFile {
    fn size(&self) -> Result<u64> {
        self.0.get_size().map(|size| size as u64).map_err(fault)
    }

    fn read(&self, position: u64, len: usize) -> Result<Vec<u8>> {
        let room = self.size()?.saturating_sub(position);
        let mut bytes = vec![0; len.min(usize::try_from(room).unwrap_or(usize::MAX))];
        let read = self.0.read_with_u8_array_and_options(&mut bytes, &at(position)).map_err(fault)?;
        bytes.truncate(read as usize);
        Ok(bytes)
    }

    fn write(&self, position: u64, bytes: &[u8]) -> Result<()> {
        let written = self.0.write_with_u8_array_and_options(bytes, &at(position)).map_err(fault)?;
        // A disk that fills up takes what it can.
        if written as usize == bytes.len() { Ok(()) } else { Err(Error::new(Kind::Quota, "OPFS: the disk is full")) }
    }

    fn truncate(&self, size: u64) -> Result<()> {
        self.0.truncate_with_f64(size as f64).map_err(fault)
    }

    fn flush(&self) -> Result<()> {
        self.0.flush().map_err(fault)
    }

    fn close(&self) {
        self.0.close();
    }
}

/// Opens the store of a name; only a dedicated worker may.
pub async fn open_worker(name: &str) -> Result<Opfs<SyncFile>> {
    let folder = folder().await?;
    let first = open_file(&folder, &format!("{name}.a")).await?;
    let second = match open_file(&folder, &format!("{name}.b")).await {
        Ok(second) => second,
        Err(error) => {
            first.close();
            return Err(error);
        }
    };
    Opfs::open([first, second])
}

async fn folder() -> Result<FileSystemDirectoryHandle> {
    let missing = || Error::new(Kind::Unavailable, "there is no private file system here");
    let navigator = Reflect::get(&js_sys::global(), &"navigator".into()).map_err(|_| missing())?;
    let storage = Reflect::get(&navigator, &"storage".into()).map_err(|_| missing())?;
    let can = Reflect::get(&storage, &"getDirectory".into()).is_ok_and(|found| found.is_function());
    let handle = Reflect::get(&js_sys::global(), &"FileSystemSyncAccessHandle".into());
    if !can || handle.is_ok_and(|found| found.is_undefined()) {
        return Err(missing());
    }
    let root: FileSystemDirectoryHandle =
        wait(storage.unchecked_into::<StorageManager>().get_directory()).await?.unchecked_into();
    let options = FileSystemGetDirectoryOptions::new();
    options.set_create(true);
    Ok(wait(root.get_directory_handle_with_options("sessionlog", &options)).await?.unchecked_into())
}

async fn open_file(folder: &FileSystemDirectoryHandle, name: &str) -> Result<SyncFile> {
    let options = FileSystemGetFileOptions::new();
    options.set_create(true);
    let file: FileSystemFileHandle = wait(folder.get_file_handle_with_options(name, &options)).await?.unchecked_into();
    let mut tries = 1;
    loop {
        let can = Reflect::get(&file, &"createSyncAccessHandle".into()).is_ok_and(|found| found.is_function());
        if !can {
            return Err(Error::new(Kind::Unavailable, "OPFS works in a dedicated worker only"));
        }
        match wait(file.create_sync_access_handle()).await {
            Ok(handle) => return Ok(SyncFile(handle.unchecked_into())),
            // A tab that just closed needs a moment to let go.
            Err(error) if error.kind() == Kind::Locked && tries < TRIES => pause().await?,
            Err(error) => return Err(error),
        }
        tries += 1;
    }
}

async fn wait(promise: Promise) -> Result<JsValue> {
    JsFuture::from(promise).await.map_err(fault)
}

async fn pause() -> Result<()> {
    let promise = Promise::new(&mut |resolve, _| {
        set_timeout(&resolve, PAUSE_MS);
    });
    wait(promise).await.map(|_| ())
}
