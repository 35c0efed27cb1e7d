// The public surface. One line per part; start-up (`init`, `initSync`) comes from the entries.
export { SessionLogError } from "./errors.js";
