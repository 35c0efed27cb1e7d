// The system's Chromium, for every suite. PAGE_SLOW=4 makes its pages compute four times slower: what a test only passes on
// an idle machine shows.
import { execFileSync } from "node:child_process";
import { chromium } from "playwright-core";

export const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
];
const SLOW = Number(process.env.PAGE_SLOW ?? 1);

export function findChromium() {
  return process.env.CHROMIUM ?? execFileSync("sh", ["-c", "command -v chromium || command -v chromium-browser || command -v google-chrome"], { encoding: "utf8" }).trim();
}

export async function launchChromium(options = {}) {
  const browser = await chromium.launch({ executablePath: findChromium(), args: FLAGS, ...options });
  if (SLOW > 1) slowDown(browser);
  return browser;
}

function slowDown(browser) {
  const newContext = browser.newContext.bind(browser);
  browser.newContext = async (options) => {
    const context = await newContext(options);
    const newPage = context.newPage.bind(context);
    context.newPage = async () => {
      const page = await newPage();
      const session = await context.newCDPSession(page);
      await session.send("Emulation.setCPUThrottlingRate", { rate: SLOW });
      return page;
    };
    return context;
  };
  browser.newPage = async (options) => (await browser.newContext(options)).newPage();
}
