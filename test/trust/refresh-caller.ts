import { createHash } from 'node:crypto';
import { Redis } from 'ioredis';
import { createApp } from '../../src/app.ts';
import { ServiceTime } from '../../src/client/service-time.ts';
import { loadConfig } from '../../src/config.ts';
import { createLogger } from '../../src/runtime/logging.ts';
import { accessTokenFrom } from '../tokens/access-token.ts';

/** What the process is told to do. */
export interface CallOrder {
  instanceId: string;
  /** How many want a token at the same time. */
  callers: number;
  /** Whether they say that the token that the process got last was rejected. */
  rejectsLast: boolean;
}

/** What came of it: tokens by their digests. */
export interface CallResult {
  tokens: string[];
  failures: { remedy: string; message: string }[];
}

// A process of the app, as far as tokens go: waits for orders in a list of Redis that has its name, and tells the results
// in another.
const [, , name = ''] = process.argv;
const config = loadConfig(process.env);
const redisUrl = config.redisUrl ?? '';
const app = await createApp(config, redisUrl, createLogger({ logLevel: 'silent', production: true }));
const time = new ServiceTime(app.clock, config.service.authUrl, 0);
const redis = new Redis(redisUrl, { maxRetriesPerRequest: null });
process.stdout.write('ready\n');

let last: string | undefined;
for (;;) {
  const [, text = ''] = (await redis.blpop(`orders:${name}`, 0)) ?? [];
  const { instanceId, callers, rejectsLast } = JSON.parse(text) as CallOrder;
  const rejected = rejectsLast ? last : undefined;
  await time.refresh();
  const asked = Array.from({ length: callers }, () => accessTokenFrom(app.tokens, instanceId, rejected));
  const result: CallResult = { tokens: [], failures: [] };
  for (const answer of await Promise.allSettled(asked)) {
    if (answer.status === 'fulfilled') {
      last = answer.value;
      result.tokens.push(createHash('sha256').update(answer.value).digest('hex'));
    } else {
      result.failures.push({ remedy: answer.reason.remedy, message: answer.reason.message });
    }
  }
  await redis.rpush('results', JSON.stringify(result));
}
