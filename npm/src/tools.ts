// Tools over the files of a run, and what a tool gets and gives.
import type { ContentPart, JsonValue, RunFs, ToolDefinition } from "../types/index.js";
import { SessionLogError } from "./errors.js";

type Args = { [key: string]: JsonValue };

const text = (description: string): JsonValue => ({ type: "string", description });

function schema(properties: { [name: string]: JsonValue }, required: string[]): JsonValue {
  return { type: "object", properties, required, additionalProperties: false };
}

const PATH = text("Path of the file, from the root");

/** The tools that an agent needs to work with files; `approval` is that of the ones that change something. */
export function fileTools(options: { approval?: "never" | "policy" | "always" } = {}): ToolDefinition[] {
  const changing = { mutating: true, approval: options.approval ?? "never" } as const;
  const reading = { parallel: true, idempotent: true } as const;
  return [
    tool("read_file", "Reads a text file.", schema({ path: PATH }, ["path"]), reading, (fs, { path }) => fs.readText(path as string)),
    tool("write_file", "Writes a text file; makes it and its directories, or replaces what it held.", schema({ path: PATH, content: text("All of the new content") }, ["path", "content"]), { ...changing, idempotent: true }, (fs, { path, content }) => {
      makeParents(fs, path as string);
      fs.writeFile(path as string, content as string);
      return `Wrote ${path as string}.`;
    }),
    tool("append_file", "Adds text at the end of a file; makes it when there is none.", schema({ path: PATH, content: text("What is added") }, ["path", "content"]), changing, (fs, { path, content }) => {
      makeParents(fs, path as string);
      fs.writeFile(path as string, content as string, { append: true });
      return `Appended to ${path as string}.`;
    }),
    tool("delete_file", "Deletes a file, or a directory with all that it holds.", schema({ path: PATH }, ["path"]), changing, (fs, { path }) => {
      fs.rm(path as string, { recursive: true });
      return `Deleted ${path as string}.`;
    }),
    tool("move_file", "Moves or renames a file or directory.", schema({ from: text("Where it is"), to: text("Where it is to be") }, ["from", "to"]), changing, (fs, { from, to }) => {
      makeParents(fs, to as string);
      fs.rename(from as string, to as string);
      return `Moved ${from as string} to ${to as string}.`;
    }),
    tool("list_files", "Lists all files below a directory.", schema({ path: text("Directory; the root when left out") }, []), reading, (fs, { path }) => {
      const entries = fs.walk((path as string | undefined) ?? "/").filter(({ type }) => type !== "directory");
      return entries.length === 0 ? "There are no files." : entries.map(({ path: at, size }) => `${at} (${size} bytes)`).join("\n");
    }),
  ];
}

type Flags = Pick<ToolDefinition, "parallel" | "mutating" | "idempotent" | "approval">;

function tool(name: string, description: string, parameters: JsonValue, flags: Flags, run: (fs: RunFs, args: Args) => JsonValue): ToolDefinition {
  return { name, description, parameters, ...flags, run: (args, { fs }) => run(fs, args as Args) };
}

function makeParents(fs: RunFs, path: string): void {
  const at = path.replace(/\/+$/, "").lastIndexOf("/");
  if (at > 0) fs.mkdir(path.slice(0, at), { recursive: true });
}

// ------------------------------------------------------------ arguments

/** Refuses a list of tools that cannot be told apart or run. */
export function checkTools(tools: readonly ToolDefinition[]): void {
  const names = new Set<string>();
  for (const { name, run, parameters } of tools) {
    if (typeof name !== "string" || name === "") throw invalid("a tool needs a name");
    if (names.has(name)) throw invalid(`two tools have the name ${name.slice(0, 80)}`);
    if (typeof run !== "function") throw invalid(`the tool ${name.slice(0, 80)} has no run function`);
    if (typeof parameters !== "boolean" && (typeof parameters !== "object" || parameters === null)) throw invalid(`the parameters of the tool ${name.slice(0, 80)} are not a schema`);
    names.add(name);
  }
}

const invalid = (message: string): SessionLogError => new SessionLogError("invalid_argument", message, { path: "tools" });

// -------------------------------------------------------------- results

function isPart(value: unknown): value is ContentPart {
  const { type, text: words, mediaType } = (value ?? {}) as { [key: string]: unknown };
  return type === "text" ? typeof words === "string" : (type === "image" || type === "file") && typeof mediaType === "string";
}

/** What a tool gave, as the content of its result. */
export function contentOf(value: unknown): string | ContentPart[] {
  if (typeof value === "string") return value;
  if (value === undefined || value === null) return "";
  if (Array.isArray(value) && value.length > 0 && value.every(isPart)) return value;
  try {
    // What JSON has no word for is left out, as everywhere in JavaScript.
    return JSON.stringify(value) ?? "";
  } catch {
    return String(value);
  }
}
