// Tokens and money of a session: the sum, a line of how it grew, and each step.
import { stepFigures, type StepFigure } from "../model/costs.ts";
import { money } from "../model/figures.ts";
import { type Open } from "../model/workspace.ts";

const WIDTH = 360;
const HEIGHT = 96;

export function CostView({ open }: { open: Open }) {
  const figures = stepFigures(open.events.value);
  const usage = open.usage.value;
  return (
    <div class="scroller" tabIndex={0} role="group" aria-label="Cost and tokens">
      <dl class="totals">
        <div><dt>Cost</dt><dd>{money(usage?.cost)}</dd></div>
        <div><dt>Tokens in</dt><dd>{(usage?.promptTokens ?? 0).toLocaleString()}</dd></div>
        <div><dt>Tokens out</dt><dd>{(usage?.completionTokens ?? 0).toLocaleString()}</dd></div>
        <div><dt>Steps</dt><dd>{usage?.steps ?? 0}</dd></div>
      </dl>
      {usage && usage.unpricedSteps > 0 && <p class="hint">{usage.unpricedSteps} of these steps have no known price, so the sum is a lower bound.</p>}
      {figures.length > 0 && <Chart figures={figures} />}
      {figures.length > 0 && (
        <table class="figures">
          <thead><tr><th scope="col">Step</th><th scope="col" class="words">Model</th><th scope="col">In</th><th scope="col">Out</th><th scope="col">Cost</th></tr></thead>
          <tbody>
            {figures.slice(-200).map((figure) => (
              <tr key={figure.seq}>
                <th scope="row">{figure.turn}.{figure.step}</th>
                <td class="words">{figure.model}</td>
                <td>{figure.usage?.inputTokens.toLocaleString() ?? "?"}</td>
                <td>{figure.usage?.outputTokens.toLocaleString() ?? "?"}</td>
                <td>{figure.cost ? money(figure.cost) : "unknown"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}

function Chart({ figures }: { figures: StepFigure[] }) {
  const top = figures.at(-1)?.sum || 1;
  // The line begins at nothing, before the first step.
  const x = (index: number) => ((index + 1) / figures.length) * WIDTH;
  const y = (sum: number) => HEIGHT - 4 - (sum / top) * (HEIGHT - 12);
  const points = figures.map(({ sum }, index) => `${x(index).toFixed(1)},${y(sum).toFixed(1)}`);
  const line = `M0,${HEIGHT - 4} L${points.join(" L")}`;
  const label = `Cumulative cost over ${figures.length} ${figures.length === 1 ? "step" : "steps"}, up to $${top.toPrecision(3)}`;
  return (
    <figure class="chart">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label} preserveAspectRatio="none">
        <path class="area" d={`${line} L${WIDTH},${HEIGHT - 4} Z`} />
        <path class="line" d={line} />
      </svg>
      <figcaption>Cumulative cost, step by step</figcaption>
    </figure>
  );
}
