// First use: one sentence on what this is, and three tasks that show it with the offline model.
import { attempt } from "../model/messages.ts";
import { fs, send } from "../model/workspace.ts";
import { changeSettings, DEMO } from "../model/settings.ts";
import { Icon, type IconName } from "./icon.tsx";

interface Task {
  icon: IconName;
  title: string;
  text: string;
  task: string;
  /** What is done first where this file is missing. */
  needs?: { path: string; task: string };
}

const PLAN = "write plan.md: Ship the first page\nappend plan.md: , then rest.\nwrite ideas/one.md: A log that nobody has to trust";
const TASKS: readonly Task[] = [
  {
    icon: "file",
    title: "See files change",
    text: "Writes a short plan and a list of ideas, then reads one back.",
    task: `${PLAN}\nread plan.md\nsay Two files stand in **Files**. Open one, or look at its diff above.`,
  },
  {
    icon: "undo",
    needs: { path: "/ideas/one.md", task: `${PLAN}\nsay First, two files to begin with.` },
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

async function start({ title, task, needs }: Task): Promise<void> {
  changeSettings({ model: DEMO });
  if (needs && !fs().exists(needs.path)) await send(needs.task, title);
  await send(task, title);
}

export function Welcome() {
  return (
    <div class="welcome">
      <h2>An agent that works on files in this browser, and a log that lets you see and undo all it did.</h2>
      <p>No account, no server: try it with the offline model.</p>
      <ul>
        {TASKS.map((each) => (
          <li key={each.title}>
            <button type="button" class="task" onClick={() => attempt(() => start(each))}>
              <span class="task-icon"><Icon name={each.icon} size={18} /></span>
              <span><strong>{each.title}</strong><span>{each.text}</span></span>
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}
