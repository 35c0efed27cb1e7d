import { smoke } from "./src/smoke.js";

console.log(await smoke());
