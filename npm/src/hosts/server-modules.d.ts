// The used subset of what server runtimes have, so that their types do not become everybody's.
declare module "node:fs" {
  export function openSync(path: string, flags: string): number;
  export function closeSync(fd: number): void;
  export function readSync(fd: number, buffer: Uint8Array, offset: number, length: number, position: number): number;
  export function writeSync(fd: number, buffer: Uint8Array, offset: number, length: number, position: number): number;
  export function fdatasyncSync(fd: number): void;
  export function fsyncSync(fd: number): void;
  export function ftruncateSync(fd: number, length: number): void;
  export function fstatSync(fd: number): { size: number };
  export function renameSync(from: string, to: string): void;
  export function rmSync(path: string, options: { force: boolean }): void;
  export function mkdirSync(path: string, options: { recursive: boolean }): void;
  export function readFileSync(path: string, encoding: "utf8"): string;
  export function writeFileSync(path: string, data: string, options: { flag: string }): void;
  export function realpathSync(path: string): string;
}
declare module "node:path" {
  export function join(...parts: string[]): string;
}
declare module "node:process" {
  const process: { readonly pid: number; readonly version: string; kill(pid: number, signal: 0): boolean };
  export default process;
}
