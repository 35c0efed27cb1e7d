// Starts the page: styles, views, then the store; the service worker comes last so that it takes nothing from the first paint.
import "@fontsource-variable/geist/index.css";
import "@fontsource-variable/geist-mono/index.css";
import "./styles/main.css";
import { render } from "preact";
import { App } from "./app.tsx";
import { applyTheme, settings } from "./model/settings.ts";
import { openWorkspace } from "./model/workspace.ts";

applyTheme(settings.value.theme);
const root = document.getElementById("app") as HTMLElement;
root.replaceChildren();
render(<App />, root);
void openWorkspace();

if ("serviceWorker" in navigator) {
  addEventListener("load", () => {
    navigator.serviceWorker.register("./sw.js").catch(() => {
      // Without one the page works as long as there is a network.
    });
  });
}
