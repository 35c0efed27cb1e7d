import { smoke } from "./smoke.js";

smoke().then(postMessage, (error) => postMessage(`FAIL ${error?.code ?? ""} ${error?.message ?? error}`));
