// Which part a narrow screen shows; a wide one shows all of them.
import { signal } from "@preact/signals";

export type View = "sessions" | "chat" | "files" | "log";
export const view = signal<View>("chat");
