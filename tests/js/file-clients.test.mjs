// Real clients on the files: what they write is read back, and a run of theirs can be undone.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { readFileSync } from "node:fs";
import init, { VirtualFs, toJustBash } from "sessionlog";

before(() => init());

test("isomorphic-git: init, add, commit, branch, checkout, merge, status, log", async () => {
  const git = (await import("isomorphic-git")).default;
  const files = await VirtualFs.open();
  const fs = files.node;
  const repo = { fs, dir: "/repo", author: { name: "A", email: "a@example.org", timestamp: 1_700_000_000, timezoneOffset: 0 } };
  files.mkdir("/repo");
  await git.init({ ...repo, defaultBranch: "main" });
  files.writeFile("/repo/a.txt", "one\n");
  files.mkdir("/repo/src");
  files.writeFile("/repo/src/b.txt", "b\n");
  await git.add({ ...repo, filepath: ["a.txt", "src/b.txt"] });
  const first = await git.commit({ ...repo, message: "first" });
  assert.equal(await git.status({ ...repo, filepath: "a.txt" }), "unmodified");
  files.writeFile("/repo/a.txt", "two\n");
  assert.equal(await git.status({ ...repo, filepath: "a.txt" }), "*modified");

  files.writeFile("/repo/a.txt", "one\n");
  await git.branch({ ...repo, ref: "side", checkout: true });
  files.writeFile("/repo/side.txt", "side\n");
  await git.add({ ...repo, filepath: "side.txt" });
  await git.commit({ ...repo, message: "on the side" });
  await git.checkout({ ...repo, ref: "main" });
  assert.equal(files.exists("/repo/side.txt"), false);
  files.writeFile("/repo/src/b.txt", "b2\n");
  await git.add({ ...repo, filepath: "src/b.txt" });
  await git.commit({ ...repo, message: "on main" });
  const run = files.beginRun("merge");
  const merged = await git.merge({ ...repo, fs: run.node, ours: "main", theirs: "side" });
  await git.checkout({ ...repo, fs: run.node, ref: "main" });
  await run.end();
  assert.equal(files.readText("/repo/side.txt"), "side\n");
  const log = await git.log(repo);
  // It lists what two parents lead to twice, on a disk too.
  assert.deepEqual([...new Set(log.map((entry) => entry.commit.message.trim()))].sort(), ["Merge branch 'side' into main", "first", "on main", "on the side"]);
  assert.equal(log[0].oid, merged.oid);
  assert.ok(log.some((entry) => entry.oid === first));

  const report = await files.undo();
  assert.equal(report.ok, true);
  assert.deepEqual((await git.log(repo)).map((entry) => entry.commit.message.trim()), ["on main", "first"]);
  assert.equal(files.exists("/repo/side.txt"), false);
  const matrix = await git.statusMatrix(repo);
  assert.ok(matrix.every(([, head, work, stage]) => head === 1 && work === 1 && stage === 1), JSON.stringify(matrix));
});

for (const defenseInDepth of [false, true]) {
  test(`just-bash ${defenseInDepth ? "with" : "without"} its defences`, async () => {
    const { Bash } = await import("just-bash");
    const files = await VirtualFs.open();
    files.mkdir("/home/user", { recursive: true });
    files.writeFile("/home/user/in.txt", "c\na\nb\na\n");
    const run = files.beginRun("bash");
    const bash = new Bash({ fs: toJustBash(run), cwd: "/home/user", defenseInDepth });
    const script = [
      "sort in.txt | uniq > out.txt", "mkdir -p d/e && cp out.txt d/e/", "ln -s e d/l && cat d/l/out.txt", "mv out.txt moved.txt",
      "ls -a d", "find . -name '*.txt' | sort", "cat nothing.txt || echo missing", "rm -r d/e", "echo more >> in.txt", "chmod 600 in.txt",
    ].join("\n");
    const result = await bash.exec(script);
    assert.match(result.stderr, /nothing\.txt: No such file or directory/);
    assert.equal(result.stdout, "a\nb\nc\n.\n..\ne\nl\n./d/e/out.txt\n./in.txt\n./moved.txt\nmissing\n");
    assert.equal(files.readText("/home/user/in.txt"), "c\na\nb\na\nmore\n");
    assert.equal(files.stat("/home/user/in.txt").mode, 0o600);
    assert.equal(files.readlink("/home/user/d/l"), "e");
    await run.end();
    const report = await files.undo();
    assert.deepEqual({ ok: report.ok, restored: report.restored }, { ok: true, restored: ["/home/user/in.txt"] });
    assert.deepEqual(files.readdir("/home/user"), ["in.txt"]);
    assert.equal(files.readText("/home/user/in.txt"), "c\na\nb\na\n");
  });
}

test("the TypeScript compiler", async () => {
  const ts = (await import("typescript5")).default;
  const files = await VirtualFs.open();
  const fs = files.node;
  const lib = fileURLToPath(import.meta.resolve("typescript5/package.json")).replace("package.json", "lib");
  files.mkdir("/lib");
  files.mkdir("/src");
  for (const name of ["lib.es5.d.ts", "lib.decorators.d.ts", "lib.decorators.legacy.d.ts"]) files.writeFile(`/lib/${name}`, readFileSync(`${lib}/${name}`));
  files.writeFile("/src/a.ts", 'import { twice } from "./b";\nexport const n: number = twice(21);\nexport const wrong: string = n;\n');
  files.writeFile("/src/b.ts", "export function twice(n: number): number { return n * 2; }\n");
  const options = { target: ts.ScriptTarget.ES2015, module: ts.ModuleKind.ES2015, moduleResolution: ts.ModuleResolutionKind.Node10, outDir: "/out", strict: true };
  const host = {
    getSourceFile: (name, version) => (fs.existsSync(name) ? ts.createSourceFile(name, fs.readFileSync(name, "utf8"), version) : undefined),
    getDefaultLibFileName: () => "/lib/lib.es5.d.ts", getCurrentDirectory: () => "/", getCanonicalFileName: (name) => name,
    useCaseSensitiveFileNames: () => true, getNewLine: () => "\n",
    fileExists: (name) => fs.statSync(name, { throwIfNoEntry: false })?.isFile() ?? false,
    readFile: (name) => fs.readFileSync(name, "utf8"),
    directoryExists: (name) => fs.statSync(name, { throwIfNoEntry: false })?.isDirectory() ?? false,
    getDirectories: (name) => fs.readdirSync(name, { withFileTypes: true }).filter((entry) => entry.isDirectory()).map((entry) => entry.name),
    realpath: (name) => fs.realpathSync(name),
    writeFile: (name, text) => {
      fs.mkdirSync(name.slice(0, name.lastIndexOf("/")), { recursive: true });
      fs.writeFileSync(name, text);
    },
  };
  const program = ts.createProgram(["/src/a.ts"], options, host);
  const faults = ts.getPreEmitDiagnostics(program);
  assert.deepEqual(faults.map((fault) => [fault.file?.fileName, fault.code]), [["/src/a.ts", 2322]]);
  program.emit();
  assert.match(files.readText("/out/a.js"), /twice\(21\)/);
  assert.deepEqual(files.readdir("/out"), ["a.js", "b.js"]);
});

test("esbuild-wasm bundles from the files and back into them", async () => {
  const esbuild = (await import("esbuild-wasm")).default;
  const files = await VirtualFs.open();
  const { promises } = files.node;
  await promises.mkdir("/src/lib", { recursive: true });
  await promises.writeFile("/src/main.ts", 'import { name } from "./lib/name";\nconsole.log(`hello ${name as string}`);\n');
  await promises.writeFile("/src/lib/name.ts", 'export const name = "files";\n');
  const plugin = {
    name: "files",
    setup(build) {
      build.onResolve({ filter: /.*/ }, ({ path, importer }) => ({
        namespace: "files",
        path: path.startsWith(".") ? files.realpath(`${importer.slice(0, importer.lastIndexOf("/"))}/${path}.ts`) : path,
      }));
      build.onLoad({ filter: /.*/, namespace: "files" }, async ({ path }) => ({ contents: await promises.readFile(path), loader: "ts" }));
    },
  };
  const result = await esbuild.build({ entryPoints: ["/src/main.ts"], bundle: true, write: false, format: "esm", outdir: "/dist", plugins: [plugin] });
  await promises.mkdir("/dist");
  for (const { path, contents } of result.outputFiles) await promises.writeFile(path, contents);
  const [name] = await promises.readdir("/dist");
  assert.match(await promises.readFile(`/dist/${name}`, "utf8"), /hello \$\{name\}|hello files/);
  await esbuild.stop?.();
});
