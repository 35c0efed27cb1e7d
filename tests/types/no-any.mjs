// Fails when a published declaration names `any`: it switches checking off for whoever touches it.
import { readFileSync, readdirSync } from "node:fs";

const dir = "pkg/dist/";
const files = readdirSync(dir).filter((name) => name.endsWith(".d.ts"));
if (files.length === 0) throw new Error("no declarations in pkg/dist");
const found = [];
for (const name of files) {
  const code = readFileSync(dir + name, "utf8").replace(/\/\*[\s\S]*?\*\//g, (comment) => comment.replace(/[^\n]/g, " ")).replace(/\/\/.*$/gm, "");
  code.split("\n").forEach((line, at) => /\bany\b/.test(line) && found.push(`${name}:${at + 1}: ${line.trim()}`));
}
if (found.length > 0) {
  console.error(`declarations name any:\n${found.join("\n")}`);
  process.exit(1);
}
