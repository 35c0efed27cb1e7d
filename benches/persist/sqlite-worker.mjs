// SQLite on OPFS: a table of events; one message is one transaction.
import sqlite3InitModule from "@sqlite.org/sqlite-wasm";

let db;
const work = {
  async open() {
    const sqlite3 = await sqlite3InitModule({ locateFile: () => "/sqlite3.wasm", print() {}, printErr() {} });
    const pool = await sqlite3.installOpfsSAHPoolVfs({ name: "bench", initialCapacity: 8 });
    db = new pool.OpfsSAHPoolDb("/bench.db");
    db.exec("pragma journal_mode=truncate; pragma synchronous=normal; create table if not exists ev(seq integer primary key, body text)");
  },
  clear: () => db.exec("delete from ev"),
  add(rows) {
    db.transaction(() => {
      const statement = db.prepare("insert into ev values(?, ?)");
      for (const [seq, body] of rows) statement.bind([seq, body]).stepReset();
      statement.finalize();
    });
  },
  all: () => db.selectArrays("select seq, body from ev order by seq"),
};
onmessage = async ({ data: [id, name, ...args] }) => {
  try {
    postMessage([id, (await work[name](...args)) ?? null]);
  } catch (error) {
    postMessage([id, null, String(error)]);
  }
};
