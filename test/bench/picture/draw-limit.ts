import type { Line, Measured } from '../limit/measure.ts';

const WIDTH = 1_000;
const LABEL_WIDTH = 196;
const MARGIN = 24;
const GAP = 28;
const TOP = 104;
const ROW = 66;
/** Of a row, for what is drawn; above it stand its figures. */
const PLOT = 40;
const BOTTOM = 40;
/** Requests are counted in steps of this. */
const STEP_MS = 250;
const TICK_MS = 6_000;

const INK = '#1f2328';
const PALE = '#59636e';
const LINE = '#d1d9e0';
const OURS = '#0969da';
const PEER = '#818b98';
const RED = '#cf222e';

/** A panel: one condition, everybody below each other on one scale. */
interface Panel {
  measured: Measured;
  lines: readonly Line[];
  title: string;
  x: number;
  width: number;
  endMs: number;
  mostPerSecond: number;
}

/**
 * Draws what everybody sent in rows of the bench of the limit: requests a second, refusals, and where windows open.
 *
 * @param panels one or two rows of the bench, side by side
 * @returns an SVG of its own background
 */
export function drawLimit(panels: readonly { measured: Measured; title: string }[]): string {
  const width = (WIDTH - 2 * MARGIN - LABEL_WIDTH - GAP * (panels.length - 1)) / panels.length;
  const busiest = panels.flatMap(({ measured }) =>
    chosen(measured.lines).flatMap((line) => steps(line, 200, endOf(measured))),
  );
  const mostPerSecond = Math.max(...busiest, 1) * (1_000 / STEP_MS);
  const drawn = panels.map(({ measured, title }, at): Panel => {
    const lines = chosen(measured.lines);
    const endMs = endOf(measured);
    const x = MARGIN + LABEL_WIDTH + at * (width + GAP);
    return { measured, lines, title, x, width, endMs, mostPerSecond };
  });
  const rows = drawn[0]?.lines ?? [];
  const height = TOP + rows.length * ROW + BOTTOM;
  const { limit = 0, windowMs = 0 } = drawn[0]?.measured ?? {};
  const seconds = windowMs / 1_000;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-labelledby="title desc" font-family="system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif">
<title id="title">Requests a second under a limit of ${limit} in ${seconds} s: this app beside its peers</title>
<desc id="desc">${escaped(described(drawn))}</desc>
<rect x="0.5" y="0.5" width="${WIDTH - 1}" height="${height - 1}" rx="10" fill="#ffffff" stroke="${LINE}"/>
${text(MARGIN, 36, `${limit} requests in ${seconds} s are allowed: who uses them, and who is refused`, 17, INK, 'font-weight="600"')}
${text(MARGIN, 58, `Requests a second, one company each, all at the same time on one sandbox, counted by it. A thin line: a window opens.`, 12.5, PALE)}
${legend()}
${drawn.map(panel).join('\n')}
${rows.map(label).join('\n')}
${text(MARGIN, height - BOTTOM + 18, `Height of a row: ${mostPerSecond} a second`, 11, PALE)}
</svg>
`;
}

/** A window longer than what is measured: it begins in the middle of one. */
function endOf({ windowMs, windows }: Measured): number {
  return windowMs * windows + (windowMs * 2) / 3;
}

/** Ours once, at the phase that the peers have. */
function chosen(lines: readonly Line[]): Line[] {
  const peer = lines.find(({ isOurs }) => !isOurs);
  return lines.filter(({ isOurs, openForMs }) => !isOurs || openForMs === (peer?.openForMs ?? openForMs));
}

/** How many requests of that status there were in each step. */
function steps({ requests }: Line, status: number, endMs: number): number[] {
  const counted = new Array<number>(Math.ceil(endMs / STEP_MS)).fill(0);
  for (const [at, seen] of requests) {
    const step = Math.floor(at / STEP_MS);
    if (seen === status && step in counted) counted[step] = (counted[step] ?? 0) + 1;
  }
  return counted;
}

function panel({ lines, title, x, width, endMs, mostPerSecond }: Panel): string {
  const xOf = (ms: number) => round(x + (ms / endMs) * width);
  const bottom = TOP + lines.length * ROW;
  const ticks: string[] = [];
  for (let ms = 0; ms <= endMs; ms += TICK_MS) {
    ticks.push(text(xOf(ms), bottom + 18, `${ms / 1_000} s`, 11, PALE, 'text-anchor="middle"'));
  }
  const drawn = lines.map((line, at) => {
    const base = TOP + at * ROW + ROW - 8;
    return row(line, { xOf, base, endMs, mostPerSecond, right: x + width });
  });
  return [text(x, TOP - 8, title, 12.5, INK, 'font-weight="600"'), ...drawn, ...ticks].join('\n');
}

function row(
  line: Line,
  at: { xOf: (ms: number) => number; base: number; endMs: number; mostPerSecond: number; right: number },
): string {
  const { xOf, base, endMs, mostPerSecond, right } = at;
  const yOf = (count: number) => round(base - ((count * 1_000) / STEP_MS / mostPerSecond) * PLOT);
  const served = steps(line, 200, endMs);
  let area = `M${xOf(0)} ${base}`;
  for (const [step, count] of served.entries()) {
    if (count === served[step - 1]) continue;
    area += `H${xOf(step * STEP_MS)}V${yOf(count)}`;
  }
  area += `H${xOf(endMs)}V${base}Z`;
  const edges = line.windowStarts
    .filter((ms) => ms >= 0 && ms < endMs)
    .map((ms) => `M${xOf(ms)} ${base}v${-PLOT - 4}`)
    .join('');
  const refused = steps(line, 429, endMs).flatMap((count, step) =>
    count === 0
      ? []
      : [
          `<circle cx="${xOf((step + 0.5) * STEP_MS)}" cy="${base - 4}" r="${Math.min(2.5 + count * 0.4, 5)}"/>`,
        ],
  );
  const figures = `<tspan${line.refused > 0 ? ` fill="${RED}"` : ''}>${line.refused} × 429</tspan> · ${line.pages} pages`;
  return `<path d="${area}" fill="${line.isOurs ? OURS : PEER}"${line.isOurs ? '' : ' fill-opacity="0.75"'}/>
<path d="${edges}M${xOf(0)} ${base}H${xOf(endMs)}" stroke="${LINE}" fill="none"/>
<g fill="${RED}">${refused.join('')}</g>
<text x="${right}" y="${base - PLOT - 6}" font-size="11" fill="${PALE}" text-anchor="end">${figures}</text>`;
}

function label({ label: name, isOurs }: Line, at: number): string {
  const y = TOP + at * ROW + ROW - 8 - PLOT / 2 + 4;
  const [first = '', ...rest] = name.split(', ');
  const weight = isOurs ? `font-weight="600"` : '';
  const lines = [text(MARGIN, rest.length > 0 ? y - 7 : y, first, 13, isOurs ? OURS : INK, weight)];
  if (rest.length > 0) lines.push(text(MARGIN, y + 9, rest.join(', '), 11.5, PALE));
  return lines.join('\n');
}

function legend(): string {
  const y = TOP - 36;
  return `<rect x="${MARGIN}" y="${y}" width="10" height="10" fill="${OURS}"/><rect x="${MARGIN + 12}" y="${y}" width="10" height="10" fill="${PEER}" fill-opacity="0.75"/>
${text(MARGIN + 28, y + 9, 'served', 11.5, PALE)}
<circle cx="${MARGIN + 84}" cy="${y + 5}" r="3.5" fill="${RED}"/>
${text(MARGIN + 92, y + 9, 'refused with 429', 11.5, PALE)}`;
}

function described(panels: readonly Panel[]): string {
  return panels
    .map(({ title, lines }) => {
      const parts = lines.map((line) => `${line.label}: ${line.pages} pages, ${line.refused} times 429`);
      return `${title}. ${parts.join('; ')}.`;
    })
    .join(' ');
}

function text(x: number, y: number, content: string, size: number, fill: string, more = ''): string {
  return `<text x="${x}" y="${y}" font-size="${size}" fill="${fill}"${more === '' ? '' : ` ${more}`}>${escaped(content)}</text>`;
}

function escaped(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
