// What the browser says of its storage as a whole: room, and whether it may throw things away.

/** A headless browser may never answer; a person may take their time with a prompt. */
const PERSIST_ANSWER_MS = 5_000;
const FACTS_ANSWER_MS = 1_000;

function storageManager(): StorageManager | undefined {
  return (globalThis as { navigator?: { storage?: StorageManager } }).navigator?.storage;
}

/** The answer, or `otherwise` when there is none, in time. */
async function within<T, O>(ms: number, answer: Promise<T> | undefined, otherwise: O): Promise<T | O> {
  if (answer === undefined) return otherwise;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<O>((resolve) => {
    timer = setTimeout(() => resolve(otherwise), ms);
  });
  try {
    return await Promise.race([answer.catch(() => otherwise), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** What of it there is to know; nothing where the browser does not answer. */
export async function storageFacts(): Promise<{ persisted: boolean | null; usageBytes?: number; quotaBytes?: number }> {
  const manager = storageManager();
  const persisted = await within(FACTS_ANSWER_MS, manager?.persisted?.(), null);
  const estimate = await within(FACTS_ANSWER_MS, manager?.estimate?.(), {} as StorageEstimate);
  const { usage, quota } = estimate;
  return { persisted, ...(usage === undefined ? {} : { usageBytes: usage }), ...(quota === undefined ? {} : { quotaBytes: quota }) };
}

/** Asks the browser to keep what is stored; false when it does not answer. */
export function askToPersist(): Promise<boolean> {
  return within(PERSIST_ANSWER_MS, storageManager()?.persist?.(), false);
}
