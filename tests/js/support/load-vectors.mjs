// Reads a folder of vectors, one per line of each file.
import { readFileSync, readdirSync } from "node:fs";

export function loadVectors(folder) {
  const files = readdirSync(folder).filter((name) => name.endsWith(".jsonl")).sort();
  return files.flatMap((name) => readFileSync(`${folder}/${name}`, "utf8").trimEnd().split("\n").map((line) => JSON.parse(line)));
}
