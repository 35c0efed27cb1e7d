// What the portable suite uses of `node:test`, for a runtime that has none: tests are collected and run on request.
const tests = [];

export function test(name, work) {
  tests.push({ name, work });
}
export default test;

export async function runAll() {
  const results = [];
  for (const { name, work } of tests) {
    try {
      await work();
      results.push({ name, ok: true });
    } catch (error) {
      results.push({ name, ok: false, message: `${error?.stack ?? error}` });
    }
  }
  return results;
}
