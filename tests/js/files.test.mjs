// Files and undo from JavaScript: lessons of the field, tool calls, storage, errors, and the face like node:fs.
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import init, { SessionLogError, VirtualFs } from "sessionlog";
import { CutBackend } from "./support/undo-vectors.mjs";

before(() => init());

const stored = (backend, options = {}) => VirtualFs.open({ storage: { kind: "custom", backend }, ...options });
const treeOf = (fs) => Object.fromEntries(fs.walk().filter(({ type }) => type === "file").map(({ path }) => [path, fs.readText(path)]));
const run_ = (fs, id, work) => run(fs, id, work);
async function run(fs, id, work) {
  const files = fs.beginRun(id);
  work(files);
  await files.end();
}

describe("lessons of the field", () => {
  test("F01 undo removes exactly what the turn created", async () => {
    const fs = await VirtualFs.open();
    fs.writeFile("/a", "1");
    await run(fs, "t", (f) => {
      f.mkdir("/b/c", { recursive: true });
      f.writeFile("/b/c/n.txt", "n");
      f.writeFile("/a", "2");
    });
    fs.writeFile("/u.txt", "u");
    assert.equal((await fs.undo()).ok, true);
    assert.deepEqual(fs.walk().map(({ path }) => path), ["/a", "/u.txt"]);
    assert.equal(fs.readText("/a"), "1");
  });

  test("F03 a conflict changes nothing; force is explicit and can itself be undone; runs undone together do not conflict", async () => {
    const fs = await VirtualFs.open();
    fs.writeFile("/a", "1");
    fs.writeFile("/b", "x");
    await run(fs, "t", (f) => {
      f.writeFile("/a", "2");
      f.writeFile("/b", "y");
    });
    fs.writeFile("/a", "3");
    const refused = await fs.undo();
    assert.deepEqual([refused.ok, refused.conflicts.map(({ path }) => path)], [false, ["/a"]]);
    assert.deepEqual(treeOf(fs), { "/a": "3", "/b": "y" });
    assert.equal((await fs.undo({ force: true })).ok, true);
    assert.deepEqual(treeOf(fs), { "/a": "1", "/b": "x" });
    assert.equal((await fs.redo()).ok, true);
    assert.deepEqual(treeOf(fs), { "/a": "3", "/b": "y" });

    const other = await VirtualFs.open();
    other.writeFile("/a", "1");
    await run(other, "t1", (f) => f.writeFile("/a", "2"));
    await run(other, "t2", (f) => f.writeFile("/a", "3"));
    const preview = await other.rewind("t1", { preview: true });
    assert.deepEqual([preview.ok, preview.restored, preview.conflicts], [true, ["/a"], []]);
    assert.equal(other.readText("/a"), "3");
    assert.deepEqual(await other.rewind("t1"), preview);
    assert.equal(other.readText("/a"), "1");
    assert.deepEqual([other.undoable, other.redoable], [[], ["t1", "t2"]]);
  });

  test("F05 a move is one step with both ends; a failed undo is not used up", async () => {
    for (const userMakesA of [false, true]) {
      const fs = await VirtualFs.open();
      fs.writeFile("/a", "1");
      fs.writeFile("/b", "2");
      await run(fs, "t", (f) => {
        f.rename("/a", "/b");
        f.writeFile("/b", "9");
      });
      if (userMakesA) {
        fs.writeFile("/a", "mine");
        const report = await fs.undo();
        assert.deepEqual([report.ok, report.conflicts.map(({ path }) => path)], [false, ["/a"]]);
        assert.deepEqual(treeOf(fs), { "/a": "mine", "/b": "9" });
        assert.deepEqual(fs.undoable, ["t"]);
        fs.rm("/a");
      }
      assert.equal((await fs.undo()).ok, true);
      assert.deepEqual(treeOf(fs), { "/a": "1", "/b": "2" });
    }
  });

  test("F07 an undo that the store refuses changes nothing and can be tried again", async () => {
    const backend = new CutBackend();
    const fs = await stored(backend);
    for (const name of ["f1", "f2", "f3"]) fs.writeFile(`/${name}`, "old");
    await run(fs, "t", (f) => ["f1", "f2", "f3"].forEach((name) => f.writeFile(`/${name}`, "new")));
    await fs.flush();
    const transact = backend.transact;
    backend.transact = async () => {
      backend.transact = transact;
      throw new Error("the disk is on fire");
    };
    const refused = await fs.undo();
    assert.equal(refused.ok, false);
    assert.equal(refused.errors.length, 1);
    assert.match(refused.errors[0].path, /^\/f[123]$/);
    assert.deepEqual(treeOf(fs), { "/f1": "new", "/f2": "new", "/f3": "new" });
    assert.deepEqual([fs.undoable, fs.redoable], [["t"], []]);
    await fs.flush();
    const copy = await stored(backend);
    assert.deepEqual([treeOf(copy), copy.undoable], [{ "/f1": "new", "/f2": "new", "/f3": "new" }, ["t"]]);
    assert.equal((await fs.undo()).ok, true);
    assert.deepEqual(treeOf(fs), { "/f1": "old", "/f2": "old", "/f3": "old" });
  });

  test("F09 back to a step restores every file touched since; a new edit ends the redo line", async () => {
    const fs = await VirtualFs.open();
    fs.writeFile("/f1", "1");
    fs.writeFile("/f2", "x");
    await run(fs, "T1", (f) => f.writeFile("/f1", "2"));
    await run(fs, "T2", (f) => f.writeFile("/f2", "y"));
    await run(fs, "T3", (f) => f.writeFile("/f1", "3"));
    await fs.rewind("T2");
    assert.deepEqual(treeOf(fs), { "/f1": "2", "/f2": "x" });
    while (fs.redoable.length > 0) assert.equal((await fs.redo()).ok, true);
    assert.deepEqual(treeOf(fs), { "/f1": "3", "/f2": "y" });
    await fs.undo();
    assert.deepEqual(treeOf(fs), { "/f1": "2", "/f2": "y" });
    await run(fs, "T4", (f) => f.writeFile("/f1", "9"));
    assert.deepEqual((await fs.redo()).errors.map(({ code }) => code), ["NOTHING_TO_REDO"]);
    assert.equal(fs.readText("/f1"), "9");
    for (let i = 0; i < 3; i++) assert.equal((await fs.undo()).ok, true);
    assert.deepEqual(treeOf(fs), { "/f1": "1", "/f2": "x" });
  });
});

describe("tool calls", () => {
  test("a failed call is rolled back and leaves no trace; a completed one stays", async () => {
    const fs = await VirtualFs.open();
    fs.writeFile("/a", "1");
    const files = fs.beginRun("r");
    const bad = files.beginCall("c1");
    bad.writeFile("/a", "bad");
    bad.mkdir("/d");
    bad.writeFile("/d/n", "n");
    assert.deepEqual(files.journal.changedPaths, ["/a", "/d", "/d/n"]);
    const report = files.rollbackCall("c1");
    assert.deepEqual([report.ok, report.restored, report.deleted], [true, ["/a"], ["/d/n"]]);
    assert.deepEqual(treeOf(fs), { "/a": "1" });
    assert.equal(files.journal.hasEntries, false);
    assert.throws(() => bad.writeFile("/a", "late"), (error) => error instanceof SessionLogError && error.details.errno === "EBADF");

    const good = files.beginCall("c2");
    good.writeFile("/a", "2");
    files.commitCall("c2");
    const worse = files.beginCall("c3");
    worse.writeFile("/a", "3");
    files.rollbackCall("c3");
    assert.equal(fs.readText("/a"), "2");
    await files.end();
    assert.equal((await fs.undo()).ok, true);
    assert.equal(fs.readText("/a"), "1");
  });

  test("a run whose only call failed is not undoable; a roll-back never overwrites the user", async () => {
    const fs = await VirtualFs.open();
    const files = fs.beginRun("r");
    files.beginCall("c").writeFile("/a", "1");
    files.rollbackCall("c");
    await files.end();
    assert.deepEqual(fs.undoable, []);

    const second = fs.beginRun("s");
    const call = second.beginCall("c");
    call.writeFile("/a", "agent");
    call.writeFile("/b", "agent");
    fs.writeFile("/a", "user");
    const report = second.rollbackCall("c");
    assert.deepEqual(report.conflicts.map(({ path }) => path), ["/a"]);
    assert.deepEqual(treeOf(fs), { "/a": "user" });
  });

  test("a call that was pending when the process died is counted, and undone with its run", async () => {
    const backend = new CutBackend();
    const fs = await stored(backend);
    const files = fs.beginRun("r");
    files.beginCall("c").writeFile("/a", "1");
    await fs.flush();
    const again = await stored(backend);
    const health = again.journal("r").checkHealth();
    assert.deepEqual(health, { totalEntries: 1, corruptedEntries: 0, orphanedPending: 1, healthy: false });
    assert.equal((await again.undo()).ok, true);
    assert.deepEqual(treeOf(again), {});
  });
});

describe("storage", () => {
  test("a failed write is tried again in order; nothing is lost", async () => {
    const backend = new CutBackend();
    const transact = backend.transact;
    let failures = 3;
    backend.transact = function (batch) {
      if (failures-- > 0) return Promise.reject(new Error("not now"));
      return transact.call(this, batch);
    };
    const fs = await stored(backend);
    fs.writeFile("/a", "1");
    await assert.rejects(fs.flush(), (error) => error instanceof SessionLogError && error.code === "storage");
    fs.writeFile("/b", "2");
    while (failures > 0) await fs.flush().catch(() => {});
    await fs.flush();
    await fs.dispose();
    assert.deepEqual(treeOf(await stored(backend)), { "/a": "1", "/b": "2" });
  });

  test("changes are written without a flush, only what changed, and equal contents once", async () => {
    const backend = new CutBackend();
    const fs = await stored(backend);
    const big = "x".repeat(100_000);
    fs.writeFile("/a", big);
    fs.writeFile("/b", big);
    for (let i = 0; i < 50; i++) fs.writeFile(`/f${i}`, `file ${i}`);
    while (backend.map.size === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    await fs.flush();
    const bytes = (batches) => batches.flatMap(({ puts }) => puts).reduce((sum, [, value]) => sum + value.length, 0);
    assert.ok(bytes(backend.issued) < 120_000, `${bytes(backend.issued)} bytes were written`);
    backend.mark();
    await run(fs, "r", (f) => f.writeFile("/a", "small"));
    assert.ok(bytes(backend.issued) < 1_000, `${bytes(backend.issued)} bytes were written for a small change`);
    await fs.dispose();
    const again = await stored(backend);
    assert.equal((await again.undo()).ok, true);
    assert.equal(again.readText("/a"), big);
  });

  test("roots of one store do not see each other, whatever their names", async () => {
    const backend = new CutBackend();
    for (const root of ["a", "a/b", "", "A"]) {
      const fs = await stored(backend, { root });
      fs.writeFile("/name", root);
      await fs.dispose();
    }
    for (const root of ["a", "a/b", "", "A"]) assert.deepEqual(treeOf(await stored(backend, { root })), { "/name": root });
  });

  test("of two writers the stale one gets a conflict and overwrites nothing", async () => {
    const backend = new CutBackend();
    const [one, two] = [await stored(backend), await stored(backend)];
    one.writeFile("/a", "one");
    await one.flush();
    two.writeFile("/a", "two");
    await assert.rejects(two.flush(), (error) => error.code === "conflict");
    assert.deepEqual(treeOf(await stored(backend)), { "/a": "one" });
  });

  test("a stale writer is told so, reads anew, and goes on; nothing of the other's is overwritten unasked", async () => {
    for (const keep of [false, true]) {
      const backend = new CutBackend();
      const [one, two] = [await stored(backend), await stored(backend)];
      one.writeFile("/a", "one");
      one.writeFile("/b", "one");
      await one.flush();
      const run = two.beginRun("r");
      run.writeFile("/a", "two");
      two.writeFile("/mine", "two");
      two.symlink("mine", "/link");
      const fd = two.node.openSync("/mine", "r");
      await assert.rejects(run.end(), (error) => {
        assert.deepEqual([error.code, error.details], ["conflict", { unsaved: ["/a", "/link", "/mine"], count: 3 }]);
        return true;
      });
      two.node.chmodSync("/mine", 0o600);
      await assert.rejects(two.flush(), { code: "conflict" });
      const open = two.beginRun("still open");
      await two.reload({ keep });
      assert.deepEqual(treeOf(two), keep ? { "/a": "two", "/b": "one", "/mine": "two" } : { "/a": "one", "/b": "one" });
      assert.equal(two.exists("/link"), keep);
      if (keep) assert.deepEqual([two.readlink("/link"), two.stat("/mine").mode], ["mine", 0o600]);
      // What was begun on the files before is over, and cannot hit others by its number.
      assert.throws(() => open.writeFile("/x", "x"), (error) => error.details.errno === "EBADF");
      assert.throws(() => two.node.readFileSync(fd), { code: "EBADF" });
      // The other one is the stale one now.
      await run_(two, "r2", (f) => f.writeFile("/b", "two"));
      one.writeFile("/b", "late");
      await assert.rejects(one.flush(), { code: "conflict" });
      assert.equal(treeOf(await stored(backend))["/b"], "two");
      assert.equal((await two.undo()).ok, true);
      assert.equal(two.readText("/b"), "one");
      await two.dispose();
      assert.equal(treeOf(await stored(backend))["/b"], "one");
    }
  });

  test("whichever write of a way back the store refuses, all of it is as before, and trying again works", async () => {
    const names = ["a", "b", "c", "d", "e"];
    const ways = {
      undo: (fs) => fs.undo(),
      rewind: (fs) => fs.rewind("first"),
      redo: (fs) => fs.redo(),
    };
    for (const [way, go] of Object.entries(ways)) {
      for (const reopened of [false, true]) {
        for (let refused = 0, total = 1; refused < total; refused++) {
          const backend = new CutBackend({ maxBatch: 3, maxValueBytes: 2_000 });
          let fs = await stored(backend);
          for (const name of names) fs.writeFile(`/${name}`, name.repeat(1_000));
          await run_(fs, "first", (f) => names.forEach((name) => f.writeFile(`/${name}`, "1")));
          await run_(fs, "second", (f) => names.slice(2).forEach((name) => f.rm(`/${name}`)));
          if (way === "redo") await fs.undo();
          await fs.flush();
          if (reopened) {
            await fs.dispose();
            fs = await stored(backend);
          }
          const before = [treeOf(fs), fs.undoable, fs.redoable];
          const transact = backend.transact;
          let sent = 0;
          backend.transact = async function (batch) {
            if (sent++ === refused) throw Object.assign(new Error("full"), { code: "quota" });
            return transact.call(this, batch);
          };
          const report = await go(fs);
          total = 2 + refused;
          if (report.ok) {
            // From the write on that makes it count, what is left is written later.
            assert.ok(refused > 0);
            total = 0;
          } else {
            assert.deepEqual(report.errors.map(({ code }) => code), ["quota"], `${way}, write ${refused}`);
            assert.deepEqual([treeOf(fs), fs.undoable, fs.redoable], before);
          }
          backend.transact = transact;
          await fs.flush();
          const copy = await stored(backend);
          assert.deepEqual([treeOf(copy), copy.undoable, copy.redoable], [treeOf(fs), fs.undoable, fs.redoable]);
          await copy.dispose();
          if (report.ok) break;
          const again = await stored(backend);
          assert.equal((await go(again)).ok, true, `${way} again`);
          await again.dispose();
        }
      }
    }
  });

  test("what is changed while the store refuses an undo stays", async () => {
    const backend = new CutBackend();
    const fs = await stored(backend);
    for (const name of ["a", "b"]) fs.writeFile(`/${name}`, "old");
    await run_(fs, "t", (f) => ["a", "b"].forEach((name) => f.writeFile(`/${name}`, "new")));
    await fs.flush();
    const transact = backend.transact;
    backend.transact = async () => {
      backend.transact = transact;
      fs.writeFile("/a", "mine");
      const other = fs.beginRun("other");
      other.writeFile("/o", "o");
      throw new Error("no");
    };
    assert.equal((await fs.undo()).ok, false);
    assert.deepEqual(treeOf(fs), { "/a": "mine", "/b": "new", "/o": "o" });
    assert.deepEqual((await fs.undo()).conflicts.map(({ path }) => path), ["/a"]);
    assert.equal((await fs.undo({ skip: true })).ok, true);
    assert.deepEqual(treeOf(fs), { "/a": "mine", "/b": "old", "/o": "o" });
  });

  test("what is over the limit of before-images is declared, told before an undo, and told by it", async () => {
    const backend = new CutBackend();
    const fs = await stored(backend, { maxImageBytes: 1_000 });
    fs.writeFile("/big", "x".repeat(1_001));
    fs.writeFile("/small", "x");
    await fs.flush();
    backend.mark();
    const run = fs.beginRun("r");
    run.writeFile("/big", "y");
    run.writeFile("/small", "y");
    assert.deepEqual([run.journal.barriers, run.journal.changedPaths], [["/big"], ["/big", "/small"]]);
    await run.end();
    assert.deepEqual(fs.preview().conflicts.map(({ path }) => path), ["/big"]);
    assert.equal(run.journal.checkHealth().healthy, true);
    await fs.dispose();
    const again = await stored(backend, { maxImageBytes: 1_000 });
    assert.deepEqual(again.journal("r").barriers, ["/big"]);
    assert.deepEqual((await again.undo({ force: true })).errors.map(({ code, path }) => [code, path]), [["EFBIG", "/big"]]);
    assert.deepEqual((await again.undo({ skip: true })).restored, ["/small"]);
    await assert.rejects(VirtualFs.open({ maxImageBytes: -1 }), { code: "invalid_argument" });
    again.setMaxImageBytes(null);
    again.writeFile("/big", "z".repeat(2_000));
    await run_(again, "r2", (f) => f.rm("/big"));
    assert.equal((await again.undo()).ok, true);
    assert.equal(again.readText("/big").length, 2_000);
  });

  test("a lost file record costs that file alone", async () => {
    const backend = new CutBackend();
    const fs = await stored(backend);
    fs.mkdir("/d");
    for (const name of ["a", "b"]) fs.writeFile(`/d/${name}`, name);
    await fs.dispose();
    const key = [...backend.map.keys()].find((k) => /\/n\/0*2$/.test(k));
    backend.map.set(key, new Uint8Array([1, 2, 3, 4, 5, 6]));
    const again = await stored(backend);
    assert.deepEqual(treeOf(again), { "/d/b": "b" });
    assert.deepEqual(again.damage.keys, [key]);
  });

  test("after dispose every call is `disposed`", async () => {
    const fs = await stored(new CutBackend());
    const { node } = fs;
    await fs.dispose();
    await fs.dispose();
    const isDisposed = (error) => error instanceof SessionLogError && error.code === "disposed";
    for (const call of [() => fs.readFile("/a"), () => fs.writeFile("/a", ""), () => fs.walk(), () => fs.undoable, () => fs.exists("/a"), () => node.readFileSync("/a")]) assert.throws(call, isDisposed);
    await assert.rejects(fs.undo(), isDisposed);
    await assert.rejects(fs.flush(), isDisposed);
  });
});

describe("errors", () => {
  test("the module's code, Node's code and Node's message", async () => {
    const fs = await VirtualFs.open({ maxBytes: 10 });
    fs.mkdir("/d");
    fs.writeFile("/d/f", "1");
    const rows = [
      [() => fs.readFile("/x"), "not_found", "ENOENT", "ENOENT: no such file or directory, open '/x'"],
      [() => fs.readFile("/d"), "invalid_argument", "EISDIR", "EISDIR: illegal operation on a directory, open '/d'"],
      [() => fs.mkdir("/d"), "already_exists", "EEXIST", "EEXIST: file already exists, mkdir '/d'"],
      [() => fs.rm("/d"), "invalid_argument", "ENOTEMPTY", "ENOTEMPTY: directory not empty, rm '/d'"],
      [() => fs.rename("/x", "/y"), "not_found", "ENOENT", "ENOENT: no such file or directory, rename '/x' -> '/y'"],
      [() => fs.writeFile("/big", "12345678901"), "quota", "ENOSPC", "ENOSPC: no space left on device, open '/big'"],
      [() => fs.writeFile("", "1"), "invalid_path", "ENOENT", "ENOENT: no such file or directory, open ''"],
      [() => fs.writeFile("/a\0b", "1"), "invalid_path", "EINVAL", "EINVAL: invalid argument, open '/a\0b'"],
      [() => fs.writeFile("/\ud800", "1"), "invalid_path", "EILSEQ", "EILSEQ: illegal byte sequence, open '/\ud800'"],
      [() => fs.stat("/d/f/x"), "invalid_argument", "ENOTDIR", "ENOTDIR: not a directory, stat '/d/f/x'"],
    ];
    for (const [work, code, errno, message] of rows) {
      assert.throws(work, (error) => {
        assert.ok(error instanceof SessionLogError);
        assert.deepEqual([error.code, error.details.errno, error.message], [code, errno, message]);
        return true;
      });
    }
    assert.throws(() => fs.readFile(7), (error) => error.code === "invalid_argument");
    assert.equal(fs.exists("/\ud800"), false);
  });
});
