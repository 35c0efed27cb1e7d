// Bundles a worker as Cloudflare's tool would and runs it in workerd on a free loopback port.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { tool } from "./helper.mjs";

export const binary = tool("@cloudflare/workerd-linux-64/bin/workerd");
export const skip = binary === null && "no workerd for this platform";

export async function bundle(dir, { alias = {}, entry = "worker.mjs" } = {}) {
  const out = join(dir, "out");
  await build({
    absWorkingDir: dir, entryPoints: { worker: entry }, outdir: out, outExtension: { ".js": ".mjs" }, bundle: true, format: "esm",
    conditions: ["workerd", "worker", "browser"], alias, external: ["node:*", "cloudflare:*"], loader: { ".wasm": "copy" }, assetNames: "[name]", logLevel: "error",
  });
  cpSync(join(dir, "config.capnp"), join(out, "config.capnp"));
  return join(out, "config.capnp");
}

/** Starts workerd itself, not a wrapper around it, so that a kill hits it. */
export async function start(config, { disk = null } = {}) {
  const place = disk === null ? [] : [`--directory-path=do-disk=${disk}`];
  if (disk !== null) mkdirSync(disk, { recursive: true });
  const child = spawn(binary, ["serve", config, "--socket-addr=http=127.0.0.1:0", ...place, "--control-fd=3"], { stdio: ["ignore", "inherit", "pipe", "pipe"] });
  let said = "";
  child.stderr.on("data", (data) => (said += data));
  const exited = once(child, "exit");
  const port = await new Promise((ok, no) => {
    let text = "";
    child.stdio[3].on("data", (data) => {
      text += data;
      for (const line of text.split("\n")) {
        const message = line.startsWith("{") && line.endsWith("}") ? JSON.parse(line) : {};
        if (message.event === "listen" && message.socket === "http") ok(message.port);
      }
    });
    child.once("exit", (code) => no(new Error(`workerd ended with ${code}: ${said}`)));
  });
  return { url: `http://127.0.0.1:${port}`, said: () => said, kill: async (signal = "SIGKILL") => { child.kill(signal); await exited; } };
}
