// A stock Firefox, driven over WebDriver BiDi; a test that needs one skips itself where there is none, and is counted.
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";

/** Where Firefox is: what FIREFOX names, else the first one on PATH; null where there is none. */
export function findFirefox() {
  const named = process.env.FIREFOX;
  if (named) return existsSync(named) ? named : null;
  for (const name of ["firefox-esr", "firefox"]) {
    for (const folder of (process.env.PATH ?? "").split(delimiter)) if (existsSync(join(folder, name))) return join(folder, name);
  }
  return null;
}

/** For the options of a test: `test(name, { skip: noFirefox() }, …)`. */
export function noFirefox() {
  return findFirefox() === null ? "Firefox is not installed" : false;
}

/** A headless Firefox with a profile of its own, gone when it closes. */
export async function launchFirefox(options = {}) {
  const { default: puppeteer } = await import("puppeteer-core");
  return puppeteer.launch({ browser: "firefox", executablePath: findFirefox(), headless: true, ...options });
}
