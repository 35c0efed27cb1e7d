// Icons as inline pictures that a screen reader passes over; the button around one has the name.
import {
  Archive, ArchiveRestore, ArrowDown, ArrowUp, Brain, Check, ChevronRight, CircleAlert, Copy, CornerDownRight, Download, Ellipsis, Eye, File, FilePlus, Folder,
  GitFork, HardDrive, History, List, Menu, MessageSquare, Moon, Pencil, Plus, Redo2, Search, Settings, ShieldCheck, Square, Sun, Trash2, TriangleAlert,
  Undo2, Upload, Wrench, X,
} from "lucide";
import { h } from "preact";

const ICONS = {
  archive: Archive, unarchive: ArchiveRestore, down: ArrowDown, up: ArrowUp, brain: Brain, check: Check, chevron: ChevronRight, alert: CircleAlert, copy: Copy,
  steer: CornerDownRight, download: Download, more: Ellipsis, eye: Eye, file: File, newFile: FilePlus, folder: Folder, fork: GitFork, disk: HardDrive,
  history: History, list: List, menu: Menu, chat: MessageSquare, moon: Moon, pencil: Pencil, plus: Plus, redo: Redo2, search: Search,
  settings: Settings, shield: ShieldCheck, stop: Square, sun: Sun, trash: Trash2, warning: TriangleAlert, undo: Undo2, upload: Upload, tool: Wrench, close: X,
} as const;
export type IconName = keyof typeof ICONS;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">
      {ICONS[name].map(([tag, attributes], key) => h(tag, { key, ...(attributes as object) }))}
    </svg>
  );
}
