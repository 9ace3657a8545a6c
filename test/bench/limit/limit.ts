import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { PARTNER_LIMIT } from '../../../src/contract/limits.ts';
import type { Company } from '../../../src/sandbox/types.ts';
import { type Row, table } from '../report.ts';
import type { Bench } from '../run.ts';
import { bareLists, openStage, stop } from '../stage.ts';
import { CONDITIONS, type Condition } from './conditions.ts';
import { ourContender, PEERS, peerContender } from './contenders.ts';
import { measureTrack } from './measure.ts';
import { installRival } from './rivals.ts';

/** The share of a window that is over when the work begins, for our companies and for those of the peers. */
const OUR_PHASES = [2 / 3, 1 / 3, 0];
const PEER_PHASE = 1 / 3;
/** The window of the limit, and how many whole windows count. After a kill a worker needs seconds to find its jobs. */
const SHORT = { windowMs: 6_000, windows: 5 };
const LONG = { windowMs: 30_000, windows: 2 };
/** More than a contender can copy. */
const SIZE = { contacts: 1_000_000, conversations: 1_000_000 };
const WARM_UP_MS = 1_000;
const LOOP_MS = 3_000;
/** The burst is spent a window and this time ago, so that the next window is untouched. */
const SPENT_BEFORE_MS = 2_000;
/** The kill comes so long after a window began: some of its requests are sent, and some are not. */
const KILL_AFTER_MS = 1_000;
const AFTER_MS = 500;
/** The sandbox counts a request when it arrives, and holds its answer back. */
const CONNECTIONS = 180;

/** Our budget and sync beside its peers: the share of what limit and latency permit, and how often the service refuses. */
export const limit: Bench = async (write, rows) => {
  const unknown = rows.find((row) => !Object.hasOwn(CONDITIONS, row));
  if (unknown !== undefined) {
    const known = Object.keys(CONDITIONS).join(', ');
    throw new Error(`The bench "limit" has no row "${unknown}". Its rows are: ${known}.`);
  }
  installRival(write);
  write(`one company each, two lists, all at the same time on one sandbox, whose journal counts
This app copies three companies. The peers only fetch and parse. The burst allowance is spent before.

`);
  for (const [name, condition] of Object.entries(CONDITIONS)) {
    if (rows.length > 0 && !rows.includes(name)) continue;
    write(`${name}: ${condition.title}\n\n${table(await runCondition(condition))}\n\n`);
  }
};

async function runCondition(condition: Condition): Promise<Row[]> {
  const { latencyMs, guard, othersShare = 0, workers = 1, clockAheadMs = 0, kill } = condition;
  const { windowMs, windows } = kill ? LONG : SHORT;
  await using stage = await openStage({ windowMs, latencyMs });
  const { sandbox, stack } = stage;
  const agent = new Agent({ connections: CONNECTIONS, pipelining: 1 });
  stack.defer(() => agent.destroy());

  const loop = stage.startBareLoop();
  const lists = bareLists(sandbox.apiUrl, [stage.addCompany(SIZE)]);
  await loop({ lists, atOnce: 2, forMs: WARM_UP_MS });
  const bare = await loop({ lists, atOnce: 2, forMs: LOOP_MS });

  const ours = OUR_PHASES.map(() => stage.addCompany(SIZE));
  const contenders = [
    ourContender(stage, ours, workers),
    ...PEERS.map((peer) => peerContender(stage, peer, stage.addCompany(SIZE), { windowMs, workers })),
  ];
  const companies = contenders.flatMap((contender) => contender.companies);
  const other = sandbox.register({ name: 'Another app', redirect_uris: ['http://127.0.0.1:9/back'] });
  const tokens = new Map(companies.map((company) => [company, sandbox.tokens(other, company).access_token]));
  /** A request of the other application, which has the same limit. */
  const spend = async (company: Company) => {
    const headers = { authorization: `Bearer ${tokens.get(company)}` };
    const answer = await request(`${sandbox.apiUrl}/me`, { headers, dispatcher: agent });
    await answer.body.dump();
    return answer.statusCode;
  };
  const processes = await Promise.all(contenders.map((contender) => contender.start(false)));

  sandbox.clock.set(Date.now() + clockAheadMs - windowMs - SPENT_BEFORE_MS);
  const burst = Array.from({ length: PARTNER_LIMIT * 1.5 }, () => companies.map(spend));
  if (Math.max(...(await Promise.all(burst.flat()))) > 200) throw new Error('The burst was not spent.');
  sandbox.clock.set(Date.now() + clockAheadMs);
  if (guard !== undefined)
    sandbox.guards.add({ tier: 'lists', ...guard, paths: ['/contacts', '/conversations'] });

  const before = sandbox.requests().at(-1)?.n ?? 0;
  for (const [at, phase] of OUR_PHASES.entries()) {
    const peers = phase === PEER_PHASE ? companies.slice(ours.length) : [];
    const opened = ours.slice(at, at + 1).map((company) => stage.install(company));
    const until = sleep(windowMs * (phase - (OUR_PHASES[at + 1] ?? phase)));
    await Promise.all([...opened, ...peers.map(spend), until]);
  }
  if (othersShare > 0) {
    const sendAll = () => {
      for (const company of companies) spend(company).catch(() => clearInterval(timer));
    };
    const timer = setInterval(sendAll, windowMs / (PARTNER_LIMIT * othersShare));
    stack.defer(() => clearInterval(timer));
  }

  const endsAt = performance.now() + windowMs * (windows + 1) + AFTER_MS;
  await Promise.all(contenders.map((contender, at) => contender.go(processes[at] ?? [])));
  if (kill) {
    await sleep(windowMs * (1 - PEER_PHASE) + KILL_AFTER_MS);
    await Promise.all(processes.flat().map((child) => stop(child, 'SIGKILL')));
    await Promise.all(contenders.map((contender) => contender.start(true)));
  }
  await sleep(endsAt - performance.now());
  const journal = sandbox.requests(before);
  const loopPerSecond = (bare.pages / bare.wallMs) * 1_000;
  const setting = { windowMs, windows, limit: PARTNER_LIMIT, loopPerSecond, othersId: other.client_id };
  return contenders.flatMap(({ label, companies: own }) =>
    own.map((company) => {
      const { share, refused, pages, others } = measureTrack(journal, company.id, setting);
      return {
        who: label,
        'share, %': share * 100,
        '429s': refused,
        pages,
        ...(othersShare > 0 && { 'other: served': others.served, 'other: 429s': others.refused }),
      };
    }),
  );
}
