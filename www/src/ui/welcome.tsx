// First use: one sentence on what this is, and three tasks that show it with the offline model.
import { attempt } from "../model/messages.ts";
import { send } from "../model/workspace.ts";
import { changeSettings, DEMO } from "../model/settings.ts";
import { Icon, type IconName } from "./icon.tsx";

const TASKS: ReadonlyArray<{ icon: IconName; title: string; text: string; task: string }> = [
  {
    icon: "file",
    title: "See files change",
    text: "Writes a short plan and a list of ideas, then reads one back.",
    task: "write plan.md: Ship the first page\nappend plan.md: , then rest.\nwrite ideas/one.md: A log that nobody has to trust\nread plan.md\nsay Two files stand in **Files**. Open one, or look at its diff above.",
  },
  {
    icon: "undo",
    title: "Take a run back",
    text: "Rewrites and deletes files. Then press the button below to put all of it back.",
    task: "write plan.md: Start over from nothing\ndelete ideas/one.md\nsay That was bold. Take it back with the button under the message box: both files return as they were.",
  },
  {
    icon: "shield",
    title: "Watch a secret vanish",
    text: "A made-up credential turns up in the answer. It never reaches the log.",
    task: "secret\nsay It is redacted here, in the log, and in whatever is sent to a model next.",
  },
];

export function Welcome() {
  return (
    <div class="welcome">
      <h2>An agent that works on files in this browser, and a log that lets you see and undo all it did.</h2>
      <p>No account, no server: try it with the offline model.</p>
      <ul>
        {TASKS.map(({ icon, title, text, task }) => (
          <li key={title}>
            <button type="button" class="task" onClick={() => { changeSettings({ model: DEMO }); attempt(() => send(task, title)); }}>
              <span class="task-icon"><Icon name={icon} size={18} /></span>
              <span><strong>{title}</strong><span>{text}</span></span>
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}
