// For places where no file can be fetched at all: the module comes as text inside the script.
import bytes from "./bytes.js";
import { compile, makeInit } from "./boot.js";

export * from "./sessionlog.js";
export { initSync } from "./boot.js";

export default makeInit(() => compile(bytes()));
