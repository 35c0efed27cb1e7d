// What scrubbing left behind in stored text: `[REDACTED:type]`. Only the type and the number are ever known here.
const MARK = /\[REDACTED:([A-Za-z0-9_.:-]{1,64})\]/g;

export interface Redaction {
  type: string;
  count: number;
}

export function redactionsIn(text: string): Redaction[] {
  if (!text.includes("[REDACTED:")) return [];
  const counts = new Map<string, number>();
  for (const [, type] of text.matchAll(MARK)) counts.set(type as string, (counts.get(type as string) ?? 0) + 1);
  return [...counts].map(([type, count]) => ({ type, count }));
}

export function total(redactions: Redaction[]): number {
  return redactions.reduce((sum, { count }) => sum + count, 0);
}

/** Text cut at its redaction marks: plain pieces and types in turn. */
export function splitMarks(text: string): Array<{ text: string } | { type: string }> {
  const pieces: Array<{ text: string } | { type: string }> = [];
  let from = 0;
  for (const match of text.matchAll(MARK)) {
    if (match.index > from) pieces.push({ text: text.slice(from, match.index) });
    pieces.push({ type: match[1] as string });
    from = match.index + match[0].length;
  }
  if (from < text.length) pieces.push({ text: text.slice(from) });
  return pieces;
}
